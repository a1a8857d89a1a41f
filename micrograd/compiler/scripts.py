"""The same computation as a script of its own, for people who outgrow this library: it runs and prints the gradients."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, ClassVar

from micrograd import ops
from micrograd.compiler.arrays import NumPy
from micrograd.compiler.targets import C, Python, c_source, layout, listed, python_source, write
from micrograd.compiler.trace import ONCE, Style, Tape, Trace
from micrograd.names import Name
from micrograd.ops import Operation


class Torch(NumPy):
    """PyTorch, on tensors of one number."""

    __slots__ = ()
    names: ClassVar[dict[str, str]] = {name: f"torch.{name}" for name in (*NumPy.names, "relu", "sigmoid", "power")} | {
        "power": "torch.pow"}

    def write(self, op: Operation, *inputs: Any) -> Name:
        if op is ops.relu:
            return self.call("relu", *inputs)
        if op is ops.maximum or op is ops.minimum:      # which take tensors only
            return self.call(op.name, *(x if x.value is None else self.call("torch.tensor", x) for x in inputs))
        return super().write(op, *inputs)


class Jax(Torch):
    """JAX, on numbers."""

    __slots__ = ()
    names: ClassVar[dict[str, str]] = {name: text.replace("torch.", "jnp.") for name, text in Torch.names.items()} | {
        "power": "jnp.power", "erf": "jax.scipy.special.erf", "relu": "jax.nn.relu", "sigmoid": "jax.nn.sigmoid",
        "torch.tensor": "jnp.asarray"}


def _data(trace: Trace) -> dict[str, float]:
    """What the leaves hold, by name."""
    return {step.name: float(leaf.data) for step, leaf in zip(trace.given, trace.tape.given)}


def _written(x: float) -> str:
    return repr(x) if math.isfinite(x) else f"float('{x}')"


def _wanted(trace: Trace) -> list[str]:
    """The names of the leaves whose gradients are wanted."""
    of = dict(zip(trace.tape.given, trace.given))
    return [of[x].name for x in trace.tape.wrt]


def _python(tape: Tape, optimize: bool, style: type[Style] = Python, module: str = "math") -> str:
    trace = Trace(tape, style, (), optimize)
    text = python_source(trace, style)
    words = set(re.findall(r"\b[a-z]\w*(?=\()|\b(?:inf|nan)\b", text)) & {*style.names.values(), "pow", "inf", "nan"}
    used = sorted(words - {"abs", "float", "erf"} if module == "numpy" else words - {"abs", "float"})
    head = f"from {module} import {', '.join(used)}\n" * bool(used) + "from math import erf\n" * ("erf" in words - set(used))
    data = "".join(f"{name} = {_written(x)}\n" for name, x in _data(trace).items())
    return (f"{head}\n\n{text}\n\n{data}value, gradients = program({listed(list(_data(trace)))})\nprint('value', value)\n"
            f"for name, gradient in zip({_wanted(trace)}, gradients):\n    print(name, gradient)\n")


def _numpy(tape: Tape, optimize: bool) -> str:
    return _python(tape, False, NumPy, "numpy")


def _torch(tape: Tape, optimize: bool) -> str:
    trace = Trace(tape, Torch, (), optimize, backward=False)
    lines = layout(write(trace, Torch(""))[ONCE], 0)
    wanted = _wanted(trace)
    data = "".join(f"{name} = torch.tensor({_written(x)}{', requires_grad=True' * (name in wanted)})\n"
                   for name, x in _data(trace).items())
    prints = "".join(f"print({name!r}, {name}.grad.item())\n" for name in wanted)
    return (f"import torch\n\ntorch.set_default_dtype(torch.float64)\n\n{data}\n{lines}\n{trace.value.text}.backward()\n"
            f"print('value', {trace.value.text}.item())\n{prints}")


def _jax(tape: Tape, optimize: bool) -> str:
    trace = Trace(tape, Jax, (), optimize, backward=False)
    lines, names, wanted = layout(write(trace, Jax(""))[ONCE], 4), list(_data(trace)), _wanted(trace)
    data = "".join(f"{name} = {_written(x)}\n" for name, x in _data(trace).items())
    places = tuple(names.index(name) for name in wanted)
    return (f"import jax\nimport jax.numpy as jnp\n\njax.config.update('jax_enable_x64', True)\n\n\n"
            f"def program({listed(names)}):\n{lines}    return {trace.value.text}\n\n\n{data}"
            f"value, gradients = jax.value_and_grad(program, {places})({listed(names)})\nprint('value', value)\n"
            f"for name, gradient in zip({wanted}, gradients):\n    print(name, gradient)\n")


def _c(tape: Tape, optimize: bool) -> str:
    trace = Trace(tape, C, (), optimize)
    text, wanted = c_source(trace), _wanted(trace)
    data = listed([C.number(x) for x in _data(trace).values()], 8)
    prints = "".join(f'    printf("{name} %.17g\\n", gradients[{i}]);\n' for i, name in enumerate(wanted))
    return (f"int printf(const char *, ...);\n{text}\nint main(void) {{\n    double given[] = {{{data}}};\n"
            f"    double values[1], gradients[{len(wanted) or 1}];\n    program(1, given, 0, values, gradients);\n"
            f'    printf("value %.17g\\n", values[0]);\n{prints}    return 0;\n}}\n')


SCRIPTS: dict[str, Callable[[Tape, bool], str]] = {
    "python": _python, "numpy": _numpy, "c": _c, "pytorch": _torch, "jax": _jax}
