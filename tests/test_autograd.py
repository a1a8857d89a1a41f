"""Derivatives as functions, of any order and in both directions, each compared with PyTorch's."""

from __future__ import annotations

import asyncio
import gc
import inspect
import math
import random
import threading
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest
import torch
from conftest import close, slope, torch_leaf
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import micrograd
from micrograd import (
    Value,
    checkpoint,
    detect_anomaly,
    enable_grad,
    engine,
    grad,
    gradcheck,
    gradgradcheck,
    hessian,
    hvp,
    is_grad_enabled,
    jacobian,
    jvp,
    no_grad,
    op,
    ops,
    set_grad_enabled,
    vjp,
)
from micrograd.autograd import GradcheckError

inf, nan = math.inf, math.nan


# -------------------------------------------------------------------------- the worked examples
def test_the_slope_of_a_parabola():
    w = Value(3.0)
    (w ** 2 + 2 * w).backward()
    assert w.grad == 8.0


def test_a_squared_line():
    x, w, b = Value(2.0, requires_grad=False), Value(3.0), Value(1.0)
    ((w * x + b) ** 2).backward()
    assert (w.grad, b.grad) == (28.0, 14.0)


def test_two_layers():
    w1, w2, x = Value(2.0), Value(3.0), 1.0
    loss = (w2 * (w1 * x).relu() - 1) ** 2
    loss.backward()
    assert (w2.grad, w1.grad) == (20.0, 30.0)


def test_twenty_sigmoids_let_the_gradient_vanish():
    def squash(x):
        for _ in range(20):
            x = x.sigmoid()
        return x

    x, t = Value(0.0), torch_leaf(0.0)
    squash(x).backward()
    squash(t).backward()
    assert 0.5e-13 < x.grad < 2e-13 and close(x.grad, t.grad.item(), 1e-12)


def test_twenty_factors_of_three_let_it_explode_exactly():
    x = y = Value(0.7)
    for _ in range(20):
        y = y * 3
    y.backward()
    assert x.grad == 3.0 ** 20 == 3486784401.0


def test_two_half_weighted_micro_batches_are_one_batch():
    batch = [(1.0, 2.0), (2.0, 1.0), (3.0, 6.0), (4.0, 8.0)]

    def loss(w, part):
        return sum((w * x - y) ** 2 for x, y in part) / len(part)

    whole, halves = Value(0.5), Value(0.5)
    loss(whole, batch).backward()
    for part in (batch[:2], batch[2:]):
        (loss(halves, part) / 2).backward()
    assert whole.grad == -19.5 and halves.grad == -19.5


# ------------------------------------------------------------------------- random scalar graphs
SMOOTH = {                                                  # f is micrograd or torch; all stay in their domain
    "a + b": lambda f, a, b: a + b,
    "a - b": lambda f, a, b: a - b,
    "a * b": lambda f, a, b: a * b,
    "a / b": lambda f, a, b: a / (b * b + 1),
    "number - a": lambda f, a, b: 2.5 - a,
    "number / a": lambda f, a, b: 3 / (2 + a * a),
    "-a": lambda f, a, b: -a,
    "a ** 3": lambda f, a, b: a ** 3,
    "a ** b": lambda f, a, b: (f.sigmoid(a) + 0.5) ** b,
    "2 ** a": lambda f, a, b: 2 ** f.sin(a),
    "tanh": lambda f, a, b: f.tanh(a),
    "exp": lambda f, a, b: f.exp(f.tanh(a)),
    "log": lambda f, a, b: f.log(a * a + 1),
    "sqrt": lambda f, a, b: f.sqrt(a * a + 0.5),
    "sin": lambda f, a, b: f.sin(a),
    "cos": lambda f, a, b: f.cos(a),
    "atan": lambda f, a, b: f.atan(a),
    "erf": lambda f, a, b: f.erf(a),
    "expm1": lambda f, a, b: f.expm1(f.cos(a)),
    "log1p": lambda f, a, b: f.log1p(f.sigmoid(a)),
}
KINKED = {
    "relu": lambda f, a, b: f.relu(a),
    "abs": lambda f, a, b: f.abs(a),
    "maximum": lambda f, a, b: f.maximum(a, b),
    "minimum": lambda f, a, b: f.minimum(a, b),
    "clamp": lambda f, a, b: f.clamp(a, -1.0, 1.0),
    "where": lambda f, a, b: f.where(a > b, a * b, a + b),
}
ANY = SMOOTH | KINKED


@st.composite
def programs(draw, steps=SMOOTH, length=8):
    """(numbers to start from, instructions): each makes a node of two earlier ones, mostly recent ones."""
    point = draw(st.lists(st.integers(-16, 16).map(lambda n: n / 8), min_size=1, max_size=3))
    reach = st.integers(0, 3) | st.integers(0, 20)
    return point, draw(st.lists(st.tuples(st.sampled_from(sorted(steps)), reach, reach), min_size=1, max_size=length))


def run(f, program, leaves):
    """The last node of a program; it depends on every leaf."""
    nodes = list(leaves)
    for name, i, j in program[1]:
        nodes.append(ANY[name](f, nodes[-1 - i % len(nodes)], nodes[-1 - j % len(nodes)]))
    return nodes[-1] + sum(leaves) * 0.5


def torch_run(program):
    leaves = [torch_leaf(x) for x in program[0]]
    y = run(torch, program, leaves)
    assume(abs(y.item()) < 1e4)
    first = torch.autograd.grad(y, leaves, create_graph=True)
    assume(all(abs(g.item()) < 1e4 for g in first))
    return y, leaves, first


def close_enough(a, b, rel=1e-9, scale=1.0):
    return close(a, b, rel, rel * scale)


@given(programs(ANY))
@settings(max_examples=150)
def test_reverse_mode_is_forward_mode_is_pytorch(program):
    y, leaves, first = torch_run(program)
    ours = [Value(x) for x in program[0]]
    value = run(micrograd, program, ours)
    value.backward()
    assert close_enough(value.data, y.item())
    for i, (x, g) in enumerate(zip(ours, first)):
        assert close_enough(x.grad, g.item(), scale=1 + abs(g.item()))
        direction = [float(i == j) for j in range(len(ours))]
        _, pushed = jvp(lambda *xs: run(micrograd, program, xs), program[0], direction)
        assert close_enough(pushed, x.grad)
    assert grad(run(micrograd, program, ours), ours) == tuple(x.grad for x in ours)


@given(programs(SMOOTH))
@settings(max_examples=100)
def test_reverse_mode_is_central_differences(program):
    torch_run(program)
    _, gradients = vjp(lambda *xs: run(micrograd, program, xs), tuple(program[0]))
    for i, g in enumerate(gradients):
        numeric = slope(lambda *xs: run(ops_on_floats, program, xs), program[0], i)
        assert close_enough(g, numeric, 1e-6, 1 + abs(g))


class ops_on_floats:
    """The table on plain floats, without a graph."""


for _name, _operation in ops.TABLE.items():
    setattr(ops_on_floats, _name, staticmethod(_operation))


@given(programs(ANY, length=6))
@settings(max_examples=100)
def test_second_derivatives_are_pytorchs(program):
    y, leaves, first = torch_run(program)
    theirs = [torch.autograd.grad(g, leaves, retain_graph=True, allow_unused=True)
              if g.requires_grad else [None] * len(leaves) for g in first]
    theirs = [[0.0 if h is None else h.item() for h in row] for row in theirs]
    assume(all(abs(h) < 1e6 for row in theirs for h in row))

    def function(*xs):
        return run(micrograd, program, xs)

    ours = hessian(function, tuple(program[0]))
    for i, (row, expected) in enumerate(zip(ours, theirs)):
        for a, b in zip(row, expected):
            assert close_enough(a, b, scale=1 + abs(b))
        if any(not close_enough(theirs[j][i], b, scale=1 + abs(b)) for j, b in enumerate(expected)):
            continue                                        # PyTorch's convention at a ** 0 is not symmetric
        direction = tuple(float(i == j) for j in range(len(leaves)))
        _, product = hvp(function, tuple(program[0]), direction)
        for a, b in zip(product, row):
            assert close_enough(a, b, scale=1 + abs(b))
        if set(name for name, _, _ in program[1]) <= set(SMOOTH):
            _, forward = jvp(lambda *xs: vjp(function, xs, create_graph=True)[1], tuple(program[0]), direction)
            _, twice = jvp(lambda *xs: jvp(function, xs, direction)[1], tuple(program[0]), direction)
            assert all(close_enough(a, b, scale=1 + abs(b)) for a, b in zip(forward, row))
            assert close_enough(twice, row[i], scale=1 + abs(row[i]))


@given(programs(ANY), st.integers(0, 7))
@settings(max_examples=50)
def test_a_checkpoint_changes_no_gradient(program, cut):
    torch_run(program)

    def whole(*xs):
        return run(micrograd, program, xs)

    def cut_in_two(*xs):
        head = (program[0], program[1][:cut] or program[1])
        middle = checkpoint(lambda *ys: run(micrograd, head, ys), *xs)
        return checkpoint(lambda a, *ys: checkpoint(whole, *ys) * a, middle, *xs)

    def plain(*xs):
        head = (program[0], program[1][:cut] or program[1])
        return whole(*xs) * run(micrograd, head, xs)

    expected, found = ([Value(x) for x in program[0]] for _ in range(2))
    plain(*expected).backward()
    cut_in_two(*found).backward()
    assert all(close_enough(a.grad, b.grad, 1e-12, 1 + abs(b.grad)) for a, b in zip(found, expected))


ACTIONS = ("forward", "forward without graph", "forward detached", "forward from shared", "backward", "backward",
           "backward and free", "zero", "zero to None", "share anew")


@given(programs(ANY, length=4), st.lists(st.sampled_from(ACTIONS), min_size=3, max_size=14))
@settings(max_examples=200)
def test_whatever_is_called_in_whatever_order_leaves_hold_what_pytorchs_hold(program, actions):
    def play(f, leaves, without):
        """After each action: the gradients, or the fact that it was refused."""
        shared = leaves[0] * leaves[0]
        root = shared * leaves[0]
        for action in actions:
            try:
                if action == "forward":
                    root = run(f, program, leaves) * leaves[0]
                elif action == "forward without graph":
                    with without():
                        root = run(f, program, leaves) * leaves[0]
                elif action == "forward detached":
                    root = run(f, program, leaves).detach() * leaves[0] * leaves[-1]
                elif action == "forward from shared":
                    root = run(f, program, leaves) * shared
                elif action == "share anew":
                    shared = leaves[-1] * leaves[-1]
                elif action == "backward":
                    root.backward(retain_graph=True)
                elif action == "backward and free":
                    root.backward(retain_graph=False)
                elif action == "zero":
                    for x in leaves:
                        x.zero_grad() if isinstance(x, Value) else x.grad is None or x.grad.zero_()
                else:
                    for x in leaves:
                        x.grad = None
            except RuntimeError:
                for x in leaves:                # a refused backward: PyTorch may have got half-way, we have not
                    x.grad = None
                yield "refused"
            else:
                yield [0.0 if x.grad is None else float(x.grad) for x in leaves]

    assume(all(abs(g.item()) < 1e4 for g in torch_run(program)[2]))
    ours = play(micrograd, [Value(x) for x in program[0]], no_grad)
    theirs = play(torch, [torch_leaf(x) for x in program[0]], torch.no_grad)
    for action, a, b in zip(actions, ours, theirs):
        if "refused" in (a, b):
            assert a == b, (action, a, b)
        else:
            assert all(close_enough(x, y, scale=1 + abs(y)) for x, y in zip(a, b)), (action, a, b)


# ----------------------------------------------------------------------------------------- grad
def test_grad_gives_a_tuple_and_leaves_no_trace():
    x, y = Value(2.0), Value(5.0)
    inner = x * y
    z = inner * x
    x.grad, inner.grad = 7.0, 8.0
    assert grad(z, (x, y)) == (20.0, 4.0) and grad(z, [x]) == (20.0,) and grad(z, x) == (20.0,)
    assert grad(z, (inner, x, inner)) == (2.0, 20.0, 2.0) and grad(z, z) == (1.0,)
    assert (x.grad, y.grad, inner.grad, z.grad) == (7.0, 0.0, 8.0, 0.0) and y.grad is engine.unset
    assert grad(z, x, 10.0) == (200.0,) and grad(z, x, grad_output=Value(10.0)) == (200.0,)


def test_an_input_that_was_not_used_is_an_error_None_or_zero():
    x, y = Value(2.0), Value(5.0, label="why")
    z = x * x
    with pytest.raises(RuntimeError, match=r"input 1 \('why'\).*not used.*allow_unused=True"):
        grad(z, (x, y))
    assert grad(z, (x, y), allow_unused=True) == (4.0, None)
    assert grad(z, (x, y), materialize_grads=True) == (4.0, 0.0)
    zero = grad(z, (x, y), create_graph=True, materialize_grads=True)[1]
    assert zero.data == 0.0 and not zero.requires_grad
    assert x.grad is engine.unset and y.grad is engine.unset


def test_grad_refuses_what_is_no_node_and_says_so():
    x = Value(2.0)
    with pytest.raises(RuntimeError, match="input 0 of grad must be a node that requires a gradient, got 3.0"):
        grad(x * x, 3.0)
    with pytest.raises(RuntimeError, match=r"input 1 \('c'\) of grad must be a node that requires a gradient"):
        grad(x * x, (x, Value(1.0, requires_grad=False, label="c")))
    with pytest.raises((RuntimeError, TypeError), match="3.0"):
        grad(3.0, x)
    with pytest.raises(RuntimeError, match="does not depend on anything that requires a gradient"):
        grad(Value(1.0, requires_grad=False), x)


def test_grad_keeps_or_frees_the_graph_as_backward_does():
    x = Value(3.0)
    y = x * x
    assert grad(y, x) == grad(y, x, retain_graph=True) == grad(y, x, retain_graph=False) == (6.0,)
    with pytest.raises(RuntimeError, match="freed"):
        grad(y, x)


def test_the_second_derivative_of_a_line_says_that_the_first_depends_on_nothing():
    x = Value(3.0)
    (g,) = grad(2 * x, x, create_graph=True)
    assert g.data == 2.0 and not g.requires_grad
    with pytest.raises(RuntimeError, match="does not depend on anything"):
        grad(g, x)


def test_derivatives_of_any_order():
    x = Value(2.0)
    y, found = x ** 5, []
    for _ in range(6):
        (y,) = grad(y, x, create_graph=True, materialize_grads=True)
        found.append(y.data)
        if not y.requires_grad:
            break
    assert found == [80.0, 160.0, 240.0, 240.0, 120.0, 0.0]


def test_the_gradient_that_arrives_may_be_a_node_too():
    x, v = Value(3.0), Value(5.0)
    (g,) = grad(x * x, x, v, create_graph=True)
    assert g.data == 30.0 and grad(g, (x, v)) == (10.0, 6.0)


def test_create_graph_decides_also_under_no_grad():
    x = Value(3.0)
    y = x * x * x
    with no_grad():
        (g,) = grad(y, x, create_graph=True)
        assert not is_grad_enabled()
    assert g.requires_grad and grad(g, x) == (18.0,)


def test_grad_runs_hooks_as_backward_does():
    x = Value(2.0)
    m = x * x
    m.register_hook(lambda g: g * 10)
    t = torch_leaf(2.0)
    n = t * t
    n.register_hook(lambda g: g * 10)
    for ours, theirs in ((x, t), (m, n)):
        assert grad(m * 3, ours)[0] == torch.autograd.grad(n * 3, theirs, retain_graph=True)[0].item()


def test_the_graph_of_a_gradient_can_be_drawn_and_differentiated_like_any_other():
    x = Value(2.0, label="x")
    (g,) = grad(x ** 3, x, create_graph=True)
    assert g.data == 12.0 and x in engine.topological_order(g)[1]
    assert "12" in str(micrograd.draw_dot(g))


def test_no_reference_cycle_is_left_behind(no_collector):
    kept = []

    def function(x):
        y = x * x
        kept.append(weakref.ref(y))
        return y * y * x

    x = Value(3.0)
    (g,) = grad(function(x), x, create_graph=True)
    grad(g, x)
    del g
    for derivative in (lambda: vjp(function, (3.0,)), lambda: jvp(function, (3.0,), (1.0,)),
                       lambda: jacobian(function, (3.0,)), lambda: hessian(function, (3.0,)),
                       lambda: hvp(function, (3.0,), (1.0,)), lambda: gradcheck(function, Value(3.0)),
                       lambda: checkpoint(function, x).backward(), lambda: grad(checkpoint(function, x), x)):
        derivative()
    assert kept and all(watch() is None for watch in kept)


# --------------------------------------------------------------- jacobian, hessian, products
def rosenbrock(x, y):
    return 100 * (y - x ** 2) ** 2 + (1 - x) ** 2


def test_jacobian_and_hessian_are_pytorchs():
    def curve(f):
        return lambda x, y: (x * y, f.sin(x) / y, x ** 2)

    point = (0.7, -1.3)
    leaves = tuple(torch_leaf(x) for x in point)
    rows = torch.autograd.functional.jacobian(curve(torch), leaves)
    for ours, theirs in zip(jacobian(curve(micrograd), point), rows):
        assert all(close(a, b.item()) for a, b in zip(ours, theirs))
    matrix = torch.autograd.functional.hessian(rosenbrock, leaves)
    for ours, theirs in zip(hessian(rosenbrock, point), matrix):
        assert all(close(a, b.item()) for a, b in zip(ours, theirs))
    assert hessian(rosenbrock, (1.0, 1.0)) == ((802.0, -400.0), (-400.0, 200.0))


def test_products_with_jacobian_and_hessian_are_pytorchs():
    point, direction = (0.7, -1.3), (2.0, -0.5)
    leaves, along = tuple(map(torch_leaf, point)), tuple(torch.tensor(d, dtype=torch.float64) for d in direction)
    value, product = jvp(rosenbrock, point, direction)
    expected = torch.autograd.functional.jvp(rosenbrock, leaves, along)
    assert close(value, expected[0].item()) and close(product, expected[1].item())
    value, parts = vjp(rosenbrock, point, 3.0)
    expected = torch.autograd.functional.vjp(rosenbrock, leaves, torch.tensor(3.0, dtype=torch.float64))
    assert close(value, expected[0].item()) and all(close(a, b.item()) for a, b in zip(parts, expected[1]))
    value, parts = hvp(rosenbrock, point, direction)
    expected = torch.autograd.functional.hvp(rosenbrock, leaves, along)
    assert close(value, expected[0].item()) and all(close(a, b.item()) for a, b in zip(parts, expected[1]))


def test_one_input_without_a_tuple_gives_results_without_a_tuple():
    assert jacobian(lambda x: x * x, 3.0) == 6.0 and hessian(lambda x: x ** 3, 3.0) == 18.0
    assert vjp(lambda x: x * x, 3.0) == (9.0, 6.0) and jvp(lambda x: x * x, 3.0, 2.0) == (9.0, 12.0)
    assert hvp(lambda x: x ** 3, 3.0, 2.0) == (27.0, 36.0)


def test_inputs_may_be_nested_and_results_have_their_structure():
    def network(weights, bias):
        (a, b), c = weights
        return a * b * c + bias

    inputs = (([2.0, 3.0], 4.0), 1.0)
    assert vjp(network, inputs) == (25.0, (([12.0, 8.0], 6.0), 1.0))
    assert jacobian(network, inputs) == (([12.0, 8.0], 6.0), 1.0)
    assert jvp(network, inputs, (([1.0, 0.0], 0.0), 10.0)) == (25.0, 22.0)
    assert hessian(network, inputs)[0][0][0] == (([0.0, 4.0], 3.0), 0.0)
    assert jacobian(lambda xs: [xs[0] * xs[1], xs[0]], ([2.0, 3.0],)) == [([3.0, 2.0],), ([1.0, 0.0],)]


def test_numbers_of_every_kind_and_nodes_are_inputs():
    for three in (3, 3.0, np.float64(3), Value(3.0), Value(3.0, requires_grad=False)):
        value, (slope_there,) = vjp(lambda x: x * x, (three,))
        assert float(value) == 9.0 and float(slope_there) == 6.0
    assert jvp(lambda x: x * x, (3,), (np.float64(2),)) == (9.0, 12.0)


def test_constant_functions_have_derivative_zero():
    assert jacobian(lambda x: 2.0, (3.0,)) == (0.0,) and jacobian(lambda x: 2.0, (inf,)) == (0.0,)
    assert hessian(lambda x, y: 2.0, (3.0, 1.0)) == ((0.0, 0.0), (0.0, 0.0))
    assert hessian(lambda x, y: x + y, (3.0, 1.0)) == ((0.0, 0.0), (0.0, 0.0))
    assert vjp(lambda x: 2.0, (3.0,)) == (2.0, (0.0,)) and jvp(lambda x: 2.0, (3.0,), (1.0,)) == (2.0, 0.0)
    assert hvp(lambda x: 2.0, (3.0,), (1.0,)) == (2.0, (0.0,)) and hvp(lambda x: x, (3.0,), (1.0,)) == (3.0, (0.0,))
    assert jvp(lambda x: x, (3.0,), (2.0,)) == (3.0, 2.0) and vjp(lambda x: x, (3.0,)) == (3.0, (1.0,))


def test_several_outputs_take_a_gradient_each():
    assert vjp(lambda x, y: (x * y, x), (2.0, 3.0), (10.0, 1.0)) == ((6.0, 2.0), (31.0, 20.0))
    assert jvp(lambda x, y: (x * y, x), (2.0, 3.0), (1.0, 0.0)) == ((6.0, 2.0), (3.0, 1.0))
    for v in ((10.0,), 10.0, (10.0, 1.0, 1.0), ()):
        with pytest.raises(ValueError, match=r"vjp takes one v for each output, got \d for 2"):
            vjp(lambda x, y: (x * y, x), (2.0, 3.0), v)


def test_derivatives_work_under_no_grad_and_leave_it_on():
    with no_grad():
        assert vjp(lambda x: x * x, (3.0,))[1] == jacobian(lambda x: x * x, (3.0,)) == (6.0,)
        assert jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)
        assert hessian(lambda x: x ** 3, (3.0,)) == ((18.0,),) and hvp(lambda x: x ** 3, (3.0,), (1.0,))[1] == (18.0,)
        assert not is_grad_enabled()


def test_tangents_must_match_primals():
    with pytest.raises(ValueError, match="one tangent for each primal, got 2 for 1"):
        jvp(lambda x: x, (3.0,), (1.0, 2.0))


def test_batches_are_differentiated_by_the_same_functions():
    matrix, point = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0])

    def inputs():
        return micrograd.Tensor(point), Value(3.0)

    x, v = inputs()
    assert jacobian(lambda x: x @ matrix, x).tolist() == matrix.T.tolist()
    assert hessian(lambda x: (x ** 3).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert hessian(lambda x: x.sum(), x).tolist() == hessian(lambda x: 2.0, x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert hvp(lambda x: (x ** 3).sum(), x, np.array([1.0, 0.0]))[1].tolist() == [6.0, 0.0]
    assert vjp(lambda x: x @ matrix, x, np.ones(2))[1].tolist() == [3.0, 7.0]
    assert np.array(jvp(lambda x: x @ matrix, (point,), (np.array([1.0, 0.0]),))[1]).tolist() == [1.0, 2.0]
    (gx, gv) = grad((x * v * v).sum(), (x, v), create_graph=True)
    assert gx.data.tolist() == [9.0, 9.0] and gv.data == 18.0
    (xx, xv) = grad(gv, (x, v))
    assert xx.tolist() == [6.0, 6.0] and xv == 6.0
    assert x.grad is None and v.grad is engine.unset
    assert gradcheck(lambda x, v: (x * v).tanh() @ matrix, inputs()) and gradgradcheck(lambda x, v: x.exp() / v, inputs())


def test_a_checkpoint_of_batches_changes_no_gradient():
    def gradients(wrap):
        x, w = micrograd.Tensor([0.1, -0.2]), micrograd.Tensor([[1.0, 2.0], [3.0, 4.0]])
        (wrap(lambda a: (a @ w).tanh() * w[0], x) * x).sum().backward()
        return x.grad.tolist(), w.grad.tolist()

    assert gradients(checkpoint) == gradients(lambda function, *inputs: function(*inputs))


# --------------------------------------------------------------------------------- forward mode
def test_forward_mode_walks_forward_only(monkeypatch):
    def refuse(*anything, **more):
        raise AssertionError("a walk back")

    monkeypatch.setattr(engine, "chain_rule", refuse)
    monkeypatch.setattr(micrograd.engine, "chain_rule", refuse)
    assert jvp(rosenbrock, (2.0, 1.0), (1.0, 0.0)) == (901.0, 2402.0)


def test_nested_forward_mode_does_not_confuse_its_perturbations():
    def inner(x, y):
        return jvp(lambda y: x * y, (y,), (1.0,))[1]

    assert jvp(lambda x: x * inner(x, 5.0), (3.0,), (1.0,)) == (9.0, 6.0)
    assert jvp(lambda x: x * inner(x, x), (3.0,), (1.0,)) == (9.0, 6.0)
    assert jvp(lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,)) == (1.0, 1.0)
    assert jvp(lambda x: jvp(lambda y: jvp(lambda z: x * y * z * z, (y,), (1.0,))[1], (x,), (1.0,))[1],
               (3.0,), (1.0,)) == (36.0, 24.0)              # x * y * 2y, by y at x: 4x², by x: 8x


def test_forward_over_reverse_and_reverse_over_forward_agree():
    def by_reverse(x):
        return grad(x ** 3 * x.sin(), x, create_graph=True)[0]

    def by_forward(x):
        return jvp(lambda y: y ** 3 * y.sin(), (x,), (1.0,))[1]

    x = Value(0.7)
    forward_over_reverse = jvp(by_reverse, (x,), (1.0,))[1]
    (reverse_over_forward,) = grad(by_forward(x), x)
    (reverse_over_reverse,) = grad(by_reverse(x), x)
    forward_over_forward = jvp(by_forward, (x,), (1.0,))[1]
    expected = 6 * 0.7 * math.sin(0.7) + 6 * 0.7 ** 2 * math.cos(0.7) - 0.7 ** 3 * math.sin(0.7)
    for found in (forward_over_reverse, reverse_over_forward, reverse_over_reverse, forward_over_forward):
        assert close(float(found), expected, 1e-14)


# ----------------------------------------------------------------------------------- gradcheck
@pytest.mark.parametrize("operation", [o for o in ops.TABLE.values() if any(o.rules)], ids=lambda o: o.name)
def test_every_line_of_the_table_passes_gradcheck_and_gradgradcheck(operation):
    inputs = tuple(Value(0.4 + 0.3 * i) if rule else True for i, rule in enumerate(operation.rules))
    assert gradcheck(operation, inputs) and gradgradcheck(operation, inputs)


WRONG = {
    "x g for exp": (op(lambda g, x, y: x * g)(lambda x: ops.exp(x)), (2.0,)),
    "plus for the subtrahend": (op(lambda g, a, b, y: g, lambda g, a, b, y: g)(lambda a, b: a - b), (2.0, 1.0)),
    "deaf to what arrives": (op(lambda g, x, y: 2 * x + 0 * g)(lambda x: x * x), (1.5,)),
    "off by a thousandth": (op(lambda g, x, y: g * (2.002 * x))(lambda x: x * x), (2.0,)),
    "off by a thousandth, small": (op(lambda g, x, y: g * (2.002 * x))(lambda x: x * x), (0.01,)),
    "wrong sign": (op(lambda g, x, y: -g * (2 * x))(lambda x: x * x), (2.0,)),
    "one of two inputs": (op(lambda g, a, b, y: g * b, lambda g, a, b, y: g * b)(lambda a, b: a * b), (2.0, 3.0)),
    "nan": (op(lambda g, x, y: g * nan)(lambda x: x * x), (2.0,)),
}


@pytest.mark.parametrize("function, point", WRONG.values(), ids=WRONG)
def test_gradcheck_catches(function, point):
    inputs = tuple(map(Value, point))
    assert gradcheck(function, inputs, raise_exception=False) is False
    with pytest.raises(GradcheckError, match="numeric .*analytic "):
        gradcheck(function, inputs)
    assert all(x.grad is engine.unset for x in inputs)


def test_gradcheck_reports_input_index_and_both_values():
    function = WRONG["plus for the subtrahend"][0]
    with pytest.raises(GradcheckError, match=r"output 0.*input 1 \('b'\).*numeric -1.*analytic 1"):
        gradcheck(function, (Value(2.0), Value(1.0, label="b")))
    with pytest.raises(GradcheckError, match="does not multiply by the gradient that arrives"):
        gradcheck(WRONG["deaf to what arrives"][0], Value(1.5))


def test_gradgradcheck_catches_what_is_wrong_in_the_second_derivative_only():
    def detached(x):
        return x.detach() if isinstance(x, Value) else x

    half = op(lambda g, x, y: g * (3 * detached(x) * x))(lambda x: x * x * x)
    assert gradcheck(half, Value(2.0))
    assert gradgradcheck(half, Value(2.0), raise_exception=False) is False
    with pytest.raises(GradcheckError, match="numeric 12.*analytic 6"):
        gradgradcheck(half, Value(2.0))


def test_gradcheck_at_a_kink_warns_and_fails():
    with pytest.warns(UserWarning, match="input 0.*sits on a kink"), \
            pytest.raises(GradcheckError, match="numeric 0.5.*analytic 0"):
        gradcheck(Value.relu, Value(0.0))
    with pytest.warns(UserWarning, match="kink"):
        assert gradcheck(Value.relu, Value(0.0), raise_exception=False) is False
    with pytest.warns(UserWarning, match="kink"):
        gradcheck(Value.abs, Value(0.0), raise_exception=False)     # symmetric: the two sides agree on 0
    assert gradcheck(Value.relu, Value(0.5)) is True


@pytest.mark.parametrize("function", [lambda x: x * x, lambda x: x ** 3, lambda x: x.cos(), lambda x: (-x * x).exp(),
                                      lambda x: 100 * x * x, lambda x: x.sin(), lambda x: x * 0.0, lambda x: x + 1e6,
                                      lambda x: (50 * x).tanh(), lambda x: 1e-3 * x * x, lambda x: x.cosh() * 1e3])
@pytest.mark.parametrize("point", [0.0, 0.3, -2.0])
def test_gradcheck_takes_no_bend_for_a_kink(function, point):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(function, Value(point)) and gradgradcheck(function, Value(point))


def test_gradcheck_needs_something_to_check():
    with pytest.raises(ValueError, match="no input requires a gradient"):
        gradcheck(Value.exp, Value(2.0, requires_grad=False))
    with pytest.raises(ValueError, match="no input requires a gradient"):
        gradcheck(lambda x: x * x, 2.0)
    assert gradcheck(lambda x: Value(3.0, requires_grad=False), Value(1.0)) is True      # both derivatives are 0


def test_gradcheck_refuses_float32():
    x = micrograd.Tensor(np.ones(2, dtype=np.float32))
    with pytest.raises(ValueError, match="float64.*float32"):
        gradcheck(lambda x: x * x, x)


def test_gradcheck_goes_through_every_entry_and_every_output():
    def sums(a, b, c):
        return a * b, b * c.detach()                        # hides the way to c

    inputs = (Value(1.0), Value(2.0), Value(3.0))
    with pytest.raises(GradcheckError, match="output 1.*input 2"):
        gradcheck(sums, inputs)
    assert gradcheck(lambda a, b, c: (a * b, b * c), inputs)
    assert gradcheck(lambda a, b, c: (a * b, b * c), (Value(1.0), 2.0, Value(3.0)))


def test_gradcheck_works_on_operations_made_by_hand():
    def square(x, right=True):
        out = Value(x.data ** 2, (x,), "square")

        def back():
            x.grad += 2 * x.data * (out.grad if right else 1)
        out._backward = back
        return out

    assert gradcheck(square, Value(3.0))
    assert gradcheck(lambda x: square(x, right=False), Value(3.0), raise_exception=False) is False


# --------------------------------------------------------------------------- your own operation
def test_an_operation_of_your_own_works_everywhere():
    @op(lambda g, x, y: g * (3 * x * x))
    def cube(x):
        """x to the third."""
        return x * x * x

    x = Value(2.0)
    y = cube(x)
    y.backward()
    assert (y.data, x.grad, y.op.name, y._op) == (8.0, 12.0, "cube", "cube")
    assert cube(2) == 8.0 and cube(np.array([1.0, 2.0])).tolist() == [1.0, 8.0]
    assert jvp(cube, (2.0,), (10.0,)) == (8.0, 120.0) and hessian(cube, 2.0) == 12.0
    assert gradcheck(cube, x) and gradgradcheck(cube, x)
    assert "cube" in str(micrograd.draw_dot(y))
    t = micrograd.Tensor([1.0, 2.0])
    cube(t).sum().backward()
    assert t.grad.tolist() == [3.0, 12.0]


def test_an_operation_of_your_own_with_two_inputs_and_a_symbol():
    @op(lambda g, a, b, y: g * a / y, lambda g, a, b, y: g * b / y, symbol="hyp")
    def length(a, b):
        return ops.sqrt(a * a + b * b)

    a, b = Value(3.0), Value(4.0)
    y = length(a, b) * 2
    y.backward()
    assert (y.data, a.grad, b.grad, y.inputs[0]._op) == (10.0, 1.2, 1.6, "hyp")
    assert gradgradcheck(length, (a, b))
    half, full = length(a, 4.0), length(3.0, b)
    half.backward()
    full.backward()
    assert half.data == full.data == 5.0 and (a.grad, b.grad) == (1.2 + 0.6, 1.6 + 0.8)


def test_an_operation_of_your_own_needs_a_rule_for_each_input():
    with pytest.raises(TypeError, match="a rule for each of the 2 inputs of product, got 1"):
        @op(lambda g, a, b, y: g * b)
        def product(a, b):
            return a * b


def test_an_operation_made_by_hand_says_what_it_cannot():
    def square(x):
        out = Value(x.data ** 2, (x,), "square")

        def back():
            x.grad += 2 * x.data * out.grad
        out._backward = back
        return out

    x = Value(3.0)
    assert grad(square(x) * 2, x) == (12.0,)
    for derivative in (lambda: grad(square(x), x, create_graph=True), lambda: jvp(square, (x,), (1.0,))):
        with pytest.raises(RuntimeError, match="hand-written _backward.*@micrograd.op"):
            derivative()
    assert x.grad is engine.unset


# ------------------------------------------------------------------------- recording on and off
def test_no_grad_in_every_shape():
    x = Value(2.0)

    @no_grad()
    def called():
        return is_grad_enabled(), (x * x).requires_grad

    @no_grad
    def bare():
        return is_grad_enabled()

    @enable_grad()
    def recursive(depth):
        return is_grad_enabled() and (depth == 0 or no_grad()(recursive)(depth - 1))

    @set_grad_enabled(False)
    def set_off():
        return is_grad_enabled()

    assert is_grad_enabled()                                # decorating alone changes nothing
    assert called() == (False, False) and bare() is False and set_off() is False and is_grad_enabled()
    assert called.__name__ == "called" and bare.__name__ == "bare"
    with no_grad():
        assert not is_grad_enabled() and called() == (False, False) and not is_grad_enabled()
        assert recursive(3) is True and not is_grad_enabled()
        with enable_grad():
            assert is_grad_enabled() and bare() is False and is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()
    mode = no_grad()
    with mode, mode:
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_an_exception_restores_the_mode():
    @no_grad()
    def fails():
        raise KeyError

    for failing in (fails, lambda: no_grad()(fails)(), lambda: fail_inside(no_grad()),
                    lambda: fail_inside(set_grad_enabled(False))):
        with pytest.raises(KeyError):
            failing()
        assert is_grad_enabled()


def fail_inside(mode):
    with mode:
        raise KeyError


def test_set_grad_enabled_as_a_call_a_block_and_again():
    set_grad_enabled(False)
    assert not is_grad_enabled()
    set_grad_enabled(True)
    assert is_grad_enabled()
    with set_grad_enabled(False):
        with set_grad_enabled(True):
            assert is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()
    mode = set_grad_enabled(False)
    for _ in range(2):
        with mode:
            assert not is_grad_enabled()
        assert is_grad_enabled()


def test_a_generator_is_off_inside_and_its_caller_on_between_yields():
    @no_grad()
    def steps():
        try:
            got = yield is_grad_enabled()
            yield got, is_grad_enabled()
        except ValueError:
            yield "caught", is_grad_enabled()
        return "done"

    g = steps()
    assert is_grad_enabled() and next(g) is False and is_grad_enabled()
    assert g.send(5) == (5, False) and is_grad_enabled()
    with pytest.raises(StopIteration, match="done"):
        next(g)
    g = steps()
    next(g)
    assert g.throw(ValueError()) == ("caught", False) and is_grad_enabled()
    g.close()
    assert is_grad_enabled() and inspect.isgeneratorfunction(steps)
    assert [x for x in no_grad()(lambda: (is_grad_enabled() for _ in range(1)))()] == [True]


def test_a_generator_reused_by_its_caller_under_no_grad():
    @enable_grad()
    def steps():
        yield is_grad_enabled()
        yield is_grad_enabled()

    with no_grad():
        seen = [(inside, is_grad_enabled()) for inside in steps()]
    assert seen == [(True, False), (True, False)]


def test_recording_is_a_matter_of_the_thread():
    seen = {}

    def other():
        seen["other"] = is_grad_enabled(), (Value(2.0) * Value(3.0)).requires_grad

    with no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        seen["mine"] = is_grad_enabled(), (Value(2.0) * Value(3.0)).requires_grad
    assert seen == {"other": (True, True), "mine": (False, False)}


def test_threads_train_side_by_side():
    results = {}

    def train(seed):
        w = Value(float(seed))
        for _ in range(200):
            loss = (w * w - 4.0) ** 2
            w.grad = 0.0
            loss.backward()
            with no_grad():
                w -= 0.01 * w.grad
                assert not (w * w).requires_grad
        results[seed] = w.data

    threads = [threading.Thread(target=train, args=(seed,)) for seed in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [1, 2, 3, 4] and all(close(w, 2.0, 1e-6) for w in results.values())


def test_a_thread_that_ends_inside_no_grad_slows_nobody_down():
    thread = threading.Thread(target=lambda: no_grad().__enter__())
    thread.start()
    thread.join()
    gc.collect()
    assert is_grad_enabled() and (Value(2.0) * Value(3.0)).requires_grad
    assert engine._ordinary


def test_modes_are_for_blocks_of_coroutines_too():
    async def work():
        with no_grad():
            return is_grad_enabled()

    assert asyncio.run(work()) is False and is_grad_enabled()


# ------------------------------------------------------------------------------------ checkpoint
def deep(x, n):
    for _ in range(n):
        x = (x * 1.0001).sin()
    return x


def test_checkpoint_gives_the_same_gradients_also_of_parameters_it_closes_over():
    def gradients(wrap):
        w, x = Value(2.0), Value(0.5)
        m = w * 0.3
        y = wrap(lambda a: (a * w).tanh() * m, x) * x
        y.backward()
        return y.data, w.grad, x.grad

    assert gradients(checkpoint) == gradients(lambda function, *inputs: function(*inputs))


def test_checkpoint_nested_twice_and_with_one_input_twice():
    def gradients(wrap):
        w, x = Value(2.0), Value(0.5)
        y = wrap(lambda a, b: wrap(lambda c: (w * c).tanh(), a) * w * b, x, x)
        y.backward()
        y.backward()
        return y.data, w.grad, x.grad

    assert gradients(checkpoint) == gradients(lambda function, *inputs: function(*inputs))


def test_checkpoint_lets_peak_memory_fall(no_collector):
    def peak(run):
        tracemalloc.start()
        x = Value(0.5)
        run(x).backward()
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest, x.grad

    def in_segments(x):
        for _ in range(60):
            x = checkpoint(lambda a: deep(a, 100), x)
        return x

    plain, gradient = peak(lambda x: deep(x, 6000))
    less, same = peak(in_segments)
    assert same == gradient and less < plain / 5


def test_checkpoint_draws_the_same_random_numbers_again_and_disturbs_no_others():
    x = Value(2.0)
    random.seed(1)
    y = checkpoint(lambda a: a * random.random(), x)
    after = random.random()
    y.backward()
    later = random.random()
    random.seed(1)
    factor = random.random()
    assert (y.data, x.grad, after, later) == (2 * factor, factor, random.random(), random.random())


def test_checkpoint_takes_constants_gives_several_outputs_and_is_silent_under_no_grad():
    x, w = Value(3.0), Value(2.0)
    checkpoint(lambda a, b: a * b, x, 5.0).backward()
    assert x.grad == 5.0
    checkpoint(lambda a: a * w, 7.0).backward()
    assert w.grad == 7.0
    a, b = checkpoint(lambda x: (x * x, x + 1), x)
    (a * b).backward()
    assert x.grad == 5.0 + 33.0
    with no_grad():
        y = checkpoint(lambda a: a * a, x)
    assert y.data == 9.0 and not y.requires_grad
    checkpoint(lambda a: a, x).backward()
    assert x.grad == 39.0
    checkpoint(lambda a: w, x).backward()
    assert w.grad == 8.0


def test_checkpoint_can_be_differentiated_twice_and_pushed_forward():
    x, w = Value(3.0), Value(2.0)
    (g,) = grad(checkpoint(lambda a: a * a * w, x), x, create_graph=True)
    assert g.data == 12.0 and grad(g, (x, w)) == (4.0, 6.0)
    assert hessian(lambda x: checkpoint(lambda a: a ** 3, x), 3.0) == 18.0
    assert jvp(lambda x: checkpoint(lambda a: a * a, x), (3.0,), (1.0,)) == (9.0, 6.0)


def test_checkpoint_that_fails_the_second_time_leaves_everything_in_order():
    calls = []

    def once(a):
        calls.append(a)
        if len(calls) > 1:
            raise KeyError("second")
        return a * a

    x = Value(3.0)
    y = checkpoint(once, x) * 2
    with pytest.raises(KeyError, match="second"):
        y.backward()
    assert x.grad is engine.unset and y.grad is engine.unset and is_grad_enabled()


# -------------------------------------------------------------------------------- detect_anomaly
def line_here():
    return f"{__file__} line {inspect.currentframe().f_back.f_lineno}"


@pytest.mark.parametrize("function, number, found", [
    (Value.log, -1.0, "log gave nan .*x = -1.0"), (Value.log, 0.0, "log gave -?inf .*x = 0.0"),
    (lambda x: 1 / x, 0.0, "div gave inf .*x = 0.0"), (lambda x: (x * 1000).exp(), 1.0, "exp gave inf"),
    (lambda x: x ** 0.5, -4.0, r"pow gave nan .*x = -4.0"), (lambda x: x - x, inf, "sub gave nan"),
])
def test_the_first_bad_value_names_operation_inputs_and_line(function, number, found):
    x = Value(number, label="x")
    with pytest.raises(RuntimeError, match=found) as caught, detect_anomaly():
        function(x)
    assert __file__ in str(caught.value) and x.grad is engine.unset
    function(x)                                             # outside, nothing is said


def test_the_line_is_the_one_of_the_program():
    x = Value(-1.0, label="x")
    with pytest.raises(RuntimeError) as caught, detect_anomaly():
        here = line_here(); x.log()                         # noqa: E702
    assert here in str(caught.value)


def test_the_first_bad_gradient_names_operation_label_and_line():
    x = Value(0.0, label="x")
    with pytest.raises(RuntimeError, match=r"backward rule of sqrt \('root'\) gave inf to its input x") as caught, \
            detect_anomaly():
        here = line_here(); y = x.sqrt()                    # noqa: E702
        y.label = "root"
        (y * 2).backward()
    assert here in str(caught.value) and x.grad is engine.unset and y.grad is engine.unset


def test_a_graph_built_before_says_so():
    y = Value(0.0).sqrt()
    with pytest.raises(RuntimeError, match="sqrt gave inf.*build the graph inside detect_anomaly"), detect_anomaly():
        y.backward()


def test_nothing_bad_means_nothing_said():
    x = Value(4.0)
    with detect_anomaly():
        x.sqrt().backward()
        with detect_anomaly():
            (x * 2).backward()
        (g,) = grad(x ** 3, x, create_graph=True)
        g.backward()
    assert engine.thread.observer is None


def test_anomalies_inside_a_checkpoint_are_found():
    x = Value(-1.0)
    with pytest.raises(RuntimeError, match="log gave nan"), detect_anomaly():
        checkpoint(lambda a: a.log(), x)


def test_anomalies_of_operations_made_by_hand_are_found():
    a = Value(1.0)
    with pytest.raises(RuntimeError, match="mine.* gave nan"), detect_anomaly():
        Value(nan, (a,), "mine")
    with pytest.raises(RuntimeError, match="mine.* gave nan"), detect_anomaly():
        out = Value(1.0, (a,), "mine")

        def back():
            a.grad += nan
        out._backward = back
        out.backward()
