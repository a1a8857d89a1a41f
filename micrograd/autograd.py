"""What stands beside backward: recording on and off, gradients as a function, derivatives of any order.

Everything here works on Values and on Tensors alike, because it asks nothing of a node but its gradient.
Names and arguments are those of `torch.autograd`, `torch.autograd.functional` and `torch.func`.
"""

from __future__ import annotations

import functools
import inspect
import operator
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from micrograd import engine
from micrograd.engine import Flow, Nothing, Value, _data, nothing, prepare, set_thread, thread, topological_order
from micrograd.ops import Operation

Function = TypeVar("Function", bound=Callable)      # a decorated function has the arguments of the plain one


# -------------------------------------------------------------------------- recording on and off
def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return thread.recording


class set_grad_enabled:
    """Switch recording on or off: from here on, for a `with` block, or for a decorated function. Per thread.

    >>> x = Value(3.0)
    >>> with set_grad_enabled(False):
    ...     (x * x).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = bool(mode), set_thread("recording", bool(mode))

    def __enter__(self) -> None:
        if thread.recording != self.mode:               # the same object, used once more
            self.before = set_thread("recording", self.mode)

    def __exit__(self, *error: Any) -> None:
        set_thread("recording", self.before)

    def __call__(self, function: Function) -> Function:
        set_thread("recording", self.before)                    # decorating alone changes nothing
        return _in_mode(self.mode, function)


def _in_mode(mode: bool, function: Callable) -> Any:
    """`function` with recording set to `mode` while its body runs; a generator's body too, not its caller."""
    @functools.wraps(function)
    def run(*inputs: Any, **keywords: Any) -> Any:
        before = set_thread("recording", mode)
        try:
            return function(*inputs, **keywords)
        finally:
            set_thread("recording", before)

    @functools.wraps(function)
    def generate(*inputs: Any, **keywords: Any) -> Any:
        generator = function(*inputs, **keywords)
        step: Callable = functools.partial(next, generator)
        try:
            while True:
                try:
                    item = _in_mode(mode, step)()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield item
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)
        finally:
            generator.close()

    return generate if inspect.isgeneratorfunction(function) else run


class _Mode:
    """no_grad and enable_grad: as `with no_grad():`, `@no_grad()` and `@no_grad`."""

    mode = True

    def __new__(cls, function: Callable | None = None) -> Any:
        return super().__new__(cls) if function is None else _in_mode(cls.mode, function)

    def __init__(self, function: Callable | None = None) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> None:
        self.before.append(set_thread("recording", self.mode))

    def __exit__(self, *error: Any) -> None:
        set_thread("recording", self.before.pop())

    def __call__(self, function: Function) -> Function:
        return _in_mode(self.mode, function)


class no_grad(_Mode):
    """Record nothing: results require no gradient, cost no graph, and keep nothing alive. Per thread.

    >>> with no_grad():
    ...     y = Value(2.0) * 3.0
    >>> y.requires_grad, y.inputs
    (False, ())
    """

    mode = False


class enable_grad(_Mode):
    """Record again, inside `no_grad`."""


# ----------------------------------------------------------------------- gradients as a function
_identity = prepare(Operation("identity", "", lambda x: x, (lambda g, x, y: g,)))


def _tuple(x: Any) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _flat(tree: Any) -> list:
    """The leaves of nested tuples and lists, in order."""
    return [leaf for branch in tree for leaf in _flat(branch)] if isinstance(tree, (tuple, list)) else [tree]


def _like(tree: Any, leaves: Iterator) -> Any:
    """The nested tuples and lists of `tree`, with other leaves."""
    return type(tree)(_like(b, leaves) for b in tree) if isinstance(tree, (tuple, list)) else next(leaves)


def _fresh(x: Any) -> Value:
    """A new variable for x: connected to x if that is a node that wants a gradient, else on its own."""
    if isinstance(x, Value):
        return x.unary(_identity) if x.requires_grad and thread.recording else type(x)(x.data)
    return Value(x) if not getattr(x, "ndim", 0) else Value.on_batch(None, (x,))


def _name(x: Any, i: int) -> str:
    return f"input {i}" + (f" ({x.label!r})" if isinstance(x, Value) and x.label else "")


def grad(output: Value, inputs: Any, grad_output: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, allow_unused: bool = False, materialize_grads: bool = False) -> tuple:
    """The derivatives of `output` by each of `inputs`, as a tuple; every `.grad` is left alone.

    Args:
        inputs: a node, or a sequence of nodes; inner nodes are allowed.
        grad_output, retain_graph, create_graph: as in `backward`. With create_graph the results are
            nodes, so that they can be differentiated again; else numbers or arrays, like `.grad`.
        allow_unused: give None for an input that `output` does not depend on, instead of raising;
            materialize_grads: give zero for it.

    >>> x = Value(3.0)
    >>> (slope,) = grad(x * x * x, x, create_graph=True)
    >>> slope.data, grad(slope, x), x.grad
    (27.0, (18.0,), 0.0)
    """
    inputs = _tuple(inputs)
    if not isinstance(output, Value):
        raise TypeError(f"grad differentiates a node (a Value or a Tensor), got {type(output).__name__} {output!r:.60}")
    for i, x in enumerate(inputs):
        if not isinstance(x, Value) or not x.requires_grad:
            raise RuntimeError(f"{_name(x, i)} of grad must be a node that requires a gradient, got {x!r:.60}")
    seed = output.seed(grad_output, create_graph)
    keep = create_graph or (output._retains_graph if retain_graph is None else retain_graph)
    mark, wanted = Nothing(), set(inputs)
    operations, leaves, *before = engine.sort(output, mark)
    nodes = operations + leaves

    def finish(node: Value) -> None:
        node.grad = node.grad if node in wanted else None
        if not keep:
            node.free()

    outside = {x for x in inputs if x.grad is not mark}
    try:
        engine.check_whole(leaves)
        engine.chain_rule(output, seed, operations, create_graph, finish)
        for leaf in wanted.intersection(leaves):
            if leaf.grad is not mark:
                leaf.run_hooks()
        results = [nothing if x in outside or x.grad is mark else x.own(x.grad) for x in inputs]
    finally:
        for node, old in zip(nodes, before[0] + before[1]):
            node.grad = old
    for i, x in enumerate(inputs):
        if results[i] is nothing:
            if not (allow_unused or materialize_grads):
                raise RuntimeError(f"{_name(x, i)} of grad was not used to compute the output; check which node you "
                                   "mean, or pass allow_unused=True to get None, materialize_grads=True to get zero")
            zero = x.like(0.0)
            results[i] = None if not materialize_grads else zero if create_graph else zero.data
    return tuple(results)


@enable_grad()
def vjp(fn: Callable, inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """(fn(*inputs), v times the Jacobian): one walk back, with v arriving at the output.

    >>> vjp(lambda x, y: x * y, (2.0, 3.0), 10.0)
    (6.0, (30.0, 20.0))
    """
    xs, tree, outputs = _evaluate(fn, inputs)
    ys = _flat(outputs)
    upstreams = [None] * len(ys) if v is None else _flat(v)
    if len(upstreams) != len(ys):
        raise ValueError(f"vjp takes one v for each output, got {len(upstreams)} for {len(ys)}")
    results = [grad(_node(y, xs), xs, g, True, create_graph, materialize_grads=True) for y, g in zip(ys, upstreams)]
    totals = [functools.reduce(operator.add, parts) for parts in zip(*results)]
    shown = outputs if create_graph else _like(outputs, (_data(y) for y in _flat(outputs)))
    return shown, _like(tree, iter(totals))


def _node(y: Any, xs: list[Value]) -> Value:
    """An output as a node that depends on xs, if only by zero times."""
    if isinstance(y, Value) and y.requires_grad:
        return y
    zero = xs[0] * 0.0
    return (zero.sum() if zero.rank else zero) + y


def _evaluate(fn: Callable, inputs: Any) -> tuple[list[Value], Any, Any]:
    """Fresh variables for the leaves of `inputs`, the structure that results take, and fn of them."""
    xs = [_fresh(x) for x in _flat(inputs)]
    made = _like(inputs, iter(xs))
    return xs, inputs, fn(*made) if isinstance(inputs, (tuple, list)) else fn(made)


@enable_grad()
def jacobian(fn: Callable, inputs: Any, create_graph: bool = False) -> Any:
    """Every output differentiated by every input, in the structure of the outputs, then of the inputs.

    A Value among outputs and inputs stands for one number; of Tensors `out` and `in` the entry is an
    array with the axes of `out`, then those of `in`.

    >>> jacobian(lambda x, y: (x * y, x + y), (2.0, 3.0))
    ((3.0, 2.0), (1.0, 1.0))
    """
    xs, tree, outputs = _evaluate(fn, inputs)
    rows = [_row(y, xs, create_graph) for y in _flat(outputs)]
    return _like(outputs, (_like(tree, iter(row)) for row in rows))


def _row(y: Any, xs: list[Value], create_graph: bool) -> list:
    """d y / d x for each x; y may hold many numbers, then the results have its axes first."""
    y = _node(y, xs)
    if y.rank == 0 or not y.data.ndim:
        return list(grad(y, xs, None, True, create_graph, materialize_grads=True))
    entries = [grad(y.reshape(-1)[k], xs, None, True, create_graph, materialize_grads=True) for k in range(y.data.size)]
    stack = sys.modules["micrograd.tensor"].stack if create_graph else sys.modules["numpy"].stack
    return [stack(column).reshape(y.data.shape + getattr(x.data, "shape", ())) for x, column in zip(xs, zip(*entries))]


@enable_grad()
def hessian(fn: Callable, inputs: Any, create_graph: bool = False) -> Any:
    """The second derivatives of a scalar function, structured inputs by inputs.

    >>> hessian(lambda x, y: x * x * y, (2.0, 3.0))
    ((6.0, 4.0), (4.0, 0.0))
    """
    def gradient(*xs: Any) -> Any:
        output = _node(fn(*xs), _flat(xs))
        return _like(inputs if isinstance(inputs, (tuple, list)) else 0, iter(
            grad(output, _flat(xs), create_graph=True, materialize_grads=True)))

    return jacobian(gradient, inputs, create_graph)


@enable_grad()
def hvp(fn: Callable, inputs: Any, v: Any, create_graph: bool = False) -> tuple[Any, Any]:
    """(fn(*inputs), the Hessian times v): forward mode over reverse, at the cost of a few gradients.

    >>> hvp(lambda x, y: x * x * y, (2.0, 3.0), (1.0, 0.0))
    (12.0, (6.0, 4.0))
    """
    xs, tree, output = _evaluate(fn, inputs)
    output = _node(output, xs)
    slopes = grad(output, xs, create_graph=True, materialize_grads=True)
    tangents = _push(slopes, dict(zip(xs, _flat(v))))
    results = [t if create_graph else _data(t) for t in tangents]
    return output if create_graph else output.data, _like(tree, iter(results))


# --------------------------------------------------------------------------------- forward mode
@enable_grad()
def jvp(fn: Callable, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """(fn(*primals), how it moves when the primals move along the tangents), in one walk forward.

        dy  =  sum over the inputs x of y of   dy/dx * dx

    Give numbers, get numbers; give nodes (as nested derivatives do), get nodes.

    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    (6.0, 23.0)
    >>> jvp(lambda x: x * jvp(lambda y: x * y, (x,), (1.0,))[1], (3.0,), (1.0,))[1]     # d/dx x * x
    6.0
    """
    flat = _flat(tangents)
    if len(flat) != len(_flat(primals)):
        raise ValueError(f"jvp takes one tangent for each primal, got {len(flat)} for {len(_flat(primals))}")
    xs, _, outputs = _evaluate(fn, primals)
    pushed = _push(_flat(outputs), dict(zip(xs, flat)))
    own = set(xs)
    return (_like(outputs, (_outer(y, own) for y in _flat(outputs))), _like(outputs, (_outer(t, own) for t in pushed)))


def _push(outputs: Sequence, tangents: dict[Any, Any]) -> list:
    """The tangent of each output, from the tangents of some nodes below them; zero where nothing flows."""
    tangents = {x: t if isinstance(t, Value) else type(x)(t, requires_grad=False) for x, t in tangents.items()}
    seen: set[Value] = set()
    quiet = max((y for y in outputs if isinstance(y, Value)), key=lambda y: y.rank, default=Value).quiet
    with quiet():
        _walk_forward(outputs, tangents, seen)
    return [0.0 if not isinstance(y, Value) else tangents[y] if y in tangents else y.like(0.0) for y in outputs]


def _walk_forward(outputs: Sequence, tangents: dict[Any, Any], seen: set[Value]) -> None:
    """Give every node that something flows to its tangent."""
    for output in outputs:
        for node in topological_order(output)[0] if isinstance(output, Value) else ():
            if node in seen or node in tangents:
                continue
            seen.add(node)
            operands, total = node.operands(), None
            for i in node.flow.reached:
                if operands[i] in tangents:
                    part = node.flow.push(i, tangents[operands[i]], operands, node)
                    total = part if total is None else total + part
            if total is not None:
                tangents[node] = total


def _outer(y: Any, own: set[Value]) -> Any:
    """y as a node if something outside of this derivative depends on it, else what it holds."""
    if not isinstance(y, Value) or not y.requires_grad:
        return _data(y)
    return y if any(leaf.requires_grad and leaf not in own for leaf in topological_order(y)[1]) else y.data


# ----------------------------------------------------------------------------- gradient checking
class GradcheckError(RuntimeError):
    """The analytic derivative and the numeric one differ."""


def gradcheck(fn: Callable, inputs: Any, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True) -> bool:
    """Whether the gradients of fn agree with central differences, (f(x + eps) - f(x - eps)) / 2 eps.

    Every input entry and every output is compared, with a gradient other than 1 arriving at the output,
    so that a rule that forgets to multiply by it is caught. A deviation above a tenth of the tolerance
    `atol + rtol * |numeric|` also counts when it is a hundred times what the differences themselves are
    uncertain by: a rule that is off by a factor of 1.001 does not pass as rounding.

    Errors: ValueError if no input requires a gradient or one is not float64. A warning if an input sits
    on a kink, where the two one-sided differences disagree.

    >>> gradcheck(lambda x, y: (x * y).tanh(), (Value(0.5), Value(-1.5)))
    True
    """
    inputs = _tuple(inputs)
    checked = [i for i, x in enumerate(inputs) if isinstance(x, Value) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck has nothing to check: no input requires a gradient; "
                         "pass a Value or a Tensor made with requires_grad=True")
    for i in checked:
        if str(getattr(inputs[i].data, "dtype", "float64")) != "float64":
            raise ValueError(f"gradcheck needs float64, {_name(inputs[i], i)} is {inputs[i].data.dtype}: its rounding "
                             "would hide or fake errors; pass Tensor(data.astype('float64'))")

    def run(*changed: Any) -> list[list[float]]:
        with enable_grad():                                     # fn may take derivatives itself
            return [_entries(_data(y)) for y in _tuple(fn(*changed))]

    xs = [type(x)(x.data) if i in checked else x for i, x in enumerate(inputs)]
    with enable_grad():
        outputs = _tuple(fn(*xs))
    middle, upstream = run(*xs), 0.7361
    for i in checked:
        analytic = [[_entries(row[0]) for row in _rows(y, xs[i], upstream)] for y in outputs]
        for k in range(len(_entries(xs[i].data))):
            near = [run(*xs[:i], _moved(inputs[i], k, step), *xs[i + 1:]) for step in (-eps, eps, -2 * eps, 2 * eps)]
            for j, y in enumerate(middle):
                for m in range(len(y)):
                    low, high, lower, higher = (side[j][m] for side in near)
                    numeric, wide = (high - low) / (2 * eps), (higher - lower) / (4 * eps)
                    bend, wide_bend = abs(high - 2 * y[m] + low), abs(higher - 2 * y[m] + lower)
                    if wide_bend < 3 * bend and bend > 1e-2 * (abs(high - y[m]) + abs(y[m] - low)) + 1e-12:   # a bend: 4
                        warnings.warn(f"{_name(inputs[i], i)} of gradcheck, entry {k}, sits on a kink or a jump of output "
                                      f"{j}; move it away from there", stacklevel=2)
                    found = analytic[j][m][k] if analytic[j] else 0.0
                    error, limit = abs(found - numeric), atol + rtol * abs(numeric)
                    if not error <= limit or error > limit / 10 and error > 100 * abs(numeric - wide) + 1e-8:
                        if not raise_exception:
                            return False
                        raise GradcheckError(
                            f"Jacobian mismatch for output {j}, entry {m}, with respect to {_name(inputs[i], i)}, entry {k}: "
                            f"numeric {numeric:.9g}, analytic {found:.9g}"
                            + (": the rule does not multiply by the gradient that arrives at it"
                               if abs(found * upstream - numeric) <= limit else ""))
    return True


def _entries(data: Any) -> list[float]:
    return data.reshape(-1).tolist() if hasattr(data, "reshape") else [float(data)]


def _moved(x: Value, k: int, step: float) -> Value:
    """A copy of x with entry k moved by a step."""
    if not hasattr(x.data, "reshape"):
        return type(x)(x.data + step)
    data = x.data.copy()
    data.reshape(-1)[k] += step
    return type(x)(data)


def _rows(y: Any, x: Value, upstream: float) -> Iterator[tuple]:
    """The rows of the Jacobian dy/dx, each from a gradient `upstream` arriving at one entry of y."""
    if not isinstance(y, Value) or not y.requires_grad:
        return
    for k in range(len(_entries(y.data))):
        seed: Any = upstream
        if y.rank and y.data.ndim:
            seed = y.like(0.0).data
            seed.reshape(-1)[k] = upstream
        yield tuple(g / upstream for g in grad(y, x, seed, retain_graph=True, materialize_grads=True))


def gradgradcheck(fn: Callable, inputs: Any, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  raise_exception: bool = True) -> bool:
    """Whether the second derivatives of fn agree with central differences of the first.

    >>> gradgradcheck(lambda x: x.tanh() * x, Value(0.5))
    True
    """
    def gradients(*xs: Any) -> tuple:
        wanted = [x for x in xs if isinstance(x, Value) and x.requires_grad]
        with enable_grad():
            ys = [y for y in _tuple(fn(*xs)) if isinstance(y, Value) and y.requires_grad]
            parts = [grad(y, wanted, None if not y.rank else y.data * 0 + 1, create_graph=True, materialize_grads=True)
                     for y in ys]
        return tuple(g for part in parts for g in part)

    return gradcheck(gradients, inputs, eps, atol, rtol, raise_exception)


# ---------------------------------------------------------------------------- your own operation
def op(*rules: Callable, symbol: str | None = None, array: Callable | None = None) -> Callable[[Callable], Operation]:
    """Make an operation of a function, as a line of the table: its value, and a rule for each input.

    `rules[i](g, *inputs, y)` says what input i receives when g arrives at y; written in operators and in
    functions of this package, it serves batches, forward mode, second derivatives, pictures and words.
    `array(numpy, *inputs)` is for a function that works on floats only.

    >>> @op(lambda g, x, y: g * (3 * x * x))
    ... def cube(x):
    ...     return x * x * x
    >>> x = Value(2.0)
    >>> y = cube(x)
    >>> y.backward()
    >>> y, x.grad
    (Value(data=8.0, grad=1.0), 12.0)
    """
    def define(function: Callable) -> Operation:
        count = len(inspect.signature(function).parameters)
        if count != len(rules):
            raise TypeError(f"@op needs a rule for each of the {count} inputs of {function.__name__}, got {len(rules)}; "
                            "a rule is what the input receives: lambda g, *inputs, y: ...")
        return prepare(Operation(function.__name__, symbol or function.__name__, function, rules, array=array))

    return define


# ------------------------------------------------------------------- watching what is recorded
class _Observer:
    """Sees each node that this thread records, and each that a walk back passes; observers may be nested."""

    def __enter__(self) -> Any:
        self.outer = set_thread("observer", self)
        return self

    def __exit__(self, *error: Any) -> None:
        set_thread("observer", self.outer)

    def made(self, node: Value) -> None:
        """A node was recorded."""
        if self.outer is not None:
            self.outer.made(node)

    def passed(self, node: Value) -> None:
        """A node has handed down its gradient."""
        if self.outer is not None:
            self.outer.passed(node)


class detect_anomaly(_Observer):
    """Turn the first nan or inf, in the values or in the gradients, into an error that says where it was born.

    Costs time: it remembers the line of your program that made each node.

    >>> with detect_anomaly():
    ...     Value(-1.0, label="x").log()
    Traceback (most recent call last):
    ...
    RuntimeError: log gave nan (inputs: x = -1.0), made in <doctest ...> line 2
    """

    def made(self, node: Value) -> None:
        """Note the line of the program, and look at the value."""
        node.extra("made", _line_of_user())
        if not _finite(node.data):
            inputs = ", ".join(f"{x.label or 'input'} = {x.data}" if not x.rank else x.label or "a Tensor" for x in node.inputs)
            raise RuntimeError(f"{node.op.name} gave {_bad(node.data)} (inputs: {inputs}), made in {_made(node)}")
        super().made(node)

    def passed(self, node: Value) -> None:
        """Look at the gradients that the node gave to its inputs."""
        for x in node.operands():
            if isinstance(x, Value) and x.requires_grad and x.grad is not None and not _finite(_data(x.grad)):
                name = f" ({node.label!r})" if node.label else ""
                raise RuntimeError(f"the backward rule of {node.op.name}{name} gave {_bad(x.grad)} to its input "
                                   f"{x.label or x.op.name or 'leaf'}; the operation was made in {_made(node)}")
        super().passed(node)


def _finite(data: Any) -> bool:
    data = data - data                              # 0 where finite, nan elsewhere
    return bool((data == 0).all()) if hasattr(data, "all") else data == 0 or data.__class__ is Nothing


def _bad(data: Any) -> str:
    data = data.data if isinstance(data, Value) else data
    return "nan" if bool((data != data).any() if hasattr(data, "any") else data != data) else (
        "inf" if hasattr(data, "any") else str(data))


def _made(node: Value) -> str:
    return (node._extra or {}).get("made", "a place that was not watched (build the graph inside detect_anomaly, too)")


def _line_of_user() -> str:
    """File and line of the innermost frame outside of this package."""
    frame, here = sys._getframe(1), __file__.rsplit("autograd", 1)[0]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame = frame.f_back
    return f"{frame.f_code.co_filename} line {frame.f_lineno}"


# ------------------------------------------------------------------------------------ checkpoint
def checkpoint(fn: Callable, *inputs: Any) -> Any:
    """fn(*inputs), forgetting what happened inside, and computing it once more during backward.

    Memory for time: of a deep chain in k segments only the ends and one segment are kept at once. Same
    gradients, also of parameters that fn uses without getting them as inputs. Random numbers of `random`
    and of `micrograd.manual_seed` are drawn again as they were. Of several outputs, each recomputes.

    Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".

    >>> x = Value(0.5)
    >>> checkpoint(lambda x: x.tanh().tanh(), x).backward()
    >>> y = Value(0.5)
    >>> y.tanh().tanh().backward(); x.grad == y.grad
    True
    """
    before = _random_state()
    segment = _Segment(fn, inputs)
    state = before if _random_state() != before else None       # kept only if numbers were drawn: it is large
    if not thread.recording:
        return segment.outputs
    made = tuple(_Recomputed(fn, inputs, state, i).node(segment, y) for i, y in enumerate(_tuple(segment.outputs)))
    return made if isinstance(segment.outputs, (tuple, list)) else made[0]


def _alone(x: Value) -> Value:
    """A variable with the data of x and no way back."""
    return type(x)(x.data)


class _Segment(_Observer):
    """One run of fn: its own nodes, and the nodes from outside that it uses."""

    def __init__(self, fn: Callable, inputs: Sequence, variable: Callable = _alone) -> None:
        self.own: set[Value] = set()
        self.variables = [variable(x) if isinstance(x, Value) and x.requires_grad else x for x in inputs]
        with self:
            self.outputs = fn(*self.variables)

    def made(self, node: Value) -> None:
        self.own.add(node)
        super().made(node)

    def outside(self, y: Value) -> list[Value]:
        """What y was made of besides the inputs: parameters, and values computed before."""
        operations, leaves = topological_order(y)
        inside = {v for v in self.variables if isinstance(v, Value)} | self.own
        below = [y, *(x for node in operations if node in self.own for x in node.operands())]
        return list(dict.fromkeys(x for x in below if isinstance(x, Value) and x.requires_grad and x not in inside))


_CHECKPOINT = Operation("checkpoint", "checkpoint", lambda *inputs: None, ())


def _forget(node: Value) -> None:
    node.grad = None
    node.free()


class _Recomputed(Flow):
    """The flow of a checkpoint: run the function again, walk back through what it makes, forget it."""

    def __init__(self, fn: Callable, inputs: tuple, state: tuple | None, i: int) -> None:
        super().__init__(_CHECKPOINT)
        self.fn, self.inputs, self.state, self.i = fn, inputs, state, i

    def node(self, segment: _Segment, y: Value) -> Value:
        """The node that stands for the whole segment."""
        if not isinstance(y, Value) or not y.requires_grad:
            return y
        used = tuple(x for x in self.inputs if isinstance(x, Value) and x.requires_grad) + tuple(segment.outside(y))
        self.reached = tuple(range(len(used)))
        node = y.detach()
        node.flow, node._left = self, engine.Inputs(used)
        if thread.observer is not None:
            thread.observer.made(node)
        return node

    def hand_down(self, node: Value, see: Callable | None = None, give: Callable | None = None) -> None:
        """Recompute, with the random numbers of the first time, and send the gradient through."""
        recorded = see is engine._itself
        segment = self.run(_fresh if recorded else _alone)
        y = _tuple(segment.outputs)[self.i]
        operations = [n for n in topological_order(y)[0] if n in segment.own]
        for inner in [*operations, *(v for v in segment.variables if isinstance(v, Value))]:
            inner.grad = nothing
        if y in segment.own:
            engine.chain_rule(y, node.grad, operations, recorded, None if recorded else _forget)
        else:                                           # the function gave back what it was given, or found outside
            y.grad = y.grad + node.grad
        for x, v in zip(self.inputs, segment.variables):
            if isinstance(x, Value) and x.requires_grad and v.grad.__class__ is not Nothing:
                x.grad = x.grad + v.grad

    def run(self, variable: Callable) -> _Segment:
        """The function once more, on new variables, with the random numbers of the first time."""
        now = _random_state(self.state)
        try:
            with enable_grad():
                return _Segment(self.fn, self.inputs, variable)
        finally:
            _random_state(now)

    def push(self, i: int, tangent: Any, inputs: Sequence, y: Any) -> Any:
        """Recompute, and send the tangent of input i through."""
        segment = self.run(_fresh)
        output = _tuple(segment.outputs)[self.i]
        starts = [v for v, x in zip(segment.variables, self.inputs) if isinstance(x, Value) and x.requires_grad]
        return _push([output], {(starts + segment.outside(output))[i]: tangent})[0]

    pull = hand_down


def _random_state(state: tuple | None = (), /) -> tuple | None:
    """The state of the random numbers a program may draw; given one, it is set. None: not read, not set."""
    if state is None:
        return None
    tensor = sys.modules.get("micrograd.tensor")
    generator = tensor.generator().bit_generator if tensor else None
    now = random.getstate(), generator.state if generator else None
    if state:
        random.setstate(state[0])
        if generator and state[1]:
            generator.state = state[1]
    return now
