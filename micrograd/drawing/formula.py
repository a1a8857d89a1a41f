"""A derivative in letters: run the rule of the table on names, and read what it wrote.

A `Term` is a name that knows its number. Rules of the table are written in operators, so they run on terms as
they do on floats and leave a text behind; where a rule asks a question (is x > 0?), the number answers, and the
text is that of the branch that was taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from micrograd.ops import Operand, Operation

_STRENGTH = {"add": 1, "sub": 1, "mul": 2, "div": 2, "neg": 2, "pow": 4}
_SIGN = {"add": " + ", "sub": " - ", "mul": "·", "div": "/"}
_UNITS = {"mul": ((0, 1), (1, 1)), "div": ((1, 1),), "add": ((0, 0), (1, 0)), "sub": ((1, 0),), "pow": ((1, 1),)}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


class Term(Operand):
    """A piece of a formula: its text, its number, and how strongly its last operator binds."""

    __slots__ = ("number", "strength", "text")

    def __init__(self, text: str, number: Any, strength: int = 5) -> None:
        self.text, self.number, self.strength = text, number, strength

    def apply(self, op: Operation, *inputs: Any) -> Any:
        """What a student would write for `op` of the inputs, without ones and zeros that say nothing."""
        numbers = [x.number if isinstance(x, Term) else x for x in inputs]
        if op.name == "where":
            if getattr(numbers[0], "ndim", 0):          # an array: here this branch, there the other
                return Term(f"{_text(inputs[2])} or {_text(inputs[1])}", op(*numbers), 0)
            return inputs[1] if numbers[0] else inputs[2]
        result = op(*numbers)
        if not any(op.rules):
            return result                               # a comparison: the number answers
        for i, unit in _UNITS.get(op.name, ()):
            if not isinstance(inputs[i], Term) and inputs[i] == unit:
                return inputs[1 - i]
        strength = _STRENGTH.get(op.name, 5)
        parts = [_wrapped(x, strength + (i and op.name in ("sub", "div") or op.name == "pow" and not i))
                 for i, x in enumerate(inputs)]
        return Term(_joined(op, inputs, parts), result, strength)

    def _compare(name: str) -> Callable:  # type: ignore[misc]
        return lambda self, other: getattr(self.number, name)(getattr(other, "number", other))

    __lt__, __gt__, __le__, __ge__ = map(_compare, ("__lt__", "__gt__", "__le__", "__ge__"))


def _joined(op: Operation, inputs: tuple, parts: list[str]) -> str:
    """The text of one operation, as it is written by hand: x² for x·x, -x for -1·x."""
    if op.name == "neg" or op.name == "mul" and not isinstance(inputs[0], Term) and inputs[0] == -1:
        return f"-{parts[-1]}"
    if op.name == "mul" and parts[0] == parts[1]:
        return f"{parts[0]}²"
    if op.name == "mul" and parts[0].startswith("1/"):
        return parts[1] + parts[0][1:]
    if op.name == "div" and parts[0].endswith(f"/{parts[1]}"):
        return f"{parts[0]}²"
    if op.name in _SIGN:
        return _SIGN[op.name].join(parts)
    if op.name == "pow":
        return parts[0] + (parts[1].translate(_RAISED) if parts[1].lstrip("-").isdigit() else f"^{parts[1]}")
    return f"{op.symbol}({', '.join(map(_text, inputs))})"


def _text(x: Any) -> str:
    return x.text if isinstance(x, Term) else f"{x:g}" if not getattr(x, "ndim", 0) else "…"


def _wrapped(x: Any, strength: int) -> str:
    weak = x.strength < strength if isinstance(x, Term) else strength > 1 and _text(x).startswith("-")
    return f"({_text(x)})" if weak else _text(x)


def formula(op: Operation, i: int, names: list[str], inputs: list[Any], name: str, data: Any, local: str) -> str:
    """The local derivative by input `i`, in letters and then as the number `local`; a name "" is a plain number.

    >>> from micrograd.ops import TABLE
    >>> formula(TABLE["mul"], 1, ["x", "w"], [2.0, -3.0], "u", -6.0, "2.0")
    '∂u/∂w = x = 2.0'
    >>> formula(TABLE["tanh"], 0, ["n"], [0.0], "o", 0.0, "1.0")
    '∂o/∂n = 1 - o² = 1.0'
    """
    terms = [Term(n, x) if n else x for n, x in zip(names, inputs, strict=True)]
    written = op.rules[i](1.0, *terms, Term(name, data))
    return f"∂{name}/∂{names[i]} = " + (f"{written.text} = " if isinstance(written, Term) else "") + local
