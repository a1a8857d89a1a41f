"""Values, their graph and the walk back: what holds for one number holds for all that is built on it."""

from __future__ import annotations

import copy
import gc
import inspect
import math
import pickle
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import pytest
import torch
from conftest import close, torch_answer

import micrograd
from micrograd import Value, engine, grad, no_grad, ops, where
from micrograd.engine import topological_order, unset
from micrograd.nn import MLP

inf, nan = math.inf, math.nan


def answer(function, *point):
    """[value, gradient, gradient, ...] of a function at a point."""
    inputs = [Value(x) for x in point]
    y = function(*inputs)
    y.backward()
    return [y.data, *(x.grad for x in inputs)]


def assert_answer(function, point, expected, rel=1e-15):
    found = answer(function, *point)
    assert all(close(a, b, rel) for a, b in zip(found, expected)) and len(found) == len(expected), (found, expected)


def blocks(run):
    """How many blocks of memory are left behind by a call, without the help of the garbage collector."""
    gc.collect()
    before = sys.getallocatedblocks()
    run()
    return sys.getallocatedblocks() - before


# ------------------------------------------------------------------------------ accumulation
def test_a_second_backward_over_a_kept_graph_doubles_the_leaves_exactly():
    x = Value(3.0)
    square = x * x
    y = square * x
    y.backward()
    assert x.grad == 27.0
    y.backward()
    assert x.grad == 54.0 and square.grad == 3.0            # an inner node shows the last pass
    x.zero_grad()
    y.backward()
    assert x.grad == 27.0


def test_gradients_add_up_over_graphs_until_zeroed():
    w = Value(2.0)
    seen = []
    for x in (1.0, 3.0, 5.0):
        (w * x).backward()
        seen.append(w.grad)
    assert seen == [1.0, 4.0, 9.0]
    w.zero_grad()
    assert w.grad == 0.0 and w.grad is unset
    w.zero_grad(set_to_none=True)
    assert w.grad is None
    (w * 4.0).backward()
    assert w.grad == 4.0


def test_grad_may_be_set_by_hand_to_zero_none_or_a_start():
    w = Value(2.0)
    for start, expected in ((0, 3.0), (0.0, 3.0), (None, 3.0), (1.5, 4.5), (np.float64(1.0), 4.0)):
        w.grad = start
        (w * 3.0).backward()
        assert w.grad == expected


def test_every_path_counts_once_however_long():
    x, k = Value(1.0), Value(1.0)
    xa, x2 = x * k, x * x
    f = x * xa + x2 * k + x * xa
    f.backward()
    assert x.grad == 6.0


def test_one_node_used_twice_in_an_operation_counts_twice():
    for operation, expected in ((lambda a: a + a, [6.0, 2.0]), (lambda a: a * a, [9.0, 6.0]),
                                (lambda a: a - a, [0.0, 0.0]), (lambda a: a / a, [1.0, 0.0]),
                                (lambda a: a ** a, [27.0, 56.66253179403897])):
        assert answer(operation, 3.0) == expected
    a = Value(3.0)
    assert (a + a).inputs == (a, a)
    assert_answer(lambda a: where(a > 0, a, a) * where(a > 0, a, a), (2.0,), [4.0, 4.0])


def test_inner_nodes_keep_their_gradient():
    a, b = Value(2.0), Value(3.0)
    c = a * b
    d = c * 2
    d.backward()
    assert (c.grad, a.grad, d.grad) == (2.0, 6.0, 1.0)
    c.retain_grad()                                         # is true of a Value anyway
    d.backward()
    assert (c.grad, a.grad) == (2.0, 12.0)


def test_a_computed_zero_differs_from_no_gradient_yet():
    x, y = Value(0.0), Value(3.0)
    z = x * y
    assert x.grad is unset and z.grad is unset
    z.backward()
    assert y.grad == 0.0 and y.grad is not unset
    assert repr(Value(1.0)) == "Value(data=1.0, grad=0.0)"


def test_a_leaf_is_its_own_derivative():
    x = Value(3.0)
    x.backward()
    x.backward()
    assert x.grad == 2.0


def test_the_gradient_that_backward_starts_from():
    for start in (2, 2.0, True + 1, np.float64(2.0), np.array(2.0), Value(2.0)):
        x = Value(3.0)
        (x * x).backward(start)
        assert x.grad == 12.0 and type(x.grad) is float


# ----------------------------------------------------------------------------- keep or free
def test_a_freed_graph_says_cause_and_cure_and_leaves_gradients_alone():
    x = Value(3.0)
    y = x * x
    y.backward(retain_graph=False)
    with pytest.raises(RuntimeError, match="freed by an earlier backward.*retain_graph=True.*compute the result again"):
        y.backward()
    assert x.grad == 6.0 and y.grad == 1.0
    y = x + x                                               # also where nothing was saved: stricter, easier to teach
    y.backward(retain_graph=False)
    with pytest.raises(RuntimeError):
        y.backward()
    assert x.grad == 8.0 and y.data == 6.0 and "6.0" in repr(y)


def test_a_graph_above_a_freed_one_refuses_too():
    x = Value(1.0)
    y = x * 2
    z = y * 3
    y.backward(retain_graph=False)
    with pytest.raises(RuntimeError, match="freed"):
        z.backward()
    assert (x.grad, y.grad, z.grad) == (2.0, 1.0, 0.0)


def test_freeing_returns_memory_while_the_result_lives(no_collector):
    x = Value(1.0)
    y = inner = x * 2
    for _ in range(10):
        y = y * 2
    watch = weakref.ref(inner)
    del inner
    y.backward(retain_graph=False)
    assert watch() is None and y.data == 2048.0 and x.grad == 2048.0


def test_a_graph_is_freed_by_reference_counting_alone(no_collector):
    x = Value(0.5)
    y = ((x * 2 + 1).tanh() ** x / 3).relu()
    y.backward()
    watch = weakref.ref(y.inputs[0])
    del y
    assert watch() is None


def test_memory_stays_flat_over_training(no_collector):
    model = MLP(2, [3, 1])

    def step():
        loss = sum((model([a, b]) - a * b) ** 2 for a, b in ((1.0, 2.0), (-0.5, 0.3)))
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= 0.01 * p.grad

    for _ in range(1000):                                   # Python fills its free lists first
        step()
    tracemalloc.start()
    for _ in range(50):
        step()
    early = tracemalloc.get_traced_memory()[0]
    for _ in range(450):
        step()
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert late - early < 5_000


# ------------------------------------------------------------------------------- deep and wide
def test_a_million_operations_forward_backward_and_free_without_recursion(no_collector):
    limit = sys.getrecursionlimit()
    x = Value(1.0)

    def run():
        y = x
        for _ in range(500_000):
            y = y * 1.0 + 1.0
        assert y.data == 500_001.0
        y.backward()
        assert x.grad == 1.0
        assert len(repr(y)) < 60 and len(str(y)) < 60

    left = blocks(run)
    assert left < 1000 and sys.getrecursionlimit() == limit


def test_deep_graphs_ask_for_no_stack():
    x = Value(1.0)
    y = x
    for _ in range(2000):
        y = (y + y) * 0.5
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        y.backward()
        (slope,) = grad(y, x, create_graph=True)
        del y
    finally:
        sys.setrecursionlimit(limit)
    assert x.grad == 1.0 and slope.data == 1.0


def test_builtin_sum_over_fifty_thousand_terms():
    terms = [Value(i) for i in range(50_000)]
    total = sum(terms)
    total.backward()
    assert total.data == 1249975000.0 and {t.grad for t in terms} == {1.0}


def work(run):
    """Lines of Python that a call executes, and how often it asks nodes for equality or a hash."""
    counted = {"lines": 0, "asked": 0}

    def trace(frame, event, argument):
        counted["lines"] += event == "line"
        return trace

    def equal(self, other):
        counted["asked"] += 1
        return self is other

    def hashed(self):
        counted["asked"] += 1
        return object.__hash__(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Value, "__eq__", equal)
        patch.setattr(Value, "__hash__", hashed)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            run()
        finally:
            sys.settrace(before)
    return counted["lines"], counted["asked"]


def chain(n):
    x = y = Value(1.0)
    for _ in range(n):
        y = y + x
    return y


def ladder(n):
    y = Value(1.0)
    for _ in range(n):
        y = y + y
    return y


def fan(n):
    return Value(0.0, [Value(1.0) for _ in range(n)], "sum")


def many_with_three_inputs(n):
    y = Value(1.0)
    for _ in range(n):
        y = where(y, y, y)
    return y


@pytest.mark.parametrize("shape", [chain, ladder, fan, many_with_three_inputs])
def test_the_walk_is_linear_in_the_size_of_the_graph(shape):
    small, large = shape(1000), shape(2000)
    (lines, asked), (lines_of_two, asked_of_two) = work(small.backward), work(large.backward)
    assert lines < lines_of_two < 2.1 * lines and asked_of_two <= 2.1 * asked


# ----------------------------------------------------------------------------------- the order
def test_the_order_is_inputs_first_each_node_once():
    x, y = Value(2.0), Value(3.0)
    a = x * y
    b = a + x
    c = b * a * 5.0
    operations, leaves = topological_order(c)
    assert operations == [a, b, c.inputs[0], c] and leaves == [x, y]
    assert topological_order(x) == ([], [x])


def test_training_is_repeatable_to_the_last_bit_in_another_process():
    program = """
import random
from micrograd.nn import MLP
random.seed(7)
model = MLP(3, [4, 4, 1])
data = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(8)]
for k in range(5):
    loss = sum((model(row) - row[0] * row[1]) ** 2 for row in data)
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.05 * p.grad
print([p.data.hex() for p in model.parameters()])
"""
    runs = {subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": root()},
                           capture_output=True, text=True, check=True).stdout for seed in ("1", "2")}
    assert len(runs) == 1 and "0x" in runs.pop()


def root():
    return str(micrograd.__path__[0]).rsplit("/", 1)[0]


def test_inputs_cannot_be_rewired_into_a_cycle():
    a = Value(1.0)
    b = a + 1
    for name in ("_prev", "inputs"):
        with pytest.raises(AttributeError):
            setattr(a, name, (b,))
    b.backward()
    assert a.grad == 1.0


def test_inputs_are_the_same_nodes_at_every_look():
    x = Value(2.0)
    y = 3.0 * x
    assert y.inputs[0] is y.inputs[0] and y.inputs[1] is x and y._prev[0] is y.inputs[0]
    assert not y.inputs[0].requires_grad and y.inputs[0].data == 3.0
    y.inputs[0].label = "three"
    assert y.inputs[0].label == "three"
    y.backward()
    assert x.grad == 3.0 and y.operands()[1] is x
    (slope,) = grad(y * x, x, create_graph=True)
    assert slope.data == 12.0 and grad(slope, x) == (6.0,)


def test_looking_at_inputs_changes_no_rule():
    def looked_at(y):
        for node in (y, *y.inputs):
            assert node.inputs == node._prev
        return y

    x = Value(3.0)
    y = x * 2
    y._backward = lambda: setattr(x, "grad", x.grad + 100 * y.grad)
    looked_at(y).backward()
    assert x.grad == 100.0
    z = 2.0 / x
    z._op = "over"
    x.zero_grad()
    looked_at(z).backward()
    assert x.grad == -2 / 9 and z._op == "over"
    x.zero_grad()
    for function, expected in ((lambda x: 2 * x ** 2, 12.0), (lambda x: where(True, x, 5.0), 1.0), (lambda x: 1 - x, -1.0),
                               (lambda x: micrograd.leaky_relu(-x), -0.01), (lambda x: MLP(1, [1])([0.5]) * x, None)):
        y = function(x)
        (before,), (after,) = grad(y, x), grad(looked_at(y), x)
        assert before == after and expected in (None, after)


# --------------------------------------------------------------------------- leaves and constants
def test_what_you_wrap_is_a_variable_and_what_you_do_not_is_a_constant():
    a = Value(2.0)
    (a * a).backward()
    assert a.grad == 4.0 and a.requires_grad and a.is_leaf
    c = Value(3.0, requires_grad=False)
    y = a * c + 1.0
    y.backward()
    assert c.grad == 0.0 and c.grad is unset and a.grad == 7.0
    assert not c.requires_grad and c.is_leaf and y.requires_grad and not y.is_leaf


def test_results_of_constants_are_constants_and_cost_no_graph():
    c = Value(3.0, requires_grad=False)
    for y in (c * c, c + 1.0, c.exp(), where(True, c, c), 2.0 ** c, c.detach()):
        assert not y.requires_grad and y.is_leaf and y.inputs == ()
    assert Value(1.0, (c,), "by hand").requires_grad is False
    with pytest.raises(RuntimeError, match="does not depend on anything that requires a gradient; make an input"):
        (c * 2).backward()
    assert c.grad is unset


def test_nothing_is_recorded_nor_kept_alive_under_no_grad(no_collector):
    x = Value(3.0)
    with no_grad():
        y = x * x
        by_hand = Value(9.0, (x,), "square")
        inner = x.exp()
        watch = weakref.ref(inner)
        z = inner * 2.0
        del inner
    assert watch() is None and z.inputs == () and y.inputs == () and by_hand.inputs == ()
    assert not y.requires_grad and not by_hand.requires_grad


def test_detach_is_the_number_without_its_past():
    x = Value(2.0)
    y = x * x
    d = y.detach()
    assert d.data == 4.0 and not d.requires_grad and d.is_leaf
    (d * x).backward()
    assert x.grad == 4.0 and y.grad is unset
    s = x.sigmoid()
    s.detach().data = 0.0                                   # a copy: what backward needs is safe
    x.zero_grad()
    s.backward()
    assert x.grad == torch_answer(torch.sigmoid, 2.0)[1][0]


def test_requires_grad_changes_on_leaves_only():
    x = Value(1.0)
    y = x * 2
    with pytest.raises(RuntimeError, match="detach"):
        y.requires_grad = False
    y.requires_grad = True                                  # is true already
    x.requires_grad = False
    assert not x.requires_grad and not (x * 2).requires_grad
    assert x.requires_grad_() is x and x.requires_grad
    assert x.requires_grad_(False).requires_grad is False


def test_frozen_leaves_do_not_move_though_the_graph_was_recorded_before():
    x, w = Value(2.0), Value(3.0)
    y = x * w
    w.requires_grad = False
    y.backward()
    assert w.grad is unset and x.grad == 3.0


def test_the_weight_update_four_ways():
    def prepared():
        w = Value(1.0)
        (w * 3).backward()
        return w

    w = same = prepared()
    w -= 0.1 * w.grad                                       # while recording: a new node, as micrograd makes
    assert w is not same and not w.is_leaf and same.data == 1.0
    w = prepared()
    w = w - 0.1 * w.grad
    assert not w.is_leaf and w.requires_grad
    w = prepared()
    with no_grad():
        w = w - 0.1 * w.grad
    assert not w.requires_grad and w.data == 0.7
    w = same = prepared()
    with no_grad():
        w -= 0.1 * w.grad
    assert w is same and w.data == 0.7 and w.requires_grad and w.is_leaf
    w = same = prepared()
    w.data -= 0.1 * w.grad
    assert w is same and w.data == 0.7


def test_in_place_operators_under_no_grad():
    with no_grad():
        w = same = Value(8.0)
        w += 2
        w *= Value(3.0)
        w /= 5.0
        w -= 1
        w **= 2
    assert w is same and w.data == 25.0 and w.requires_grad


def test_data_may_be_assigned_and_rules_read_it_when_backward_runs():
    x = Value(2.0)
    y = x * x
    x.data = 5.0
    y.backward()
    assert (y.data, x.grad) == (4.0, 10.0)


def test_numpy_numbers_assigned_to_data_count_as_numbers():
    p = Value(1.0)
    p.data = np.float32(2.0)
    p.data -= np.float64(1.0) * 0.5
    y = p * p
    y.backward()
    assert y.data == 2.25 and p.grad == 3.0 and repr(p) == "Value(data=1.5, grad=3.0)"
    p.data = 3
    assert (p / 2).data == 1.5 and (p ** -1).data == 1 / 3 and repr(p) == "Value(data=3.0, grad=3.0)"


# ------------------------------------------------------------------------------------ hooks
def test_hooks_see_the_complete_gradient_once_in_order_and_may_replace_it():
    seen = []
    a = Value(2.0)
    b = a * 3
    b.register_hook(lambda g: seen.append(("first", g)))
    second = b.register_hook(lambda g: g * 10)
    b.register_hook(lambda g: seen.append(("third", g)))
    (b + b).backward()
    assert seen == [("first", 2.0), ("third", 20.0)] and a.grad == 60.0 and b.grad == 20.0
    second.remove()
    second.remove()                                         # twice is no error
    a.zero_grad()
    (b + b).backward()
    assert a.grad == 6.0 and seen[2:] == [("first", 2.0), ("third", 2.0)]


def test_a_hook_on_a_leaf_sees_this_pass_and_not_the_sum():
    ours, theirs, seen = Value(2.0), torch.tensor(2.0, dtype=torch.float64, requires_grad=True), []
    for x in (ours, theirs):
        x.register_hook(lambda g: seen.append(float(g)))
        x.register_hook(lambda g: g * 10)
        (x * 3).backward()
        (x * x).backward()
    assert seen == [3.0, 4.0, 3.0, 4.0] and ours.grad == theirs.grad.item() == 70.0


def test_a_hook_comes_back_after_all_were_removed():
    x = Value(2.0)
    x.register_hook(lambda g: g * 10).remove()
    handle = x.register_hook(lambda g: g * 100)
    (x * 3).backward()
    assert x.grad == 300.0
    handle.remove()
    (x * 3).backward()
    assert x.grad == 303.0


def test_a_hook_that_returns_zero_stops_the_gradient():
    x = Value(2.0)
    y = x * x
    handle = y.register_hook(lambda g: 0.0)
    (y * 3).backward()
    assert x.grad == 0.0 and x.grad is not unset and y.grad == 0.0
    handle.remove()
    y.register_hook(lambda g: None)
    (y * 3).backward()
    assert x.grad == 12.0


def test_hooks_need_a_gradient():
    c = Value(2.0, requires_grad=False)
    for wish in (lambda: c.register_hook(print), c.retain_grad):
        with pytest.raises(RuntimeError, match="requires no gradient"):
            wish()


# ------------------------------------------------------------------------------- when it fails
class Broken(Exception):
    pass


@pytest.mark.parametrize("error", [Broken, ZeroDivisionError, OverflowError, KeyError, KeyboardInterrupt])
@pytest.mark.parametrize("retain_graph", [True, False])
def test_an_error_in_a_hand_written_rule_surfaces_unchanged_and_no_gradient_moved(error, retain_graph):
    x = Value(2.0)
    (x * 7).backward()
    a = x * 3
    out = Value(6.0, (a,), "mine")
    b = out * out
    b.grad, a.grad = 5.0, 4.0

    def broken():
        a.grad += 1.0
        raise error("mine")

    out._backward = broken
    with pytest.raises(error, match="mine"):
        b.backward(retain_graph=retain_graph)
    assert (x.grad, a.grad, b.grad) == (7.0, 4.0, 5.0) and out.grad is unset
    y = x * x
    y.backward()
    assert x.grad == 11.0 and engine.thread.recording


def test_an_error_in_a_hook_leaves_every_gradient_as_it_was():
    x = Value(2.0)
    y = x * x
    z = y * 3

    def broken(g):
        raise Broken(g)

    for node in (y, x):
        handle = node.register_hook(broken)
        with pytest.raises(Broken):
            z.backward()
        handle.remove()
        assert (x.grad, y.grad, z.grad) == (0.0, 0.0, 0.0) and x.grad is unset
    z.backward()
    assert x.grad == 12.0


def test_a_bad_gradient_leaves_every_gradient_as_it_was():
    x = Value(2.0)
    y = x * x
    y.backward()
    for bad in ("1", np.ones(2), [1.0], 1j):
        with pytest.raises(TypeError, match="gradient takes a real number, got"):
            y.backward(bad)
    assert x.grad == 4.0 and y.grad == 1.0


# ------------------------------------------------------------------------------------ numbers
def test_kinks_are_pytorchs():
    for x, expected in ((0.0, [0.0, 0.0]), (-0.0, [0.0, 0.0]), (-2.0, [2.0, -1.0])):
        assert answer(abs, x) == expected
    assert answer(Value.relu, 0.0) == [0.0, 0.0] and answer(Value.relu, -0.0) == [0.0, 0.0]
    assert_answer(Value.relu, (nan,), [nan, 1.0])
    for x, expected in ((0.0, [0.0, 1.0]), (1.0, [1.0, 1.0]), (-0.5, [0.0, 0.0]), (1.5, [1.0, 0.0])):
        assert answer(lambda x: x.clamp(0, 1), x) == expected
    assert answer(lambda x: x.clamp(min=0), 0.0) == [0.0, 1.0] and answer(lambda x: x.clamp(max=0), 0.0) == [0.0, 1.0]


def test_ties_are_split_in_halves():
    maximum = micrograd.maximum
    assert answer(maximum, 2.0, 2.0) == [2.0, 0.5, 0.5] and answer(micrograd.minimum, 2.0, 2.0) == [2.0, 0.5, 0.5]
    assert answer(lambda a: maximum(a, a), 2.0) == [2.0, 1.0]
    assert answer(lambda b: maximum(b, 2), 2.0) == [2.0, 0.5]
    assert answer(lambda a: a.maximum(3.0), 2.0) == [3.0, 0.0]


def test_powers_at_every_corner():
    assert_answer(lambda x: x ** 1.5, (0.0,), [0.0, 0.0])
    assert_answer(lambda x: x * x ** 0.5, (0.0,), [0.0, nan])
    assert_answer(lambda a, b: a ** b, (-2.0, -3.0), [-0.125, -0.1875, nan])
    assert_answer(lambda x: x ** 2, (-2.0,), [4.0, -4.0])
    assert_answer(lambda x: 2 ** x, (3.0,), [8.0, 5.545177444479562])
    assert_answer(lambda x: 0.0 ** x, (2.0,), [0.0, 0.0])
    assert_answer(lambda x: (-2.0) ** x, (2.0,), [4.0, nan])
    assert_answer(lambda a, b: a ** b, (2.0, 3.0), [8.0, 12.0, 5.545177444479562])
    assert_answer(lambda a, b: a ** b, (0.0, 0.0), [1.0, 0.0, 0.0])
    assert_answer(lambda x: x ** (1 / 3), (-8.0,), [nan, nan])
    assert_answer(lambda x: x ** -1, (0.0,), [inf, -inf])
    assert_answer(lambda x: x ** 2, (1e200,), [inf, 2e200])
    assert_answer(lambda x: x ** -3, (-0.0,), [-inf, -inf])


def test_division_by_zero_is_ieee():
    assert_answer(lambda a, b: a / b, (1.0, 0.0), [inf, inf, -inf])
    assert_answer(lambda a, b: a / b, (0.0, 0.0), [nan, inf, nan])
    assert_answer(lambda b: 1 / b, (-0.0,), [-inf, -inf])
    assert_answer(lambda a: a / 0, (-1.0,), [-inf, inf])


def test_a_node_pushed_by_hand_divides_as_backward_does():
    x = Value(0.0)
    y = 1 / x
    y.grad = 1.0
    y._backward()
    assert x.grad == -inf


def test_nothing_overflows_and_nothing_is_complex():
    assert_answer(Value.exp, (1000.0,), [inf, inf])
    assert_answer(Value.exp, (-1000.0,), [0.0, 0.0])
    assert_answer(Value.expm1, (1e-10,), [1.00000000005e-10, 1.0000000001])
    for x, expected in ((1000.0, [1.0, 0.0]), (-1000.0, [-1.0, 0.0]), (20.0, [1.0, 0.0])):
        assert answer(Value.tanh, x) == expected
    assert_answer(Value.log, (0.0,), [-inf, inf])
    assert_answer(Value.log, (-1.0,), [nan, -1.0])
    assert_answer(Value.sqrt, (0.0,), [0.0, inf])
    assert_answer(Value.sqrt, (-1.0,), [nan, nan])
    assert_answer(lambda x: x * 1e308 * 10, (1.0,), [inf, inf])
    assert_answer(Value.sin, (inf,), [nan, nan])


def test_softplus_and_logsigmoid_are_exact_at_both_ends():
    tiny, tinier = 4.248354255291589e-18, 5.148200222412013e-131
    for x, expected in ((1000.0, [1000.0, 1.0]), (-1000.0, [0.0, 0.0]), (-40.0, [tiny, tiny]), (25.0, [25.0, 1.0])):
        assert_answer(Value.softplus, (x,), expected, rel=1e-10)
    assert_answer(Value.logsigmoid, (-300.0,), [-300.0, 1.0])
    assert_answer(Value.logsigmoid, (300.0,), [-tinier, tinier], rel=1e-13)


def test_where_does_not_stop_what_leaks_inside_the_branch_not_taken():
    assert_answer(lambda x: where(x <= 0, x.exp(), 1 + x), (1000.0,), [1001.0, nan])
    assert_answer(lambda x: where(x <= 0, where(x <= 0, x, 0.0).exp(), 1 + x), (1000.0,), [1001.0, 1.0])
    assert_answer(lambda x: where(x > 0, x.sqrt(), x), (0.0,), [0.0, nan])
    assert_answer(lambda x: where(x > 0, x.sqrt(), x), (4.0,), [2.0, 0.25])
    assert_answer(lambda x: x * x.log(), (0.0,), [nan, nan])
    assert_answer(lambda x: x * x.log(), (0.5,), [-0.34657359027997264, 0.3068528194400547])
    assert_answer(lambda x: (x * x).sqrt() ** 2, (0.0,), [0.0, nan])


def test_repeated_derivatives_at_zero_of_a_bell():
    for bell in (lambda x: (-x * x).exp(), lambda x: (-x ** 2).exp()):
        x = Value(0.0)
        y, found = bell(x), []
        for _ in range(4):
            (y,) = grad(y, x, create_graph=True)
            found.append(y.data)
        assert found == [0.0, -2.0, 0.0, 12.0]


# ---------------------------------------------------------------------------- known expressions
def test_the_exercise_of_the_lecture():
    def f(a, b, c):
        return -a ** 3 + (3 * b).sin() - 1 / c + b ** 2.5 - a ** 0.5

    assert_answer(f, (2, 3, 4), [6.336362190988558, -12.353553390593273, 10.25699027111255, 0.0625])


def test_the_neuron_of_the_lecture():
    def neuron(x1, x2, w1, w2, b):
        return (x1 * w1 + x2 * w2 + b).tanh()

    assert_answer(neuron, (2.0, 0.0, -3.0, 1.0, 6.8813735870195432),
                  [0.7071067811865476, -1.4999999999999998, 0.49999999999999994, 0.9999999999999999, 0.0,
                   0.4999999999999999])


def test_goldstein_price_and_rosenbrock():
    def goldstein(x, y):
        return ((1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x ** 2 - 14 * y + 6 * x * y + 3 * y ** 2))
                * (30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x ** 2 + 48 * y - 36 * x * y + 27 * y ** 2)))

    def rosenbrock(x, y):
        return 100 * (y - x ** 2) ** 2 + (x - 1) ** 2

    assert answer(goldstein, 1.0, 1.0) == [1876.0, -5376.0, 8064.0]
    assert answer(rosenbrock, 0.0, 2.0) == [401.0, -2.0, 400.0]


# ---------------------------------------------------------------------------------- the surface
def test_builtin_sum_starts_from_zero_or_from_a_node():
    terms = [Value(1.0), Value(2.0), Value(3.0)]
    total = sum(terms)
    total.backward()
    assert total.data == 6.0 and [t.grad for t in terms] == [1.0, 1.0, 1.0]
    b = Value(10.0)
    assert sum((t for t in terms), start=b).data == 16.0 and b.data == 10.0


def test_numbers_on_the_left():
    for operation, expected in ((lambda v: 3 + v, [7.0, 1.0]), (lambda v: 3 - v, [-1.0, -1.0]),
                                (lambda v: 3 * v, [12.0, 3.0]), (lambda v: 3 / v, [0.75, -0.1875])):
        assert answer(operation, 4.0) == expected


def test_functions_are_methods():
    for name in "tanh exp log sigmoid sin cos sqrt abs relu softplus".split():
        method = getattr(Value(0.5), name)
        assert method().data == getattr(micrograd, name)(0.5)
    assert (+Value(2.0)).data == 2.0 and (-Value(2.0)).data == -2.0


def test_equality_and_hash_are_identity():
    a, b = Value(1.0), Value(1.0)
    assert len({a, b}) == 2 and a not in {b} and {a: 1}[a] == 1 and a != b and a == a and a != 1.0
    assert b not in [a] and [a, b].index(b) == 1
    (a + b).backward()
    assert a.grad == b.grad == 1.0


def test_comparisons_are_plain_bools():
    a = Value(1.0)
    for other in (2, 2.0, Value(2.0), np.float64(2.0), np.array(2.0), True + 1):
        for found, expected in ((a < other, True), (a > other, False), (a <= other, True), (a >= other, False),
                                (other > a, True), (other <= a, False)):
            assert found is expected
    assert max([Value(1.0), Value(3.0), Value(2.0)]).data == 3.0
    assert [v.data for v in sorted([Value(2.0), Value(1.0)])] == [1.0, 2.0]
    with pytest.raises(TypeError):
        a < "2"                                             # noqa: B015


def test_truth_is_that_of_the_number():
    assert not Value(0.0) and Value(0.1) and Value(-1.0) and bool(Value(nan))


def test_labels_are_names_and_nothing_else():
    a, b = Value(2.0, label="a"), Value(-3.0)
    e = a * b
    assert (a.label, b.label, e.label) == ("a", "", "")
    e.label = "e"
    e.backward()
    assert e.label == "e" and "label='e'" in repr(e) and a.grad == -3.0
    assert "label" not in repr(b)


def test_repr_is_short_and_plain():
    assert repr(Value(np.float64(2.0))) == "Value(data=2.0, grad=0.0)"
    x = Value(2.0)
    x.grad = np.float64(1.5)
    assert repr(x) == str(x) == f"{x}" == "Value(data=2.0, grad=1.5)"
    assert repr(Value(3)) == "Value(data=3.0, grad=0.0)"


def test_conversions_to_numbers():
    v = Value(2.5)
    assert float(v) == 2.5 and int(v) == 2 and v.item() == 2.5 and f"{v:.3f}" == "2.500" and f"{v:>6}" == "   2.5"
    assert math.sqrt(v) == 1.5811388300841898 and round(Value(2.567), 2) == 2.57 and round(v) == 2
    assert "%.4f" % v == "2.5000" and f"{v.data:.1f}" == "2.5"     # noqa: UP031


def test_data_is_always_a_python_float():
    for x in (np.float64(3), np.float32(3), np.int64(3), np.array(3.0), 3, 3.0, True + 2, Value(3.0),
              torch.tensor(3.0)):
        v = Value(x)
        assert type(v.data) is float and v.data == 3.0 and v.is_leaf and v.inputs == ()
    assert type(Value(True).data) is float
    assert MLP(2, [1])(bytes([0, 1])).requires_grad
    for x in (np.array([1.0, 2.0]), np.array([1.0]), "3", b"3", None, [1.0], 1j, object(), {}):
        with pytest.raises(TypeError, match="takes a real number, got"):
            Value(x)


def test_numpy_scalars_on_either_side_are_numbers():
    two = np.float64(2)
    cases = ((lambda t: two * t, [6.0, 2.0]), (lambda t: two - t, [-1.0, -1.0]), (lambda t: two + t, [5.0, 1.0]),
             (lambda t: two / t, [0.6666666666666666, -0.2222222222222222]),
             (lambda t: two ** t, [8.0, 5.545177444479562]), (lambda t: t ** np.int64(2), [9.0, 6.0]),
             (lambda t: t * np.float32(2), [6.0, 2.0]), (lambda t: np.array(2.0) * t, [6.0, 2.0]),
             (lambda t: t - np.array(2), [1.0, 1.0]), (lambda t: np.int32(2) / t, [2 / 3, -2 / 9]),
             (lambda t: t + np.bool_(True), [4.0, 1.0]))
    for function, expected in cases:
        assert_answer(function, (3.0,), expected)
        y = function(Value(3.0))
        assert type(y) is Value and type(y.data) is float


def test_an_array_on_either_side_gives_a_tensor():
    for product in (lambda a, v: a * v, lambda a, v: v * a):
        v = Value(3.0)
        y = product(np.array([1.0, 2.0]), v)
        assert type(y) is micrograd.Tensor and y.data.tolist() == [3.0, 6.0]
        y.sum().backward()
        assert v.grad == 3.0 and type(v.grad) is float
    for product in (lambda a, v: a * v, lambda a, v: v * a, lambda a, v: micrograd.maximum(v, a)):
        assert type(product(micrograd.Tensor(2.0), Value(3.0))) is micrograd.Tensor
    with no_grad(), pytest.raises(TypeError):
        v -= np.array([1.0, 2.0])
    assert v.data == 3.0


def test_numpy_containers_of_values_are_containers():
    a, b = Value(2.0), Value(3.0)
    y = np.dot(np.array([a, b]), np.array([10.0, 100.0]))
    y.backward()
    assert (y.data, a.grad, b.grad) == (320.0, 10.0, 100.0)
    assert np.sum(np.array([a, b])).data == 5.0


def test_wrapping_a_value_takes_its_number():
    x = Value(2.0)
    v = Value(x * x)
    assert v.data == 4.0 and v.is_leaf and v.inputs == ()


def test_a_wrong_operand_is_a_type_error():
    v = Value(2.0)
    for wrong in (lambda: v + "a", lambda: "a" * v, lambda: v * None, lambda: v - [1.0], lambda: v ** 1j,
                  lambda: v // 2, lambda: v % 2, lambda: v[0], lambda: len(v), lambda: list(v), lambda: v @ v,
                  lambda: {} / v):
        with pytest.raises(TypeError):
            wrong()


def test_an_unknown_attribute_is_an_error():
    v = Value(2.0)
    for name in ("gard", "lable", "requires_gard"):
        with pytest.raises(AttributeError):
            setattr(v, name, 1.0)


def test_operations_tell_what_they_are():
    a, b = Value(2.0), Value(3.0)
    for y, name, symbol in ((a + b, "add", "+"), (a * 2, "mul", "*"), (a ** b, "pow", "**"), (a.tanh(), "tanh", "tanh"),
                            (a, "", ""), (2 / a, "div", "/")):
        assert (y.op.name, y.op.symbol, y._op) == (name, symbol, symbol)
    assert (a * b).inputs == (a, b) and a.inputs == ()


# --------------------------------------------------------------------------- copies and pickles
def test_leaves_can_be_copied_and_pickled():
    x = Value(2.0, label="x")
    (x * 3).backward()
    c = Value(5.0, requires_grad=False)
    for again in (copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
        y, d = again(x), again(c)
        assert y is not x and (y.data, y.grad, y.label, y.requires_grad, y.is_leaf) == (2.0, 3.0, "x", True, True)
        assert not d.requires_grad and d.grad is unset
        (y * 2).backward()
        assert (y.grad, x.grad) == (5.0, 3.0)


def test_inner_nodes_refuse_to_be_copied_and_say_what_to_do():
    deep = Value(1.0)
    for _ in range(5000):
        deep = deep + 1
    for again in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="only leaves can be copied or pickled.*detach"):
            again(deep)
    assert copy.deepcopy(deep.detach()).data == 5001.0


def test_modules_can_be_copied_and_pickled():
    model = MLP(2, [3, 1])
    for again in (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        twin = again(model)
        assert twin([1.0, 2.0]).data == model([1.0, 2.0]).data
        assert not set(twin.parameters()) & set(model.parameters())


# --------------------------------------------------------------------------------- create_graph
def test_backward_with_create_graph_gives_gradients_that_are_nodes():
    x = Value(3.0)
    y = x * x * x
    y.backward(create_graph=True)
    slope = x.grad
    assert isinstance(slope, Value) and slope.data == 27.0 and slope.requires_grad
    x.zero_grad()
    slope.backward()
    assert x.grad == 18.0
    x.zero_grad()


def test_a_recorded_gradient_holds_no_needless_nodes():
    x = Value(3.0)
    (x ** 2).backward(create_graph=True)
    assert x.grad.op.name == "mul" and len(topological_order(x.grad)[0]) <= 3     # 1 * (2 * x ** 1)
    x.zero_grad()
    (g,) = grad(x * 5.0 + x.exp(), x, create_graph=True)
    assert [node.op.name for node in topological_order(g)[0]].count("add") == 1   # 5 + exp(x)


def test_create_graph_decides_over_no_grad_as_in_pytorch():
    x = Value(3.0)
    y = x * x
    with no_grad():
        y.backward(create_graph=True)
        assert engine.thread.recording is False
    assert x.grad.requires_grad
    x.zero_grad()


def test_operations_from_outside_the_table_flow_like_those_inside():
    double = ops.Operation("double", "double", lambda x: 2 * x, (lambda g, x, y: 2 * g,))
    x = Value(3.0)
    y = double(x) * x
    y.backward()
    assert x.grad == 12.0 and x.unary(double).data == 6.0
    x.zero_grad()
    x.unary(double).backward()
    assert x.grad == 2.0
