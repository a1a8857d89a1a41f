"""Where training starts decides whether it can: of weights too large signals explode, of too small ones they die.

Every function fills a tensor in place and returns it, from the generator that `micrograd.manual_seed` starts;
formulas and names are PyTorch's: https://pytorch.org/docs/stable/nn.init.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from micrograd import tensor


def _fill(t: Any, data: Any) -> Any:
    t.data[...] = data
    return t


def uniform_(t: Any, a: float = 0.0, b: float = 1.0) -> Any:
    """Evenly spread between a and b."""
    return _fill(t, tensor.generator().uniform(a, b, t.shape))


def normal_(t: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """Normally distributed."""
    return _fill(t, tensor.generator().normal(mean, std, t.shape))


def constant_(t: Any, val: float) -> Any:
    """All entries val."""
    return _fill(t, val)


def zeros_(t: Any) -> Any:
    """All entries 0."""
    return _fill(t, 0.0)


def ones_(t: Any) -> Any:
    """All entries 1."""
    return _fill(t, 1.0)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """What a bend takes from the spread of a signal, to be put back into the weights.

    >>> calculate_gain("tanh"), round(calculate_gain("relu"), 4)
    (1.6666666666666667, 1.4142)
    """
    gains = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4,
             "leaky_relu": math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))}
    if nonlinearity not in gains:
        raise ValueError(f"there is a gain for {', '.join(gains)}; got {nonlinearity!r}")
    return gains[nonlinearity]


def fans(t: Any) -> tuple[int, int]:
    """How many inputs meet in one output, and how many outputs one input goes to, of a weight (out, in, ...)."""
    if t.ndim < 2:
        raise ValueError(f"fan in and fan out need a weight of two axes or more, got the shape {t.shape}")
    field = math.prod(t.shape[2:])
    return t.shape[1] * field, t.shape[0] * field


def xavier_uniform_(t: Any, gain: float = 1.0) -> Any:
    """Uniform within ± gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(t)))
    return uniform_(t, -bound, bound)


def xavier_normal_(t: Any, gain: float = 1.0) -> Any:
    """Normal with standard deviation gain sqrt(2 / (fan_in + fan_out))."""
    return normal_(t, 0.0, gain * math.sqrt(2 / sum(fans(t))))


def kaiming_std(t: Any, a: float, mode: str, nonlinearity: str) -> float:
    """gain / sqrt(fan)"""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode is 'fan_in' or 'fan_out', got {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans(t)[mode == "fan_out"])


def kaiming_uniform_(t: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Any:
    """Uniform within ± gain sqrt(3 / fan), `a` being the slope of leaky_relu (He and others, 2015)."""
    bound = math.sqrt(3) * kaiming_std(t, a, mode, nonlinearity)
    return uniform_(t, -bound, bound)


def kaiming_normal_(t: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Any:
    """Normal with standard deviation gain / sqrt(fan)."""
    return normal_(t, 0.0, kaiming_std(t, a, mode, nonlinearity))


def orthogonal_(t: Any, gain: float = 1.0) -> Any:
    """Rows (or columns, if there are fewer) at right angles and of length gain (Saxe and others, 2014)."""
    rows, columns = t.shape[0], math.prod(t.shape[1:])
    q, r = np.linalg.qr(tensor.generator().normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return _fill(t, gain * (q if rows >= columns else q.T).reshape(t.shape))
