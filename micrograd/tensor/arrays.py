"""What arrays can do besides: multiply as matrices, add up, change form, pick entries. One line each."""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from micrograd import engine, ops
from micrograd.engine import Value, constant, prepare
from micrograd.engine import _data as data_of
from micrograd.ops import Operation
from micrograd.tensor import node
from micrograd.tensor.node import Call, Tensor, array_op, axes_of, broadcast_to, call, ndarray, record, reshape, sum_op, whole

__all__ = ["amax", "amin", "cat", "cumsum", "dot", "einsum", "expand", "flatten", "gather", "generator", "log_softmax",
           "logsumexp", "manual_seed", "matmul", "max", "mean", "min", "norm", "outer", "permute", "prod", "softmax", "split",
           "squeeze", "stack", "std", "sum", "swapaxes", "take", "tril", "triu", "unsqueeze", "var"]


def _scatter_values(g: ndarray, index: Any, shape: tuple) -> ndarray:
    y = np.zeros(shape, g.dtype)
    if all(isinstance(k, (int, slice, type(None), type(...))) for k in (index if isinstance(index, tuple) else (index,))):
        y[index] = g
    else:
        np.add.at(y, index, g)                              # entries that were picked twice add up
    return y


def _matrix(x: ndarray) -> ndarray:
    if x.ndim < 2:
        raise ValueError("a triangle is taken of a matrix, or of a batch of them")
    return x


def _scatter_along(g: ndarray, dim: int, index: ndarray, shape: tuple) -> ndarray:
    y = np.zeros(shape, g.dtype)
    places: list[Any] = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    np.add.at(y, tuple(places), g)
    return y


def _share(x: Any, y: Any) -> ndarray:
    """For each entry its share of the gradient of an extremum y: ties share evenly."""
    x, y = data_of(x), data_of(y)
    mask = (x == y) | (x != x)
    return mask / np.asarray(mask.sum(tuple(k for k, n in enumerate(y.shape) if n == 1), keepdims=True), x.dtype)


def _exp_shifted(x: ndarray, axis: Any) -> tuple[ndarray, ndarray, ndarray]:
    """exp(x - max), its sum, and max, along an axis; a max that is not finite is taken as 0."""
    x = node.floats(x)
    top = x.max(axis, keepdims=True) if x.size else x.sum(axis, keepdims=True)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    e = np.exp(x - top)
    return e, e.sum(axis, keepdims=True), top


@np.errstate(all="ignore")
def _logsumexp_values(x: ndarray, axis: Any) -> ndarray:
    _, total, top = _exp_shifted(x, axis)
    return np.log(total) + top


@np.errstate(all="ignore")
def _softmax_values(x: ndarray, axis: Any) -> ndarray:
    e, total, _ = _exp_shifted(x, axis)
    e /= total
    return e


@np.errstate(all="ignore")
def _log_softmax_values(x: ndarray, axis: Any) -> ndarray:
    _, total, top = _exp_shifted(x, axis)
    y = node.floats(x) - top
    y -= np.log(total)
    return y


# the table of array operations: value, then what each input receives
_permute = array_op("permute", lambda x, dims: x.transpose(dims),
                     lambda g, x, y, dims: permute(g, tuple(dims.index(k) for k in range(len(dims)))))
_swapaxes = array_op("swapaxes", lambda x, a, b: x.swapaxes(a, b), lambda g, x, y, a, b: swapaxes(g, a, b))
_index = array_op("index", lambda x, index: x[index],
                   lambda g, x, y, index: call(_scatter, g, parameters=(index, x.shape)))
_scatter: Operation = array_op("scatter", _scatter_values, lambda g, x, y, index, shape: index_(g, index))
_gather = array_op("gather", lambda x, dim, index: np.take_along_axis(
    x[tuple(slice(None if k == dim else n) for k, n in enumerate(index.shape))], index, dim),
                    lambda g, x, y, dim, index: call(_scatter_add, g, parameters=(dim, index, x.shape)))
_scatter_add: Operation = array_op("scatter_add", _scatter_along, lambda g, x, y, dim, index, shape: gather(g, dim, index))
_matmul = array_op("matmul", np.matmul, lambda g, a, b, y: matmul(g, swapaxes(b, -1, -2)),
                    lambda g, a, b, y: matmul(swapaxes(a, -1, -2), g))
_cumsum: Operation = array_op("cumsum", lambda x, axis: x.cumsum(axis),
                    lambda g, x, y, axis: _reversed(call(_cumsum, _reversed(g, axis), parameters=(axis,)), axis))
_tril = array_op("tril", lambda x, k: np.tril(_matrix(x), k), lambda g, x, y, k: tril(g, k))
_triu = array_op("triu", lambda x, k: np.triu(_matrix(x), k), lambda g, x, y, k: triu(g, k))
_max = array_op("max", lambda x, axis: np.maximum.reduce(x, axis, keepdims=True), lambda g, x, y, axis: g * _share(x, y),
                 curved=True)
_min = array_op("min", lambda x, axis: np.minimum.reduce(x, axis, keepdims=True), lambda g, x, y, axis: g * _share(x, y),
                 curved=True)
_logsumexp = array_op("logsumexp", _logsumexp_values, lambda g, x, y, axis: g * ops.exp(x - y), curved=True)
_softmax = array_op("softmax", _softmax_values, lambda g, x, y, axis: y * (g - sum(g * y, axis, True)), curved=True)
_log_softmax = array_op("log_softmax", _log_softmax_values, lambda g, x, y, axis: g - ops.exp(y) * sum(g, axis, True),
                         curved=True)


class MatMul(Call):
    """The flow of a product of two matrices, spelled out: it is most of every network."""

    def pull(self, node: Value) -> None:
        a, b, g = node._left, node._right, whole(node.grad, node.data)
        if self is _SIDES:
            a.grad = a.grad + g.dot(b.data.T)
            b.grad = b.grad + a.data.T.dot(g)
        elif self is _RIGHT:
            b.grad = b.grad + a.data.T.dot(g)
        else:
            self.hand_down(node)


class Total(Call):
    """The flow of a sum of all entries: each receives what the sum receives, and broadcasting makes up for the shape."""

    def pull(self, node: Value) -> None:
        x = node._left
        x.grad = x.grad + node.grad


_TOTAL = Total(sum_op, (0,), (None, False))
_SIDES, _RIGHT = MatMul(_matmul, (0, 1), ()), MatMul(_matmul, (1,), ())
# a square root whose derivative at 0 is 0: for lengths and deviations, where PyTorch has it so
_length = prepare(Operation("sqrt", "sqrt", math.sqrt, (
    lambda g, x, y: ops.where(ops.equal(y, 0), 0.0, g / ops.where(ops.equal(y, 0), 1.0, y) * 0.5),)))
def permute(x: Any, dims: Sequence[int]) -> Any:
    """The axes in another order."""
    axes = axes_of(x, tuple(dims), None)
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(f"permute takes each of the {x.ndim} axes once, got {tuple(dims)}")
    return call(_permute, x, parameters=(axes,))


def swapaxes(x: Any, a: int, b: int) -> Any:
    """Two axes exchanged."""
    axes_of(x, (a, b), None)
    return call(_swapaxes, x, parameters=(a, b))


def squeeze(x: Any, dim: Any = None) -> Any:
    """Without axes of length 1: all of them, or those named if they are."""
    axes = axes_of(x, dim, None) or range(x.ndim) if dim is None else axes_of(x, dim, None)
    return reshape(x, tuple(n for k, n in enumerate(x.shape) if not (n == 1 and k in axes)))


def unsqueeze(x: Any, dim: int) -> Any:
    """With a new axis of length 1 at `dim`."""
    if not -x.ndim - 1 <= dim <= x.ndim:
        raise IndexError(f"a new axis at {dim} is out of range for the shape {x.shape}")
    dim = dim % (x.ndim + 1)
    return reshape(x, (*x.shape[:dim], 1, *x.shape[dim:]))


def expand(x: Any, shape: Sequence[int]) -> Any:
    """As `broadcast_to`; -1 keeps a length."""
    lead = len(shape) - x.ndim
    if lead < 0 or -1 in shape[:lead]:
        raise ValueError(f"expand of the shape {x.shape} to {tuple(shape)}: no axis may be lost, -1 keeps one")
    return broadcast_to(x, tuple(x.shape[k - lead] if n == -1 else n for k, n in enumerate(shape)))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Axes start_dim to end_dim as one."""
    if not x.ndim:
        return reshape(x, (1,))
    (start,), (end,) = axes_of(x, start_dim, None), axes_of(x, end_dim, None)
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:end + 1]), *x.shape[end + 1:]))


def index_(x: Any, index: Any) -> Any:
    """x[index]: ints, slices, None, ..., masks and integer arrays; entries picked twice get both gradients."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(k if not isinstance(k, (Value, list)) else np.asarray(data_of(k), int if k == [] else None) for k in parts)
    return call(_index, x, parameters=(parts if isinstance(index, tuple) else parts[0],))


def _reversed(x: Any, axis: int) -> Any:
    return index_(x, (slice(None),) * axis + (slice(None, None, -1),))


def gather(x: Any, dim: int, index: Any) -> Any:
    """Along `dim`, the entries that `index` names: y[i][j] = x[index[i][j]][j] for dim 0."""
    (dim,), index = axes_of(x, dim, None), np.asarray(data_of(index))
    if index.ndim != x.ndim or any(n > x.shape[k] for k, n in enumerate(index.shape) if k != dim):
        raise IndexError(f"gather takes an index of {x.ndim} axes within {x.shape} but for axis {dim}, got {index.shape}")
    if index.size and not 0 <= index.min() <= index.max() < x.shape[dim]:
        raise IndexError(f"gather's index must be from 0 to {x.shape[dim] - 1}, got {index.min()} to {index.max()}")
    return call(_gather, x, parameters=(dim, index))


def take(x: Any, index: Any) -> Any:
    """The entries of flattened x that `index` names, in the shape of `index`."""
    return index_(reshape(x, (-1,)), np.asarray(data_of(index)))


def tril(x: Any, diagonal: int = 0) -> Any:
    """The lower triangle, zeros elsewhere."""
    return call(_tril, x, parameters=(diagonal,))


def triu(x: Any, diagonal: int = 0) -> Any:
    """The upper triangle, zeros elsewhere."""
    return call(_triu, x, parameters=(diagonal,))


def matmul(a: Any, b: Any) -> Any:
    """Products of rows and columns: (n, k) @ (k, m) -> (n, m); also vectors, and batches, which broadcast.

        dA = dY Bᵀ,   dB = Aᵀ dY

    >>> A, B = Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])
    >>> (A @ B).backward(); A.grad, B.grad
    (array([[3., 4.]]), array([[1.],
           [2.]]))
    """
    if not hasattr(a, "ndim") or not hasattr(b, "ndim"):
        a, b = (np.asarray(x) if isinstance(x, (list, tuple)) else x for x in (a, b))
        for x in (a, b):
            if not hasattr(x, "ndim"):
                raise TypeError(f"matmul multiplies arrays, got {type(x).__name__} {x!r:.40}; a number multiplies with *")
    m, n = a.ndim, b.ndim
    if m == 2 == n and a.shape[1] == b.shape[0]:
        if a.__class__ is b.__class__ is Tensor and engine._ordinary and b.flow is not constant:
            return record(a.data.dot(b.data), _RIGHT if a.flow is constant else _SIDES, a, b)
        return call(_matmul, a, b)
    if not m or not n or a.shape[-1] != b.shape[builtins.max(n - 2, 0)]:
        raise ValueError(f"matmul cannot multiply the shapes {a.shape} and {b.shape}: "
                         "the last axis of the first must be as long as the last but one of the second")
    if m == 1 or n == 1:
        y = matmul(a if m > 1 else reshape(a, (1, *a.shape)), b if n > 1 else reshape(b, (*b.shape, 1)))
        return reshape(y, tuple(k for k in (y.shape[:-2] + y.shape[-2:-1] * (m > 1) + y.shape[-1:] * (n > 1))))
    if n == 2:                                                  # one matrix for the whole batch: one large product
        return reshape(call(_matmul, reshape(a, (-1, a.shape[-1])), b), (*a.shape[:-1], b.shape[1]))
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"matmul cannot broadcast the batches of the shapes {a.shape} and {b.shape}") from None
    return call(_matmul, broadcast_to(a, (*batch, *a.shape[-2:])), broadcast_to(b, (*batch, *b.shape[-2:])))


def sum(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum of all entries, or along axes."""
    if dim is None and axis is None and x.__class__ is Tensor:
        if engine._ordinary and x.flow is not constant and not keepdim and not keepdims:
            return record(np.add.reduce(x.data, None), _TOTAL, x)
        return call(sum_op, x, parameters=(None, keepdim or keepdims))
    return call(sum_op, x, parameters=(axes_of(x, dim, axis), keepdim or keepdims))


def mean(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean of all entries, or along axes."""
    total = sum(x, dim, keepdim, axis=axis, keepdims=keepdims)
    return total / _count(x, total)


def _count(x: Any, total: Any) -> float:
    """How many entries of x went into each of a reduction."""
    return x.size / total.size if total.size else math.nan


def var(x: Any, dim: Any = None, correction: float = 1, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False,
        unbiased: bool | None = None) -> Any:
    """The mean squared deviation from the mean, over n - correction; `unbiased=False` means correction=0."""
    correction = correction if unbiased is None else int(unbiased)
    middle = mean(x, dim, True, axis=axis)
    squares = sum(ops.mul(x - middle, x - middle), dim, keepdim or keepdims, axis=axis)
    return squares / builtins.max(_count(x, middle) - correction, 0.0)


def std(x: Any, dim: Any = None, correction: float = 1, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False,
        unbiased: bool | None = None) -> Any:
    """The square root of `var`; its gradient is 0 where nothing deviates."""
    return _length(var(x, dim, correction, keepdim, axis=axis, keepdims=keepdims, unbiased=unbiased))


def norm(x: Any, p: float = 2, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """(sum |x|^p)^(1/p), and the largest |x| for p = inf, the smallest for -inf; its gradient at the zero vector is 0."""
    if p == 2:
        return _length(sum(x * x, dim, keepdim or keepdims, axis=axis))
    if math.isinf(p):
        return (max if p > 0 else min)(ops.abs(x), dim, keepdim or keepdims, axis=axis)
    if p == 0:
        return sum(ops.sign(ops.abs(x)), dim, keepdim or keepdims, axis=axis)
    total = sum(ops.abs(x) ** p if p != 1 else ops.abs(x), dim, keepdim or keepdims, axis=axis)
    zero = np.asarray(data_of(total) == 0)              # there the gradient is 0
    return total if p == 1 else ops.where(zero, 0.0, ops.where(zero, 1.0, total) ** (1 / p))


def _extremum(op: Operation, x: Any, dim: Any, keepdim: bool, axis: Any) -> Any:
    axes = axes_of(x, dim, axis)
    y = call(op, x, parameters=(axes,))
    return y if keepdim else reshape(y, _left_over(x, axes))


def _left_over(x: Any, axes: tuple | None) -> tuple[int, ...]:
    """The shape of x without the reduced axes."""
    return tuple(n for k, n in enumerate(x.shape) if axes is not None and k not in axes)


def max(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest entry of all, or along axes (no indices: see argmax); a tie shares the gradient evenly."""
    return _extremum(_max, x, dim, keepdim or keepdims, axis)


def min(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest entry of all, or along axes; a tie shares the gradient evenly."""
    return _extremum(_min, x, dim, keepdim or keepdims, axis)


def prod(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The product of all entries, or along axes, by halves, so that zeros need no division."""
    axes = axes_of(x, dim, axis)
    axes = tuple(range(x.ndim)) if axes is None else axes
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    y = reshape(permute(x, axes + rest), (math.prod(x.shape[k] for k in axes), *(x.shape[k] for k in rest)))
    if not y.shape[0]:
        y = sum(y, 0, True) + 1.0                       # the product of nothing
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        pairs = y[:half] * y[half:2 * half]
        y = pairs if y.shape[0] == 2 * half else cat([pairs, y[2 * half:]])
    return reshape(y[0], node.kept(x, axes) if keepdim or keepdims else tuple(x.shape[k] for k in rest))


def cumsum(x: Any, dim: int = 0, *, axis: Any = None) -> Any:
    """Running sums along an axis."""
    return call(_cumsum, x, parameters=(axes_of(x, dim if axis is None else axis, None)[0],))


def logsumexp(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))), shifted by the maximum so that it cannot overflow."""
    axes = axes_of(x, dim, axis)
    y = call(_logsumexp, x, parameters=(axes,))
    return y if keepdim or keepdims else reshape(y, _left_over(x, axes))


def softmax(x: Any, dim: int = -1, *, axis: Any = None) -> Any:
    """exp(x) over its sum along an axis, shifted by the maximum of each row."""
    return call(_softmax, x, parameters=(axes_of(x, dim if axis is None else axis, None),))


def log_softmax(x: Any, dim: int = -1, *, axis: Any = None) -> Any:
    """log(softmax(x)), without the detour that would lose its digits."""
    return call(_log_softmax, x, parameters=(axes_of(x, dim if axis is None else axis, None),))


def cat(tensors: Sequence, dim: int = 0, *, axis: int | None = None) -> Any:
    """Tensors joined along an axis; each receives its own part of the gradient."""
    dim = dim if axis is None else axis
    arrays = [np.asarray(data_of(x)) for x in tensors]
    if not arrays:
        raise ValueError("cat needs at least one tensor, got none")
    try:
        y = np.concatenate(arrays, dim)
    except ValueError:
        raise ValueError(f"cat along axis {dim} needs equal shapes but for that axis, got "
                         f"{', '.join(str(a.shape) for a in arrays)}; numbers without axes are joined by stack") from None
    dim %= y.ndim
    ends = np.cumsum([a.shape[dim] for a in arrays]).tolist()
    parts = [(slice(None),) * dim + (slice(end - a.shape[dim], end),) for a, end in zip(arrays, ends)]
    op = Operation("cat", "cat", lambda *xs: cat([data_of(x) for x in xs], dim), tuple(
        lambda g, *xs, part=part: index_(g, part) for part in parts))
    if not any(isinstance(x, Value) for x in tensors):
        return y
    nodes = [x if isinstance(x, Value) else Tensor(x, requires_grad=False) for x in tensors]
    return node.connect(op, y, nodes, lambda reached: _Joined(op, reached, (dim,)))


class _Joined(Call):
    """The flow of cat: the tangents of the parts are joined as the parts were."""

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        g = g if isinstance(g, Value) else whole(g, y)
        return [(i, self.op.rules[i](g)) for i in self.reached]

    def push(self, i: int, tangent: Any, inputs: Sequence, y: Any) -> Any:
        return cat([tangent if k == i else np.zeros_like(data_of(x)) for k, x in enumerate(inputs)], *self.parameters)


def stack(tensors: Sequence, dim: int = 0, *, axis: int | None = None) -> Any:
    """Tensors of one shape, joined along a new axis."""
    dim = dim if axis is None else axis
    forms = [np.shape(data_of(x)) for x in tensors]
    if len(set(forms)) > 1:
        raise ValueError(f"stack needs tensors of one shape, got {', '.join(map(str, forms))}")
    return cat([unsqueeze(x if isinstance(x, Tensor) else np.asarray(data_of(x)) if not isinstance(x, Value)
                          else node.lift(x, np.zeros(())), dim) for x in tensors], dim)


def split(x: Any, split_size: Any, dim: int = 0) -> tuple:
    """x in pieces along an axis: of one size (the last may be smaller), or of the sizes in a list."""
    axes_of(x, dim, None)
    n = x.shape[dim]
    if split_size.__class__ is int and split_size < 1:
        raise ValueError(f"split needs pieces of at least one entry, got {split_size}")
    sizes = split_size if isinstance(split_size, (list, tuple)) else [
        builtins.min(split_size, n - k) for k in range(0, n, split_size)]
    if builtins.sum(sizes) != n or any(k < 0 for k in sizes):
        raise ValueError(f"split sizes {list(sizes)} add up to {builtins.sum(sizes)}, the axis has length {n}")
    lead = (slice(None),) * (dim % x.ndim)
    return tuple(index_(x, (*lead, slice(builtins.sum(sizes[:k]), builtins.sum(sizes[:k + 1])))) for k in range(len(sizes)))


def outer(a: Any, b: Any) -> Any:
    """Every entry of a times every entry of b: (n), (m) -> (n, m)."""
    _vectors("outer", a, b)
    return reshape(a, (-1, 1)) * reshape(b, (1, -1))


def _vectors(name: str, a: Any, b: Any) -> None:
    if np.ndim(data_of(a)) != 1 or np.ndim(data_of(b)) != 1:
        raise ValueError(f"{name} takes two vectors, got the shapes {np.shape(data_of(a))} and {np.shape(data_of(b))}")


def dot(a: Any, b: Any) -> Any:
    """The sum of products of two vectors."""
    _vectors("dot", a, b)
    return matmul(a, b)


def einsum(equation: str, *inputs: Any) -> Any:
    """Sums of products, written with letters: `einsum("ij,jk->ik", A, B)` is a matrix product.

    Source: numpy.einsum. No letter may be repeated within one operand, and "..." is not taken.
    """
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        out = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    if "." in equation or len(terms) != len(inputs) or any(len(set(t)) != len(t) for t in (*terms, out)):
        raise ValueError(f"einsum takes one term of distinct letters for each of the {len(inputs)} operands, got {equation!r}")
    lengths = {c: n for t, x in zip(terms, inputs) for c, n in zip(t, x.shape)}

    def rule(i: int) -> Callable:
        def back(g: Any, *xs: Any) -> Any:
            others = [(t, x) for k, (t, x) in enumerate(zip(terms, xs)) if k != i]
            known = set(out).union(*(t for t, _ in others))
            here = "".join(c for c in terms[i] if c in known)       # a letter that stands alone was summed: copies
            part = einsum(",".join([out, *(t for t, _ in others)]) + "->" + here, g, *(x for _, x in others))
            kept = reshape(part, tuple(lengths[c] if c in known else 1 for c in terms[i]))
            return broadcast_to(kept, tuple(lengths[c] for c in terms[i]))
        return back

    op = Operation("einsum", "einsum", lambda *xs: np.einsum(f"{left}->{out}", *xs), tuple(rule(i) for i in range(len(terms))))
    return call(op, *inputs)


def spread(x: tuple) -> tuple:
    """f(1, 2) and f((1, 2)) mean the same."""
    return tuple(x[0]) if len(x) == 1 and isinstance(x[0], (tuple, list)) else x


def _transpose(x: Any, *dims: Any) -> Any:
    """Two dims are swapped, as in PyTorch; without any the axes are reversed, with all they are ordered, as in NumPy."""
    dims = spread(dims)
    return swapaxes(x, *dims) if len(dims) == 2 else permute(x, dims or range(x.ndim)[::-1])


node.NUMPY_FUNCTIONS.update(
    dot=lambda a, b: matmul(a, b) if np.ndim(data_of(a)) < 3 > np.ndim(data_of(b)) else _vectors("dot", a, b),
    squeeze=lambda a, axis=None: squeeze(a, axis),
    tril=lambda m, k=0: tril(m, k), triu=lambda m, k=0: triu(m, k),
    cumsum=lambda a, axis=None: cumsum(reshape(a, (-1,)) if axis is None else a, axis or 0),
    outer=lambda a, b: outer(reshape(a, (-1,)), reshape(b, (-1,))))


class _Probe(Tensor):
    """Finds out how often a result is referred to that no variable holds, where `unary` and `binary` look."""

    __slots__ = ()

    def unary(self, op: Operation, other: Any = None) -> Any:
        a = self.data
        return sys.getrefcount(self), sys.getrefcount(a)

    binary = unary


_named = _Probe(0.0)
if _Probe(0.0).relu() < _named.relu() and _Probe(0.0) + 1.0 < _named + 1.0:     # so it can be told apart in this Python
    node._alone, node._alone_left = _Probe(0.0).relu(), _Probe(0.0) + 1.0
amax, amin = max, min
for _function in (matmul, sum, mean, prod, var, std, max, min, logsumexp, softmax, log_softmax, norm, cumsum, gather, take,
                  tril, triu, outer, dot, swapaxes, split, squeeze, unsqueeze, flatten, cat, stack, einsum, reshape,
                  broadcast_to):
    node.ARRAY_FUNCTIONS[_function.__name__] = _function
    if _function not in (cat, stack, einsum):
        setattr(Tensor, _function.__name__, _function)
for _name, _method in {
    "amax": max, "amin": min, "transpose": _transpose, "__getitem__": index_, "__matmul__": matmul,
    "__rmatmul__": lambda self, other: matmul(other, self),
    "reshape": lambda self, *shape: reshape(self, spread(shape)),
    "view": lambda self, *shape: reshape(self, spread(shape)),
    "permute": lambda self, *dims: permute(self, spread(dims)),
    "broadcast_to": lambda self, *shape: broadcast_to(self, spread(shape)),
    "expand": lambda self, *shape: expand(self, spread(shape)),
    "argmax": lambda self, dim=None, keepdim=False, *, axis=None: np.argmax(self.data, dim if axis is None else axis, None,
                                                                            keepdims=keepdim),
    "argmin": lambda self, dim=None, keepdim=False, *, axis=None: np.argmin(self.data, dim if axis is None else axis, None,
                                                                            keepdims=keepdim),
    "T": property(lambda self: _transpose(self), doc="All axes in reverse order."),
    "mT": property(lambda self: swapaxes(self, -1, -2), doc="The last two axes swapped."),
}.items():
    setattr(Tensor, _name, _method)


# --------------------------------------------------------------------------------- random numbers
_generator = np.random.default_rng()


def generator() -> np.random.Generator:
    """The random numbers of dropout and of initial weights."""
    return _generator


def manual_seed(seed: int) -> None:
    """Start the random numbers of this package, and those of Python's `random`, from a seed."""
    import random
    global _generator
    random.seed(seed)
    _generator = np.random.default_rng(seed)
