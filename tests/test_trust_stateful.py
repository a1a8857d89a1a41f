"""Whatever is called, in whatever order: gradients are right, nothing is lost or kept, and who only reads changes nothing."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import warnings
import weakref

import hypothesis.strategies as st
import numpy as np
import torch
from conftest import close, examples
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import micrograd
from micrograd import Tensor, Value, grad, no_grad, optim

# ---------------------------------------------------------------- a second opinion, in plain floats
# value, and partial derivatives by a and b, of each operation; where it is asked, and no further
UNARY = {
    "neg": (lambda a: -a, lambda a: -1.0), "tanh": (math.tanh, lambda a: 1 / math.cosh(a) ** 2),
    "sin": (math.sin, math.cos), "relu": (lambda a: max(a, 0.0), lambda a: float(a > 0)),
    "abs": (abs, lambda a: float(a > 0) - float(a < 0)), "exp": (math.exp, math.exp),
    "sigmoid": (lambda a: 1 / (1 + math.exp(-a)), lambda a: 1 / (2 + math.exp(a) + math.exp(-a))),
    "square": (lambda a: a * a, lambda a: 2 * a), "log": (math.log, lambda a: 1 / a),
    "sqrt": (math.sqrt, lambda a: 0.5 / math.sqrt(a)), "plus": (lambda a: a + 1.5, lambda a: 1.0),
    "times": (lambda a: -0.75 * a, lambda a: -0.75), "from": (lambda a: 2.5 - a, lambda a: -1.0),
    "under": (lambda a: 2.0 / a, lambda a: -2 / a ** 2), "power of two": (lambda a: 2.0 ** a, lambda a: math.log(2) * 2.0 ** a),
    "clamp": (lambda a: min(max(a, -1.0), 1.0), lambda a: float(-1 <= a <= 1)),
}
BINARY = {
    "add": (lambda a, b: a + b, lambda a, b: (1.0, 1.0)), "sub": (lambda a, b: a - b, lambda a, b: (1.0, -1.0)),
    "mul": (lambda a, b: a * b, lambda a, b: (b, a)), "div": (lambda a, b: a / b, lambda a, b: (1 / b, -a / b ** 2)),
    "maximum": (max, lambda a, b: (0.5, 0.5) if a == b else (float(a > b), float(b > a))),
    "minimum": (min, lambda a, b: (0.5, 0.5) if a == b else (float(a < b), float(b < a))),
    "pow": (lambda a, b: math.pow(a, b), lambda a, b: (b * math.pow(a, b - 1), math.pow(a, b) * math.log(a))),
}
OURS = {
    "neg": lambda a: -a, "square": lambda a: a ** 2, "plus": lambda a: a + 1.5, "times": lambda a: -0.75 * a,
    "from": lambda a: 2.5 - a, "under": lambda a: 2 / a, "power of two": lambda a: 2 ** a,
    "clamp": lambda a: a.clamp(-1.0, 1.0), "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "pow": lambda a, b: a ** b,
}


def allowed(name, a, b=1.0):
    """Whether the operation is smooth enough there, and its value of a size that the next one can take."""
    if name in ("log", "sqrt", "under", "pow") and a < 0.1 or name == "div" and builtin_abs(b) < 0.1:
        return False
    if name in ("exp", "power of two", "pow") and (a > 5 or builtin_abs(b) > 5):
        return False
    return builtin_abs(value_of(name, a, b)) < 1e3


builtin_abs = abs


def value_of(name, a, b):
    return UNARY[name][0](a) if name in UNARY else BINARY[name][0](a, b)


class Twin:
    """What a node should hold: the same number, inputs and gradient, worked out on its own."""

    def __init__(self, data, name="", inputs=(), requires=True):
        self.data, self.name, self.inputs, self.requires = data, name, inputs, requires
        self.reached = [x.requires for x in inputs]         # decided when it was made
        self.grad = self.size = 0.0                         # the gradient, and of what size its terms were
        self.factor, self.freed = 1.0, False
        self.changed = 0                                    # how often its data were set
        self.seen = [x.changed for x in inputs]

    @property
    def stale(self):
        """Whether a leaf was changed since: what rules then make of old results and new inputs is nobody's business."""
        return any(x.stale or x.changed != times for x, times in zip(self.inputs, self.seen))

    def below(self):
        """This node and all that it was made of."""
        found, waiting = {}, [self]
        while waiting:
            node = waiting.pop()
            if id(node) not in found:
                found[id(node)] = node
                waiting += node.inputs
        return list(found.values())

    def slopes(self, made, seed, data=None, hooked=True):
        """{node: (gradient, size of its terms)} of a walk back; `made` has all nodes, inputs first."""
        data = data or {node: node.data for node in made}
        flows = {node: [0.0, 0.0] for node in self.below()}
        flows[self] = [seed, builtin_abs(seed)]
        for node in reversed(made):
            if node in flows:
                if hooked:
                    flows[node] = [flows[node][0] * node.factor, flows[node][1] * builtin_abs(node.factor)]
                xs = [data[x] for x in node.inputs]
                partials = () if not xs else (UNARY[node.name][1](*xs),) if len(xs) == 1 else BINARY[node.name][1](*xs)
                for x, partial, reached in zip(node.inputs, partials, node.reached):
                    if reached:
                        flows[x][0] += flows[node][0] * partial
                        flows[x][1] += flows[node][1] * max(1.0, builtin_abs(partial))
        return flows

    def again(self, made):
        """What every node would hold if the graph were computed once more, from the leaves."""
        data = {node: node.data for node in made}
        for node in made:
            if node.inputs:
                data[node] = value_of(node.name, *(data[x] for x in node.inputs), *[1.0] * (2 - len(node.inputs)))
        return data


def agree(found, wanted, size):
    return close(0.0 if found is None else found, wanted, 1e-9, 1e-9 * size + 1e-12)


def values_alive():
    """How many nodes there are that were made since the last `gc.freeze()`."""
    gc.collect()
    return sum(issubclass(type(x), Value) for x in gc.get_objects())


READERS = {
    "repr": repr, "draw_dot": lambda y: micrograd.draw_dot(y).source,
    "draw": lambda y: micrograd.draw(y, edges="product").source,
    "mermaid": micrograd.to_mermaid, "explain": micrograd.explain, "html": lambda y: micrograd.explain(y, format="html"),
    "diagnose": micrograd.diagnose, "source": micrograd.source, "inputs": lambda y: [x.inputs for x in y.inputs],
    "pytorch": lambda y: micrograd.source(y, "pytorch"), "stepper": lambda y: micrograd.stepper(y),
    "animate": lambda y: micrograd.animate(y), "float": float,
}
NEEDS_OPERATIONS = ("explain", "html", "diagnose", "source", "pytorch", "stepper", "animate")
CURVED = st.sampled_from(sorted(UNARY))
NUMBERS = st.integers(-16, 16).map(lambda n: n / 8)
AT = st.integers(0, 5) | st.integers(0, 40)                 # counted from the newest, which are used the most


class ScalarPrograms(RuleBasedStateMachine):
    """Values and their twins, through everything that the public functions can do to them."""

    def __init__(self):
        super().__init__()
        gc.freeze()                                         # what is there already is not looked at again
        self.nodes, self.twins, self.handles = [], [], []
        self.compiled = False                               # a tape refers to itself, and waits for the collector

    def teardown(self):
        watches = [weakref.ref(node) for node in self.nodes]
        self.nodes.clear()
        self.handles.clear()
        assert self.compiled or not [w for w in watches if w() is not None]     # by reference counting alone
        assert values_alive() == 0

    def pick(self, at):
        i = -1 - at % len(self.nodes)
        return self.nodes[i], self.twins[i]

    def keep(self, node, twin):
        assert close(node.data, twin.data, 1e-9, 1e-9) and node.requires_grad == twin.requires
        twin.data = node.data                               # a last bit must not decide a kink
        self.nodes.append(node)
        self.twins.append(twin)

    def leaves(self):
        return [(node, twin) for node, twin in zip(self.nodes, self.twins) if not twin.inputs and not twin.freed]

    @initialize(a=NUMBERS, b=NUMBERS)
    def begin(self, a, b):
        self.leaf(a, "a", True)
        self.leaf(b, "", True)

    @precondition(lambda self: len(self.nodes) < 40)
    @rule(data=NUMBERS, label=st.sampled_from(["", "x", "x", "<w>"]), requires=st.booleans())
    def leaf(self, data, label, requires):
        self.keep(Value(data, label=label, requires_grad=requires), Twin(data, requires=requires))

    @precondition(lambda self: len(self.nodes) < 40)
    @rule(name=CURVED, at=AT, recorded=st.sampled_from([True, True, True, False]))
    def unary(self, name, at, recorded):
        self.operation(name, recorded, at)

    @precondition(lambda self: len(self.nodes) < 40)
    @rule(name=st.sampled_from(sorted(BINARY)), at=AT, other=AT, recorded=st.sampled_from([True, True, True, False]))
    def binary(self, name, at, other, recorded):
        self.operation(name, recorded, at, other)

    def operation(self, name, recorded, *places):
        nodes, twins = zip(*map(self.pick, places))
        if not allowed(name, *(twin.data for twin in twins)):
            return
        function = OURS.get(name) or getattr(micrograd, name)
        requires = recorded and any(twin.requires for twin in twins)
        value = value_of(name, *(twin.data for twin in twins), *[1.0] * (2 - len(twins)))
        if recorded:
            node = function(*nodes)
        else:
            with no_grad():
                node = function(*nodes)
        self.keep(node, Twin(value, name, twins, True) if requires else Twin(value, requires=False))

    @precondition(lambda self: len(self.nodes) < 40)
    @rule(at=AT)
    def detach(self, at):
        node, twin = self.pick(at)
        self.keep(node.detach(), Twin(twin.data, requires=False))

    @rule(at=AT, seed=st.none() | NUMBERS, retain=st.sampled_from([None, None, True, False]))
    def backward(self, at, seed, retain):
        node, twin = self.pick(at)
        below = twin.below()
        if not twin.requires or any(x.freed for x in below):
            return self.refused(lambda: node.backward(seed, retain_graph=retain))
        if any(x.stale for x in below):
            return
        node.backward(seed, retain_graph=retain)
        for x, (g, size) in twin.slopes(self.twins, 1.0 if seed is None else seed).items():
            if x.inputs:
                x.grad, x.size = g, size
                x.freed = x.freed or retain is False
            elif x.requires:
                x.grad, x.size = x.grad + g, x.size + size
        for x in below:
            if x.freed:
                x.inputs = ()

    @rule(at=AT)
    def gradient_as_a_function(self, at):
        node, twin = self.pick(at)
        leaves = [(x, t) for x, t in self.leaves() if t.requires]
        if not twin.requires or not leaves or any(x.freed or x.stale for x in twin.below()):
            return
        found = grad(node, [x for x, _ in leaves], retain_graph=True, materialize_grads=True)
        wanted = twin.slopes(self.twins, 1.0)
        for g, (_, t) in zip(found, leaves):
            assert agree(g, *wanted.get(t, (0.0, 0.0)))

    @rule(at=AT, name=st.sampled_from(sorted(READERS)))
    def read(self, at, name):
        node, twin = self.pick(at)
        self.compiled |= name in ("source", "pytorch")
        below = twin.below()
        whole = twin.inputs and not any(x.freed for x in below) and any(x.requires for x in below if not x.inputs)
        try:
            READERS[name](node)
        except (ValueError, RuntimeError):
            assert name in NEEDS_OPERATIONS and not whole

    @rule(at=AT)
    def compile(self, at):
        node, twin = self.pick(at)
        if not twin.inputs or any(x.freed or x.factor != 1 for x in twin.below()):
            return
        try:
            data = twin.again(self.twins)
            wanted = twin.slopes(self.twins, 1.0, data, hooked=False)
        except (ArithmeticError, ValueError):               # data were changed; IEEE has an answer, the twin has none
            return
        program, self.compiled = micrograd.compile(node), True
        value, found = program.run()
        assert close(value, data[twin], 1e-9, 1e-9)
        twins = {node: t for node, t in zip(self.nodes, self.twins)}
        for x, g in zip(program.wrt, found):
            assert agree(g, *wanted[twins[x]])
        left_out = {x for x in wanted if not x.inputs and x.requires} - {twins[x] for x in program.wrt}
        assert not any(wanted[x][0] for x in left_out)      # constants when the graph was made, variables since

    @rule(rate=st.sampled_from([0.125, 0.5]), decay=st.sampled_from([0.0, 0.25]), zero=st.booleans())
    def optimiser_step(self, rate, decay, zero):
        moving = [(x, t) for x, t in self.leaves() if t.requires and x.grad and builtin_abs(x.grad) < 100]
        if moving:
            optimiser = optim.SGD([x for x, _ in moving], lr=rate, weight_decay=decay)
            optimiser.step()
            for x, t in moving:
                wanted = t.data - rate * (t.grad + decay * t.data)
                assert close(x.data, wanted, 1e-9, 1e-8 * (1 + t.size))
                t.data, t.changed = x.data, t.changed + 1
            if zero:
                optimiser.zero_grad()
                for _, t in moving:
                    t.grad = t.size = 0.0

    @rule(at=AT, data=NUMBERS)
    def assign(self, at, data):
        node, twin = self.leaves()[at % len(self.leaves())]
        node.data, twin.data, twin.changed = data, data, twin.changed + 1

    @rule(at=AT, to_none=st.booleans())
    def zero_grad(self, at, to_none):
        node, twin = self.pick(at)
        node.zero_grad(set_to_none=to_none)
        twin.grad = twin.size = 0.0

    @rule(at=AT, requires=st.booleans())
    def freeze_or_thaw(self, at, requires):
        node, twin = self.pick(at)
        if twin.inputs or twin.freed:
            if twin.requires and not requires:
                self.refused(lambda: setattr(node, "requires_grad", requires))
        else:
            node.requires_grad = twin.requires = requires

    @precondition(lambda self: len(self.nodes) < 40)
    @rule(at=AT, way=st.sampled_from([copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]))
    def duplicate(self, at, way):
        node, twin = self.pick(at)
        if twin.inputs or twin.freed:
            return self.refused(lambda: way(node))
        other, made = way(node), Twin(twin.data, requires=twin.requires)
        made.grad, made.size = twin.grad, twin.size
        assert other.label == node.label
        self.keep(other, made)

    @rule(at=AT, factor=st.sampled_from([2.0, -0.5]))
    def hook(self, at, factor):
        node, twin = self.pick(at)
        if twin.requires and not twin.freed:
            self.handles.append((node.register_hook(lambda g: g * factor), twin, factor))
            twin.factor *= factor

    @rule()
    def unhook(self):
        if self.handles:
            handle, twin, factor = self.handles.pop()
            handle.remove()
            twin.factor /= factor

    def refused(self, call):
        """A RuntimeError, after which nothing has changed (the invariants see to that)."""
        try:
            call()
        except RuntimeError:
            return
        raise AssertionError("this should have been refused")

    @invariant()
    def every_gradient_and_number_is_the_twins(self):
        for node, twin in zip(self.nodes, self.twins):
            assert node.data == twin.data and agree(node.grad, twin.grad, twin.size), (node, twin.grad)

    @invariant()
    def recording_is_on(self):
        assert micrograd.autograd.is_grad_enabled()


TestScalarPrograms = ScalarPrograms.TestCase
TestScalarPrograms.settings = examples(3, stateful_step_count=30)


# ------------------------------------------------------------------- tensors, beside those of PyTorch
BOTH = {                                                    # the same words on both sides; f is micrograd or torch
    "add": lambda f, a, b: a + b, "sub": lambda f, a, b: a - b, "mul": lambda f, a, b: a * b,
    "div": lambda f, a, b: a / (b * b + 0.5), "matmul": lambda f, a, b: a @ b, "maximum": lambda f, a, b: f.maximum(a, b),
    "minimum": lambda f, a, b: f.minimum(a, b), "cat": lambda f, a, b: joined(f).cat([a, b]),
    "stack": lambda f, a, b: joined(f).stack([a, b], -1),
}
ONE = {
    "neg": lambda x: -x, "number": lambda x: 2.5 - x * 0.5, "square": lambda x: x ** 2, "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(), "exp": lambda x: x.tanh().exp(), "relu": lambda x: x.relu(), "abs": lambda x: x.abs(),
    "log": lambda x: (x * x + 1).log(), "sqrt": lambda x: (x * x + 0.5).sqrt(), "clamp": lambda x: x.clamp(-0.5, 0.75),
    "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(0),
    "cumsum": lambda x: x.cumsum(0) if x.ndim else -x,
    "flat": lambda x: x.reshape(-1), "column": lambda x: x.reshape(-1, 1), "unsqueeze": lambda x: x.unsqueeze(0),
    "last": lambda x: x.unsqueeze(-1), "squeeze": lambda x: x.squeeze(), "swap": lambda x: x.transpose(0, -1) if x.ndim else -x,
    "first": lambda x: x[0], "from the second": lambda x: x[1:], "backwards": lambda x: x[[1, 0, 1]],
    "every other": lambda x: x[..., ::2], "entry": lambda x: x[..., -1], "None": lambda x: x[None, :],
    "tril": lambda x: x.tril(), "expand": lambda x: x.unsqueeze(0).expand(2, *x.shape), "where": lambda x: x[x > 0],
}
REDUCE = ("sum", "mean", "amax", "amin", "logsumexp", "prod", "norm", "var")
SHAPES = st.sampled_from([(), (1,), (2,), (3,), (2, 3), (3, 2), (1, 3), (3, 1), (2, 2), (2, 1, 3)])


def joined(f):
    return micrograd.tensor if f is micrograd else f


def reduced(name, x, dim, keepdim):
    """A reduction as each side spells it."""
    if isinstance(x, Tensor):
        return getattr(x, name)(dim=dim, keepdim=keepdim)
    if name in ("amax", "amin", "logsumexp"):
        return getattr(x, name)(tuple(range(x.ndim)) if dim is None else dim, keepdim=keepdim)
    if name == "norm":
        return torch.linalg.vector_norm(x, 2, dim, keepdim=keepdim)
    if name == "prod" and dim is None:
        return x.reshape(-1).prod(0).reshape([1] * x.ndim if keepdim else [])
    return getattr(x, name)(dim, keepdim=keepdim)


def numbers(x):
    return np.asarray(x.data if isinstance(x, Tensor) else x.detach().numpy() if isinstance(x, torch.Tensor) else x)


class TensorPrograms(RuleBasedStateMachine):
    """Tensors beside those of PyTorch."""

    def __init__(self):
        super().__init__()
        gc.freeze()                                         # what is there already is not looked at again
        self.pairs, self.made_of, self.freed, self.products, self.compiled = [], [], set(), set(), False

    def teardown(self):
        watches = [weakref.ref(node) for node, _ in self.pairs]
        self.pairs.clear()
        assert self.compiled or not [w for w in watches if w() is not None]
        assert values_alive() == 0

    def index(self, at):
        return len(self.pairs) - 1 - at % len(self.pairs)

    def keep(self, node, theirs, *inputs):
        if any(node is x for x, _ in self.pairs):           # a change of form that changes nothing makes no node
            return
        a, b = numbers(node), numbers(theirs)
        assert a.shape == b.shape and np.allclose(a, b, 1e-10, 1e-10) and node.requires_grad == theirs.requires_grad
        if not np.array_equal(a, b):                        # a last bit must not decide a kink
            theirs.data = torch.tensor(a)
        self.pairs.append((node, theirs))
        self.made_of.append(inputs if node.requires_grad else ())

    def below(self, i):
        found, waiting = set(), [i]
        while waiting:
            k = waiting.pop()
            if k not in found:
                found.add(k)
                waiting += self.made_of[k]
        return found

    @initialize()
    def begin(self):
        self.leaf((2, 3), 0, True)
        self.leaf((3,), 5, True)

    @precondition(lambda self: len(self.pairs) < 25)
    @rule(shape=SHAPES, start=st.integers(0, 50), requires=st.sampled_from([True, True, False]))
    def leaf(self, shape, start, requires):
        data = np.resize(np.sin(np.arange(start, start + 7) * 1.7) * 1.5, shape)
        self.keep(Tensor(data, requires_grad=requires), torch.tensor(data, requires_grad=requires))

    @precondition(lambda self: len(self.pairs) < 25)
    @rule(name=st.sampled_from(sorted(ONE)), at=AT)
    def one(self, name, at):
        self.operation(lambda f, x: ONE[name](x), at)

    @precondition(lambda self: len(self.pairs) < 25)
    @rule(name=st.sampled_from(sorted(BOTH)), at=AT, other=AT)
    def both(self, name, at, other):
        self.operation(BOTH[name], at, other)

    @precondition(lambda self: len(self.pairs) < 25)
    @rule(name=st.sampled_from(REDUCE), at=AT, dim=st.sampled_from([None, None, 0, -1, 1, (0, 1), (0, -1)]),
          keepdim=st.booleans())
    def reduce(self, name, at, dim, keepdim):
        if not (name == "prod" and isinstance(dim, tuple)):             # PyTorch's takes one
            count = len(self.pairs)
            self.operation(lambda f, x: reduced(name, x, dim, keepdim), at)
            if name == "prod":                              # of one number, it is not compiled right yet
                self.products.update(range(count, len(self.pairs)))

    def operation(self, function, *places):
        places = [self.index(at) for at in places]
        nodes, theirs = zip(*(self.pairs[i] for i in places))
        try:
            with warnings.catch_warnings(action="ignore"):
                wanted = function(torch, *theirs)
        except (RuntimeError, IndexError, ValueError, TypeError):
            xs = [Tensor(x.data) for x in nodes]
            try:
                found = function(micrograd, *xs)
            except (RuntimeError, IndexError, ValueError, TypeError):
                return
            found.backward(np.ones(found.shape))            # what NumPy's users may write has a gradient, too
            assert all(x.grad.shape == x.shape for x in xs)
            return
        if wanted.numel() and bool((wanted.abs() < 1e3).all()) and wanted.numel() < 100 and wanted.ndim < 5:
            self.keep(function(micrograd, *nodes), wanted, *places)

    @rule(at=AT, retain=st.sampled_from([None, True, True, False]), start=st.integers(0, 9))
    def backward(self, at, retain, start):
        i = self.index(at)
        node, theirs = self.pairs[i]
        seed = None if node.size == 1 else np.resize(np.cos(np.arange(start, start + 5)), node.shape)
        below = self.below(i)
        if not node.requires_grad or below & self.freed:
            try:
                node.backward(seed, retain_graph=retain)
            except RuntimeError:
                return
            raise AssertionError("this should have been refused")
        node.backward(seed, retain_graph=retain)
        for k in below:
            if self.made_of[k]:                             # an inner node shows the last pass, where PyTorch adds up
                self.pairs[k][1].grad = None
        theirs.backward(None if seed is None else torch.tensor(seed), retain_graph=bool(retain))
        if not retain:
            self.freed |= {k for k in below if self.made_of[k]}

    @rule(at=AT)
    def gradient_as_a_function(self, at):
        i = self.index(at)
        node, theirs = self.pairs[i]
        inputs = [pair for pair in self.pairs if pair[0].requires_grad and pair[0].is_leaf]
        if node.requires_grad and not self.below(i) & self.freed:
            seed = np.full(node.shape, 0.5)
            found = grad(node, [x for x, _ in inputs], seed, retain_graph=True, allow_unused=True)
            wanted = self.their_grad(theirs, [t for _, t in inputs], torch.tensor(seed))
            for g, t in zip(found, wanted):
                self.same(g, t)

    def their_grad(self, theirs, inputs, seed):
        """PyTorch's fills the inner gradients that are retained; ours leaves every one alone."""
        with warnings.catch_warnings(action="ignore"):
            before = [t.grad for _, t in self.pairs]
        wanted = torch.autograd.grad(theirs, inputs, seed, retain_graph=True, allow_unused=True)
        for (_, t), old in zip(self.pairs, before):
            t.grad = old
        return wanted

    @rule(at=AT)
    def retain_grad(self, at):
        i = self.index(at)
        node, theirs = self.pairs[i]
        if node.requires_grad and i not in self.freed:
            node.retain_grad()
            theirs.retain_grad()

    @rule(at=AT, name=st.sampled_from(["repr", "draw_dot", "mermaid", "inputs", "explain", "stepper"]))
    def read(self, at, name):
        i = self.index(at)
        node, _ = self.pairs[i]
        try:
            READERS[name](node)
        except (ValueError, RuntimeError):
            assert name in NEEDS_OPERATIONS and (node.ndim or not self.made_of[i] or self.below(i) & self.freed)

    @rule(at=AT)
    def compile(self, at):
        i = self.index(at)
        node, theirs = self.pairs[i]
        if node.size == 1 and self.made_of[i] and not self.below(i) & (self.freed | self.products):
            self.compiled = True
            try:
                program = micrograd.compile(node, target="numpy")
            except TypeError as error:                      # which names the operation and what to do instead
                assert "cannot compile" in str(error) and "use backward()" in str(error)
                return
            value, found = program.run()
            self.same(np.reshape(value, node.shape), theirs)            # a program gives the number
            by_node = {x: t for x, t in self.pairs}
            wanted = self.their_grad(theirs, [by_node[x] for x in program.wrt], torch.ones_like(theirs))
            for g, t in zip(found, wanted):
                self.same(g, t)

    @rule(at=AT)
    def detach(self, at):
        node, theirs = self.pairs[self.index(at)]
        self.keep(node.detach(), theirs.detach().clone())

    @rule(at=AT, way=st.sampled_from([copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]))
    def duplicate(self, at, way):
        i = self.index(at)
        node, theirs = self.pairs[i]
        if node.is_leaf and i not in self.freed:
            self.keep(way(node), copy.deepcopy(theirs))

    @rule(rate=st.sampled_from([0.125, 0.01]), to_none=st.booleans())
    def step_and_begin_anew(self, rate, to_none):
        """An optimiser's step; what was computed from the old numbers is forgotten on both sides."""
        keep = [i for i, (x, _) in enumerate(self.pairs) if x.is_leaf and i not in self.freed]
        self.pairs = [self.pairs[i] for i in keep]
        self.made_of, self.freed, self.products = [()] * len(keep), set(), set()
        moving = [(x, t) for x, t in self.pairs if x.grad is not None and np.abs(x.grad).max() < 10]
        if moving:
            optimiser = optim.SGD([x for x, _ in moving], lr=rate)
            optimiser.step()
            optimiser.zero_grad(set_to_none=to_none)
            for _, t in moving:
                t.data = t.data - rate * t.grad
                t.grad = None if to_none else torch.zeros_like(t)
        for x, t in self.pairs:
            self.same(x, t)
            t.data = torch.tensor(x.data)

    def same(self, found, wanted):
        assert (found is None) == (wanted is None)
        if found is not None:
            a, b = numbers(found), numbers(wanted)
            assert a.shape == b.shape and np.allclose(a, b, 1e-8, 1e-9 * (1 + np.abs(b).max(initial=0)), equal_nan=True), (a, b)

    @invariant()
    def every_gradient_is_pytorchs(self):
        for node, theirs in self.pairs:
            with warnings.catch_warnings(action="ignore"):  # PyTorch warns who looks at an inner gradient
                self.same(node.grad, theirs.grad)


TestTensorPrograms = TensorPrograms.TestCase
TestTensorPrograms.settings = examples(3, stateful_step_count=30)
