"""The whole of backpropagation: remember what was computed, then walk back and apply the chain rule.

A `Value` is a number that remembers which operation made it and from what. `backward()` sorts those
memories so that every node comes after all that it helped to make, and then each node in turn
hands its gradient down to its inputs, multiplied by the local derivative that `ops.py` gives. That is
all. The two functions to read first are `topological_order` and `chain_rule`.
"""

from __future__ import annotations

import threading

from micrograd.ops import Ieee, Operand, Operation, add, mul, number

TYPE_CHECKING = False               # for readers of types only: `typing` takes longer to load than all of this package
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any


# ------------------------------------------------------------------------ the way of a gradient
def _data(x: Any) -> Any:
    """What a node holds; a constant is what it is."""
    return x.data if isinstance(x, Value) else x


def _itself(x: Any) -> Any:
    return x


def _ieee(x: Any) -> Any:
    return Ieee(_data(x))


def _as_float(x: Value, part: Any) -> Any:
    return float(part)


def _as_node(x: Value, part: Any) -> Any:
    return part if isinstance(part, Value) else x.like(part)


class Flow:
    """How a gradient passes one node: the operation, and which of its inputs the gradient reaches."""

    __slots__ = ("op", "reached", "to_a", "to_b")
    is_leaf = False

    def __init__(self, op: Operation, *reached: int) -> None:
        self.op, self.reached = op, reached
        self.to_a, self.to_b = (*op.rules, None, None)[:2]

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        """[(i, what input i receives)] when g arrives at y; on floats, arrays, nodes or names alike."""
        return [(i, self.op.rules[i](g, *inputs, y)) for i in self.reached]

    def push(self, i: int, tangent: Any, inputs: Sequence, y: Any) -> Any:
        """Forward mode: how y moves when input i moves along `tangent`. Elementwise it is the same rule."""
        return self.op.rules[i](tangent, *inputs, y)

    def hand_down(self, node: Value, see: Callable = _data, give: Callable | None = None) -> None:
        """Give each input its part of the node's gradient. `see` turns nodes into what the rules work on."""
        inputs = node.operands()
        for i, part in self.contributions(node.grad, [see(x) for x in inputs], see(node)):
            inputs[i].grad = inputs[i].grad + (part if give is None else give(inputs[i], part))

    def unfold(self, node: Value, gradient: Any) -> bool:
        """Make nodes, which have received `gradient`, of what was left out for speed; whether there were any."""
        return False

    def pull(self, node: Value) -> None:
        """As numbers; the flows below spell it out, for that is where time goes."""
        self.hand_down(node)


class One(Flow):
    """x -> y"""

    def pull(self, node: Value) -> None:
        x = node._left
        x.grad = x.grad + self.to_a(node.grad, x.data, node.data)


class Both(Flow):
    """a, b -> y, where both want a gradient. They may be one and the same node: both parts count."""

    def pull(self, node: Value) -> None:
        a, b = node._left, node._right
        g, y = node.grad, node.data
        to_a, to_b = self.to_a(g, a.data, b.data, y), self.to_b(g, a.data, b.data, y)
        a.grad = a.grad + to_a
        b.grad = b.grad + to_b


class Sum(Both):
    """a + b: the most frequent one, and without a call a third faster."""

    def pull(self, node: Value) -> None:
        a, b, g = node._left, node._right, node.grad
        a.grad = a.grad + g
        b.grad = b.grad + g


class Beside(Flow):
    """a, b -> y, where one is a plain number or a constant."""

    def pull(self, node: Value) -> None:
        a, b = node._left, node._right
        if self.reached[0]:
            b.grad = b.grad + self.to_b(node.grad, a if a.__class__ is float else a.data, b.data, node.data)
        else:
            a.grad = a.grad + self.to_a(node.grad, a.data, b if b.__class__ is float else b.data, node.data)


class Leaf(Flow):
    """The end of the way: a variable keeps what arrives, a constant is never reached."""

    is_leaf = True


class ByHand(Flow):
    """micrograd's way to define an operation: a function that adds to the `.grad` of the parents."""

    def __init__(self, symbol: str, inputs: tuple, function: Callable[[Value], None] = lambda node: None) -> None:
        super().__init__(Operation(symbol, symbol, _unknown, (None,) * len(inputs)), *range(len(inputs)))
        self.function = function

    def pull(self, node: Value) -> None:
        self.function(node)

    def hand_down(self, node: Value, see: Callable = _data, give: Callable | None = None) -> None:
        if see is _ieee:
            raise                                       # the function's own error, which the caller is handling
        _unknown()

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]: return _unknown()
    def push(self, i: int, tangent: Any, inputs: Sequence, y: Any) -> Any: return _unknown()


class Freed(Flow):
    """A node whose graph was given back to memory by `backward(retain_graph=False)`."""

    def hand_down(self, node: Value, see: Callable = _data, give: Callable | None = None) -> None:
        raise RuntimeError("the graph of this result was freed by an earlier backward(); "
                           "call that one with retain_graph=True, or compute the result again")


def _unknown(*inputs: Any) -> Any:
    raise RuntimeError("this operation has a hand-written _backward, which gives numbers only; "
                       "for second derivatives and forward mode define it with @micrograd.op")


_NONE = Operation("", "", _unknown, ())
class Inputs(tuple):
    """Several inputs, as one thing to the sort, which looks it up by identity; many nodes may share it."""

    __slots__ = ()
    __hash__ = object.__hash__


variable, constant, freed = Leaf(_NONE), Leaf(_NONE), Freed(_NONE)


def prepare(op: Operation) -> Operation:
    """Give an operation the ways that a gradient may take through it."""
    if op.both is None and len(op.rules) < 3:
        op.both = One(op, 0) if len(op.rules) == 1 else (Sum if op is add else Both)(op, 0, 1)
        op.first, op.second = Beside(op, 0), Beside(op, 1)
    return op


_sum, _product = prepare(add).both, prepare(mul).both


# ------------------------------------------------------------------------------- the chain rule
def sort(root: Value, mark: Any) -> tuple[list[Value], list[Value], list, list]:
    """The operations below `root`, inputs before what was made of them, the leaves, and the gradients of both.

    A depth-first walk with a list of its own instead of recursion, so that depth is no limit: a node
    waits until both of its inputs are done. Plain numbers are no nodes. A node that is done has `mark`
    in place of its gradient; a set of the nodes done would be all over memory, and take twice the time.
    """
    operations: list[Value] = []
    leaves: list[Value] = []
    gradients: list[Any] = []
    gradients_of_leaves: list[Any] = []
    waiting: list[Value] = []
    untried: dict[Inputs, Iterator] = {}

    def missing(inputs: Inputs) -> Any:
        """The next of several that is not done; a plain number, as it were, when all are."""
        nodes = untried.get(inputs) or (x for x in inputs if x.__class__ is not float and x.grad is not mark)
        return next(untried.setdefault(inputs, nodes), 0.0)

    node = root
    while True:
        left, right = node._left, node._right
        if left.__class__ is Inputs:
            left = missing(left)
            right = missing(right) if left.__class__ is float and right.__class__ is Inputs else right
        if left.__class__ is not float and left is not None and left.grad is not mark:
            waiting.append(node)
            node = left
        elif right is not None and right.__class__ is not float and right.grad is not mark:
            waiting.append(node)
            node = right
        else:
            if left is None:
                leaves.append(node)
                gradients_of_leaves.append(node.grad)
            else:
                operations.append(node)
                gradients.append(node.grad)
            node.grad = mark
            if not waiting:
                return operations, leaves, gradients, gradients_of_leaves
            node = waiting.pop()


def topological_order(root: Value) -> tuple[list[Value], list[Value]]:
    """(operations, leaves) for a reader of the graph: gradients and data are in place."""
    operations, leaves, *gradients = sort(root, Nothing())
    for nodes, old in zip((operations, leaves), gradients):
        for node, gradient in zip(nodes, old):
            node.grad = gradient
    unfolded = [node.look() for node in operations]
    return topological_order(root) if any(unfolded) else (operations, leaves)


def check_whole(leaves: list[Value]) -> None:
    """A walk back needs the whole graph: raise if what looks like a leaf was freed."""
    for leaf in leaves:
        if leaf.flow is freed:
            leaf.flow.pull(leaf)


def chain_rule(root: Value, seed: Any, operations: list[Value], create_graph: bool = False,
               finish: Callable[[Value], None] | None = None) -> None:
    """Walk back from `root`: every node hands its gradient, complete by then, down to its inputs.

    `operations` is used up on the way, so that a graph that nobody keeps is freed as the walk proceeds.

        dL/dx  =  sum over the uses y of x of   dL/dy * dy/dx
    """
    root.grad = seed
    watch, recording, node = thread.observer, set_thread("recording", create_graph or thread.recording), root
    try:
        with root.quiet():
            while operations:
                node = operations.pop()
                if node._extra is not None:
                    node.run_hooks()
                try:
                    if create_graph:
                        node.flow.hand_down(node, _itself, _as_node)
                    else:
                        node.flow.pull(node)
                except ArithmeticError:                 # of floats; IEEE 754 has an answer
                    node.flow.hand_down(node, _ieee, _as_float)
                if watch is not None:
                    watch.passed(node)
                if finish is not None:
                    finish(node)
    finally:
        set_thread("recording", recording)
        operations.append(node)                         # if it broke off: here are all whose gradient is not done


class Nothing:
    """The gradient before any arrived, where 0.0 will not do: nothing + x is x itself."""

    def __add__(self, other: Any) -> Any: return other


nothing = Nothing()


# -------------------------------------------------------------------------- recording on and off
class _Thread(threading.local):
    """What one thread decided: whether to record, and who watches (`detect_anomaly`)."""

    recording = True
    observer: Any = None
    unusual: Any = None


class _Unusual:
    """Lives as long as a thread pauses or watches; as long as none does, the fast path may be taken."""

    count, lock = 0, threading.RLock()

    def __init__(self) -> None: self.change(1)
    def __del__(self) -> None: self.change(-1)

    def change(self, by: int) -> None:
        """One thread more, or less."""
        global _ordinary
        with _Unusual.lock:
            _Unusual.count += by
            _ordinary = _Unusual.count == 0


thread = _Thread()
_ordinary = True


def set_thread(name: str, value: Any) -> Any:
    """Set what this thread decided; gives the old value."""
    old = getattr(thread, name)
    setattr(thread, name, value)
    thread.unusual = None if thread.recording and thread.observer is None else thread.unusual or _Unusual()
    return old


# ---------------------------------------------------------------------------------------- Value
unset = float("0")                  # the gradient before any arrived: equal to 0.0, but this very object
_new = object.__new__


def _node(data: float, flow: Flow, left: Any, right: Any) -> Value:
    """A new inner node. References go from a node to its inputs and nowhere else: no closures, no cycles."""
    node = _new(Value)
    node.data = data
    node.grad = unset
    node.flow = flow
    node._left = left
    node._right = right
    node._extra = None
    return node


class Quiet:
    """Floats need nothing to keep quiet; arrays do."""

    def __enter__(self) -> None: pass
    def __exit__(self, *error: Any) -> None: pass


class Value(Operand):
    """A number that remembers how it was made, and after `backward()` how the result depends on it.

    Args:
        data: a real number; NumPy scalars and Values are taken as numbers.
        label: a name for pictures and messages.
        requires_grad: False makes a constant.
        _children, _op: as in micrograd, to define an operation by hand; then assign `_backward`.

    What you wrap is a variable, plain numbers are constants. Leaves add up gradients over calls of
    `backward`, inner nodes show the last one, and the graph is kept: draw it, run it again. Rules read
    `data` when `backward` runs, so changing `data` between forward and backward changes gradients.
    Copies and pickles hold data, grad, label and requires_grad of a leaf; hooks stay behind.

    >>> x, w = Value(2.0, label="x"), Value(3.0, label="w")
    >>> y = w * x + 1
    >>> y.backward()
    >>> y, w.grad
    (Value(data=7.0, grad=1.0), 2.0)
    """

    __slots__ = ("__weakref__", "_extra", "_left", "_right", "data", "flow", "grad")
    _retains_graph = True
    quiet: Callable = Quiet                             # what keeps the arithmetic of rules from warning

    def __init__(self, data: Any, _children: Iterable[Value] = (), _op: str = "", label: str = "",
                 requires_grad: bool = True) -> None:
        self.data: Any = number(data)
        self.grad: Any = unset
        self.flow: Flow = variable if requires_grad else constant
        self._left: Any = Inputs(_children) or None
        self._right: Any = None
        self._extra: dict[str, Any] | None = {"label": label} if label else None
        if self._left and thread.recording and any(x.requires_grad for x in self._left):
            self.flow = ByHand(_op, self._left)
            if thread.observer is not None:
                thread.observer.made(self)
        elif self._left:
            self.flow, self._left = constant, None

    # ------------------------------------------------------------------------- recording
    def __add__(self, other: Any) -> Any:               # + and * spelled out: a quarter off the forward pass
        if other.__class__ is Value and _ordinary and self.flow is not constant and other.flow is not constant:
            return _node(self.data + other.data, _sum, self, other)
        return self.binary(add, other)

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is Value and _ordinary and self.flow is not constant and other.flow is not constant:
            return _node(self.data * other.data, _product, self, other)
        return self.binary(mul, other)

    def unary(self, op: Operation) -> Value:
        if _ordinary and self.flow is not constant:
            return _node(op.scalar(self.data), op.both or prepare(op).both, self, None)
        return self.apply(op, self)

    def binary(self, op: Operation, other: Any) -> Value:
        kind = other.__class__
        if _ordinary and self.flow is not constant:
            if kind is Value and other.flow is not constant:
                return _node(op.scalar(self.data, other.data), op.both or prepare(op).both, self, other)
            if kind is float or kind is int:
                return _node(op.scalar(self.data, float(other)), op.first or prepare(op).first, self, float(other))
        return self.apply(op, self, other)

    def reflected(self, op: Operation, other: Any) -> Value:
        if _ordinary and self.flow is not constant and (other.__class__ is float or other.__class__ is int):
            return _node(op.scalar(float(other), self.data), op.second or prepare(op).second, float(other), self)
        return self.apply(op, other, self)

    def apply(self, op: Operation, *inputs: Any) -> Any:
        """Record `op` on `inputs`: the general way, which the methods above cut short."""
        if any(getattr(x, "ndim", 0) or getattr(x, "rank", 0) for x in inputs):
            return self.on_batch(op, inputs)
        inputs = tuple(x if isinstance(x, Value) else number(x, op.name) for x in inputs)
        data = op.scalar(*map(_data, inputs))
        if not any(op.rules):
            return data                                 # a comparison
        reached = [i for i, x in enumerate(inputs) if op.rules[i] and x.__class__ is not float and x.requires_grad]
        if not reached or not thread.recording:
            return Value(data, requires_grad=False)
        flow = prepare(op).both if len(reached) == len(inputs) < 3 else Flow(op, *reached)
        left, right = inputs if len(inputs) == 2 else (inputs[0] if len(inputs) == 1 else Inputs(inputs), None)
        node = _node(data, flow, left, right)
        if thread.observer is not None:
            thread.observer.made(node)
        return node

    on_batch: Callable                                  # `Value * ndarray` is a Tensor: set by the front door

    # --------------------------------------------------------------------------- reading
    @property
    def op(self) -> Operation:
        """The operation that made this node; that of a leaf has the name ''."""
        return self.flow.op

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The nodes that this one was made of, in order, once per use; plain numbers as constants."""
        self.look()
        operands = self.operands()
        if any(x.__class__ is float for x in operands):         # from now on kept, so that each look gives the same
            operands = tuple(Value(x, requires_grad=False) if x.__class__ is float else x for x in operands)
            self._left, self._right = operands if len(operands) == 2 else (Inputs(operands), None)
        return operands

    def operands(self) -> tuple:
        """The inputs as they are kept: nodes, and floats for plain numbers."""
        if self._left.__class__ is Inputs:
            return self._left + (self._right or ())
        return () if self._left is None else (self._left,) if self._right is None else (self._left, self._right)

    @property
    def label(self) -> str:
        """A name for pictures and messages; '' if none was given."""
        return self._extra.get("label", "") if self._extra else ""

    @label.setter
    def label(self, label: str) -> None:
        self.extra("label", str(label))

    def extra(self, key: str, value: Any) -> Any:
        """Keep what few nodes have (a label, hooks, a wish to retain the gradient) out of the way of the rest."""
        self._extra = self._extra or {}
        self._extra[key] = value
        return value

    @property
    def is_leaf(self) -> bool:
        """Whether a user made this node, and no operation."""
        return self.flow.is_leaf

    @property
    def requires_grad(self) -> bool:
        """Whether gradients reach this node; may be changed on leaves."""
        return self.flow is not constant

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted != self.requires_grad:
            if not self.is_leaf:
                raise RuntimeError("a computed node's requires_grad cannot be switched off; go on with .detach()")
            self.flow = variable if wanted else constant

    def requires_grad_(self, requires_grad: bool = True) -> Value:
        """Set `requires_grad` and return the node itself."""
        self.requires_grad = requires_grad
        return self

    def detach(self) -> Value:
        """The same number as a constant, with no way back to what made it."""
        return Value(self.data, requires_grad=False)

    def look(self) -> bool:
        """Put in place, for a reader, what was left out for speed; whether there are new nodes."""
        return self.flow.unfold(self, self.grad)

    def like(self, number: float) -> Value:
        """A constant of this node's kind and form, filled with a number."""
        return Value(number, requires_grad=False)

    def item(self) -> float:
        """The data as a Python float."""
        return float(self.data)

    # -------------------------------------------------------------------------- backward
    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False) -> None:
        """Fill `.grad` of everything that this node was made of, by one walk back.

        Args:
            gradient: the derivative of some final loss by this node; 1 if left out.
            retain_graph: keep the graph, to draw it or run it again (Value: yes, Tensor: no).
            create_graph: record the walk itself, so that gradients can be differentiated again.

        Leaves add up over calls. If anything raises on the way, every `.grad` is as it was before.

        >>> x = Value(3.0)
        >>> y = x * x
        >>> y.backward(); x.grad
        6.0
        >>> y.backward(); x.grad
        12.0
        """
        seed = self.seed(gradient, create_graph)
        retain_graph = create_graph or (self._retains_graph if retain_graph is None else retain_graph)
        start = Nothing() if create_graph or self.rank else float("0")
        operations, leaves, before, before_leaves = sort(self, start)
        kept = operations.copy() if retain_graph or not self.rank else [
            node if node._extra or not node.rank else None for node in operations]
        try:
            check_whole(leaves)
            chain_rule(self, seed, operations, create_graph, self.finisher(retain_graph))
            with self.quiet():
                for leaf, old in zip(leaves, before_leaves):
                    leaf.receive(old)
        except BaseException:
            for node, grad in [*zip(operations, before), *zip(kept + leaves, before + before_leaves)]:
                if node is not None:
                    node.grad = grad
            raise

    def seed(self, gradient: Any = None, create_graph: bool = False) -> Any:
        """The gradient that a walk back starts from: a number, or a node if the walk is to be recorded."""
        if self.flow is constant:
            raise RuntimeError(f"{self!r} does not depend on anything that requires a gradient; "
                               "make an input with requires_grad=True, outside of no_grad()")
        if gradient is None or not isinstance(gradient, Value):
            gradient = Value(1.0 if gradient is None else number(gradient, "gradient"), requires_grad=False)
        return gradient if create_graph else gradient.data

    def finisher(self, retain_graph: bool) -> Callable[[Value], None] | None:
        """What to do with a node once its gradient was handed down."""
        return None if retain_graph else Value.free

    def free(self) -> None:
        """Let go of the inputs."""
        self.flow, self._left, self._right = freed, None, None

    def receive(self, old: Any) -> None:
        """The end of a pass at a leaf: hooks, then what came is added to the gradient of earlier passes."""
        if self.flow is constant or self.grad.__class__ is Nothing:
            self.grad = old
            return
        if self._extra is not None:
            self.run_hooks()
        if old is not unset and old is not None:
            self.grad = old + self.grad

    def own(self, gradient: Any) -> Any:
        """A gradient as this node may keep it: numbers are no one's, arrays must not be shared."""
        return gradient

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Forget the gradient: back to 0.0 (a Tensor: to None), or as `set_to_none` says."""
        self.grad = None if set_to_none else unset

    def retain_grad(self) -> None:
        """Keep `.grad` of this inner node after backward; a Value does so anyway."""
        if not self.requires_grad:
            raise RuntimeError("this node requires no gradient, so there is none to retain")
        self.extra("retain", True)

    def register_hook(self, hook: Callable[[Any], Any]) -> Handle:
        """Call `hook(grad)` when the gradient of this node is complete; what it returns replaces it.

        >>> x = Value(2.0)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 3).backward(); x.grad
        30.0
        >>> handle.remove()
        """
        if not self.requires_grad:
            raise RuntimeError("this node requires no gradient, so a hook would never be called")
        return Handle((self._extra or {}).get("hooks") or self.extra("hooks", {}), hook)

    def run_hooks(self) -> None:
        """Show the complete gradient to the hooks, in the order in which they came."""
        for hook in list((self._extra or {}).get("hooks", {}).values()):
            replaced = hook(self.grad)
            self.grad = self.grad if replaced is None else replaced

    # ------------------------------------------------------------------ as in micrograd
    _prev = inputs
    @property
    def _op(self) -> str:
        """The symbol of the operation, '' on a leaf; giving another one changes the picture, not the rule."""
        return self.flow.op.symbol

    @_op.setter
    def _op(self, symbol: str) -> None:
        old = self.op
        if isinstance(self.flow, ByHand):
            self._by_hand(symbol, self.flow.function)
        elif not self.is_leaf:
            self.flow = Flow(Operation(symbol, symbol, old.forward, old.rules, limit=old.limit), *self.flow.reached)

    @property
    def _backward(self) -> Callable[[], None]:
        """Push this one node's gradient to its inputs, by hand."""
        self.flow.unfold(self, unset)
        return lambda: chain_rule(self, self.grad, [self])

    @_backward.setter
    def _backward(self, function: Callable[[], None]) -> None:
        self._by_hand(self._op, lambda node: function())

    def _by_hand(self, symbol: str, pull: Callable) -> None:
        if not self.is_leaf:                            # a leaf or a constant hands nothing down
            self.flow = ByHand(symbol, self.inputs, pull)

    # ------------------------------------------------------------------------- as a number
    def __repr__(self) -> str:
        label = f", label={self.label!r}" if self.label else ""
        return f"{type(self).__name__}(data={_plain(self.data)}, grad={_plain(self.grad)}{label})"

    def __format__(self, spec: str) -> str: return format(self.data, spec) if spec else str(self)
    def __float__(self) -> float: return float(self.data)
    def __int__(self) -> int: return int(self.data)
    def __bool__(self) -> bool: return bool(self.data)
    def __round__(self, digits: int | None = None) -> Any: return round(self.data, digits)
    def __lt__(self, other: Any) -> Any: return _truth(self.data < _data(other))
    def __gt__(self, other: Any) -> Any: return _truth(self.data > _data(other))
    def __le__(self, other: Any) -> Any: return _truth(self.data <= _data(other))
    def __ge__(self, other: Any) -> Any: return _truth(self.data >= _data(other))

    def in_place(self, op: Operation, other: Any) -> Any:
        """`w -= step` under no_grad changes w itself; while recording it makes a new node, as `w - step` does."""
        if thread.recording or not self.is_leaf:
            return self.binary(op, other)
        self.data = number(op(self.data, _data(other)), "an update in place")
        return self

    def __reduce__(self) -> tuple:
        if not self.is_leaf:
            raise RuntimeError("only leaves can be copied or pickled, and this node was computed; use .detach() first")
        attributes, slots = object.__getstate__(self)   # type: ignore[misc]    # and what a subclass adds
        own = attributes, {name: slots[name] for name in slots.keys() - set(Value.__slots__)}
        return _rebuild, (type(self), self.data, self.grad, self.label, self.requires_grad), own


class Handle:
    """Takes a hook away again: `handle.remove()`."""

    def __init__(self, hooks: dict, hook: Callable) -> None:
        self.hooks, hooks[self] = hooks, hook

    def remove(self) -> None:
        """Take the hook away; doing it twice is no error."""
        self.hooks.pop(self, None)


def _truth(answer: Any) -> Any:
    return answer if getattr(answer, "ndim", 0) else bool(answer)


def _plain(x: Any) -> Any:
    return float(x) if getattr(x, "ndim", 1) == 0 or isinstance(x, int) else x


def _rebuild(cls: type, data: Any, grad: Any, label: str, requires_grad: bool) -> Value:
    node: Any = _new(cls)
    Value.__init__(node, 0.0, label=label, requires_grad=requires_grad)
    node.data = data.copy() if hasattr(data, "copy") else data
    node.grad = unset if grad.__class__ is float and grad == 0.0 else grad
    return node
