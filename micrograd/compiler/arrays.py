"""A program on batches in NumPy: each line is one call of NumPy, into a buffer that was made once."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from micrograd import ops
from micrograd.compiler.targets import _MATH, layout, listed, python_source, statement
from micrograd.compiler.trace import AND, BOOLEAN, CONDITIONS, EACH, TOTAL, Step, Style, Tape, Trace
from micrograd.names import ATOM, Name
from micrograd.ops import Operation


class NumPy(Style):
    """Formulas on arrays and NumPy's own scalars, with NumPy's functions."""

    __slots__ = ()
    loops = False
    again = "{0} = {0} + {1}"                           # += would write into an array that has another name, too
    names: ClassVar[dict[str, str]] = {**_MATH, "atan": "arctan", "maximum": "maximum", "minimum": "minimum",
                                       "where": "where", "abs": "absolute", "sign": "sign", "erf": "erf", "pow": "power"}
    infixes: ClassVar[dict] = {**Style.infixes, AND: ("&", ATOM)}

    def choice(self, condition: Name, a: Name, b: Name) -> Name:
        return self.call("where", condition, a, b)

    def write(self, op: Operation, *inputs: Any) -> Name:
        if op is ops.pow:
            return self.call("power", *inputs)
        if op is ops.relu:
            return self.call("maximum", *inputs, self.of(0.0))
        if op is TOTAL:
            return self.call("total", *inputs)
        return super().write(op, *inputs)


def buffered_source(trace: Trace, buffers: Buffers, functions: Iterable[str]) -> str:
    """The source of a function of the leaves and inputs; functions and buffers are found where it is defined."""
    lines = [line for x in trace.inputs for line in buffers.sum_of(x)]
    for i, step in enumerate(trace.steps):
        if buffers.writes(step):
            lines += buffers.lines(i, step)
        elif line := statement(trace, NumPy(""), step):
            lines.append(line)
    words = set(re.findall(r"\w+", " ".join(lines)))
    made = [name for names in buffers.made.values() for name in names]
    local = [f"{name}={name}" for name in (*functions, *made) if name in words]     # found faster than a global
    parameters = listed([*(x.name for x in (*trace.given, *trace.inputs)), *local])
    gradients = listed([g.text for g in trace.gradients], 12)
    return (f"def program({parameters}):\n{layout([(line, '') for line in lines], 4)}"
            f"    return {trace.value.text}, ({gradients}{',' * (len(trace.gradients) == 1)})\n")


class Buffers:
    """Which step writes into which buffer: a buffer is free again after the last use of what it holds."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.free: dict[Any, list[str]] = {}
        self.made: dict[Any, list[str]] = {False: [], True: []}
        self.totals: dict[Step, Step] = {}              # what is summed over the batch -> its sum
        self.last: dict[Step, int] = {trace.value: len(trace.steps)}
        for i, step in enumerate(trace.steps):
            if step.parts[0] is TOTAL:
                self.totals[step.parts[1]] = step
            else:
                self.last.update((x, max(i, self.last.get(x, 0))) for x in step.parts[1:])
        # the sum over the batch of a product is a dot product, and the product itself may not be needed
        self.dots = {x for x in self.totals if x.parts[0] is ops.mul and x not in self.last
                     and x.parts[1].when == EACH == x.parts[2].when}

    def kind(self, step: Step) -> Any:
        """What buffer a step needs: for conditions (True) or for numbers."""
        return step.parts[0] in BOOLEAN

    def writes(self, step: Step) -> bool:
        """Whether the step is written here: one for the batch, or a sum over it."""
        return step.when == EACH or step.parts[0] is TOTAL

    def take(self, kind: Any) -> str:
        """A free buffer, or a new one."""
        if not self.free.setdefault(kind, []):
            self.free[kind].append(self.trace.free_name("", "m" if kind is True else "b"))
            self.made.setdefault(kind, []).append(self.free[kind][0])
        return self.free[kind].pop()

    def give_back(self, i: int, inputs: Sequence[Step]) -> None:
        """Free the buffers of inputs that step i was the last to use."""
        for x in set(inputs):
            if x.text in self.made.get(self.kind(x), ()) and self.last.get(x) == i:
                self.free[self.kind(x)].append(x.text)

    def sum_of(self, x: Step) -> list[str]:
        """The line for the sum over the batch, where one is wanted."""
        if x not in self.totals:
            return []
        total = self.totals[x]
        total.text = total.name = self.trace.free_name("", "s")
        a, b = (x.parts[1].text, x.parts[2].text) if x in self.dots else (x.text, "ones")
        return [f"{total.text} = {a}.dot({b})"]

    def lines(self, i: int, step: Step) -> list[str]:
        """The calls for one step of the batch."""
        op, *inputs = step.parts
        lines: list[str] = []
        if op is TOTAL:
            return lines                                # written where its input was
        if step in self.dots:
            lines = self.sum_of(step)
            self.give_back(i, inputs)
            return lines
        kind = self.kind(step)
        if op is ops.where:
            condition, a, b = inputs
            if b.text in self.made.get(kind, ()) and self.kind(b) == kind and self.last[b] == i and b is not a:
                step.text = b.text
                self.give_back(i, (condition, a))
            else:
                step.text = self.take(kind)
                lines.append(f"copyto({step.text}, {b.text})")
                self.give_back(i, inputs)
            lines.append(f"copyto({step.text}, {a.text}, where={condition.text})")
        else:
            self.give_back(i, inputs)
            step.text = self.take(kind)
            function, more = _CALLS.get(op) or (NumPy.names.get(op.name, op.name), "")
            out = "out=" if function in ("maximum", "minimum") else ""      # elsewhere by position, which is faster
            lines.append(f"{function}({', '.join(x.text for x in inputs)}{more}, {out}{step.text})")
        lines += self.sum_of(step)
        if step not in self.last:
            self.free[kind].append(step.text)
        return lines


_CALLS: dict[Operation, tuple[str, str]] = {
    ops.add: ("add", ""), ops.sub: ("subtract", ""), ops.mul: ("multiply", ""), ops.div: ("divide", ""),
    ops.neg: ("negative", ""), ops.relu: ("maximum", ", 0.0"), ops.equal: ("equal", ""), AND: ("logical_and", ""),
    **{CONDITIONS[symbol]: (name, "") for symbol, name in
       {"<": "less", ">": "greater", "<=": "less_equal", ">=": "greater_equal"}.items()}}


def text(trace: Trace) -> str:
    """The source, with buffers or, in plain form, without."""
    return buffered_source(trace, Buffers(trace), [*functions(), "ones"]) if trace.optimize else python_source(trace, NumPy)


def functions() -> dict[str, Any]:
    """NumPy's functions, and what NumPy does not have."""
    import numpy as np
    names = {*NumPy.names.values(), *(name for name, _ in _CALLS.values()), "copyto"} - {"sign", "erf"}

    def sign(x: Any, out: Any = None) -> Any:           # of nan it is 0, as the table has it
        return np.subtract(np.greater(x, 0), np.less(x, 0), out=out, dtype=float)

    def erf(x: Any, out: Any = None) -> Any:            # NumPy has none
        y = np.array([math.erf(a) for a in np.ravel(x)]).reshape(np.shape(x))
        return y[()] if out is None else np.copyto(out, y)

    return {**{name: getattr(np, name) for name in names}, "sign": sign, "erf": erf, "total": np.sum, "inf": np.inf,
            "nan": np.nan}


def numpy_run(tape: Tape, batched: Sequence[bool], optimize: bool) -> Callable:
    """What runs the program: given the data of the leaves, the inputs and the number of samples."""
    import numpy as np
    trace = Trace(tape, NumPy, batched, optimize)
    buffers = Buffers(trace)
    source = buffered_source(trace, buffers, [*functions(), "ones"]) if optimize else python_source(trace, NumPy)
    code, lock = compile(source, "<program>", "exec"), threading.Lock()
    programs: dict[int, Callable] = {}
    first = not optimize and any(batched)               # the plain form is given the number of samples

    def run(data: list, inputs: Sequence, samples: int | None) -> tuple:
        n = 1 if samples is None else samples
        given = [np.asarray(x, dtype=np.float64) if hasattr(x, "__len__") else np.float64(x) for x in (*data, *inputs)]
        with lock, np.errstate(all="ignore"):           # threads share the buffers
            if n not in programs:
                namespace = functions() | {"n": float(n), "ones": np.ones(n)}
                for kind, names in buffers.made.items():
                    namespace.update({name: np.empty(n, bool if kind else float) for name in names})
                exec(code, namespace)
                programs.clear()                        # for one size only, since buffers may be large
                programs[n] = namespace["program"]
            value, gradients = programs[n](*([float(n)] * first), *given)
            return np.array(value)[()], [float(g) for g in gradients]

    return run
