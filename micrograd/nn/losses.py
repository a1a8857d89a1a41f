"""A loss says in one number how wrong the answers are; training makes it small.

Each function takes a Tensor of a batch, a Value, or a list of Values, with targets alike, and is written in logits
where probabilities would lose their digits. Meanings are PyTorch's, argument for argument:
https://pytorch.org/docs/stable/nn.functional.html#loss-functions
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from micrograd import ops
from micrograd.nn.module import Module
from micrograd.ops import Operation


def _reduce(losses: Any, reduction: str) -> Any:
    """The mean or the sum of losses, or all of them."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is 'mean', 'sum' or 'none', got {reduction!r}")
    if reduction == "none" or not isinstance(losses, list) and not hasattr(losses, "shape"):
        return losses
    if isinstance(losses, list):
        return sum(losses) * (1.0 / len(losses)) if reduction == "mean" else sum(losses)
    return losses.mean() if reduction == "mean" else losses.sum()


def _elementwise(function: Callable, input: Any, target: Any, reduction: str, strict: bool = False) -> Any:
    """function(input, target), entry by entry; shapes that differ would broadcast, which is seldom meant."""
    if isinstance(input, (list, tuple)):
        if len(input) != len(target):
            raise ValueError(f"{len(input)} answers need as many targets, got {len(target)}")
        return _reduce([function(x, t) for x, t in zip(input, target)], reduction)
    if hasattr(input, "shape") and not hasattr(target, "shape") and not isinstance(target, (int, float)):
        import numpy
        target = numpy.asarray(target)
    shapes = getattr(input, "shape", ()), getattr(target, "shape", ())
    if shapes[0] != shapes[1]:
        message = (f"answers of shape {shapes[0]} and targets of shape {shapes[1]} differ, so answers would meet "
                   "the targets of others; reshape one of them")
        if strict:
            raise ValueError(message)
        warnings.warn(message, stacklevel=3)
    return _reduce(function(input, target), reduction)


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """(input - target)²

    >>> from micrograd import Value
    >>> x = Value(3.0)
    >>> loss = mse_loss([x], [1.0]); loss.backward(); loss.data, x.grad
    (4.0, 4.0)
    """
    return _elementwise(lambda x, t: (x - t) * (x - t), input, target, reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """|input - target|"""
    return _elementwise(lambda x, t: ops.abs(x - t), input, target, reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """d² / 2 where d = |input - target| is at most delta, and delta (d - delta / 2) beyond."""
    if delta <= 0:
        raise ValueError(f"delta is above 0, got {delta}")

    def huber(x: Any, t: Any) -> Any:
        d = ops.abs(x - t)
        return ops.where((d.data if hasattr(d, "backward") else d) < delta, 0.5 * d * d, delta * (d - 0.5 * delta))

    return _elementwise(huber, input, target, reduction)


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """d² / (2 beta) where d = |input - target| is below beta, and d - beta / 2 beyond; beta = 0 is `l1_loss`."""
    if beta < 0:
        raise ValueError(f"beta is at least 0, got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction)
    losses = huber_loss(input, target, "none", beta)
    return _reduce([x / beta for x in losses] if isinstance(losses, list) else losses / beta, reduction)


def hinge_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """max(0, 1 - target * input), for targets -1 and 1: the max-margin loss of micrograd's demo."""
    return _elementwise(lambda x, t: ops.relu(1 + -t * x), input, target, reduction)


def _log(p: Any) -> Any:
    """log p, not below -100, so that a wrong certainty costs much but not everything."""
    return ops.maximum(ops.log(ops.maximum(p, 1e-44)), -100.0)      # 1e-44: less than e^-100, and not 0 in float32


_cross = Operation("binary_cross_entropy", "bce", lambda p, t: -(t * _log(p) + (1 - t) * _log(1 - p)), (
    lambda g, p, t, y: g * ((p - t) / ops.maximum((1 - p) * p, 1e-12)),
    lambda g, p, t, y: g * (_log(1 - p) - _log(p))))


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """-(t log p + (1 - t) log(1 - p)) of probabilities p; logarithms stop at -100."""
    def cross(p: Any, t: Any) -> Any:
        data = p.data if hasattr(p, "backward") else p
        outside = (data < 0) | (data > 1)
        if outside.any() if hasattr(outside, "any") else outside:
            raise ValueError("probabilities are between 0 and 1; for logits use binary_cross_entropy_with_logits")
        return _cross(p, t) if weight is None else _cross(p, t) * weight
    return _elementwise(cross, input, target, reduction, strict=True)


def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, reduction: str = "mean",
                                     pos_weight: Any = None) -> Any:
    """The same of logits x, p = sigmoid(x), in the stable form (1 - t) x + softplus(-x).

    >>> from micrograd import Value
    >>> x = Value(0.0)
    >>> loss = binary_cross_entropy_with_logits(x, 0.0); loss.backward(); loss.data, x.grad
    (0.6931471805599453, 0.5)
    """
    def cross(x: Any, t: Any) -> Any:
        share = ops.softplus(-x) if pos_weight is None else (1 + (pos_weight - 1) * t) * ops.softplus(-x)
        return (1 - t) * x + share if weight is None else ((1 - t) * x + share) * weight
    return _elementwise(cross, input, target, reduction, strict=True)


def cross_entropy(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """-log softmax(input)[target], from logits: (n, classes, ...) and class indices (n, ...) or probabilities.

    Of Values: a list of logits and an index or probabilities, or lists of these. A mean is over the weights of what
    counts, so classes that weigh little do not make the loss small.

    >>> from micrograd import Value
    >>> x = [Value(0.0), Value(0.0)]
    >>> loss = cross_entropy(x, 1); loss.backward(); loss.data, x[0].grad
    (0.6931471805599453, 0.5)
    """
    if not isinstance(input, (list, tuple)):
        from micrograd import tensor
        return tensor.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    alone = not isinstance(input[0], (list, tuple))
    losses, counts = zip(*[_surprise(x, t, weight, ignore_index, label_smoothing)
                           for x, t in ([(input, target)] if alone else zip(input, target, strict=True))])
    if reduction == "mean":                             # over the weights of what counts
        loss = losses[0] if alone else sum(losses)
        return loss if sum(counts) == 1 else loss * ops.div(1.0, sum(counts))
    return losses[0] if alone else _reduce(list(losses), reduction)


def _surprise(x: Any, target: Any, weight: Any, ignore_index: int, label_smoothing: float) -> tuple[Any, float]:
    """The cross-entropy of one sample of Values, and what it counts in a mean."""
    weights, count = [1.0] * len(x) if weight is None else weight, 1.0
    if not isinstance(target, (list, tuple)):
        if target == ignore_index:
            return x[0] * 0.0, 0.0
        if not 0 <= target < len(x):
            raise IndexError(f"a target is a class of 0 to {len(x) - 1}, got {target}")
        count, target = weights[target], [float(k == target) for k in range(len(x))]
    top = max(float(logit) for logit in x)
    total = ops.log(sum(ops.exp(logit - top) for logit in x)) + top
    shares = [((1 - label_smoothing) * t + label_smoothing / len(x)) * w for t, w in zip(target, weights, strict=True)]
    return sum((total - logit) * share for logit, share in zip(x, shares, strict=True) if share), count


def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """-input[target]: of log-probabilities (n, classes) and class indices (n,)."""
    import numpy
    target = numpy.asarray(target.data if hasattr(target, "backward") else target)
    kept = target != ignore_index
    wrong = target[kept & ((target < 0) | (target >= input.shape[-1]))]
    if wrong.size:
        raise IndexError(f"a target is a class of 0 to {input.shape[-1] - 1}, got {wrong.flat[0]}")
    places = numpy.where(kept, target, 0)
    weights = kept.astype(input.dtype) if weight is None else numpy.asarray(weight)[places] * kept
    losses = -input[(numpy.arange(len(target)), places) if target.ndim else places] * weights
    return losses.sum() / float(weights.sum()) if reduction == "mean" else _reduce(losses, reduction)


def _loss(name: str, function: Callable) -> type[Module]:
    """A loss as a module that keeps its options."""
    def __init__(self: Any, **options: Any) -> None: self.options = options
    def forward(self: Any, input: Any, target: Any) -> Any: return function(input, target, **self.options)
    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__module__": __name__,
                                  "__doc__": f"`{function.__name__}` as a module; its options are keywords."})


MSELoss, L1Loss, HuberLoss = _loss("MSELoss", mse_loss), _loss("L1Loss", l1_loss), _loss("HuberLoss", huber_loss)
SmoothL1Loss, HingeLoss = _loss("SmoothL1Loss", smooth_l1_loss), _loss("HingeLoss", hinge_loss)
BCELoss, NLLLoss = _loss("BCELoss", binary_cross_entropy), _loss("NLLLoss", nll_loss)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", binary_cross_entropy_with_logits)
CrossEntropyLoss = _loss("CrossEntropyLoss", cross_entropy)
