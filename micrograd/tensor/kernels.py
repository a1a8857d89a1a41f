"""Two operations worth a kernel of their own: composed of others they would take several times as long."""

from __future__ import annotations

from typing import Any

import numpy as np

from micrograd import ops
from micrograd.engine import Value
from micrograd.engine import _data as data_of
from micrograd.tensor.arrays import gather, log_softmax, mean, softmax, sum
from micrograd.tensor.node import Call, Tensor, array_op, broadcast_to, connect, floats, operand, reshape


def _one_hot(target: np.ndarray, classes: int, dtype: Any) -> np.ndarray:
    y = np.zeros((len(target), classes), dtype)
    y[np.arange(len(target)), target] = 1
    return y


def _to_logits(g: Any, x: Any, y: Any, p: np.ndarray, target: np.ndarray, share: Any) -> Any:
    """(softmax(x) - one_hot(target)) times what each row receives."""
    if isinstance(g, Value) or isinstance(x, Value):
        rows = g * share if g.shape else broadcast_to(g * share, (len(target),))
        return (softmax(x, 1) - _one_hot(target, p.shape[1], p.dtype)) * reshape(rows, (-1, 1))
    rows = g * share
    d = p * (rows[:, None] if rows.ndim else rows)
    d[np.arange(len(target)), target] -= rows
    return d


_cross_entropy = array_op("cross_entropy", lambda x, p, target, share: None, _to_logits, curved=True)


@np.errstate(all="ignore")
def cross_entropy(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """The surprise -log softmax(x)[target] of the right class, from logits.

        y = logsumexp(x) - x[target],    dx = softmax(x) - one_hot(target)

    Args:
        input: logits (N, C), (C) for one sample, or (N, C, d1, ...).
        target: class indices of the shape of input without C, or probabilities of the shape of input.
        weight: (C) weights of the classes. ignore_index: a class index that does not count.
        reduction: "mean" (over the weights of what counts), "sum" or "none". label_smoothing: in [0, 1].

    Errors: IndexError for a class out of range. Source: torch.nn.functional.cross_entropy.

    >>> x = Tensor([[1.0, 2.0, 3.0]])
    >>> loss = cross_entropy(x, [2])
    >>> loss.backward(); round(loss.item(), 6), x.grad.round(4)
    (0.407606, array([[ 0.09  ,  0.2447, -0.3348]]))
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is 'mean', 'sum' or 'none', got {reduction!r}")
    x = input if isinstance(input, Tensor) else Tensor(input, requires_grad=False)
    x = x if x.dtype.kind == "f" else Tensor(floats(x.data), requires_grad=False)
    t, axis = np.asarray(data_of(target)), 1 if x.ndim > 1 else 0
    classes = x.shape[axis]
    scale = None if weight is None else np.asarray(data_of(weight), x.dtype)
    if t.shape == x.shape and t.dtype.kind == "f":
        soft = t if not label_smoothing else t * (1 - label_smoothing) + label_smoothing / classes
        along = [-1 if k == axis else 1 for k in range(x.ndim)]
        soft = soft if scale is None else soft * scale.reshape(along)
        losses = -sum(log_softmax(x, axis) * soft.astype(x.dtype), axis)
        count: Any = losses.size
    else:
        if t.shape != x.shape[:axis] + x.shape[axis + 1:] or t.dtype.kind not in "iu":
            raise ValueError(f"cross_entropy takes class indices of the shape {x.shape[:axis] + x.shape[axis + 1:]} or "
                             f"probabilities of the shape {x.shape}, got {t.dtype} of the shape {t.shape}")
        wrong = t[(t != ignore_index) & ((t < 0) | (t >= classes))]
        if wrong.size:
            raise IndexError(f"target {wrong.flat[0]} is out of range for {classes} classes")
        kept = t != ignore_index
        if x.ndim == 2 and scale is None and not label_smoothing and kept.all() and len(t):
            return _fast(x, t, reduction)
        safe = np.where(kept, t, 0)
        weights = (kept if scale is None else kept * scale[safe]).astype(x.dtype)
        logs = log_softmax(x, axis)
        picked = -reshape(gather(logs, axis, np.expand_dims(safe, axis)), t.shape) * weights
        if label_smoothing:
            spread = logs if scale is None else logs * scale.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
            smooth = -sum(spread, axis) * kept.astype(x.dtype) / classes
            picked = picked * (1 - label_smoothing) + smooth * label_smoothing
        losses, count = picked, weights.sum()
    if reduction == "none":
        return losses
    return sum(losses) if reduction == "sum" else sum(losses) / float(count)


def _fast(x: Tensor, t: np.ndarray, reduction: str) -> Any:
    """Class indices and nothing else: one node, which keeps softmax(x) for the way back."""
    rows = np.arange(len(t))
    shifted = x.data - x.data.max(1, keepdims=True)
    p = np.exp(shifted)
    total = p.sum(1, keepdims=True)
    losses = np.log(total[:, 0]) - shifted[rows, t]
    p /= total
    share = 1.0 / len(t) if reduction == "mean" else 1.0
    y = losses if reduction == "none" else np.asarray(losses.sum() * x.dtype.type(share))
    return connect(_cross_entropy, y, [x], lambda reached: Call(_cross_entropy, reached, (p, t, share)))


def _to_normalised(g: Any, x: Any, w: Any, b: Any, y: Any, unit: np.ndarray, scale: np.ndarray, eps: float) -> Any:
    """What x receives: the gradient without its mean and without its part along the normalised row."""
    if isinstance(g, Value) or isinstance(x, Value):
        unit, scale = _normalise(x, eps)
    d = g * w
    if isinstance(d, Value):
        return (d - mean(d, -1, True) - unit * mean(d * unit, -1, True)) * scale
    n = d.shape[-1]
    along = np.einsum("...i,...i->...", d, unit)[..., None] / n
    d -= d.sum(-1, keepdims=True) / n
    d -= unit * along
    d *= scale
    return d


def _normalise(x: Any, eps: float) -> tuple[Any, Any]:
    """(x - mean) / sqrt(var + eps) along the last axis, and 1 / sqrt(var + eps)."""
    d = x - mean(x, -1, True)
    scale = 1.0 / ops.sqrt(mean(d * d, -1, True) + eps)
    return d * scale, scale


def _lead(x: Any) -> tuple[int, ...]:
    return tuple(range(len(x.shape) - 1))


_layer_norm = array_op(
    "layer_norm", lambda x, w, b, unit, scale, eps: unit * w + b, _to_normalised,
    lambda g, x, w, b, y, unit, scale, eps: sum(g * (_normalise(x, eps)[0] if isinstance(x, Value) else unit), _lead(x)),
    lambda g, x, w, b, y, unit, scale, eps: sum(g, _lead(x)), curved=True)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Each row (last axis) moved to mean 0 and variance 1, then scaled by weight and shifted by bias.

        y = (x - mean) / sqrt(var + eps) * weight + bias

    Source: Ba, Kiros, Hinton 2016, "Layer Normalization"; torch.nn.functional.layer_norm.

    >>> x = Tensor([[1.0, 2.0, 6.0]])
    >>> y = layer_norm(x)
    >>> y.backward([[1.0, 0.0, 0.0]]); y.data.round(2), x.grad.round(2)
    (array([[-0.93, -0.46,  1.39]]), array([[ 0.18, -0.22,  0.04]]))
    """
    x = x if isinstance(x, Tensor) else Tensor(x, requires_grad=False)
    x = x if x.dtype.kind == "f" else Tensor(floats(x.data), requires_grad=False)
    n = x.shape[-1]
    w, b = (operand(np.full(n, start, x.dtype) if p is None else p, _layer_norm) for p, start in ((weight, 1), (bias, 0)))
    if w.shape != (n,) or b.shape != (n,):
        raise ValueError(f"layer_norm of the shape {x.shape} takes weight and bias of the shape ({n},), "
                         f"got {w.shape} and {b.shape}")
    unit = x.data - x.data.sum(-1, keepdims=True) / n
    scale = 1.0 / np.sqrt(np.einsum("...i,...i->...", unit, unit)[..., None] / n + x.dtype.type(eps))
    unit *= scale
    y = unit * w.data
    y += b.data
    return connect(_layer_norm, y, [x, w, b], lambda reached: Call(_layer_norm, reached, (unit, scale, eps)))
