"""What the tests share: PyTorch in float64 and finite differences as the two judges of every derivative."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
import pytest
import torch

from micrograd import engine

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=100)
# ten times as many and other ones each night, with a line to copy that repeats a failure
hypothesis.settings.register_profile("nightly", deadline=None, database=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile("nightly" if os.environ.get("MICROGRAD_NIGHTLY") == "1" else "fixed")
gc.freeze()                                                 # a collection need not look at all of PyTorch each time


def close(a: float, b: float, rel: float = 1e-9, abs: float = 1e-290) -> bool:
    """Whether two numbers agree; nan agrees with nan, an infinity with itself."""
    return math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=rel, abs_tol=abs)


def examples(share: float = 1.0, **more: Any) -> hypothesis.settings:
    """`share` times the examples of the profile: 100 on every change, 1,000 with MICROGRAD_NIGHTLY=1."""
    return hypothesis.settings(max_examples=round(share * hypothesis.settings().max_examples), **more)


def torch_leaf(x: float) -> torch.Tensor:
    """A float64 number of PyTorch that requires a gradient."""
    return torch.tensor(float(x), dtype=torch.float64, requires_grad=True)


def torch_answer(function: Callable, *point: float) -> tuple[float, list[float]]:
    """(value, gradients) of a scalar function at a point, as PyTorch computes them; 0 for what it does not use."""
    leaves = [torch_leaf(x) for x in point]
    y = function(*leaves)
    gradients = torch.autograd.grad(y, leaves, allow_unused=True)
    return y.item(), [0.0 if g is None else g.item() for g in gradients]


def slope(function: Callable[..., float], point: Sequence[float], i: int, step: float = 1e-3) -> float:
    """df/dx_i by central differences of fourth order: right to about ten digits, if f is smooth within two steps."""
    def at(offset: float) -> float:
        return float(function(*point[:i], point[i] + offset, *point[i + 1:]))

    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)


@pytest.fixture(autouse=True)
def ordinary_thread():
    """Every test leaves recording as it found it: on, and unobserved."""
    yield
    assert engine.thread.recording and engine.thread.observer is None and engine._ordinary


@pytest.fixture
def no_collector():
    """Reference counting alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
