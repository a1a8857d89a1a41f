"""micrograd: an autograd engine small enough to read, right enough to keep.

>>> import micrograd
>>> x = micrograd.Value(3.0)
>>> y = x ** 2 + 2 * x
>>> y.backward()
>>> y.data, x.grad
(15.0, 8.0)

Importing this package loads the standard library only; NumPy and Graphviz load when first used.
"""

from __future__ import annotations

import importlib

from micrograd import ops
from micrograd.engine import Value

# ruff: noqa: F403, F405                  (stars for readers of types only)
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micrograd.autograd import *
    from micrograd.compiler import *
    from micrograd.diagnosis import diagnose as diagnose
    from micrograd.explanation import explain as explain
    from micrograd.tensor import Tensor as Tensor
    from micrograd.tensor import manual_seed as manual_seed

__version__ = "0.1.0"

# where the other public names live; a room is opened when one of its names is first used (PEP 562)
_ROOMS = {
    "autograd": "no_grad enable_grad set_grad_enabled is_grad_enabled grad jacobian hessian jvp vjp hvp gradcheck "
                "gradgradcheck checkpoint detect_anomaly op",
    "tensor": "Tensor manual_seed",
    "drawing": "draw_dot draw animate stepper to_mermaid",
    "explanation": "explain",
    "diagnosis": "diagnose",
    "compiler": "compile source",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
_MODULES = ("nn", "optim", "data", "ops", "engine", *_ROOMS)
_FUNCTIONS = {"gelu": ops.gelu, "clamp": ops.clamp}

__all__ = ["Value", *(name for name, room in _HOME.items() if room != "tensor"), "clamp", *ops.TABLE]    # what needs no NumPy


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"micrograd.{_HOME[name]}"), name)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in ops.TABLE:
        return ops.TABLE[name]
    if name in _MODULES:
        return importlib.import_module(f"micrograd.{name}")
    raise AttributeError(f"module 'micrograd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOME, *_MODULES})


def _on_batch(op: ops.Operation | None, inputs: tuple) -> Any:
    """A Value meets an array: from here on it is the batch engine's work."""
    return importlib.import_module("micrograd.tensor").Tensor.apply_to(op, inputs)


Value.on_batch = staticmethod(_on_batch)
