"""Run a rule on names instead of numbers, and it writes its own formula down.

>>> from micrograd import ops
>>> x, w = Name("x"), Name("w")
>>> ops.tanh(w * (x + 1.0)).text
'tanh(w * (x + 1.0))'
>>> formula(ops.tanh, 0, x, y=Name("y"))
'1.0 - y * y'

`Name` writes Python. `Prose` writes what a teacher would put on the board, `Latex` what a paper prints.
A style is a subclass: it says how a number, a call, a choice and an infix symbol look.
"""

from __future__ import annotations

from typing import Any, ClassVar

from micrograd import ops
from micrograd.ops import Operand, Operation

CHOICE, BOTH, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)     # what binds tighter is larger
_INFIX = {ops.add: SUM, ops.sub: SUM, ops.mul: PRODUCT, ops.div: PRODUCT, ops.pow: POWER, ops.equal: COMPARISON}


def _comparison(symbol: str) -> Any:
    return lambda self, other: self.infix(symbol, COMPARISON, self, other)


class Name(Operand):
    """A piece of Python text that can stand in a formula; operators and functions make longer pieces.

    Args:
        text: the piece.
        precedence: how tightly it holds together; a name or a call is an ATOM.
        parts: the operation and its inputs, if the piece is made of others.

    Only what changes no bit is simplified: factors and exponents of 1, double signs, choices that are
    decided already. `simplify = False` in a subclass leaves all as it is; `expand = False` writes composed
    operations (sigmoid, silu, ...) as calls instead of spelling them out.

    >>> a, b = Name("a"), Name("b")
    >>> (a - (b - 1.0) * 2.0).text, (-(a ** 2.0)).text, ((-a) ** 2.0).text
    ('a - (b - 1.0) * 2.0', '-a ** 2.0', '(-a) ** 2.0')
    """

    __slots__ = ("parts", "precedence", "text")
    rank = 9                                            # a formula swallows whatever stands in it
    expand: ClassVar[bool] = True
    simplify: ClassVar[bool] = True
    symbols: ClassVar[dict[str, str]] = {}              # how this style writes an infix symbol, with its spaces

    def __init__(self, text: str, precedence: int = ATOM, parts: tuple = ()) -> None:
        self.text, self.precedence, self.parts = text, precedence, parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    # ------------------------------------------------------------------ what a style says
    @classmethod
    def number(cls, x: float) -> str:
        """How a number is written."""
        return repr(x)

    def call(self, name: str, *inputs: Name) -> Name:
        """How a function is written."""
        return type(self)(f"{name}({', '.join(x.text for x in inputs)})")

    def choice(self, condition: Name, a: Name, b: Name) -> Name:
        """How `a if condition else b` is written."""
        return type(self)(f"{a.within(BOTH)} if {condition.within(BOTH)} else {b.within(CHOICE)}", CHOICE)

    def infix(self, symbol: str, precedence: int, a: Any, b: Any) -> Name:
        """How two pieces with a symbol between them are written; the symbols group to the left."""
        a, b = self.of(a), self.of(b)
        left, right = a.within(precedence + (symbol == "**")), b.within(precedence + 1)
        if right[:1] == "-":
            right = f"({right})"
        return type(self)(f"{left}{self.symbols.get(symbol, f' {symbol} ')}{right}", precedence)

    # ----------------------------------------------------------------- what all have in common
    @classmethod
    def of(cls, x: Any) -> Name:
        """A piece for whatever may stand in a rule: a piece, a number, a bool."""
        if isinstance(x, Name):
            return x
        text = repr(x) if isinstance(x, bool) else cls.number(float(x))
        return cls(text, SIGN if text[0] == "-" else ATOM)

    def within(self, precedence: int) -> str:
        """The text, in parentheses if it holds together less tightly than its surroundings."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def apply(self, op: Operation, *inputs: Any) -> Any:
        """`op` on pieces and numbers, as a longer piece (or a number, where it is one already)."""
        if self.simplify and (simple := self.simpler(op, *inputs)) is not None:
            return simple
        if op in _INFIX:
            piece = self.infix(op.symbol, _INFIX[op], *inputs)
        elif op is ops.neg:
            piece = type(self)(f"-{self.of(inputs[0]).within(SIGN + 1)}", SIGN)
        elif op is ops.where:
            piece = self.choice(*map(self.of, inputs))
        elif self.expand and op.array is None and getattr(op.forward, "__module__", "builtins") != "builtins":
            return op.forward(*inputs)                  # composed of others in the table: spell it out
        else:
            piece = self.call(op.name, *map(self.of, inputs))
        piece.parts = (op, *inputs)
        return piece

    def simpler(self, op: Operation, *inputs: Any) -> Any:
        """The result where it needs no new piece, else None."""
        a, b = (*inputs, None)[:2]
        if op is ops.where:
            return inputs[1 if a else 2] if isinstance(a, bool) else None
        if op is ops.neg:
            return a.parts[1] if isinstance(a, Name) and a.parts[:1] == (ops.neg,) else None
        if op is ops.pow and _is(b, 0):
            return 1.0                                  # whatever a is, nan too
        if op in (ops.mul, ops.div, ops.pow) and _is(b, 1) or op is ops.mul and _is(a, 1):
            return b if _is(a, 1) else a
        if op is ops.mul and (_is(a, -1) or _is(b, -1)):
            return -(b if _is(a, -1) else a)
        return None

    def both(self, other: Any) -> Any:
        """self & other: conditions that hold together."""
        if isinstance(other, bool):
            return self if other else False
        return self.infix("and", BOTH, self, other)

    __lt__, __gt__, __le__, __ge__ = map(_comparison, ("<", ">", "<=", ">="))
    __and__ = __rand__ = both


def _is(x: Any, number: float) -> bool:
    return not isinstance(x, Name) and x is not None and x == number


def formula(op: Operation, i: int, *inputs: Any, y: Any = None) -> str:
    """The derivative of `op` by input `i`, written in the style of the names in `inputs`.

    Args:
        y: the name of the result, which many rules use; left out, the operation on the inputs.

    >>> a, b = Name("a"), Name("b")
    >>> formula(ops.mul, 0, a, b), formula(ops.add, 1, a, b), formula(ops.pow, 0, a, 3.0)
    ('b', '1.0', '3.0 * a ** 2.0')
    """
    style = next((x for x in inputs if isinstance(x, Name)), Name(""))
    y = style.apply(op, *inputs) if y is None else y
    return style.of(op.rules[i](1.0, *inputs, y)).text
