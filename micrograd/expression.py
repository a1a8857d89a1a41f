"""A formula as text becomes a graph: it is read with Python's own grammar, and never run as code.

Only what `read` knows is let through: numbers, names, + - * / **, comparisons (for `where`), the functions
of the table, and steps such as `u = w*x + b; u**2`. Anything else is an `ExpressionError`, in one line.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import operator
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from micrograd import ops
from micrograd.engine import Value

MAX_LENGTH, MAX_DEPTH = 10_000, 100
_OPERATORS: dict[type, Callable] = {
    ast.Add: ops.add, ast.Sub: ops.sub, ast.Mult: ops.mul, ast.Div: ops.div, ast.Pow: ops.pow,
    ast.USub: ops.neg, ast.UAdd: lambda x: x,
    ast.Lt: operator.lt, ast.Gt: operator.gt, ast.LtE: operator.le, ast.GtE: operator.ge, ast.Eq: ops.equal}
FUNCTIONS: dict[str, Callable] = {**ops.TABLE, "clamp": ops.clamp}
_ADVICE = {ast.BitXor: "for a power write **", ast.Attribute: "write tanh(x) for x.tanh()",
           ast.MatMult: "for a product write *", ast.Compare: "comparisons such as a < b stand first in where(condition, a, b)",
           ast.IfExp: "write where(condition, a, b)"}


class ExpressionError(ValueError):
    """What is wrong with an expression, in one line."""


def read(text: str, numbers: Mapping[str, float]) -> tuple[Value, dict[str, Value]]:
    """The result of an expression as a node, and every name in it: the variables first, then the steps.

    Args:
        text: one expression, or steps separated by `;` or new lines; a step may be `name = expression`.
        numbers: the variables. Each must be used, and each name must have a number.

    >>> y, names = read("u = w*x + b; u**2", {"x": 2, "w": 3, "b": 1})
    >>> y.backward()
    >>> y.data, names["w"].grad, names["u"].data
    (49.0, 28.0, 7.0)
    >>> read("__import__('os')", {})
    Traceback (most recent call last):
    micrograd.expression.ExpressionError: there is no function '__import__'
    """
    return _Reader(numbers).run(_parsed(text))


def _parsed(text: str) -> list[ast.stmt]:
    """The statements of the text; whatever Python's parser has against it becomes one line."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    try:
        with warnings.catch_warnings(action="ignore"):
            statements = ast.parse("\n".join(line.strip() for line in text.splitlines())).body
    except SyntaxError as error:
        lines = (error.text or "").splitlines()
        near = lines[0][max(0, (error.offset or 1) - 9):][:20].strip() if lines else ""
        raise ExpressionError(f"cannot read the expression{near and f' near {near!r}'}: "
                              f"{error.msg.split(';')[0]}") from None
    except (RecursionError, MemoryError):
        raise ExpressionError("the expression is nested too deeply; take it in steps: u = ...; v = ...") from None
    except (ValueError, OverflowError) as error:
        raise ExpressionError(f"cannot read the expression: {error}") from None
    if not statements:
        raise ExpressionError("the expression is empty; try for example 'x*w + b'")
    return statements


class _Reader:
    """Walks over the syntax tree and builds the graph; a kind of syntax without a method here is refused."""

    def __init__(self, numbers: Mapping[str, float]) -> None:
        given = {unicodedata.normalize("NFKC", name): number for name, number in numbers.items()}    # as Python does
        self.names = {name: Value(number, label=name) for name, number in given.items()}
        self.unused = dict(self.names)

    def run(self, statements: list[ast.stmt]) -> tuple[Value, dict[str, Value]]:
        result: Any = None
        for statement in statements:
            result = self.statement(statement)
        if self.unused:
            raise ExpressionError(f"{', '.join(self.unused)} has a number, but the expression does not use it")
        return (result if isinstance(result, Value) else Value(result, requires_grad=False)), self.names

    def statement(self, statement: ast.stmt) -> Any:
        if isinstance(statement, ast.Expr):
            return self.value(statement.value, 0)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(
                target := statement.targets[0], ast.Name):
            raise ExpressionError(f"a step is an expression or NAME = expression, not {_shown(statement)}")
        if target.id in self.names or target.id in FUNCTIONS:
            raise ExpressionError(f"{target.id} has a meaning already; give the step another name")
        result = self.value(statement.value, 0)
        if not isinstance(result, Value):
            result = Value(result, requires_grad=False)
        if not result.label:
            result.label = target.id
        self.names[target.id] = result
        return result

    def value(self, node: ast.expr, depth: int) -> Any:
        """The node or number that a piece of syntax stands for."""
        if depth > MAX_DEPTH:
            raise ExpressionError(f"the expression is nested over {MAX_DEPTH} deep; take it in steps: u = ...; v = ...")
        method = getattr(self, type(node).__name__, None)
        if method is None:
            raise self.refused(node, node)
        return method(node, depth + 1)

    def operator(self, node: ast.expr, symbol: ast.AST) -> Callable:
        """The operation that a symbol stands for."""
        if type(symbol) not in _OPERATORS:
            raise self.refused(node, symbol)
        return _OPERATORS[type(symbol)]

    def refused(self, node: ast.AST, kind: object) -> ExpressionError:
        advice = _ADVICE.get(type(kind), "an expression has numbers, names, + - * / ** and functions")
        return ExpressionError(f"{_shown(node)} is not understood; {advice}")

    def Constant(self, node: ast.Constant, depth: int) -> float:
        if not isinstance(node.value, (int, float)) or isinstance(node.value, bool):
            raise self.refused(node, node)
        try:
            return float(node.value)
        except OverflowError:
            raise ExpressionError(f"the number {_shown(node)} is too large for a float") from None

    def Name(self, node: ast.Name, depth: int) -> Any:
        self.unused.pop(node.id, None)
        if node.id in self.names:
            return self.names[node.id]
        if node.id == "pi":
            return math.pi
        if node.id in FUNCTIONS:
            raise ExpressionError(f"{node.id} is a function; write {node.id}(...)")
        raise ExpressionError(f"{node.id} has no number; add for example {node.id}=1.5")

    def BinOp(self, node: ast.BinOp, depth: int) -> Any:
        chain: list[ast.BinOp] = []                     # a long sum leans to the left, and is not deep
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            chain.append(left)
            left = left.left
        result = self.value(left, depth)
        for link in reversed(chain):
            result = self.operator(link, link.op)(result, self.value(link.right, depth))
        return result

    def UnaryOp(self, node: ast.UnaryOp, depth: int) -> Any:
        return self.operator(node, node.op)(self.value(node.operand, depth))

    def condition(self, node: ast.expr, depth: int) -> Any:
        """The first input of `where`: a comparison, or a number that is 0 for no."""
        if not isinstance(node, ast.Compare):
            return self.value(node, depth)
        compare = self.operator(node, node.ops[0] if len(node.ops) == 1 else node)
        return bool(compare(self.value(node.left, depth), self.value(node.comparators[0], depth)))

    def Call(self, node: ast.Call, depth: int) -> Any:
        if not isinstance(node.func, ast.Name):
            raise self.refused(node, node.func)
        name = node.func.id
        if name not in FUNCTIONS:
            near = difflib.get_close_matches(name, FUNCTIONS, 1)
            raise ExpressionError(f"there is no function {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
        if node.keywords or any(isinstance(x, ast.Starred) for x in node.args):
            raise ExpressionError(f"{name} takes plain inputs here, as in {name}(x)")
        inputs = [(self.condition if name == "where" and x is node.args[0] else self.value)(x, depth) for x in node.args]
        try:
            return FUNCTIONS[name](*inputs)
        except (TypeError, ValueError) as error:
            raise ExpressionError(str(error)) from None


def variables(pairs: list[str]) -> dict[str, float]:
    """The numbers in `x=2`, `w=-3.5`.

    >>> variables(["x=2", "w=-3.5"])
    {'x': 2.0, 'w': -3.5}
    """
    numbers: dict[str, float] = {}
    for pair in pairs:
        name, sign, number = (part.strip() for part in pair.partition("="))
        if not sign or not name.isidentifier() or keyword.iskeyword(name):
            raise ExpressionError(f"{pair!r:.60} is not of the form NAME=NUMBER, as in x=2")
        if name in numbers or name in FUNCTIONS:
            raise ExpressionError(f"{name} has two numbers" if name in numbers else
                                  f"{name} is a function; give the variable another name")
        try:
            numbers[name] = float(number)
        except ValueError:
            raise ExpressionError(f"{name} needs a number, got {number!r:.60}; write for example {name}=1.5") from None
    return numbers


def _shown(node: ast.AST) -> str:
    """A piece of syntax as text, short enough for a message."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        text = type(node).__name__
    return repr(text if len(text) <= 40 else text[:37] + "...")
