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

import math
import operator
import re
from typing import Any, ClassVar

from micrograd import ops
from micrograd.ops import Operand, Operation

CHOICE, BOTH, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)     # what binds tighter is larger
_INFIX = {ops.add: SUM, ops.sub: SUM, ops.mul: PRODUCT, ops.div: PRODUCT, ops.pow: POWER, ops.equal: COMPARISON}
_FACTS: dict[str, Any] = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
ESCAPED = str.maketrans({**{c: f"\\{c}" for c in "{}$&#_%"}, "\\": r"\backslash ", "^": r"\hat{\ }", "~": r"\sim "})
_PRINTED = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")      # functions that have a command in LaTeX


def _comparison(symbol: str) -> Any:
    return lambda self, other: self.compare(symbol, self, other)


class Name(Operand):
    """A piece of Python text that can stand in a formula; operators and functions make longer pieces.

    Args:
        text: the piece.
        precedence: how tightly it holds together; a name or a call is an ATOM.
        parts: the operation and its inputs, if the piece is made of others.
        known: the number that it stands for, if a style has a use for it.

    Only what changes no bit is simplified: factors and exponents of 1, double signs, choices that are
    decided already. `simplify = False` in a subclass leaves all as it is; `expand = False` writes composed
    operations (sigmoid, silu, ...) as calls instead of spelling them out.

    >>> a, b = Name("a"), Name("b")
    >>> (a - (b - 1.0) * 2.0).text, (-(a ** 2.0)).text, ((-a) ** 2.0).text
    ('a - (b - 1.0) * 2.0', '-a ** 2.0', '(-a) ** 2.0')
    """

    __slots__ = ("known", "parts", "precedence", "since", "text")
    rank = 9                                            # a formula swallows whatever stands in it
    expand: ClassVar[bool] = True
    simplify: ClassVar[bool] = True
    regroup: ClassVar[bool] = False                     # whether a + (b + c) may be written a + b + c
    symbols: ClassVar[dict[str, str]] = {}              # how this style writes an infix symbol, with its spaces

    def __init__(self, text: str, precedence: int = ATOM, parts: tuple = (), known: Any = None) -> None:
        self.text, self.precedence, self.parts, self.known = text, precedence, parts, known
        self.since: tuple[str, ...] = ()

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
        loose = self.regroup and symbol in "+*"
        left, right = a.within(precedence + (symbol == "**")), b.within(precedence + (not loose))
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
            x = self.of(inputs[0])
            product = self.regroup and x.precedence == PRODUCT
            piece = type(self)(f"-{x.text if product else x.within(POWER)}", PRODUCT if product else SIGN)
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

    def compare(self, symbol: str, a: Any, b: Any) -> Name:
        """a < b and its like."""
        return self.infix(symbol, COMPARISON, a, b)

    def both(self, other: Any) -> Any:
        """self & other: conditions that hold together."""
        if isinstance(other, bool):
            return self if other else False
        return self.infix("and", BOTH, self, other)

    __lt__, __gt__, __le__, __ge__ = map(_comparison, ("<", ">", "<=", ">="))
    __and__ = __rand__ = lambda self, other: self.both(other)


class Prose(Name):
    """A formula as on the board: 3·x², |x|, √x. A piece may know its number, and then choices are made.

    `since` says why: the derivative of relu is 1, since r > 0.

    >>> u = Prose("u", known=6.0)
    >>> slope = ops.relu.rules[0](1.0, u, Prose("r", known=6.0))
    >>> slope.text, slope.since, (u * u - 2.0 * u).text
    ('1', ('r > 0',), 'u² - 2·u')
    """

    __slots__ = ()
    expand, regroup = False, True
    digits: ClassVar[int] = 4
    dot, arrow, transposed = " · ", " → ", "ᵀ"
    symbols = {"*": "·", "/": "/", "==": " = ", "<=": " ≤ ", ">=": " ≥ "}

    @classmethod
    def number(cls, x: Any) -> str:
        if getattr(x, "ndim", 0):
            return f"[{'×'.join(map(str, x.shape))}]"   # an array without a name, by its form
        if not math.isfinite(x):
            return "nan" if x != x else "∞" if x > 0 else "-∞"
        return str(int(x)) if x == int(x) and abs(x) < 1e6 else f"{x:.{cls.digits}g}"

    @classmethod
    def of(cls, x: Any) -> Any:
        if isinstance(x, Name):
            return x
        text = cls.number(x)
        return cls(text, SIGN if text[0] == "-" else PRODUCT if "e" in text else ATOM, (), x)

    def infix(self, symbol: str, precedence: int, a: Any, b: Any) -> Name:
        a, b = self.of(a), self.of(b)
        if symbol == "*" and "/" in a.text and a.precedence == PRODUCT:
            a = type(self)(f"({a.text})")               # (1/y)·2: nobody wonders what is below the line
        return self.power(a, b) if symbol == "**" else super().infix(symbol, precedence, a, b)

    @classmethod
    def label(cls, text: str) -> str:
        """How the name of a node is written."""
        return text

    @classmethod
    def rate(cls, of: Name, by: Name) -> Prose:
        """How "the change of one per change of another" is written."""
        return cls(f"d{cls.simple(of.text)}/d{cls.simple(by.text)}")

    @classmethod
    def times(cls, *factors: Any) -> str:
        """A product with room around its dots, for factors that are products themselves."""
        first, *others = (cls.of(x).within(PRODUCT) for x in factors)
        return cls.dot.join([first, *(f"({x})" if x[0] == "-" else x for x in others)])

    @staticmethod
    def simple(text: str) -> str:
        """The text, in parentheses unless it is one name."""
        return text if re.fullmatch(r"\w+′*", text) else f"({text})"

    def power(self, a: Name, b: Name) -> Name:
        """How a power is written."""
        raised = b.text.translate(_RAISED) if b.text.lstrip("-").isdigit() else f"^{b.within(ATOM)}"
        return type(self)(f"{a.within(ATOM)}{raised}", POWER)

    def call(self, name: str, *inputs: Name) -> Name:
        x = inputs[0]
        text = {"abs": f"|{x.text}|", "sqrt": f"√{x.within(ATOM)}"}.get(name)
        return type(self)(text) if text else super().call(name, *inputs)

    def compare(self, symbol: str, a: Any, b: Any) -> Name:
        a, b = self.of(a), self.of(b)
        piece = super().compare(symbol, a, b)
        if isinstance(a.known, (int, float)) and isinstance(b.known, (int, float)):
            piece.known = _FACTS[symbol](a.known, b.known)
            a, b = sorted((a, b), key=lambda x: (not x.text[0].isalpha(), x.text))      # each fact is said in one way
            fact = "<" if a.known < b.known else ">" if a.known > b.known else "=="
            piece.since = (super().compare(fact, a, b).text,)
        return piece

    def both(self, other: Any) -> Any:
        piece = super().both(other)
        if isinstance(other, Name) and None not in (self.known, other.known):
            piece.known, piece.since = self.known and other.known, (*self.since, *other.since)
        return piece

    def apply(self, op: Operation, *inputs: Any) -> Any:
        pieces: list[Any] = [self.of(x) for x in inputs]
        if op is ops.equal:
            return self.compare("==", *inputs)
        reasons = [reason for x in pieces for reason in x.since]
        if op is ops.where and isinstance(pieces[0].known, (bool, int, float)):
            piece = pieces[1 if pieces[0].known else 2]
            reasons = [*pieces[0].since, *piece.since]
        else:
            piece = super().apply(op, *inputs)
            known = [x.known for x in pieces]
            if ops.TABLE.get(op.name) is op and isinstance(piece, Name) and all(type(x) is float for x in known):
                piece.known = op(*known)
        if reasons:                                     # a copy, for the piece may be one that others use
            piece = self.of(piece)
            piece = type(self)(piece.text, piece.precedence, piece.parts, piece.known)
            piece.since = tuple(dict.fromkeys(reasons))
        return piece

    def simpler(self, op: Operation, *inputs: Any) -> Any:
        inputs = tuple(x.known if isinstance(x, Name) and x.known is not None and x.text == self.of(x.known).text else x
                       for x in inputs)
        if op is ops.add and (_is(inputs[0], 0) or _is(inputs[1], 0)):
            return inputs[_is(inputs[0], 0)]
        a, b = map(self.of, (*inputs, 0.0)[:2])
        if op is ops.mul and a.text == b.text and a.precedence == ATOM and not a.text[0].isdigit():
            return a ** 2.0
        if op is ops.div and a.parts[:1] == (ops.div,) and self.of(a.parts[2]).text == b.text:
            return a.parts[1] / b ** 2.0
        return super().simpler(op, *inputs)


class Latex(Prose):
    r"""A formula as in print.

    >>> x = Latex("x")
    >>> print((ops.tanh(x ** 2.0) / (x + 1.0)).text)
    \frac{\tanh\left(x^{2}\right)}{x + 1}
    """

    __slots__ = ()
    dot, arrow, transposed = r" \cdot ", r" \to ", r"^\top"
    symbols = {"*": r" \cdot ", "==": " = ", "<=": r" \le ", ">=": r" \ge ", "and": r" \text{ and } "}

    @classmethod
    def number(cls, x: float) -> str:
        digits, _, power = super().number(x).replace("∞", r"\infty").replace("nan", r"\text{nan}").partition("e")
        return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits

    @classmethod
    def label(cls, text: str) -> str:
        name = text.rstrip("0123456789")
        below = f"_{{{text[len(name):]}}}" if text != name else ""
        name = name.rstrip("_") if below else name
        return (name if name.isalpha() and len(name) == 1 else
                rf"\mathrm{{{name.translate(ESCAPED | {ord(' '): chr(92) + ' '})}}}") + below

    @classmethod
    def rate(cls, of: Name, by: Name) -> Prose:
        return cls(rf"\frac{{\partial {of.within(ATOM)}}}{{\partial {by.within(ATOM)}}}")

    def infix(self, symbol: str, precedence: int, a: Any, b: Any) -> Name:
        if symbol == "/":
            return type(self)(rf"\frac{{{self.of(a).text}}}{{{self.of(b).text}}}", PRODUCT)
        return super().infix(symbol, precedence, a, b)

    def power(self, a: Name, b: Name) -> Name:
        return type(self)(f"{a.within(ATOM)}^{{{b.text}}}", POWER)

    def call(self, name: str, *inputs: Name) -> Name:
        if name in ("abs", "sqrt"):
            return type(self)(rf"\left|{inputs[0].text}\right|" if name == "abs" else rf"\sqrt{{{inputs[0].text}}}")
        command = f"\\{name}" if name in _PRINTED else rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}"
        return type(self)(rf"{command}\left({', '.join(x.text for x in inputs)}\right)")

    def choice(self, condition: Name, a: Name, b: Name) -> Name:
        return type(self)(rf"\begin{{cases}} {a.text} & {condition.text} \\ {b.text} & \text{{else}} \end{{cases}}")

    def within(self, precedence: int) -> str:
        return self.text if self.precedence >= precedence else rf"\left({self.text}\right)"


def _is(x: Any, number: float) -> bool:
    return isinstance(x, (int, float)) and x == number


def formula(op: Operation, i: int, *inputs: Any, y: Any = None) -> str:
    """The derivative of `op` by input `i`, written in the style of the names in `inputs`.

    Args:
        y: the name of the result, which many rules use; left out, the operation on the inputs.

    >>> a, b = Name("a"), Name("b")
    >>> formula(ops.mul, 0, a, b), formula(ops.add, 1, a, b), formula(ops.pow, 0, a, 3.0)
    ('b', '1.0', '3.0 * a ** 2.0')
    """
    style = next((x for x in (*inputs, y) if isinstance(x, Name)), Name(""))
    return style.of(op.rules[i](1.0, *inputs, style.apply(op, *inputs) if y is None else y)).text
