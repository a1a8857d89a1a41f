"""A compiled graph: call it, and it computes the value and fills in the gradients, as `backward()` does."""

from __future__ import annotations

import array
import ctypes
import math
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from micrograd.compiler import arrays, build, targets
from micrograd.compiler.trace import Tape, Trace
from micrograd.compiler.scripts import SCRIPTS
from micrograd.engine import Value, unset, variable
from micrograd.ops import TABLE

Run = Callable[[list, Sequence, int | None], tuple]     # data of the leaves, inputs, samples -> value, gradients


def _python(tape: Tape, batched: tuple[bool, ...], optimize: bool) -> Run:
    """Plain Python. What raises is run again in the guarded form, where 1 / 0 is inf."""
    def build(style: type[targets.Python]) -> Callable:
        functions: dict[str, Any] = {op.name: op.scalar for _, op in
                                     [*TABLE.items(), *((0, flow.op) for _, flow, _ in tape.operations)]}
        if style is targets.Python:
            functions.update({name: getattr(math, name) for name in targets.Python.names})
        functions.update(inf=math.inf, nan=math.nan, abs=abs)
        exec(targets.python_source(Trace(tape, style, batched, optimize), style), functions)
        return functions["program"]

    fast = build(targets.Python)
    guarded: list[Callable] = []

    def run(data: list, inputs: Sequence, samples: int | None) -> tuple:
        inputs = [x.tolist() if hasattr(x, "tolist") else x for x in inputs]
        given = [*data, *inputs] if samples is None else [float(samples), *data, *inputs]
        try:
            return fast(*given)
        except (ArithmeticError, ValueError):
            guarded[:] = guarded or [build(targets.Guarded)]
            return guarded[0](*given)

    return run


def _c(tape: Tape, batched: tuple[bool, ...], optimize: bool) -> Run:
    """C: leaves and batches go in as arrays of doubles, values and gradients come out so."""
    trace = Trace(tape, targets.C, batched, optimize)
    function = build.load(targets.c_source(trace))
    doubles = ctypes.c_double * len(trace.gradients)
    gradients = doubles()
    number = struct.Struct(f"{len(tape.given) + batched.count(False)}d")
    given = ctypes.create_string_buffer(number.size or 1)
    lock = threading.Lock()

    def run(data: list, inputs: Sequence, samples: int | None) -> tuple:
        many = [_doubles(x) for x, each in zip(inputs, batched) if each]
        values = (ctypes.c_double * (samples or 1))()
        with lock:                                      # ctypes lets other threads run meanwhile
            number.pack_into(given, 0, *data, *(x for x, each in zip(inputs, batched) if not each))
            function(ctypes.c_long(samples or 1), given, (ctypes.c_void_p * len(many))(*(x.buffer_info()[0] for x in many)),
                     values, gradients)
            found = gradients[:]
        return values[0] if samples is None else values[:], found

    return run


def _doubles(x: Any) -> array.array:
    """A batch in memory as C has it."""
    plain = getattr(x, "dtype", None) == "float64" and hasattr(x, "tobytes")
    return array.array("d", x.tobytes() if plain else [float(a) for a in x])


def _numpy(tape: Tape, batched: tuple[bool, ...], optimize: bool) -> Run:
    if tape.over_arrays:
        from micrograd.compiler.tensors import tensor_run
        return tensor_run(tape)
    return arrays.numpy_run(Trace(tape, arrays.NumPy, batched, optimize))


_RUNS = {"python": _python, "numpy": _numpy, "c": _c}


class Program:
    """A graph as a function: `program(*inputs)` gives the value and fills in `.grad`, as `backward()` does.

    It reads what the leaves hold at the time of the call, so parameters may be changed in between. An input may
    be a number or a batch (a list or an array): then the result is a list (array) of the values of the samples, and
    gradients are those of the sum over the batch.

    Attributes:
        source: the program in its plain form, to be read: an operation a line, and the rule beside each gradient.
        optimized_source: what is run.
    """

    def __init__(self, tape: Tape, target: str, optimize: bool) -> None:
        self.tape, self.target, self.optimize = tape, target, optimize
        self.runs: dict[tuple[bool, ...], Run] = {}
        if not tape.inputs:
            self.run_for(())

    def run_for(self, batched: tuple[bool, ...]) -> Run:
        """What runs for this choice of inputs that are batches; built when first needed."""
        if batched not in self.runs:
            self.runs[batched] = _RUNS[self.target](self.tape, batched, self.optimize)
        return self.runs[batched]

    def run(self, *inputs: Any) -> tuple[Any, Sequence]:
        """The value and the gradients, in the order of `wrt`; no `.grad` is touched."""
        if len(inputs) != len(self.tape.inputs):
            raise TypeError(f"this program takes {len(self.tape.inputs)} inputs, got {len(inputs)}")
        if self.tape.over_arrays:
            return self.run_for(())([x.data for x in self.tape.given], inputs, None)
        sizes = [_length(x, i) for i, x in enumerate(inputs)]
        lengths = set(sizes) - {None}
        if len(lengths) > 1:
            raise ValueError(f"all batches must have the same length, got {sizes}")
        samples = lengths.pop() if lengths else None
        run = self.run_for(tuple(size is not None for size in sizes))
        inputs = tuple(float(x) if size is None else x for x, size in zip(inputs, sizes))
        value, gradients = run([x.data for x in self.tape.given], inputs, samples)
        if samples is not None:
            value = value if hasattr(value, "__len__") else [value] * samples
            if any(hasattr(x, "__array__") for x in inputs):
                value = sys.modules["numpy"].asarray(value)
        return value, gradients

    def __call__(self, *inputs: Any) -> Any:
        value, gradients = self.run(*inputs)
        for x, g in zip(self.wrt, gradients):
            if x.flow is not variable:                  # frozen since the program was made
                continue
            old = x.grad
            x.grad = 0.0 + g if x.rank == 0 else g.astype(x.data.dtype)
            if x._extra is not None:
                x.run_hooks()
            if old is not unset and old is not None:
                x.grad = old + x.grad
        return value

    def step(self, lr: float, *inputs: Any) -> Any:
        """One step of gradient descent: leaves of `wrt` get a fresh `.grad`, and `data -= lr * grad`; gives the value."""
        value, gradients = self.run(*inputs)
        for x, g in zip(self.wrt, gradients):
            x.grad = g if x.rank == 0 else g.astype(x.data.dtype)
            x.data -= lr * x.grad
        return value

    @property
    def wrt(self) -> list[Value]:
        """The leaves whose gradient is computed."""
        return self.tape.wrt

    @property
    def source(self) -> str:
        return self.text(False)

    @property
    def optimized_source(self) -> str:
        return self.text(True)

    def text(self, optimize: bool) -> str:
        """The source, for batches where the target is made for them."""
        batched = [self.target != "python"] * len(self.tape.inputs)
        return _TEXTS[self.target](self.tape, batched, optimize)


def compile(root: Value, inputs: Sequence[Value] = (), wrt: Sequence[Value] | None = None, target: str = "python",
            optimize: bool = True) -> Program:
    """Make a program of a graph."""
    if target not in _RUNS:
        raise ValueError(f"target is one of {', '.join(_RUNS)}, got {target!r}")
    return Program(Tape(root, inputs, wrt), target, optimize)


def source(root: Value, target: str = "python", optimize: bool = False) -> str:
    """A script that computes `root` and its gradients, and prints them."""
    if target not in SCRIPTS:
        raise ValueError(f"target is one of {', '.join(SCRIPTS)}, got {target!r}")
    return SCRIPTS[target](Tape(root), optimize)


def _length(x: Any, i: int) -> int | None:
    """The length of a batch; None for a number."""
    if not hasattr(x, "__len__") or getattr(x, "ndim", 1) == 0:
        return None
    if getattr(x, "ndim", 1) != 1:
        raise ValueError(f"input {i} is a batch of numbers, so it has one axis; got shape {x.shape}")
    return len(x)
_TEXTS = {"python": lambda *trace: targets.python_source(Trace(trace[0], targets.Python, *trace[1:])),
          "numpy": lambda *trace: arrays.text(Trace(trace[0], arrays.NumPy, *trace[1:])),
          "c": lambda *trace: targets.c_source(Trace(trace[0], targets.C, *trace[1:]))}
