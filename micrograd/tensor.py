"""The same graph, the same rules, on whole arrays: a node holds a batch instead of a number.

Elementwise operations are those of `ops.py`, unchanged. What is new is what arrays can do besides:
multiply as matrices, add up along an axis, change their form, pick entries. Each such operation is a
line or a few below: its value, and for each input what it receives of a gradient `g`. The rules are written
in operations of this file, so they work on arrays and, for derivatives of derivatives, on Tensors.

Broadcasting is an operation of its own (`broadcast_to`, whose gradient is a sum), put in where it is
needed, so that no rule has to know of it. NumPy's warnings about overflow are silenced where an operation
can make inf or nan of ordinary numbers (exp, log, /, ...); + - * and relu leave them as they are, since
silencing would cost as much as the operation.
"""

from __future__ import annotations

import builtins
import math
import opcode
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from micrograd import engine, ops
from micrograd.engine import Flow, Value, constant, nothing, prepare, thread, variable
from micrograd.ops import TABLE, Operation, add, mul

_new = object.__new__
ndarray = np.ndarray
_WILD = {"exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "div", "pow"}


def _kernel(op: Operation) -> Callable:
    """The function of an elementwise operation on arrays."""
    if op.kernel is None:
        op.on_arrays(*[np.ones(1)] * len(op.rules))
        if op.name in _WILD or op.kernel is op.forward and op not in (add, mul, TABLE["sub"], TABLE["neg"]):
            op.kernel = np.errstate(all="ignore")(op.kernel)
    return op.kernel


def _as_array(data: Any, requires_grad: bool) -> ndarray:
    """An array of our own with the data: float32 and float64 stay, all else that can be becomes float64."""
    if isinstance(data, Value):
        data = data.data
    try:
        array = np.array(data)
    except ValueError as error:
        raise TypeError(f"a Tensor needs a regular array, and these lists are ragged: {error}") from None
    if array.dtype in (np.float64, np.float32) or array.dtype.kind in "iub" and not requires_grad:
        return array
    if array.dtype.kind not in "iubf":
        raise TypeError(f"a Tensor holds real numbers, got dtype {array.dtype} from {type(data).__name__} {data!r:.60}; "
                        "join Tensors with stack or cat")
    return array.astype(np.float64)


def _record(data: Any, flow: Flow, left: Any, right: Any = None) -> Tensor:
    """A new inner node; what a reduction gives as a NumPy scalar becomes an array again."""
    node = _new(Tensor)
    node.data = data if data.__class__ is ndarray else np.asarray(data)
    node.grad = None
    node.flow = flow
    node._left = left
    node._right = right
    node._extra = None
    return node


_passes = threading.local()         # the gradients that leaves took over in this pass: no two may share one


class Tensor(Value):
    """An array that remembers how it was made: `Value` for batches.

    Args:
        data: an array or nested lists of numbers, copied. float32 and float64 are kept; everything else
            becomes float64, unless requires_grad=False allows integers and bools to stay.
        label, requires_grad: as for Value.

    Unlike a Value it is made for training: `.grad` is None until a gradient arrives, inner nodes drop
    theirs unless `retain_grad()` was called, and `backward()` frees the graph unless retain_graph=True.

    >>> X, W = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=False), Tensor([[1.0], [-1.0]])
    >>> loss = (X @ W).tanh().sum()
    >>> loss.backward()
    >>> loss.item(), W.grad.ravel()
    (-1.5231883119115297, array([1.67989737, 2.51984605]))
    """

    __slots__ = ()
    rank = 1
    _retains_graph = False

    def __init__(self, data: Any, _children: Sequence = (), _op: str = "", label: str = "",
                 requires_grad: bool = True) -> None:
        super().__init__(0.0, _children, _op, label, requires_grad)
        self.data = _as_array(data, requires_grad)
        self.grad = None

    # ------------------------------------------------------------------------- recording
    def unary(self, op: Operation) -> Tensor:
        if engine._ordinary and self.flow is not constant:
            return _record((op.kernel or _kernel(op))(self.data), op.both or prepare(op).both, self)
        return Tensor.apply_to(op, (self,))

    def binary(self, op: Operation, other: Any) -> Any:
        kind = other.__class__
        if engine._ordinary and self.flow is not constant:
            if kind is float or kind is int:
                return _record((op.kernel or _kernel(op))(self.data, other), op.first or prepare(op).first, self, float(other))
            if kind is Tensor and other.flow is not constant and self.data.shape == other.data.shape:
                return _record((op.kernel or _kernel(op))(self.data, other.data), op.both or prepare(op).both, self, other)
        return Tensor.apply_to(op, (self, other))

    def reflected(self, op: Operation, other: Any) -> Any:
        if engine._ordinary and self.flow is not constant and (other.__class__ is float or other.__class__ is int):
            return _record((op.kernel or _kernel(op))(other, self.data), op.second or prepare(op).second, float(other), self)
        return Tensor.apply_to(op, (other, self))

    __add__ = lambda self, other: self.binary(add, other)       # noqa: E731  (Value's are for numbers)
    __mul__ = lambda self, other: self.binary(mul, other)       # noqa: E731

    def apply(self, op: Operation, *inputs: Any) -> Any:
        """Record an operation of the table on `inputs`, in general."""
        return Tensor.apply_to(op, inputs)

    @staticmethod
    def apply_to(op: Operation | None, inputs: Sequence) -> Any:
        """Record `op` on floats, arrays, Values and Tensors; broadcast what wants a gradient."""
        if op is None:
            return Tensor(inputs[0])
        nodes = [_operand(x, op) for x in inputs]
        datas = [x.data if isinstance(x, Value) else x for x in nodes]
        try:
            y = (op.kernel or _kernel(op))(*datas)
        except ValueError:
            raise ValueError(f"{op.name} cannot broadcast arrays of the shapes "
                             f"{' and '.join(str(np.shape(d)) for d in datas)}") from None
        if not any(op.rules):
            return y
        y = np.asarray(y)
        for i, x in enumerate(nodes):
            if isinstance(x, Value) and x.flow is not constant and op.rules[i] and np.shape(datas[i]) != y.shape:
                nodes[i] = broadcast_to(x, y.shape) if x.rank else _lift(x, y)
        return _connect(op, y, nodes, lambda reached: (
            prepare(op).both if len(reached) == len(nodes) < 3 else Flow(op, *reached)))

    # --------------------------------------------------------------------------- reading
    shape = property(lambda self: self.data.shape, doc="The lengths of the axes.")
    dtype = property(lambda self: self.data.dtype, doc="float64, float32, or an integer or bool type of a constant.")
    ndim = property(lambda self: self.data.ndim, doc="The number of axes.")
    size = property(lambda self: self.data.size, doc="The number of entries.")
    T = property(lambda self: self.transpose(), doc="All axes in reverse order.")
    mT = property(lambda self: swapaxes(self, -1, -2), doc="The last two axes swapped.")

    def numpy(self) -> ndarray:
        """A copy of the data, for a Tensor that requires no gradient."""
        return np.array(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray:
        if self.requires_grad:
            raise TypeError("turning a Tensor that requires a gradient into an array would lose the gradient; "
                            "use t.detach() or t.data, or the function of this package (micrograd.where, t.sum(), ...)")
        return np.array(self.data, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        name = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "power": "pow",
                "arctan": "atan", "absolute": "abs"}.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and not keywords and (name in TABLE or ufunc is np.matmul):
            return TABLE[name](*inputs) if name in TABLE else matmul(*inputs)
        if method == "__call__" and not keywords and ufunc.__name__ in ("less", "greater", "less_equal", "greater_equal"):
            return ufunc(*(x.data if isinstance(x, Value) else x for x in inputs))
        raise TypeError(f"numpy.{ufunc.__name__} ({method}) cannot record a gradient; use an operation of Tensor, "
                        "or t.detach() for plain numbers")

    def __array_function__(self, function: Any, types: Any, inputs: tuple, keywords: dict) -> Any:
        name = {"concatenate": "cat", "amax": "max", "amin": "min"}.get(function.__name__, function.__name__)
        ours = globals().get(name) or TABLE.get(name)
        if name in _NUMPY and ours is not None:
            return ours(*inputs, **keywords)
        raise TypeError(f"numpy.{function.__name__} cannot record a gradient; use an operation of Tensor "
                        f"({', '.join(sorted(_NUMPY))} are passed on to it), or t.detach() for plain numbers")

    def __len__(self) -> int:
        if not self.data.ndim:
            raise TypeError("a Tensor without axes has no length")
        return len(self.data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool: return bool(self.data)          # of more than one entry NumPy raises
    def __int__(self) -> int: return int(self.item())
    def __format__(self, spec: str) -> str: return format(self.item(), spec) if spec else str(self)
    def __round__(self, digits: int | None = None) -> Any: return round(self.item(), digits)

    def __float__(self) -> float:
        caller = sys._getframe(1)               # `array[0] = t` asks for a float, and would lose the gradient silently
        if self.requires_grad and caller.f_code.co_code[caller.f_lasti] == opcode.opmap["STORE_SUBSCR"]:
            self.__array__()
        return float(self.item())

    def item(self) -> float:
        """The one entry, as a Python number."""
        if self.data.size != 1:
            raise ValueError(f"only a Tensor of one entry is a number, this one has the shape {self.data.shape}")
        return self.data.item()

    def detach(self) -> Tensor:
        """A copy of the data as a constant."""
        return Tensor(self.data, requires_grad=False)

    def __repr__(self) -> str:
        label = f", label={self.label!r}" if self.label else ""
        grad = "" if self.requires_grad else ", requires_grad=False"
        return f"Tensor({np.array2string(self.data, separator=', ', prefix='Tensor(', threshold=100)}{label}{grad})"

    # -------------------------------------------------------------------------- backward
    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
        """As `Value.backward`; of more than one entry, `gradient` must be given, in the shape of the data."""
        with np.errstate(all="ignore"):
            super().backward(gradient, retain_graph, create_graph)

    def seed(self, gradient: Any = None, create_graph: bool = False) -> Any:
        _passes.given = set()
        if gradient is None:
            if self.data.size != 1:
                raise RuntimeError(f"backward needs a gradient for a result of shape {self.data.shape}: only of one number "
                                   "is the derivative 1; reduce it to a loss (.sum(), .mean()) or pass gradient=")
            gradient = np.ones(self.data.shape)
        data = np.array(gradient.data if isinstance(gradient, Value) else gradient, self.data.dtype)
        if data.shape != self.data.shape:
            raise RuntimeError(f"the gradient must have the shape of the result, {self.data.shape}; got {data.shape}")
        if self.flow is constant:
            return super().seed(1.0)                            # raises
        gradient = gradient if isinstance(gradient, Value) else Tensor(data, requires_grad=False)
        return gradient if create_graph else data

    def finisher(self, retain_graph: bool) -> Callable[[Value], None]:
        def finish(node: Value) -> None:
            if node.rank:
                node.grad = node.own(node.grad) if node._extra and node._extra.get("retain") else None
            if not retain_graph:
                node.free()
        return finish

    def own(self, gradient: Any) -> Any:
        """The gradient in this node's dtype, in memory that nothing else looks at."""
        if isinstance(gradient, Value) or gradient is nothing or gradient is None:
            return gradient
        data = self.data
        if gradient.__class__ is not ndarray or gradient.shape != data.shape:
            gradient = np.array(np.broadcast_to(gradient, data.shape), data.dtype)
        elif gradient.dtype != data.dtype:
            gradient = gradient.astype(data.dtype)
        elif gradient.base is not None or id(gradient) in _passes.given:
            gradient = gradient.copy()
        _passes.given.add(id(gradient))
        return gradient

    def receive(self, old: Any) -> None:
        if self.flow is variable:
            self.grad = self.own(self.grad)
        super().receive(old)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.grad = None if set_to_none else np.zeros_like(self.data)

    def in_place(self, op: Operation, other: Any) -> Any:
        if self.is_leaf and self.requires_grad and thread.recording:
            raise RuntimeError("a leaf that requires a gradient cannot be changed in place while recording; "
                               "update under no_grad(), or change t.data")
        if thread.recording or not self.is_leaf:
            return self.binary(op, other)
        self.data = np.asarray(op(self.data, other.data if isinstance(other, Value) else other))
        return self

    # ------------------------------------------------------- methods that array functions give
    def __matmul__(self, other: Any) -> Any: return matmul(self, other)
    def __rmatmul__(self, other: Any) -> Any: return matmul(other, self)
    def __getitem__(self, index: Any) -> Any: return index_(self, index)
    def reshape(self, *shape: Any) -> Any: return reshape(self, _spread(shape))
    def permute(self, *dims: Any) -> Any: return permute(self, _spread(dims))
    def broadcast_to(self, *shape: Any) -> Any: return broadcast_to(self, _spread(shape))
    def squeeze(self, dim: Any = None) -> Any: return squeeze(self, dim)
    def unsqueeze(self, dim: int) -> Any: return unsqueeze(self, dim)
    def expand(self, *shape: Any) -> Any: return expand(self, _spread(shape))
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Any: return flatten(self, start_dim, end_dim)
    def argmax(self, dim: Any = None, axis: Any = None) -> Any: return self.data.argmax(dim if axis is None else axis)
    def argmin(self, dim: Any = None, axis: Any = None) -> Any: return self.data.argmin(dim if axis is None else axis)
    view = reshape

    def transpose(self, *dims: Any) -> Any:
        """With two dims these are swapped, as in PyTorch; without, or with all, as NumPy's transpose."""
        dims = _spread(dims)
        return swapaxes(self, *dims) if len(dims) == 2 != self.ndim else permute(self, dims or range(self.ndim)[::-1])


def _spread(x: tuple) -> tuple:
    """f(1, 2) and f((1, 2)) mean the same."""
    return tuple(x[0]) if len(x) == 1 and isinstance(x[0], (tuple, list)) else x


def _operand(x: Any, op: Operation) -> Any:
    """What may stand in an operation: a node, a float, or an array, which becomes a constant node."""
    if isinstance(x, Value):
        return x
    if getattr(x, "ndim", 0) or isinstance(x, list):
        return Tensor(x, requires_grad=False)
    return ops.number(x, op.name)


def _connect(op: Operation, y: ndarray, nodes: list, flow_for: Callable[[list], Flow]) -> Any:
    """The node of a result, connected to its inputs where a gradient may pass; else a constant."""
    reached = [i for i, x in enumerate(nodes) if isinstance(x, Value) and x.flow is not constant and op.rules[i]]
    if not reached or not thread.recording:
        return _record(y, constant, None)
    node = _record(y, flow_for(reached), *(nodes if len(nodes) == 2 else (nodes[0] if len(nodes) == 1 else tuple(nodes), None)))
    if thread.observer is not None:
        thread.observer.made(node)
    return node


# --------------------------------------------------------------------- operations on whole arrays
class Call(Flow):
    """The flow of one call of an array operation, with its parameters (axis, shape, index, ...)."""

    __slots__ = ("parameters",)

    def __init__(self, op: Operation, reached: Sequence[int], parameters: tuple) -> None:
        self.op, self.reached, self.parameters = op, reached, parameters

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        if g.__class__ is not ndarray and not isinstance(g, Value):
            g = np.asarray(g)                                   # a number, where rules want to see a shape
        return [(i, self.op.rules[i](g, *inputs, y, *self.parameters)) for i in self.reached]

    def push(self, i: int, tangent: Any, inputs: Sequence, y: Any) -> Any:
        if self.op.limit is not _curved:                        # linear in each input: put the tangent in its place
            return call(self.op, *inputs[:i], tangent, *inputs[i + 1:], parameters=self.parameters)
        back = Tensor(np.ones_like(y.data))                     # else the transpose of the way back, which is linear in g
        from micrograd.autograd import grad
        return grad(self.op.rules[i](back, *inputs, y, *self.parameters), back, tangent, create_graph=True)[0]


def _curved(*inputs: Any) -> Any:
    """Marks an array operation that is not linear in its inputs."""


ARRAY: dict[str, Operation] = {}


def _array_op(name: str, forward: Callable, *rules: Callable | None, curved: bool = False) -> Operation:
    """A line: the value on arrays, and what each input receives, both with the parameters at the end."""
    ARRAY[name] = Operation(name, {"matmul": "@"}.get(name, name), forward, rules, limit=_curved if curved else None)
    return ARRAY[name]


def call(op: Operation, *inputs: Any, parameters: tuple = ()) -> Any:
    """Apply an array operation: on plain arrays give an array, on nodes record."""
    for x in inputs:
        if isinstance(x, Value):
            break
    else:
        return op.forward(*inputs, *parameters)
    nodes = [x if isinstance(x, Value) else Tensor(x, requires_grad=False) for x in inputs]
    y = op.forward(*(x.data for x in nodes), *parameters)
    return _connect(op, y, nodes, lambda reached: Call(op, reached, parameters))


def _axis(x: Any, dim: Any, axis: Any) -> tuple[int, ...] | None:
    """dim is PyTorch's word and axis NumPy's; None means all axes. As a tuple, counted from the front."""
    if dim is not None and axis is not None:
        raise TypeError("give dim or axis, not both: they mean the same")
    axis = axis if dim is None else dim
    if axis is None:
        return None
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for k in axes:
        if not -x.ndim <= k < builtins.max(x.ndim, 1):
            raise IndexError(f"axis {k} is out of range for the shape {x.shape}")
    return tuple(k % builtins.max(x.ndim, 1) for k in axes)


def _kept(x: Any, axis: tuple | None) -> tuple[int, ...]:
    """The shape of x with the reduced axes kept, of length 1."""
    return tuple(1 if axis is None or k in axis else n for k, n in enumerate(x.shape))


def _restore(g: Any, x: Any, axis: tuple | None, keepdims: bool) -> Any:
    """g, the gradient of a reduction of x, with the reduced axes back as length 1."""
    return g if keepdims else reshape(g, _kept(x, axis))


def _sum_to(g: Any, shape: tuple) -> Any:
    """The transpose of broadcasting: add up what was copied."""
    lead = len(g.shape) - len(shape)
    axes = (*range(lead), *(k + lead for k, n in enumerate(shape) if n == 1 != g.shape[k + lead]))
    return reshape(call(_sum, g, parameters=(axes, False)), shape)


def _scatter_values(g: ndarray, index: Any, shape: tuple) -> ndarray:
    y = np.zeros(shape, g.dtype)
    if all(isinstance(k, (int, slice, type(None), type(...))) for k in (index if isinstance(index, tuple) else (index,))):
        y[index] = g
    else:
        np.add.at(y, index, g)                              # entries that were picked twice add up
    return y


def _scatter_along(g: ndarray, dim: int, index: ndarray, shape: tuple) -> ndarray:
    y = np.zeros(shape, g.dtype)
    places = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    np.add.at(y, tuple(places), g)
    return y


def _data(x: Any) -> Any:
    return x.data if isinstance(x, Value) else x


def _share(x: Any, y: Any) -> ndarray:
    """For each entry its share of the gradient of an extremum y: ties share evenly."""
    x, y = _data(x), _data(y)
    mask = (x == y) | (x != x)
    return mask / np.asarray(mask.sum(tuple(k for k, n in enumerate(y.shape) if n == 1), keepdims=True), x.dtype)


def _exp_shifted(x: ndarray, axis: Any) -> tuple[ndarray, ndarray, ndarray]:
    """exp(x - max), its sum, and max, along an axis; a max that is not finite is taken as 0."""
    top = x.max(axis, keepdims=True, initial=None if x.size else 0.0)
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
    y = x - top
    y -= np.log(total)
    return y


# the table of array operations: value, then what each input receives
_sum = _array_op("sum", lambda x, axis, keep: np.add.reduce(x, axis, None, None, keep),
                 lambda g, x, y, axis, keep: broadcast_to(_restore(g, x, axis, keep), x.shape))
_broadcast = _array_op("broadcast_to", np.broadcast_to, lambda g, x, y, shape: _sum_to(g, x.shape))
_reshape = _array_op("reshape", lambda x, shape: x.reshape(shape), lambda g, x, y, shape: reshape(g, x.shape))
_permute = _array_op("permute", lambda x, dims: x.transpose(dims),
                     lambda g, x, y, dims: permute(g, tuple(dims.index(k) for k in range(len(dims)))))
_swapaxes = _array_op("swapaxes", lambda x, a, b: x.swapaxes(a, b), lambda g, x, y, a, b: swapaxes(g, a, b))
_index = _array_op("index", lambda x, index: x[index],
                   lambda g, x, y, index: call(_scatter, g, parameters=(index, x.shape)))
_scatter = _array_op("scatter", _scatter_values, lambda g, x, y, index, shape: index_(g, index))
_gather = _array_op("gather", lambda x, dim, index: np.take_along_axis(x, index, dim),
                    lambda g, x, y, dim, index: call(_scatter_add, g, parameters=(dim, index, x.shape)))
_scatter_add = _array_op("scatter_add", _scatter_along, lambda g, x, y, dim, index, shape: gather(g, dim, index))
_matmul = _array_op("matmul", np.matmul, lambda g, a, b, y: matmul(g, swapaxes(b, -1, -2)),
                    lambda g, a, b, y: matmul(swapaxes(a, -1, -2), g))
_cumsum = _array_op("cumsum", lambda x, axis: x.cumsum(axis),
                    lambda g, x, y, axis: _reversed(call(_cumsum, _reversed(g, axis), parameters=(axis,)), axis))
_tril = _array_op("tril", np.tril, lambda g, x, y, k: tril(g, k))
_triu = _array_op("triu", np.triu, lambda g, x, y, k: triu(g, k))
_max = _array_op("max", lambda x, axis: np.maximum.reduce(x, axis, keepdims=True), lambda g, x, y, axis: g * _share(x, y),
                 curved=True)
_min = _array_op("min", lambda x, axis: np.minimum.reduce(x, axis, keepdims=True), lambda g, x, y, axis: g * _share(x, y),
                 curved=True)
_logsumexp = _array_op("logsumexp", _logsumexp_values, lambda g, x, y, axis: g * ops.exp(x - y), curved=True)
_softmax = _array_op("softmax", _softmax_values, lambda g, x, y, axis: y * (g - sum(g * y, axis, True)), curved=True)
_log_softmax = _array_op("log_softmax", _log_softmax_values, lambda g, x, y, axis: g - ops.exp(y) * sum(g, axis, True),
                         curved=True)
# a square root whose derivative at 0 is 0: for lengths and deviations, where PyTorch has it so
_length = prepare(Operation("sqrt", "sqrt", math.sqrt, (
    lambda g, x, y: ops.where(ops.equal(y, 0), 0.0, g / ops.where(ops.equal(y, 0), 1.0, y) * 0.5),)))
# between the two worlds: a Value becomes an array of equal entries, and back by adding up
_fill = _array_op("broadcast_to", lambda x, like: np.full(like.shape, x, like.dtype), lambda g, x, y, like: _total(g))
_add_up = _array_op("sum", lambda x, like: float(x.sum()), lambda g, x, y, like: _lift(g, like))


def _lift(x: Any, like: ndarray) -> Any:
    """A number or a Value as an array of the shape of `like`."""
    if not isinstance(x, Value):
        return np.full(like.shape, x, like.dtype)
    return _connect(_fill, _fill.forward(x.data, like), [x], lambda reached: Call(_fill, reached, (like,)))


def _total(g: Any) -> Any:
    """What a Value receives from an array: the sum, as a number."""
    if not isinstance(g, Value):
        return float(g.sum())
    node = Value(g.data.sum(), requires_grad=False)
    if g.requires_grad and thread.recording:
        node.flow, node._left = Call(_add_up, (0,), (g.data,)), g
    return node


# ------------------------------------------------------- the same as functions and as methods
def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """x repeated to a larger shape; gradients add up over the copies."""
    return x if tuple(shape) == x.shape else call(_broadcast, x, parameters=(tuple(shape),))


def reshape(x: Any, shape: Any) -> Any:
    """The same entries in another form; one length may be -1."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return x if shape == x.shape else call(_reshape, x, parameters=(shape,))


def permute(x: Any, dims: Sequence[int]) -> Any:
    """The axes in another order."""
    return call(_permute, x, parameters=(tuple(k % len(x.shape) for k in dims),))


def swapaxes(x: Any, a: int, b: int) -> Any:
    """Two axes exchanged."""
    return call(_swapaxes, x, parameters=(a, b))


def squeeze(x: Any, dim: Any = None) -> Any:
    """Without axes of length 1: all of them, or those named if they are."""
    axes = _axis(x, dim, None) or range(x.ndim) if dim is None else _axis(x, dim, None)
    return reshape(x, tuple(n for k, n in enumerate(x.shape) if not (n == 1 and k in axes)))


def unsqueeze(x: Any, dim: int) -> Any:
    """With a new axis of length 1 at `dim`."""
    dim = dim % (x.ndim + 1)
    return reshape(x, (*x.shape[:dim], 1, *x.shape[dim:]))


def expand(x: Any, shape: Sequence[int]) -> Any:
    """As `broadcast_to`; -1 keeps a length."""
    lead = len(shape) - x.ndim
    return broadcast_to(x, tuple(x.shape[k - lead] if n == -1 else n for k, n in enumerate(shape)))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Axes start_dim to end_dim as one."""
    start, end = start_dim % builtins.max(x.ndim, 1), end_dim % builtins.max(x.ndim, 1)
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:end + 1]), *x.shape[end + 1:]))


def index_(x: Any, index: Any) -> Any:
    """x[index]: ints, slices, None, ..., masks and integer arrays; entries picked twice get both gradients."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(np.asarray(_data(k)) if isinstance(k, (Value, list)) else k for k in parts)
    return call(_index, x, parameters=(parts if isinstance(index, tuple) else parts[0],))


def _reversed(x: Any, axis: int) -> Any:
    return index_(x, (slice(None),) * axis + (slice(None, None, -1),))


def gather(x: Any, dim: int, index: Any) -> Any:
    """Along `dim`, the entries that `index` names: y[i][j] = x[index[i][j]][j] for dim 0."""
    return call(_gather, x, parameters=(dim % x.ndim, np.asarray(_data(index))))


def take(x: Any, index: Any) -> Any:
    """The entries of flattened x that `index` names, in the shape of `index`."""
    return index_(reshape(x, (-1,)), np.asarray(_data(index)))


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
    m, n = len(a.shape), len(b.shape)
    if m == 2 == n and a.shape[1] == b.shape[0]:
        return call(_matmul, a, b)
    if not m or not n or a.shape[-1] != b.shape[builtins.max(n - 2, 0)]:
        raise ValueError(f"matmul cannot multiply the shapes {a.shape} and {b.shape}: "
                         "the last axis of the first must be as long as the last but one of the second")
    if m == 1 or n == 1:
        y = matmul(a if m > 1 else reshape(a, (1, *a.shape)), b if n > 1 else reshape(b, (*b.shape, 1)))
        return reshape(y, tuple(k for k in (y.shape[:-2] + y.shape[-2:-1] * (m > 1) + y.shape[-1:] * (n > 1))))
    if n == 2:                                                  # one matrix for the whole batch: one large product
        return reshape(call(_matmul, reshape(a, (-1, a.shape[-1])), b), (*a.shape[:-1], b.shape[1]))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return call(_matmul, broadcast_to(a, (*batch, *a.shape[-2:])), broadcast_to(b, (*batch, *b.shape[-2:])))


def sum(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum of all entries, or along axes."""
    return call(_sum, x, parameters=(_axis(x, dim, axis), keepdim or keepdims))


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
    """(sum |x|^p)^(1/p), and the largest |x| for p = inf; its gradient at the zero vector is 0."""
    if p == 2:
        return _length(sum(x * x, dim, keepdim or keepdims, axis=axis))
    if p == math.inf:
        return max(ops.abs(x), dim, keepdim or keepdims, axis=axis)
    if p == 1:
        return sum(ops.abs(x), dim, keepdim or keepdims, axis=axis)
    return sum(ops.abs(x) ** p, dim, keepdim or keepdims, axis=axis) ** (1 / p)


def _extremum(op: Operation, x: Any, dim: Any, keepdim: bool, axis: Any) -> Any:
    axes = _axis(x, dim, axis)
    y = call(op, x, parameters=(axes,))
    return y if keepdim else reshape(y, tuple(n for k, n in enumerate(x.shape) if axes is not None and k not in axes))


def max(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest entry of all, or along axes (no indices: see argmax); a tie shares the gradient evenly."""
    return _extremum(_max, x, dim, keepdim or keepdims, axis)


def min(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest entry of all, or along axes; a tie shares the gradient evenly."""
    return _extremum(_min, x, dim, keepdim or keepdims, axis)


def prod(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The product of all entries, or along axes, by halves, so that zeros need no division."""
    axes = _axis(x, dim, axis)
    axes = tuple(range(x.ndim)) if axes is None else axes
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    y = reshape(permute(x, axes + rest), (math.prod(x.shape[k] for k in axes), *(x.shape[k] for k in rest)))
    if not y.shape[0]:
        y = Tensor(np.ones((1, *y.shape[1:]), x.dtype), requires_grad=False)
    while y.shape[0] > 1:
        half = y.shape[0] // 2
        pairs = y[:half] * y[half:2 * half]
        y = pairs if y.shape[0] == 2 * half else cat([pairs, y[2 * half:]])
    return reshape(y[0], _kept(x, axes) if keepdim or keepdims else tuple(x.shape[k] for k in rest))


def cumsum(x: Any, dim: int = 0, *, axis: Any = None) -> Any:
    """Running sums along an axis."""
    return call(_cumsum, x, parameters=(_axis(x, dim if axis is None else axis, None)[0],))


def logsumexp(x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))), shifted by the maximum so that it cannot overflow."""
    axes = _axis(x, dim, axis)
    y = call(_logsumexp, x, parameters=(axes,))
    return y if keepdim or keepdims else reshape(y, tuple(n for k, n in enumerate(x.shape) if axes is not None and k not in axes))


def softmax(x: Any, dim: int = -1, *, axis: Any = None) -> Any:
    """exp(x) over its sum along an axis, shifted by the maximum of each row."""
    return call(_softmax, x, parameters=(_axis(x, dim if axis is None else axis, None),))


def log_softmax(x: Any, dim: int = -1, *, axis: Any = None) -> Any:
    """log(softmax(x)), without the detour that would lose its digits."""
    return call(_log_softmax, x, parameters=(_axis(x, dim if axis is None else axis, None),))


def cat(tensors: Sequence, dim: int = 0, *, axis: int | None = None) -> Any:
    """Tensors joined along an axis; each receives its own part of the gradient."""
    dim = dim if axis is None else axis
    arrays = [np.asarray(_data(x)) for x in tensors]
    if not arrays:
        raise ValueError("cat needs at least one tensor, got none")
    y = np.concatenate(arrays, dim)
    dim %= y.ndim
    ends = np.cumsum([a.shape[dim] for a in arrays]).tolist()
    parts = [(slice(None),) * dim + (slice(end - a.shape[dim], end),) for a, end in zip(arrays, ends)]
    op = Operation("cat", "cat", lambda *xs: cat([_data(x) for x in xs], dim), tuple(
        lambda g, *xs, part=part: index_(g, part) for part in parts))
    if not any(isinstance(x, Value) for x in tensors):
        return y
    nodes = [x if isinstance(x, Value) else Tensor(x, requires_grad=False) for x in tensors]
    return _connect(op, y, nodes, lambda reached: _Joined(op, reached, (dim,)))


class _Joined(Call):
    """The flow of cat: the tangents of the parts are joined as the parts were."""

    __slots__ = ()

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        return [(i, self.op.rules[i](g)) for i in self.reached]

    def push(self, i: int, tangent: Any, inputs: Sequence, y: Any) -> Any:
        return cat([tangent if k == i else np.zeros_like(_data(x)) for k, x in enumerate(inputs)], *self.parameters)


def stack(tensors: Sequence, dim: int = 0, *, axis: int | None = None) -> Any:
    """Tensors of one shape, joined along a new axis."""
    dim = dim if axis is None else axis
    return cat([unsqueeze(x if isinstance(x, Tensor) else np.asarray(_data(x)) if not isinstance(x, Value)
                          else _lift(x, np.zeros(())), dim) for x in tensors], dim)


def split(x: Any, split_size: Any, dim: int = 0) -> tuple:
    """x in pieces along an axis: of one size (the last may be smaller), or of the sizes in a list."""
    n = x.shape[dim]
    sizes = split_size if isinstance(split_size, (list, tuple)) else [
        builtins.min(split_size, n - k) for k in range(0, n, split_size)]
    if builtins.sum(sizes) != n:
        raise ValueError(f"split sizes {list(sizes)} add up to {builtins.sum(sizes)}, the axis has length {n}")
    lead = (slice(None),) * (dim % x.ndim)
    return tuple(index_(x, (*lead, slice(builtins.sum(sizes[:k]), builtins.sum(sizes[:k + 1])))) for k in range(len(sizes)))


def outer(a: Any, b: Any) -> Any:
    """Every entry of a times every entry of b: (n), (m) -> (n, m)."""
    return reshape(a, (-1, 1)) * reshape(b, (1, -1))


def dot(a: Any, b: Any) -> Any:
    """The sum of products of two vectors."""
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


for _name in ("matmul sum mean prod var std max min logsumexp softmax log_softmax norm cumsum gather take tril triu outer dot "
              "swapaxes split").split():
    setattr(Tensor, _name, globals()[_name])
Tensor.amax, Tensor.amin, amax, amin = max, min, max, min                    # type: ignore[attr-defined]
_NUMPY = {"sum", "mean", "prod", "max", "min", "where", "cat", "stack", "dot", "einsum", "outer", "tril", "triu", "cumsum",
          "reshape", "squeeze", "broadcast_to", "swapaxes"}


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
