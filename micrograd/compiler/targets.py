"""The same program in the words of several languages."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from micrograd import ops
from micrograd.compiler.trace import AFTER, AND, BOOLEAN, EACH, ONCE, TOTAL, Step, Style, Tape, Trace
from micrograd.names import _INFIX, BOTH, CHOICE, COMPARISON, SUM, Name
from micrograd.ops import TABLE, Operation

_SYMBOLS = {op: (op.symbol, _INFIX[op]) for op in (ops.add, ops.sub, ops.mul)}
BACKWARD = "backward: d_x is the derivative of the result by x; in a rule, g is what arrives at y"
LONGEST = 20                        # operations on one line: for the reader, and for Python's parser
_MATH = {name: name for name, op in TABLE.items() if op.forward is getattr(math, name, None)}


class Python(Style):
    """Floats and the functions of `math`. Fast, but raises where IEEE 754 has an answer: see `Guarded`."""

    __slots__ = ()
    calls_anything = True
    names: ClassVar[dict[str, str]] = _MATH
    repeats: ClassVar[set[Operation]] = {ops.relu, ops.maximum, ops.minimum, ops.sign}

    def write(self, op: Operation, *inputs: Any) -> Name:
        a, b = (*inputs, None)[:2]
        if op is ops.pow:                               # of a negative number Python's ** may be complex
            exponent = b.value
            whole = exponent is not None and exponent > 0 and float(exponent).is_integer()
            return self.infix("**", 6, a, b) if whole else self.call("pow", a, b)
        if op is ops.relu:
            return self.choice(self.infix("<=", COMPARISON, a, 0.0), self.of(0.0), a)
        if op is ops.maximum or op is ops.minimum:
            symbol = ">" if op is ops.maximum else "<"
            return self.choice(self.either(self.infix(symbol, COMPARISON, a, b), self.infix("!=", COMPARISON, a, a)), a, b)
        if op is ops.sign:
            above, below = self.infix(">", COMPARISON, a, 0.0), self.infix("<", COMPARISON, a, 0.0)
            return self.call("float", self.infix("-", SUM, above, below))
        return super().write(op, *inputs)

    def either(self, a: Name, b: Name) -> Name:
        return type(self)(f"{a.text} or {b.text}", BOTH)


class Guarded(Python):
    """As Python, but each operation that can raise is the table's own, which answers as IEEE 754 does."""

    __slots__ = ()

    def write(self, op: Operation, *inputs: Any) -> Name:
        return self.call(op.name, *inputs) if op is ops.div or op is ops.pow else super().write(op, *inputs)


class C(Python):
    """C, in doubles."""

    __slots__ = ()
    calls_anything = False
    alphabet = re.ASCII
    names: ClassVar[dict[str, str]] = {**_MATH, "abs": "fabs", "float": "(double)"}
    infixes: ClassVar[dict] = {**Style.infixes, AND: ("&&", BOTH)}
    assign, again = "double {} = {};", "{} += {};"

    @classmethod
    def number(cls, x: float) -> str:
        return "(0.0 / 0.0)" if x != x else repr(x).replace("inf", "(1.0 / 0.0)")

    def choice(self, condition: Name, a: Name, b: Name) -> Name:
        return type(self)(f"{condition.within(BOTH)} ? {a.within(BOTH)} : {b.within(CHOICE)}", CHOICE)

    def either(self, a: Name, b: Name) -> Name:
        return type(self)(f"({a.text} || {b.text})")

    def write(self, op: Operation, *inputs: Any) -> Name:
        return self.call("pow", *inputs) if op is ops.pow else super().write(op, *inputs)


def write(trace: Trace, style: Style) -> dict[int, list[tuple[str, str]]]:
    """The lines of a program with their comments, by when they run: once, for each sample, after that."""
    lines: dict[int, list[tuple[str, str]]] = {ONCE: [], EACH: [], AFTER: []}
    for i, step in enumerate(trace.steps):
        when = step.when if style.loops else ONCE
        if i == trace.first_backward and not trace.optimize:
            lines[when].append(("", BACKWARD))
        if step.parts[0] is TOTAL and style.loops:
            step.text = step.name = step.name or trace.free_name("", "sum")
            lines[ONCE].append((style.assign.format(step.text, "0.0"), ""))
            lines[EACH].append((style.again.format(step.text, step.parts[1].text), step.comment))
        elif line := statement(trace, style, step):
            lines[when].append((line, step.comment))
    return lines


def statement(trace: Trace, style: Style, step: Step) -> str:
    """The line of a step; none if it is used once, and there where it belongs: then it is part of the line that uses it."""
    op = step.parts[0]
    if op in _SYMBOLS:                                  # most steps, so without the detour over `style.write`
        _, a, b = step.parts
        size = a.size + b.size + 1
        symbol, precedence = _SYMBOLS[op]
        left = a.text if a.precedence >= precedence else f"({a.text})"
        right = b.text if b.precedence > precedence and b.text[0] != "-" else f"({b.text})"
        text = f"{left} {symbol} {right}"
    else:
        size = 1 + sum([x.size for x in step.parts[1:]])
        piece = style.write(*step.parts)
        text, precedence = piece.text, piece.precedence
    if step.uses == 1 and size < (LONGEST if trace.optimize else 3 * LONGEST):
        step.text, step.precedence, step.size = text, precedence, size
        return ""
    if step.name and step.name == step.parts[1].name:
        text = style.again.format(step.name, step.parts[2].text)
    else:
        step.name = step.name or trace.free_name("", "v")
        text = style.assign.format(step.name, text)
    step.text = step.name
    return text.replace("double", "int", 1) if op in BOOLEAN else text


def layout(lines: Sequence[tuple[str, str]], indent: int, mark: str = "#") -> str:
    """Lines under each other, comments in one column."""
    column = min(44, max([len(line) for line, _ in lines], default=0))
    text = [f"{line:<{column}}  {mark} {comment}" if line and comment else line or f"{mark} {comment}"
            for line, comment in lines]
    return textwrap.indent("\n".join(text) + "\n", " " * indent) if lines else ""


def listed(names: Sequence[str], indent: int = 4, width: int = 112) -> str:
    """Names with commas between them, on as many lines as it takes."""
    return textwrap.fill(", ".join(names), width, break_long_words=False).replace("\n", "\n" + " " * indent)


def python_source(trace: Trace, style: type[Style] = Python) -> str:
    """A Python function: what it is given is the data of the leaves; it gives the value and the gradients."""
    lines = write(trace, style(""))
    parameters = [x.text for x in trace.given]
    gradients = listed([g.text for g in trace.gradients], 12)
    gradients = f"({gradients}{',' * (len(trace.gradients) == 1)})"
    batch = any(x.when == EACH for x in trace.inputs)
    if not style.loops or not batch:
        parameters = ["n"] * batch + parameters + [x.text for x in trace.inputs]
        return f"def program({listed(parameters)}):\n{layout(lines[ONCE], 4)}    return {trace.value.text}, {gradients}\n"
    many = [x.text for x in trace.inputs if x.when == EACH]
    parameters = ["n", *parameters, *(x.text + "_batch" if x.when == EACH else x.text for x in trace.inputs)]
    sample = f"for {', '.join(many)} in zip({', '.join(x + '_batch' for x in many)}):" if len(many) > 1 else (
        f"for {many[0]} in {many[0]}_batch:")
    return (f"def program({listed(parameters)}):\n{layout(lines[ONCE], 4)}    values = []\n    {sample}\n"
            f"{layout(lines[EACH], 8)}        values.append({trace.value.text})\n"
            f"{layout(lines[AFTER], 4)}    return values, {gradients}\n")


def c_source(trace: Trace) -> str:
    """A C function that reads the leaves and the batches, and fills in a value for each sample and the gradients."""
    lines = write(trace, C(""))
    given = [*trace.given, *(x for x in trace.inputs if x.when == ONCE)]
    many = [x for x in trace.inputs if x.when == EACH]
    head = "".join(f"    double {x.text} = given[{i}];\n" for i, x in enumerate(given))
    each = "".join(f"        double {x.text} = batch[{i}][i];\n" for i, x in enumerate(many))
    out = "".join(f"    gradients[{i}] = {g.text};\n" for i, g in enumerate(trace.gradients))
    # declared here, since a compiler alone comes without headers
    used = sorted({name for step in trace.steps if (name := _MATH.get(step.parts[0].name))} | {"pow", "fabs"})
    declared = "".join(f"double {name}(double{', double' * (name == 'pow')});\n" for name in used)
    return (f"{declared}\nvoid program(long n, const double *given, const double *const *batch,\n"
            f"             double *values, double *gradients) {{\n{head}{layout(lines[ONCE], 4, '//')}"
            f"    for (long i = 0; i < n; i++) {{\n{each}{layout(lines[EACH], 8, '//')}"
            f"        values[i] = {trace.value.text};\n    }}\n{layout(lines[AFTER], 4, '//')}{out}}}\n")


def python_run(tape: Tape, batched: Sequence[bool], optimize: bool) -> Callable:
    """Plain Python. What raises is run again in the guarded form, where 1 / 0 is inf."""
    def build(style: type[Python]) -> Callable:
        functions: dict[str, Any] = {op.name: op.scalar for _, op in
                                     [*TABLE.items(), *((0, flow.op) for _, flow, _ in tape.operations)]}
        if style is Python:
            functions.update({name: getattr(math, name) for name in Python.names})
        functions.update(inf=math.inf, nan=math.nan, abs=abs)
        exec(python_source(Trace(tape, style, batched, optimize), style), functions)
        return functions["program"]

    fast = build(Python)
    guarded: list[Callable] = []

    def run(data: list, inputs: Sequence, samples: int | None) -> tuple:
        inputs = [list(map(float, x)) if hasattr(x, "__len__") and getattr(x, "ndim", 1) != 0 else float(x) for x in inputs]
        given = [*data, *inputs] if samples is None else [float(samples), *data, *inputs]
        try:
            return fast(*given)
        except (ArithmeticError, ValueError):
            guarded[:] = guarded or [build(Guarded)]
            return guarded[0](*given)

    return run
