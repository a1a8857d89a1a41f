"""A node that holds an array: recording, broadcasting, and the end of the way back."""

from __future__ import annotations

import builtins
import functools
import opcode
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from micrograd import engine, ops
from micrograd.engine import Flow, Inputs, Nothing, Value, constant, freed, prepare, thread, variable
from micrograd.engine import _data as data_of
from micrograd.ops import TABLE, Operand, Operation, add
from micrograd.tensor.memory import Released, looks

_new = object.__new__
ndarray = np.ndarray


def as_array(data: Any, requires_grad: bool) -> ndarray:
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


def record(data: Any, flow: Flow, left: Any, right: Any = None) -> Tensor:
    """A new inner node; what a reduction gives as a NumPy scalar becomes an array again."""
    node = _new(Tensor)
    node.data = data if data.__class__ is ndarray else np.asarray(data)
    node.grad = None
    node.flow = flow
    node._left = left
    node._right = right
    node._extra = None
    return node


_LARGE = 4096                       # entries; memory of smaller arrays is not worth a look
# the reference counts of a result that no variable holds, and of its data, where `unary` and `binary` look; set in arrays.py
_alone = _alone_left = (-1, -1)

class _Passes(threading.local):
    """The gradients that leaves took over in this thread's pass: no two may share one."""

    def __init__(self) -> None:
        self.given: set[int] = set()


_passes = _Passes()


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
        self.data = as_array(data, requires_grad)
        self.grad = None

    # ------------------------------------------------------------------------- recording
    def unary(self, op: Operation) -> Tensor:
        if engine._ordinary and self.flow is not constant:
            a, flow = self.data, op.both or prepare(op).both
            y = (op.kernel or op.array_kernel())(a)
            if a.size > _LARGE and (sys.getrefcount(self), sys.getrefcount(a)) == _alone:
                self.release(flow)
            return record(y, flow, self)
        return Tensor.apply_to(op, (self,))

    def binary(self, op: Operation, other: Any) -> Any:
        kind = other.__class__
        if engine._ordinary and self.flow is not constant and (kind is Tensor or kind is float or kind is int):
            a = self.data
            alone = a.size > _LARGE and (sys.getrefcount(self), sys.getrefcount(a)) == _alone_left
            try:
                if kind is not Tensor:
                    y = (op.kernel or op.array_kernel())(a, other)
                    flow, other = op.first or prepare(op).first, float(other)
                elif alone and op is add and self.lends(other.data):
                    y, flow = a, flow_between(op, self, other, a)
                    y += other.data                     # X @ W + b: the memory of the product serves again
                else:
                    y = (op.kernel or op.array_kernel())(a, other.data)
                    flow = flow_between(op, self, other, y)
                if alone:
                    self.release(flow)
                return record(y, flow, self, other)
            except ValueError:
                pass                                    # of shapes; said below
        elif engine._ordinary and kind is Tensor and other.flow is not constant and self.data.shape == other.data.shape:
            return record(op.on_arrays(self.data, other.data), op.second or prepare(op).second, self, other)
        return Tensor.apply_to(op, (self, other))

    def reflected(self, op: Operation, other: Any) -> Any:
        if engine._ordinary and self.flow is not constant and (other.__class__ is float or other.__class__ is int):
            y = (op.kernel or op.array_kernel())(other, self.data)
            return record(y, op.second or prepare(op).second, float(other), self)
        return Tensor.apply_to(op, (other, self))

    def release(self, user: Flow | None = None) -> bool:
        """Let go of data that no variable holds, if no rule looks at it: neither this node's nor its only user's."""
        free = not self.is_leaf and len(self.flow.op.rules) + 1 not in looks(self.flow) and not (user and 1 in looks(user))
        if free and user:
            self.data = Released(self.data, self.flow, self.operands())
        return free

    def lends(self, b: ndarray) -> bool:
        """Whether b can be added in the memory of this node's data, which no variable holds."""
        a = self.data
        return a.base is None and a.dtype == b.dtype and a.shape[-b.ndim:] == b.shape and self.release()

    __add__, __mul__ = Operand.__add__, Operand.__mul__         # Value's are for numbers

    def apply(self, op: Operation, *inputs: Any) -> Any:
        """Record an operation of the table on `inputs`, in general."""
        return Tensor.apply_to(op, inputs)

    @staticmethod
    def apply_to(op: Operation | None, inputs: Sequence) -> Any:
        """Record `op` on floats, arrays, Values and Tensors; broadcast what wants a gradient."""
        if op is None:
            return Tensor(inputs[0])
        nodes = [operand(x, op) for x in inputs]
        datas = [x.data if isinstance(x, Value) else x for x in nodes]
        if op.name not in _WHOLE_NUMBERS:
            datas = [floats(d) for d in datas]
        try:
            y = (op.kernel or op.array_kernel())(*datas)
        except ValueError:
            raise ValueError(f"{op.name} cannot broadcast arrays of the shapes "
                             f"{' and '.join(str(np.shape(d)) for d in datas)}") from None
        if not any(op.rules):
            return y
        y = np.asarray(y)
        nodes = [lift(x, y) if isinstance(x, Value) and not x.rank and x.flow is not constant and op.rules[i] else x
                 for i, x in enumerate(nodes)]
        if thread.observer is not None:
            nodes = broadcast_inputs(op, nodes, y.shape)
        same = all(x.data.shape == y.shape for x in nodes if isinstance(x, Value) and x.flow is not constant)
        return connect(op, y, nodes, lambda reached: Spread(op, *reached) if not same else (
            prepare(op).both if len(reached) == len(nodes) < 3 else Flow(op, *reached)))

    # --------------------------------------------------------------------------- reading
    @property
    def inputs(self) -> tuple:
        """The nodes that this one was made of, as of a Value."""
        for x in (self, *self.operands()):
            getattr(x, "look", bool)()
        return Value.inputs.fget(self)                  # type: ignore[attr-defined]

    def look(self) -> bool:
        if self.data.__class__ is Released:
            self.data = self.data.again()
        return self.flow.unfold(self, None)

    _prev = inputs
    shape = property(lambda self: self.data.shape, doc="The lengths of the axes.")
    dtype = property(lambda self: self.data.dtype, doc="float64, float32, or an integer or bool type of a constant.")
    ndim = property(lambda self: self.data.ndim, doc="The number of axes.")
    size = property(lambda self: self.data.size, doc="The number of entries.")

    def numpy(self) -> ndarray:
        """A copy of the data, for a Tensor that requires no gradient."""
        return np.array(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray:
        if self.requires_grad:
            raise TypeError("turning a Tensor that requires a gradient into an array would lose the gradient; "
                            "use t.detach() or t.data, or the function of this package (micrograd.where, t.sum(), ...)")
        if copy is False:
            raise ValueError("a Tensor's array is always a copy, so that it cannot be changed behind the graph's back")
        return np.array(self.data, dtype=dtype)

    @Value.requires_grad.setter                         # type: ignore[attr-defined,untyped-decorator]
    def requires_grad(self, wanted: bool) -> None:
        """Whether gradients reach this node; of numbers with a fraction only."""
        if wanted and self.data.dtype.kind != "f":
            raise RuntimeError(f"only float data can require a gradient, this Tensor holds {self.data.dtype}")
        Value.requires_grad.fset(self, wanted)          # type: ignore[attr-defined]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:   # type: ignore[override]
        name = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "power": "pow",
                "arctan": "atan", "absolute": "abs"}.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and not keywords and (name in TABLE or ufunc is np.matmul):
            return TABLE[name](*inputs) if name in TABLE else ARRAY_FUNCTIONS["matmul"](*inputs)
        if method == "__call__" and not keywords and ufunc.__name__ in ("less", "greater", "less_equal", "greater_equal"):
            return ufunc(*(x.data if isinstance(x, Value) else x for x in inputs))
        if constants(inputs) and constants(list(keywords.values())) and not isinstance(keywords.get("out", (0,))[0], Value):
            return getattr(ufunc, method)(*arrays_of(inputs), **keywords)
        raise TypeError(f"numpy.{ufunc.__name__} ({method}) cannot record a gradient; use an operation of Tensor, "
                        "or t.detach() for plain numbers")

    def __array_function__(self, function: Any, types: Any, inputs: tuple, keywords: dict) -> Any:
        name = {"concatenate": "cat", "amax": "max", "amin": "min"}.get(function.__name__, function.__name__)
        if constants(inputs) and constants(list(keywords.values())):
            return function(*arrays_of(inputs), **{key: arrays_of(x) for key, x in keywords.items()})
        if name in NUMPY_NAMES:
            return (NUMPY_FUNCTIONS.get(name) or ARRAY_FUNCTIONS.get(name) or TABLE[name])(*inputs, **keywords)
        raise TypeError(f"numpy.{function.__name__} cannot record a gradient; use an operation of Tensor "
                        f"({', '.join(sorted(NUMPY_NAMES))} are passed on to it), or t.detach() for plain numbers")

    def __len__(self) -> int:
        if not self.data.ndim:
            raise TypeError("a Tensor without axes has no length")
        return len(self.data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))              # type: ignore[index]

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

    def like(self, number: float) -> Tensor:
        """A constant of this Tensor's shape and dtype, filled with a number (or an array broadcast to it)."""
        return record(np.array(np.broadcast_to(number, self.data.shape), self.data.dtype), constant, None)

    def detach(self) -> Tensor:
        """A copy of the data as a constant."""
        return Tensor(self.data, requires_grad=False)

    def __repr__(self) -> str:
        label = f", label={self.label!r}" if self.label else ""
        grad = "" if self.requires_grad else ", requires_grad=False"
        return f"Tensor({np.array2string(self.data, separator=', ', prefix='Tensor(', threshold=100)}{label}{grad})"

    # -------------------------------------------------------------------------- backward
    quiet = functools.partial(np.errstate, all="ignore")

    def seed(self, gradient: Any = None, create_graph: bool = False) -> Any:
        _passes.given = set()
        if gradient is None:
            if self.data.size != 1:
                raise RuntimeError(f"backward needs a gradient for a result of shape {self.data.shape}: only of one number "
                                   "is the derivative 1; reduce it to a loss (.sum(), .mean()) or pass gradient=")
            data = np.array(1.0, self.data.dtype).reshape(self.data.shape)
        else:
            data = np.array(data_of(gradient), self.data.dtype)
        if data.shape != self.data.shape:
            raise RuntimeError(f"the gradient must have the shape of the result, {self.data.shape}; got {data.shape}")
        if self.flow is constant:
            return super().seed(1.0)                            # raises
        if not create_graph:
            return data
        gradient = gradient if isinstance(gradient, Value) else Tensor(data, requires_grad=False)
        _passes.given.add(id(gradient))
        return gradient

    def finisher(self, retain_graph: bool) -> Callable[[Value], None]:
        def finish(node: Value) -> None:
            if node.rank:
                node.grad = None if node._extra is None or not node._extra.get("retain") else node.own(node.grad)
            if not retain_graph:
                node.flow = freed
                node._left = node._right = None
        return finish

    def run_hooks(self) -> None:
        if self._extra and self._extra.get("hooks"):
            shown = self.grad = self.own(self.grad)     # whole, and no one else's
            super().run_hooks()
            if self.grad is not shown and not isinstance(self.grad, Value):
                self.grad = np.array(np.broadcast_to(self.grad, self.data.shape), self.data.dtype)

    def own(self, gradient: Any) -> Any:
        """The gradient in this node's dtype, in memory that nothing else looks at."""
        if gradient.__class__ is Nothing or gradient is None:
            return gradient
        data = self.data
        if isinstance(gradient, Tensor):
            if gradient.dtype != data.dtype or id(gradient) in _passes.given:
                gradient = call(_astype, gradient, parameters=(data.dtype,))
        elif gradient.__class__ is not ndarray or gradient.shape != data.shape:
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
        if old is not None and self.grad is not None and not isinstance(self.grad, Value):
            self.grad = np.asarray(self.grad)           # the sum of two arrays without axes is none

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.grad = None if set_to_none else np.zeros_like(self.data)

    def in_place(self, op: Operation, other: Any) -> Any:
        if self.is_leaf and self.requires_grad and thread.recording:
            raise RuntimeError("a leaf that requires a gradient cannot be changed in place while recording; "
                               "update under no_grad(), or change t.data")
        if thread.recording or not self.is_leaf:
            return self.binary(op, other)
        result = np.asarray(op(self.data, other.data if isinstance(other, Value) else other))
        if result.shape != self.data.shape:
            raise ValueError(f"{op.name} in place would change the shape {self.data.shape} to {result.shape}")
        self.data = result.astype(self.data.dtype, copy=False)
        return self

def constants(x: Any) -> bool:
    """Whether nothing in nested lists and tuples wants a gradient."""
    return all(map(constants, x)) if isinstance(x, (list, tuple)) else not (isinstance(x, Value) and x.requires_grad)


def arrays_of(x: Any) -> Any:
    """The same with arrays in place of Tensors."""
    return type(x)(map(arrays_of, x)) if isinstance(x, (list, tuple)) else x.data if isinstance(x, Value) else x


def operand(x: Any, op: Operation) -> Any:
    """What may stand in an operation: a node, a float, or an array, which becomes a constant node."""
    if isinstance(x, Value):
        return x
    if getattr(x, "ndim", 0) or isinstance(x, list):
        return Tensor(x, requires_grad=False)
    return x if x.__class__ is int else ops.number(x, op.name)


def connect(op: Operation, y: ndarray, nodes: list, flow_for: Callable[[list], Flow]) -> Any:
    """The node of a result, connected to its inputs where a gradient may pass; else a constant."""
    reached = [i for i, x in enumerate(nodes) if isinstance(x, Value) and x.flow is not constant and op.rules[i]]
    if not reached or not thread.recording:
        return record(y, constant, None)
    nodes = [float(x) if x.__class__ is int else x for x in nodes]
    left, right = nodes if len(nodes) == 2 else (nodes[0] if len(nodes) == 1 else Inputs(nodes), None)
    node = record(y, flow_for(reached), left, right)
    if thread.observer is not None:
        thread.observer.made(node)
    return node


# --------------------------------------------------------------------- operations on whole arrays
ARRAY: dict[str, Operation] = {}                    # the table of array operations
ARRAY_FUNCTIONS: dict[str, Callable] = {}           # the functions that NumPy's and Tensor's methods lead to
NUMPY_FUNCTIONS: dict[str, Callable] = {}           # those that NumPy knows with other arguments
NUMPY_NAMES = ("dot", "squeeze", "tril", "triu", "cumsum", "sum", "mean", "prod", "max", "min", "where", "cat", "stack",
               "einsum", "outer", "reshape", "broadcast_to", "swapaxes")


class Spread(Flow):
    """a, b -> y of several shapes: an input adds up what its copies receive.

    Whoever reads the graph sees the copying as an operation of its own, `broadcast_to`.
    """

    def unfold(self, node: Value, gradient: Any) -> bool:
        nodes = broadcast_inputs(self.op, node.operands(), node.data.shape, self.reached)
        node._left, node._right = nodes if len(nodes) == 2 else (Inputs(nodes), None)
        node.flow = Flow(self.op, *self.reached)
        return True

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        g = g if isinstance(g, Value) else whole(g, y)
        parts = [(i, self.op.rules[i](g, *inputs, y)) for i in self.reached]
        return [(i, sum_to(part if isinstance(part, Value) else whole(part, y), inputs[i].shape)) for i, part in parts]


class Bias(Spread):
    """matrix + row, the usual case: it costs what the sum over the rows costs."""

    def pull(self, node: Value) -> None:
        a, b, g = node._left, node._right, node.grad
        a.grad = a.grad + g
        b.grad = b.grad + column_sums(whole(g, node.data))


_bias = Bias(add, 0, 1)


def flow_between(op: Operation, a: Tensor, b: Tensor, y: Any) -> Flow:
    """The way of a gradient from y to the variable a, and to b if that is one, of shapes that may differ."""
    if a.data.shape == b.data.shape and b.flow is not constant:
        return op.both or prepare(op).both
    if b.flow is constant:
        return op.first or prepare(op).first if a.data.shape == y.shape else Spread(op, 0)
    return _bias if op is add and a.data.ndim == 2 and b.data.ndim == 1 and a.data.shape == y.shape else Spread(op, 0, 1)


def broadcast_inputs(op: Operation, nodes: Sequence, shape: tuple, reached: Sequence[int] | None = None) -> list:
    """The inputs of an operation with those that want a gradient in the shape of its result."""
    reached = [i for i, rule in enumerate(op.rules) if rule] if reached is None else reached
    return [broadcast_to(x, shape) if i in reached and isinstance(x, Value) and x.flow is not constant and x.rank else x
            for i, x in enumerate(nodes)]


class Call(Flow):
    """The flow of one call of an array operation, with its parameters (axis, shape, index, ...).

    On the way back a gradient may be smaller than its node where broadcasting makes up for it (that of
    a sum is one number for all entries); a rule here sees it whole.
    """

    __slots__ = ("parameters",)

    def __init__(self, op: Operation, reached: Sequence[int], parameters: tuple) -> None:
        self.op, self.reached, self.parameters = op, tuple(reached), parameters

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        if not isinstance(g, Value):
            g = whole(g, y)
        return [(i, self.op.rules[i](g, *inputs, y, *self.parameters)) for i in self.reached]

    def pull(self, node: Value) -> None:
        x = node._left
        if node._right is None and x.__class__ is Tensor:
            y = node.data
            x.grad = x.grad + self.op.rules[0](whole(node.grad, y), x.data, y, *self.parameters)
        else:
            self.hand_down(node)

    def push(self, i: int, tangent: Any, inputs: Sequence, y: Any) -> Any:
        if self.op.limit is not curved_op:                        # linear in each input: put the tangent in its place
            return call(self.op, *inputs[:i], tangent, *inputs[i + 1:], parameters=self.parameters)
        back = Tensor(np.ones_like(y.data))                     # else the transpose of the way back, which is linear in g
        from micrograd.autograd import grad
        return grad(self.op.rules[i](back, *inputs, y, *self.parameters), back, tangent, create_graph=True)[0]


# what has a meaning on whole numbers and truth values; everything else works on float64 instead
_WHOLE_NUMBERS = {"add", "sub", "mul", "div", "neg", "pow", "abs", "sign", "relu", "maximum", "minimum", "clamp_min",
                  "clamp_max", "where", "equal"}


def floats(x: Any) -> Any:
    """An array of whole numbers or truth values as float64; anything else is what it is."""
    return x.astype(np.float64) if getattr(getattr(x, "dtype", None), "kind", "f") in "iub" else x


def whole(g: Any, y: Any) -> ndarray:
    """A gradient in the shape of its node."""
    shape = getattr(y, "shape", ())
    return g if getattr(g, "shape", None) == shape else np.broadcast_to(g, shape)


def curved_op(*inputs: Any) -> Any:
    """Marks an array operation that is not linear in its inputs."""


def array_op(name: str, forward: Callable, *rules: Callable | None, curved: bool = False) -> Operation:
    """A line: the value on arrays, and what each input receives, both with the parameters at the end."""
    ARRAY[name] = Operation(name, {"matmul": "@"}.get(name, name), forward, rules, limit=curved_op if curved else None)
    return ARRAY[name]


def call(op: Operation, *inputs: Any, parameters: tuple = ()) -> Any:
    """Apply an array operation: on plain arrays give an array, on nodes record."""
    x = inputs[0]
    if len(inputs) == 1 and engine._ordinary and x.__class__ is Tensor and x.flow is not constant:
        try:
            return record(op.forward(x.data, *parameters), Call(op, (0,), parameters), x)
        except ValueError:
            pass                                                # said below
    for x in inputs:
        if isinstance(x, Value):
            break
    else:
        return op.forward(*inputs, *parameters)
    nodes = [x if isinstance(x, Value) else Tensor(x, requires_grad=False) for x in inputs]
    try:
        y = op.forward(*(x.data for x in nodes), *parameters)
    except ValueError as error:
        raise ValueError(f"{op.name} of the shape {' and '.join(str(x.data.shape) for x in nodes)}"
                         f"{' with ' + ', '.join(map(str, parameters)) if parameters else ''}: {error}") from None
    return connect(op, y, nodes, lambda reached: Call(op, reached, parameters))


def axes_of(x: Any, dim: Any, axis: Any) -> Any:
    """dim is PyTorch's word and axis NumPy's; None means all axes. As a tuple, counted from the front."""
    if dim is not None and axis is not None:
        raise TypeError("give dim or axis, not both: they mean the same")
    axis = axis if dim is None else dim
    if axis is None:
        return None
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if not x.ndim and set(axes) <= {0, -1}:
        return ()
    for k in axes:
        if not -x.ndim <= k < builtins.max(x.ndim, 1):
            raise IndexError(f"axis {k} is out of range for the shape {x.shape}")
    return tuple(k % builtins.max(x.ndim, 1) for k in axes)


def kept(x: Any, axis: tuple | None) -> tuple[int, ...]:
    """The shape of x with the reduced axes kept, of length 1."""
    return tuple(1 if axis is None or k in axis else n for k, n in enumerate(x.shape))


def restore(g: Any, x: Any, axis: tuple | None, keepdims: bool) -> Any:
    """g, the gradient of a sum over x: the reduced axes are back, repeated if g is a node."""
    if not isinstance(g, Value) and axis is None:
        return g
    g = g if keepdims else reshape(g, kept(x, axis))
    return broadcast_to(g, x.shape) if isinstance(g, Value) else g


@functools.lru_cache(64)
def ones(n: int, dtype: Any) -> ndarray:
    """A row of ones."""
    return np.ones(n, dtype)


def column_sums(g: ndarray) -> ndarray:
    """g.sum(0) of a matrix, as a product, which takes a third of the time."""
    return ones(len(g), g.dtype).dot(g)


def sum_to(g: Any, shape: tuple) -> Any:
    """The transpose of broadcasting: add up what was copied."""
    lead = len(g.shape) - len(shape)
    if g.__class__ is ndarray and g.shape[lead:] == shape:
        return column_sums(g) if lead == 1 and g.ndim == 2 else np.add.reduce(g, tuple(range(lead)))
    axes = (*range(lead), *(k + lead for k, n in enumerate(shape) if n == 1 != g.shape[k + lead]))
    return reshape(call(sum_op, g, parameters=(axes, False)), shape)


def repeated(x: ndarray, shape: tuple) -> ndarray:
    """numpy.broadcast_to, and a third of its time where x is a row for every row."""
    if x.ndim == 1 and shape and x.flags.c_contiguous and x.shape[0] == shape[-1] > 1:
        y = ndarray(shape, x.dtype, x, 0, (0,) * (len(shape) - 1) + x.strides)
        y.flags.writeable = False
        return y
    return np.broadcast_to(x, shape)


# the three that broadcasting needs; the rest of the table is in arrays.py
sum_op = array_op("sum", lambda x, axis, keep: np.add.reduce(x, axis=axis, keepdims=keep),
                 lambda g, x, y, axis, keep: restore(g, x, axis, keep))
_broadcast = array_op("broadcast_to", repeated, lambda g, x, y, shape: sum_to(g, x.shape))
_reshape = array_op("reshape", lambda x, shape: x.reshape(shape), lambda g, x, y, shape: reshape(g, x.shape))
_astype: Operation = array_op("astype", lambda x, dtype: x.astype(dtype),
                              lambda g, x, y, dtype: call(_astype, g, parameters=(x.dtype,)))
# between the two worlds: a Value becomes an array of equal entries, and back by adding up
_fill = array_op("broadcast_to", lambda x, like: np.full(like.shape, x, like.dtype), lambda g, x, y, like: total(g))
_add_up = array_op("sum", lambda x, like: float(x.sum()), lambda g, x, y, like: lift(g, like))


def lift(x: Any, like: ndarray) -> Any:
    """A number or a Value as an array of the shape of `like`."""
    if not isinstance(x, Value):
        return np.full(like.shape, x, like.dtype)
    return connect(_fill, _fill.forward(x.data, like), [x], lambda reached: Call(_fill, reached, (like,)))


def total(g: Any) -> Any:
    """What a Value receives from an array: the sum, as a number."""
    if not isinstance(g, Value):
        return float(g.sum())
    node = Value(g.data.sum(), requires_grad=False)
    if g.requires_grad and thread.recording:
        node.flow, node._left = Call(_add_up, (0,), (g.data,)), g
    return node


def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """x repeated to a larger shape; gradients add up over the copies."""
    return x if tuple(shape) == x.shape else call(_broadcast, x, parameters=(tuple(shape),))


def reshape(x: Any, shape: Any) -> Any:
    """The same entries in another form; one length may be -1."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return x if shape == x.shape else call(_reshape, x, parameters=(shape,))


