"""One API, two classes: whatever a Value does a Tensor does, with the defaults that the design gives each."""

from __future__ import annotations

import copy
import gc
import inspect
import math
import pickle
import random
import weakref

import numpy as np
import pytest
import torch
from conftest import close
from test_ops import counterpart, with_derivative

import micrograd
from micrograd import (
    Tensor,
    Value,
    checkpoint,
    detect_anomaly,
    enable_grad,
    grad,
    gradcheck,
    gradgradcheck,
    jvp,
    no_grad,
    vjp,
)
from micrograd.autograd import GradcheckError, hvp

inf, nan = math.inf, math.nan


class Kind:
    """A class of nodes and the form of its data; `kind(2.0)` is a node whose (first) entry is 2."""

    def __init__(self, cls, spread=0.0):
        self.cls, self.spread = cls, np.asarray(spread)
        self.frees = cls is Tensor                              # the graph, at the end of backward, by default
        self.ones = 1.0 if cls is Value else np.ones(self.spread.shape)

    def __call__(self, number, **more):
        return self.cls(self.data(number), **more)

    def data(self, number):
        """What such a node holds."""
        return float(number) if self.cls is Value else number + self.spread

    def torch(self, number):
        """The same numbers as a leaf of PyTorch."""
        return torch.tensor(self.data(number), dtype=torch.float64, requires_grad=True)

    def unset(self, node):
        """Whether no gradient has arrived, as this class says it."""
        return node.grad is None if self.cls is Tensor else node.grad == 0.0 and type(node.grad) is float


KINDS = {"Value": Kind(Value), "Tensor without axes": Kind(Tensor),
    "Tensor": Kind(Tensor, [[0.0, 0.25, -0.125], [0.5, -0.375, 0.0625]])}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request):
    """Each class in turn."""
    return request.param


def same(found, wanted, rel=1e-13):
    """The same numbers in the same shape, of nodes, arrays or floats."""
    found, wanted = (x.data if isinstance(x, Value) else x.detach().numpy() if isinstance(x, torch.Tensor) else x
        for x in (found, wanted))
    np.testing.assert_allclose(found, wanted, rtol=rel, atol=1e-15)
    assert np.shape(found) == np.shape(wanted)


def back(kind, y, **more):
    """backward, with ones arriving."""
    y.backward(kind.ones, **more)


def check(kind, ours, theirs, *numbers):
    """Value and gradients of a function, as PyTorch has them."""
    xs, ts = [kind(a) for a in numbers], [kind.torch(a) for a in numbers]
    y, t = ours(*xs), theirs(*ts)
    assert type(y) is kind.cls
    same(y, t)
    back(kind, y)
    for x, g in zip(xs, torch.autograd.grad(t, ts, torch.ones_like(t), allow_unused=True)):
        if g is None:                                           # not used: nothing arrives, or a zero does
            assert kind.unset(x) or not np.any(x.grad)
        else:
            same(x.grad, g)
            assert type(x.grad) is (float if kind.cls is Value else np.ndarray)


# ---------------------------------------------------------------------------------------------- the API
def test_every_public_method_of_a_value_is_one_of_a_tensor_with_the_same_arguments():
    for name, member in inspect.getmembers(Value):
        if name.startswith("_"):
            continue
        assert hasattr(Tensor, name), name
        if inspect.isfunction(member):
            ours, theirs = inspect.signature(member).parameters, inspect.signature(getattr(Tensor, name)).parameters
            assert list(ours) == list(theirs), name
            differing = {n for n in ours if ours[n].default != theirs[n].default}
            assert differing == ({"set_to_none"} if name == "zero_grad" else set()), name


# ------------------------------------------------------------------------------------------- arithmetic
BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "pow": lambda a, b: a ** b,
}


@pytest.mark.parametrize("name", BINARY)
def test_operators_between_nodes_and_numbers(kind, name):
    f = BINARY[name]
    check(kind, f, f, 2.0, 3.0)
    for number in (2.0, 3, -1.5, True):
        check(kind, lambda a: f(a, number), lambda a: f(a, float(number)), 2.0)
        if number != -1.5 or name != "pow":
            check(kind, lambda a: f(number, a), lambda a: f(float(number), a), 2.0)
    for number in (np.float64(2), np.float32(2), np.int64(2), np.array(2.0), np.bool_(True)):
        check(kind, lambda a: f(a, number), lambda a: f(a, float(number)), 3.0)
        check(kind, lambda a: f(number, a), lambda a: f(float(number), a), 3.0)
    check(kind, lambda a: f(a, a), lambda a: f(a, a), 3.0)                      # both operands the same object
    constant = kind(2.0, requires_grad=False)
    check(kind, lambda a: f(a, constant), lambda a: f(a, kind.torch(2.0).detach()), 3.0)
    check(kind, lambda a: f(constant, a), lambda a: f(kind.torch(2.0).detach(), a), 3.0)
    assert constant.grad is None or constant.grad == 0.0


def test_signs_and_in_place_operators(kind):
    check(kind, lambda a: -a + +a * 2 + abs(-a), lambda a: -a + a * 2 + abs(-a), 2.0)

    def program(c, a):
        c += a
        c -= 1
        c *= a
        c /= 3.0
        c **= 2
        return c

    check(kind, lambda a, b: program(a * b, b), lambda a, b: program(a * b * 1.0, b), 2.0, 3.0)


def test_the_expression_of_the_front_page(kind):
    def expression(a, b, relu):
        c = a + b
        d = a * b + b ** 3
        c += c + 1
        c += 1 + c + (-a)
        d += d * 2 + relu(b + a)
        d += 3 * d + relu(b - a)
        e = c - d
        f = e ** 2
        g = f / 2.0
        g += 10.0 / f
        return g

    check(kind, lambda a, b: expression(a, b, lambda x: x.relu()),
        lambda a, b: expression(a.clone(), b.clone(), torch.relu), -4.0, 2.0)


@pytest.mark.parametrize("op", [op for op in with_derivative if all(op.rules) and counterpart(op)],
    ids=lambda op: op.name)
def test_functions_take_nodes_of_both_classes(kind, op):
    numbers = (0.6, 0.3)[:len(op.rules)]
    if op.name in ("leaky_relu", "elu"):
        check(kind, lambda x: op(x, 0.3), lambda x: counterpart(op)(x, 0.3), 0.6)
    else:
        check(kind, op, counterpart(op), *numbers)
    if hasattr(Value, op.name) and len(op.rules) == 1:
        x = kind(0.6)
        assert getattr(x, op.name)().inputs == (x,)
        same(getattr(x, op.name)(), op(x))


def test_choices(kind):
    def program(f, where):
        return lambda a, b: where(a > b, a * b, a - b) + f.maximum(a, b) * f.minimum(a, b) + a.clamp(0.1, 2.0)

    class ours:
        maximum, minimum = micrograd.maximum, micrograd.minimum

    check(kind, program(ours, micrograd.where), program(torch, torch.where), 2.0, 2.1)
    for condition in (True, False):
        check(kind, lambda a, b: micrograd.where(condition, a, b), lambda a, b: (a if condition else b) * 1.0, 2.0, 3.0)
        check(kind, lambda a: a.where(condition, 5.0), lambda a: a * 1.0 if condition else a * 0.0 + 5.0, 2.0)


def test_ties_and_kinks(kind):
    for ours, theirs, number in ((abs, abs, 0.0), (lambda x: x.relu(), torch.relu, 0.0),
            (lambda x: x.clamp(0.0, 1.0), lambda x: x.clamp(0.0, 1.0), 0.0),
                                 (lambda x: micrograd.maximum(x, x), lambda x: torch.maximum(x, x), 1.0),
                                 (lambda x: x.relu(), torch.relu, nan)):
        check(kind, ours, theirs, number)
    check(kind, micrograd.maximum, torch.maximum, 2.0, 2.0)
    check(kind, lambda a: a ** 0.0, lambda a: a ** 0.0, 0.0)
    check(kind, lambda a, b: a ** b, lambda a, b: a ** b, -2.0, -3.0)


def test_numbers_follow_ieee(kind):
    with np.errstate(all="ignore"):
        for ours, number in ((lambda x: x.exp(), 1000.0), (lambda x: x.log(), 0.0), (lambda x: 1 / x, 0.0),
                (lambda x: x / x, 0.0), (lambda x: x.sqrt(), -1.0),
                             (lambda x: x ** (1 / 3), -8.0), (lambda x: x.tanh(), 1000.0), (lambda x: x * x, 1e200)):
            check(kind, ours, ours, number)
        check(kind, lambda x: x.softplus(), torch.nn.functional.softplus, -40.0)
        check(kind, lambda x: x.softplus(), torch.nn.functional.softplus, 1000.0)
        check(kind, lambda x: x.logsigmoid(), torch.nn.functional.logsigmoid, -300.0)


def test_builtin_sum_and_products(kind):
    xs = [kind(a) for a in (1.0, 2.0, 3.0)]
    total = sum(xs)
    same(total, kind.data(1.0) + kind.data(2.0) + kind.data(3.0))
    back(kind, total)
    for x in xs:
        same(x.grad, kind.ones)
    back(kind, sum((x for x in xs), start=xs[0]))
    same(xs[0].grad, 3.0 * np.asarray(kind.ones))
    back(kind, math.prod(xs))


def test_comparisons_and_truth(kind):
    a, b = kind(2.0), kind(3.0)
    for answer, wanted in ((a < b, True), (a > b, False), (a <= a, True), (a >= b, False), (a < 10.0, True),
            (0.0 < a, True), (a > np.float64(10), False)):
        assert np.shape(answer) == np.shape(a.data) and np.all(np.equal(answer, wanted))
        assert type(answer) is (bool if kind.cls is Value else type(answer))
    assert a == a and a != kind(2.0) and len({a, b, kind(2.0)}) == 3 and a in {a: 1} and kind(2.0) not in {a: 1}
    if np.size(a.data) == 1:
        assert a and not a - 2.0


def test_a_wrong_operand_is_a_type_error(kind):
    x = kind(2.0)
    for wrong in ("a", None, 1j, object(), b"1"):
        for f in (lambda: x + wrong, lambda: wrong * x, lambda: x ** wrong, lambda: micrograd.maximum(x, wrong),
                lambda: micrograd.where(True, x, wrong)):
            with pytest.raises(TypeError):
                f()
    for wrong in ("a", None, 1j, {}, [object()]):
        with pytest.raises(TypeError):
            kind.cls(wrong)
    with pytest.raises(AttributeError):
        x.gard = 1.0


# --------------------------------------------------------------------------------------------- the graph
def test_leaves_constants_and_what_a_node_tells(kind):
    x, c = kind(2.0, label="x"), kind(3.0, requires_grad=False)
    y = x * c
    assert x.is_leaf and x.requires_grad and x.label == "x" and x.op.name == "" == x._op and x.inputs == () == x._prev
    assert not y.is_leaf and y.requires_grad and y.inputs == (x,
        c) == y._prev and y.op.name == "mul" and y._op == "*" and y.label == ""
    y.label = "y"
    assert y.label == "y" and "y" in repr(y) and "\n" not in repr(kind.cls(2.0) * 2)
    constant = c * 2
    assert constant.is_leaf and not constant.requires_grad and constant.inputs == ()
    z = x * 5.0
    assert z.inputs[1] is z.inputs[1] and not z.inputs[1].requires_grad and float(z.inputs[1].data) == 5.0
    for name in ("inputs", "_prev", "is_leaf", "op"):
        with pytest.raises(AttributeError):
            setattr(y, name, ())


def test_one_node_on_paths_of_unequal_length(kind):
    def program(x, k):
        xa = x * k
        x2 = x * x
        return x * xa + x2 * k + x * xa

    check(kind, program, program, 1.0, 1.0)


def test_leaves_accumulate_and_inner_nodes_start_afresh(kind):
    x = kind(3.0)
    inner = x * x
    inner.retain_grad()
    y = inner * x
    for times in (1, 2, 3):
        back(kind, y, retain_graph=True)
        same(x.grad, times * 3 * kind.data(3.0) ** 2)
        same(inner.grad, kind.data(3.0))
    x.zero_grad()
    assert kind.unset(x)
    back(kind, y, retain_graph=True)
    same(x.grad, 3 * kind.data(3.0) ** 2)


def test_forgetting_zero_grad_adds_up_exactly(kind):
    w = kind(2.0)
    for x, total in ((1.0, 1.0), (3.0, 4.0), (5.0, 9.0)):
        back(kind, w * x)
        same(w.grad, total * np.asarray(kind.ones))


def test_zero_grad_as_each_class_has_it_and_as_it_is_told(kind):
    x = kind(2.0)
    for set_to_none in (None, True, False):
        back(kind, x * 3)
        x.zero_grad() if set_to_none is None else x.zero_grad(set_to_none=set_to_none)
        if set_to_none or set_to_none is None and kind.cls is Tensor:
            assert x.grad is None
        else:
            same(x.grad, 0.0 * np.asarray(kind.ones))
        back(kind, x * 3)
        same(x.grad, 3.0 * np.asarray(kind.ones))
        x.zero_grad(set_to_none=True)


@pytest.mark.parametrize("retain_graph", [None, True, False])
def test_the_graph_is_kept_or_freed_by_default_and_as_told(kind, retain_graph):
    x = kind(3.0)
    inner = x * x
    y = inner * 2.0
    back(kind, y, retain_graph=retain_graph)
    if not (kind.frees if retain_graph is None else not retain_graph):
        back(kind, y, retain_graph=True)
        same(x.grad, 8 * kind.data(3.0))
        assert y.inputs[0] is inner
        return
    for again in (lambda: back(kind, y), lambda: back(kind, inner), lambda: back(kind, y + 1),
            lambda: grad(y, x, kind.ones)):
        with pytest.raises(RuntimeError,
                match="freed by an earlier backward.*retain_graph=True.*compute the result again"):
            again()
    same(x.grad, 4 * kind.data(3.0))                                            # untouched by what failed
    back(kind, x * x)
    same(x.grad, 6 * kind.data(3.0))


def test_inner_gradients_as_each_class_keeps_them(kind):
    a, b = kind(2.0), kind(3.0)
    c = a * b
    d = c * 2
    back(kind, d, retain_graph=True)
    if kind.cls is Value:
        assert c.grad == 2.0 and d.grad == 1.0
    else:
        assert c.grad is None and d.grad is None
    c.retain_grad()
    back(kind, d, retain_graph=True)
    same(c.grad, 2.0 * np.asarray(kind.ones))
    same(a.grad, 4.0 * kind.data(3.0))
    with pytest.raises(RuntimeError, match="no gradient"):
        (kind(2.0, requires_grad=False) * 2).retain_grad()


def test_backward_takes_a_gradient_in_every_form(kind):
    for upstream in (kind.data(0.5), kind(0.5), kind(0.5, requires_grad=False)):
        x = kind(3.0)
        (x * x).backward(upstream)
        same(x.grad, 2 * kind.data(3.0) * kind.data(0.5))
        x.backward(upstream)
        same(x.grad, 2 * kind.data(3.0) * kind.data(0.5) + kind.data(0.5))
        same(grad(x * x, x, upstream)[0], 2 * kind.data(3.0) * kind.data(0.5))
    for wrong in ("a", np.ones(7), None if np.size(kind.ones) > 1 else "b"):
        before = x.grad
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            (x * x).backward(wrong)
        assert x.grad is before


def test_backward_of_what_needs_no_gradient_says_so(kind):
    c = kind(2.0, requires_grad=False)
    with no_grad():
        silent = kind(2.0) * 2
    for y in (c, c * 2, silent, kind(2.0).detach()):
        for walk in (lambda: back(kind, y), lambda: grad(y, kind(1.0), kind.ones)):
            with pytest.raises(RuntimeError, match="does not depend on anything that requires a gradient"):
                walk()


def test_requires_grad_changes_on_leaves_only(kind):
    x = kind(1.0)
    y = x * 2
    with pytest.raises(RuntimeError, match="detach"):
        y.requires_grad = False
    y.requires_grad = True
    x.requires_grad = False
    assert not x.requires_grad and not (x * 2).requires_grad
    assert x.requires_grad_() is x and x.requires_grad and x.requires_grad_(False).requires_grad is False


def test_detach_is_a_copy_without_a_past(kind):
    x = kind(2.0)
    s = x.sigmoid()
    d = s.detach()
    assert type(d) is kind.cls and d.is_leaf and not d.requires_grad and d.inputs == ()
    same(d, s)
    d.data *= 0
    back(kind, s * d.like(1.0))
    t = kind.torch(2.0)
    torch.sigmoid(t).sum().backward()
    same(x.grad, t.grad)


def test_rules_read_data_when_backward_runs(kind):
    x, w = kind(2.0), kind(3.0)
    y = x * w
    w.data = w.data * 10
    back(kind, y)
    same(x.grad, 10 * kind.data(3.0))


def test_the_weight_update_four_ways(kind):
    def prepared():
        w = kind(1.0)
        back(kind, w * 3)
        return w

    w = start = prepared()
    if kind.cls is Tensor:
        with pytest.raises(RuntimeError, match="in place while recording"):
            w -= 0.1 * w.grad
    else:
        w -= 0.1 * w.grad                                                       # as in micrograd: a new node
        assert w is not start and not w.is_leaf
    w = prepared()
    rebound = w - 0.1 * w.grad
    assert not rebound.is_leaf and rebound.requires_grad
    with no_grad():
        assert not (w - 0.1 * w.grad).requires_grad
        same_one = w
        w -= 0.1 * w.grad
    assert w is same_one and w.is_leaf and w.requires_grad
    same(w, kind.data(1.0) - 0.3)
    w.data -= 0.1 * w.grad
    same(w, kind.data(1.0) - 0.6)


# ---------------------------------------------------------------------------------------- recording on and off
def test_no_grad_as_block_decorator_and_nested(kind):
    x = kind(2.0)

    @no_grad()
    def called():
        return x * 2

    @no_grad
    def bare():
        return x * 2

    @enable_grad()
    def recorded():
        return x * 2

    with no_grad():
        inside = x * 2 + x
        assert recorded().requires_grad and not called().requires_grad and not (x + 1).requires_grad
        with enable_grad():
            assert (x * 2).requires_grad
        with micrograd.set_grad_enabled(True):
            assert (x * 2).requires_grad
    assert not inside.requires_grad and inside.is_leaf and inside.inputs == ()
    assert not called().requires_grad and not bare().requires_grad and (x * 2).requires_grad
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert (x * 2).requires_grad


def test_nothing_is_kept_alive_under_no_grad(kind, no_collector):
    x = kind(2.0)
    with no_grad():
        inner = x.exp()
        watch = weakref.ref(inner)
        y = inner * 2.0
        del inner
    assert watch() is None and y.inputs == ()


def test_graphs_are_freed_by_reference_counting_alone(kind, no_collector):
    x = kind(2.0)
    y = (x * x).tanh() + x
    back(kind, y)
    watches = [weakref.ref(y), weakref.ref(grad((x * x).tanh(), x, kind.ones, create_graph=True)[0])]
    z = checkpoint(lambda a: a.tanh() * a, x)
    back(kind, z)
    watches.append(weakref.ref(z))
    del y, z
    assert [w() for w in watches] == [None] * 3
    gc.collect()
    back(kind, (x * x).tanh() + x)
    jvp(lambda a: a * a, (x,), (kind.ones,))
    assert gc.collect() == 0


def test_a_deep_chain_needs_no_recursion(kind):
    x = kind(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1.0
    back(kind, y)
    same(x.grad, kind.ones)
    assert len(repr(y)) < 200
    del y


# ------------------------------------------------------------------------------------------------- hooks
def test_hooks_run_in_order_on_the_whole_gradient_once(kind):
    a, seen = kind(2.0), []
    b = a * 3
    b.register_hook(lambda g: seen.append(("first", copy.copy(g))))
    second = b.register_hook(lambda g: g * 10)
    b.register_hook(lambda g: seen.append(("third", copy.copy(g))))
    back(kind, b + b, retain_graph=True)
    assert [name for name, _ in seen] == ["first", "third"]
    same(seen[0][1], 2.0 * np.asarray(kind.ones))
    same(seen[1][1], 20.0 * np.asarray(kind.ones))
    same(a.grad, 60.0 * np.asarray(kind.ones))
    second.remove()
    second.remove()
    a.zero_grad()
    back(kind, b + b, retain_graph=True)
    same(a.grad, 6.0 * np.asarray(kind.ones))
    assert len(seen) == 4
    with pytest.raises(RuntimeError, match="no gradient"):
        kind(1.0, requires_grad=False).register_hook(print)


def test_hooks_of_leaves_see_this_pass_and_grad_runs_them_too(kind):
    x, seen = kind(2.0), []
    x.register_hook(lambda g: seen.append(copy.copy(g)))
    handle = x.register_hook(lambda g: -g)
    for _ in range(2):
        back(kind, x * 5.0)
    for g in seen:
        same(g, 5.0 * np.asarray(kind.ones))
    same(x.grad, -10.0 * np.asarray(kind.ones))
    same(grad(x * 5.0, x, kind.ones)[0], -5.0 * np.asarray(kind.ones))
    handle.remove()
    same(grad(x * 5.0, x, kind.ones)[0], 5.0 * np.asarray(kind.ones))


class Broken(Exception):
    """Raised on purpose."""


@pytest.mark.parametrize("retain_graph", [True, False])
def test_an_error_on_the_way_leaves_every_gradient_as_it_was(kind, retain_graph):
    def broken(g):
        raise Broken

    x, w = kind(2.0), kind(3.0)
    back(kind, x * w)
    before = copy.copy(x.grad), copy.copy(w.grad)
    a = x * w
    b = a * x
    handle = a.register_hook(broken)
    for walk in (lambda: back(kind, b * w, retain_graph=True), lambda: grad(b * w, x, kind.ones, retain_graph=True),
                 lambda: back(kind, b, retain_graph=retain_graph)):
        with pytest.raises(Broken):
            walk()
        same(x.grad, before[0])
        same(w.grad, before[1])
    handle.remove()
    assert micrograd.is_grad_enabled()
    back(kind, x * w)
    same(x.grad, 2 * kind.data(3.0))


# ------------------------------------------------------------------------------------- derivatives as functions
def test_grad_gives_a_tuple_and_leaves_no_trace(kind):
    x, y = kind(2.0), kind(5.0)
    z = x * x
    assert isinstance(grad(z, (x,), kind.ones, retain_graph=True), tuple) and kind.unset(x)
    with pytest.raises(RuntimeError, match="input 1.*not used"):
        grad(z, (x, y), kind.ones, retain_graph=True)
    a, b = grad(z, (x, y), kind.ones, retain_graph=True, allow_unused=True)
    same(a, 2 * kind.data(2.0))
    assert b is None
    a, b = grad(z, [x, y], kind.ones, retain_graph=True, materialize_grads=True)
    same(b, 0.0 * np.asarray(kind.ones))
    a, b = grad(z, [x, y], kind.ones, create_graph=True, materialize_grads=True)
    assert type(b) is kind.cls and not b.requires_grad and type(a) is kind.cls and a.requires_grad
    assert kind.unset(x) and kind.unset(y) and kind.unset(z)
    inner = x * x
    same(grad(inner * inner, inner, kind.ones)[0], 2 * kind.data(2.0) ** 2)
    for wrong in (3.0, kind(1.0, requires_grad=False), None):
        with pytest.raises(RuntimeError, match="must be a node that requires a gradient"):
            grad(x * x, wrong, kind.ones)


def test_grad_keeps_or_frees_as_backward_does(kind):
    x = kind(2.0)
    for retain_graph in (None, True, False):
        y = x * x
        grad(y, x, kind.ones, retain_graph=retain_graph)
        if kind.frees if retain_graph is None else not retain_graph:
            with pytest.raises(RuntimeError, match="retain_graph=True"):
                grad(y, x, kind.ones)
        else:
            grad(y, x, kind.ones)


def test_derivatives_of_any_order(kind):
    def function(f, x):
        return (x * x * x).tanh() * x.exp() + 1 / (x + 2)

    x, t = kind(0.4), kind.torch(0.4)
    ours, theirs = function(micrograd, x), function(torch, t)
    for _ in range(4):
        (ours,) = grad(ours, x, kind.ones, create_graph=True)
        (theirs,) = torch.autograd.grad(theirs, t, torch.ones_like(theirs), create_graph=True)
        same(ours, theirs, 1e-11)
    x.zero_grad()
    back(kind, function(micrograd, x), create_graph=True)
    assert type(x.grad) is kind.cls and x.grad.requires_grad
    slope = x.grad
    x.zero_grad()
    back(kind, slope)
    (wanted,) = torch.autograd.grad(torch.autograd.grad(function(torch, t).sum(), t, create_graph=True)[0].sum(), t)
    same(x.grad, wanted, 1e-11)


def test_repeated_derivatives_of_a_bell_at_zero(kind):
    for bell in (lambda x: (-x * x).exp(), lambda x: (-(x ** 2)).exp()):
        x = kind(0.0)
        y, found = bell(x), []
        for _ in range(4):
            (y,) = grad(y, x, kind.ones, create_graph=True)
            found.append(float(np.ravel(y.data)[0]))
        assert found == [0.0, -2.0, 0.0, 12.0]


def test_the_second_derivative_of_a_line_says_that_the_first_depends_on_nothing(kind):
    x = kind(3.0)
    (g,) = grad(2 * x, x, kind.ones, create_graph=True)
    same(g, 2.0 * np.asarray(kind.ones))
    with pytest.raises(RuntimeError, match="does not depend on anything that requires a gradient"):
        grad(g, x, kind.ones)


def test_create_graph_decides_over_no_grad(kind):
    x = kind(2.0)
    y = x * x
    with no_grad():
        (g,) = grad(y, x, kind.ones, create_graph=True)
    assert g.requires_grad
    same(grad(g, x, kind.ones)[0], 2.0 * np.asarray(kind.ones))


def test_the_gradient_that_arrives_may_be_differentiated_too(kind):
    x, v = kind(3.0), kind(2.0)
    (g,) = grad(x * x, x, v, create_graph=True)
    gx, gv = grad(g, (x, v), kind.ones)
    same(gx, 2 * kind.data(2.0))
    same(gv, 2 * kind.data(3.0))


def test_forward_mode_agrees_with_reverse_mode_and_nests(kind):
    def function(a, b):
        return (a * b).tanh() / b + a ** 3 - micrograd.maximum(a, b).exp()

    primals, tangents = (kind.data(0.4), kind.data(0.7)), (kind.data(2.0), kind.data(-1.0))
    nodes = tuple(kind.cls(p, requires_grad=False) for p in primals)
    value, tangent = jvp(function, nodes, tangents)
    xs = [kind.cls(p) for p in primals]
    y = function(*xs)
    same(value, y)
    slopes = grad(y, xs, kind.ones)
    same(tangent, slopes[0] * tangents[0] + slopes[1] * tangents[1], 1e-12)
    (x,) = (kind.cls(kind.data(0.4), requires_grad=False),)
    second = jvp(lambda a: jvp(lambda b: b.exp() * b, (a,), (kind.ones,))[1], (x,), (kind.ones,))[1]
    same(second, np.exp(kind.data(0.4)) * (kind.data(0.4) + 2), 1e-12)
    perturbed = jvp(lambda a: a * jvp(lambda b: a * b, (a,), (kind.ones,))[1], (x,), (kind.ones,))[1]
    same(perturbed, 2 * kind.data(0.4))
    with pytest.raises(ValueError, match="one tangent for each primal"):
        jvp(function, nodes, (kind.ones,))


def test_products_with_jacobian_and_hessian(kind):
    def function(a, b):
        y = (a * a * b).tanh()
        return y.sum() if getattr(y.data, "ndim", 0) else y

    a, b = kind(0.3), kind(-0.5)
    ta, tb = kind.torch(0.3), kind.torch(-0.5)

    def theirs(a, b):
        return (a * a * b).tanh().sum()

    value, slopes = vjp(function, (a, b))
    same(value, theirs(ta, tb), 1e-12)
    for ours, wanted in zip(slopes, torch.autograd.grad(theirs(ta, tb), (ta, tb))):
        same(ours, wanted, 1e-12)
    v = (kind.data(1.0), kind.data(2.0))
    _, wanted = torch.autograd.functional.hvp(theirs, (ta, tb), tuple(torch.tensor(x, dtype=torch.float64) for x in v))
    for ours, t in zip(hvp(function, (a, b), v)[1], wanted):
        same(ours, t, 1e-12)
    for ours, t in zip(micrograd.jacobian(function, (a, b)), torch.autograd.functional.jacobian(theirs, (ta, tb))):
        same(ours, t, 1e-12)
    hessian, wanted = micrograd.hessian(function, (a, b)), torch.autograd.functional.hessian(theirs, (ta, tb))
    for row, their_row in zip(hessian, wanted):
        for ours, t in zip(row, their_row):
            same(ours, t, 1e-12)
    assert kind.unset(a) and kind.unset(b)


# ------------------------------------------------------------------------------------------- gradient checking
def test_gradcheck_passes_what_is_right_and_catches_what_is_wrong(kind):
    a, b = kind(0.7), kind(1.9)
    assert gradcheck(lambda a, b: (a * b).tanh() / b, (a, b)) and gradgradcheck(lambda a, b: (a * b).tanh() / b, (a, b))
    assert gradcheck(lambda a, b: (a * b, a - b), (a, b)) and gradcheck(lambda a: a * 2.0, a)

    def wrong(*rules):
        return lambda *xs: micrograd.op(*rules)(lambda x: x * x if len(rules) == 1 else None)(*xs)

    for rule in (lambda g, x, y: x * g, lambda g, x, y: 2 * x, lambda g, x, y: g * (2.002 * x)):
        with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0, entry 0, with respect to input 0"):
            gradcheck(wrong(rule), a)
        assert gradcheck(wrong(rule), a, raise_exception=False) is False
    assert gradcheck(wrong(lambda g, x, y: 2 * x * g), a)
    with pytest.raises(GradcheckError):
        gradgradcheck(wrong(lambda g, x, y: g * 2 * x.detach() if isinstance(x, Value) else g * 2 * x), a)
    with pytest.raises(ValueError, match="nothing to check"):
        gradcheck(lambda x: x.exp(), kind(1.0, requires_grad=False))


def test_gradcheck_takes_functions_that_differentiate_themselves(kind):
    def slope(x):
        return grad(x.tanh() * x, x, kind.ones, create_graph=True)[0]

    assert gradcheck(slope, kind(0.3)) and gradgradcheck(slope, kind(0.3))


def test_gradcheck_at_a_kink_warns_and_fails(kind):
    with pytest.warns(UserWarning, match="kink"), pytest.raises(GradcheckError):
        gradcheck(lambda x: x.relu(), kind(0.0))
    assert gradcheck(lambda x: x.relu(), kind(1.0))


# --------------------------------------------------------------------------------------------------- checkpoint
def test_checkpoint_changes_no_gradient(kind):
    def block(w, a):
        return (a * w).tanh() * a

    def gradients(wrap):
        x, w = kind(0.5), kind(0.7)
        y = wrap(lambda a: wrap(lambda b: block(w, b), block(w, a)), x) + x
        back(kind, y)
        return x.grad, w.grad

    plain, again = gradients(lambda f, *xs: f(*xs)), gradients(checkpoint)
    same(again[0], plain[0])
    same(again[1], plain[1])
    x = kind(0.5)
    (g,) = grad(checkpoint(lambda a: a * a * a, x), x, kind.ones, create_graph=True)
    same(grad(g, x, kind.ones)[0], 6 * kind.data(0.5))
    same(jvp(lambda a: checkpoint(lambda b: b * b, a), (x.detach(),), (kind.ones,))[1], 2 * kind.data(0.5))
    with no_grad():
        assert not checkpoint(lambda a: a * a, x).requires_grad
    a, b = checkpoint(lambda a, k: (a * k, a + k), x, 3.0)
    back(kind, a * b)
    same(x.grad, 6 * kind.data(0.5) + 9)


def test_checkpoint_draws_the_same_random_numbers_again(kind):
    x = kind(2.0)
    random.seed(1)
    y = checkpoint(lambda a: a * random.random(), x)
    factor = np.ravel(y.data)[0] / 2.0
    after = random.random()
    back(kind, y)
    assert close(float(np.ravel(x.grad)[0]), float(factor), 1e-15)
    random.seed(1)
    random.random()
    assert random.random() == after


# ------------------------------------------------------------------------------------------- anomalies
def test_the_first_bad_value_names_operation_and_line(kind):
    with pytest.raises(RuntimeError, match=r"log gave nan.*made in .*test_shared\.py line \d+"), detect_anomaly():
        kind(-5.0, label="x").log()
    with np.errstate(all="ignore"), pytest.raises(RuntimeError, match="div gave inf|div gave -?inf"), detect_anomaly():
        kind(1.0) / (kind(1.0) * 0.0)


def test_the_first_bad_gradient_names_operation_and_line(kind):
    x = kind(0.0)
    with pytest.raises(RuntimeError,
            match=r"backward rule of sqrt.*gave inf to its input.*test_shared\.py line \d+"), detect_anomaly():
        back(kind, (x * 0.0).sqrt())
    with detect_anomaly():
        back(kind, (x * x + 1.0).tanh() * 2.0)
    assert (kind(1.0) * 2).requires_grad


# -------------------------------------------------------------------------------------- operations of one's own
def test_an_operation_by_hand_as_in_micrograd(kind):
    def sin(x):
        out = kind.cls(np.sin(x.data), (x,), "sin")

        def back():
            x.grad = x.grad + np.cos(x.data) * out.grad

        out._backward = back
        return out

    x = kind(1.0)
    y = sin(x)
    assert y._op == "sin" and y._prev == (x,) and y.requires_grad and not y.is_leaf
    back(kind, y * 2)
    same(x.grad, 2 * np.cos(kind.data(1.0)))
    with pytest.raises(RuntimeError, match="hand-written _backward"):
        grad(sin(x), x, kind.ones, create_graph=True)
    with no_grad():
        assert not sin(x).requires_grad
    assert not sin(kind(1.0, requires_grad=False)).requires_grad


def test_one_node_pushed_by_hand(kind):
    a, b = kind(2.0), kind(3.0)
    y = a * b
    a.grad, b.grad, y.grad = 0.0 * np.asarray(kind.ones), 0.0 * np.asarray(kind.ones), kind.ones
    y._backward()
    same(a.grad, kind.data(3.0))
    same(b.grad, kind.data(2.0))


def test_an_operation_by_decorator(kind):
    @micrograd.op(lambda g, x, y: g * (3 * x * x))
    def cube(x):
        return x * x * x

    check(kind, cube, lambda x: x ** 3, 2.0)
    assert gradcheck(cube, kind(0.7)) and gradgradcheck(cube, kind(0.7))
    same(jvp(cube, (kind(2.0, requires_grad=False),), (kind.ones,))[1], 3 * kind.data(2.0) ** 2)
    assert cube(kind(2.0)).op is cube and not cube(kind(2.0, requires_grad=False)).requires_grad


# ------------------------------------------------------------------------------------------- copies and readers
def test_leaves_are_copied_and_pickled_and_inner_nodes_refuse(kind):
    x = kind(2.0, label="w")
    back(kind, x * 3)
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(twin) is kind.cls and twin is not x and twin.label == "w" and twin.requires_grad and twin.is_leaf
        same(twin, x)
        same(twin.grad, x.grad)
    fresh = copy.deepcopy(kind(2.0))
    assert kind.unset(fresh) and not copy.copy(kind(2.0, requires_grad=False)).requires_grad
    for refuse in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="detach"):
            refuse(x * 2)


def test_conversions(kind):
    x = kind.cls(2.5)
    assert (float(x), int(x), x.item(), f"{x:.3f}", math.sqrt(x), round(x, 1)) == (2.5, 2, 2.5, "2.500", 2.5 ** 0.5,
        2.5)
    assert type(x.item()) is float and type(float(x)) is float


def test_pictures_and_words(kind):
    x, w = kind(2.0, label="x"), kind(3.0, label="w")
    y = (x * w).tanh()
    for when in ("before", "after"):
        for text in (str(micrograd.draw_dot(y)), str(micrograd.to_mermaid(y))):
            assert "tanh" in text and "x" in text and "w" in text, when
        if when == "before":
            back(kind, y, retain_graph=True)
    if np.size(y.data) == 1:                                                     # words are for one number
        assert "tanh" in str(micrograd.explain(y))
    before = x.grad
    micrograd.draw_dot(y)
    assert x.grad is before
    back(kind, y)                                                                # drawing kept and freed nothing


def test_a_wrapped_node_is_taken_by_its_number(kind):
    x = kind(2.0)
    twin = kind.cls(x * 3)
    assert twin.is_leaf and twin.requires_grad and not isinstance(twin.data, Value)
    same(twin, 3 * kind.data(2.0))
