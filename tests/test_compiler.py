"""A compiled program gives what backward() gives: to the last bit in Python, to 1e-12 elsewhere."""

import concurrent.futures
import contextlib
import importlib.util
import io
import math
import multiprocessing
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import micrograd
from micrograd import ops, optim
from micrograd.compiler import build, compile, source
from micrograd.engine import Value
from micrograd.nn import MLP
from micrograd.tensor import Tensor

TARGETS = ["python", "numpy", "c"]
DIFFERENTIABLE = sorted(name for name, op in ops.TABLE.items() if any(op.rules))
quick = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Compiled C stays out of the user's cache."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


def bits(x):
    """The bits of a float; all NaNs count as the same."""
    return "nan" if x != x else struct.pack("d", x)


def close(expected, tolerance=1e-12):
    return pytest.approx(expected, rel=tolerance, abs=tolerance, nan_ok=True)


def grow(leaves, recipe):
    """A graph made from leaves as a recipe says: (operation, places of its inputs), ..."""
    nodes = list(leaves)
    for name, places in recipe:
        op = ops.TABLE[name]
        inputs = [nodes[k % len(nodes)] for k in places[:len(op.rules)]]
        if name == "where":
            inputs[0] = places[0] % 2 == 0
        nodes.append(op(*inputs))
    return nodes[-1] + nodes[len(leaves) // 2] * 1.0


def eager(numbers, recipe):
    leaves = [Value(x) for x in numbers]
    root = grow(leaves, recipe)
    root.backward()
    return leaves, root


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 30.0, -800.0, 800.0, 1e200]
NUMBERS = st.one_of(st.floats(-3, 3, width=32), st.sampled_from(SPECIAL))
STEP = st.tuples(st.sampled_from(DIFFERENTIABLE), st.tuples(*[st.integers(0, 30)] * 3))
GRAPH = st.tuples(st.lists(NUMBERS, min_size=2, max_size=4), st.lists(STEP, min_size=1, max_size=8))
EVERY_OPERATION = ([1.5, 0.75, -0.5, 2.0], [(name, (k, k + 1, k + 2)) for k, name in enumerate(DIFFERENTIABLE)])


# ------------------------------------------------------------------------- equal to backward()
@pytest.mark.parametrize("optimize", [True, False])
@settings(quick, max_examples=150)
@given(graph=GRAPH)
@example(graph=EVERY_OPERATION)
def test_python_equals_backward_to_the_last_bit(graph, optimize):
    leaves, root = eager(*graph)
    expected = [bits(x.grad) for x in leaves]
    for x in leaves:
        x.zero_grad()
    value = compile(root, optimize=optimize)()
    assert bits(value) == bits(root.data)
    assert [bits(x.grad) for x in leaves] == expected


def check_against_backward(graph, target, optimize):
    leaves, root = eager(*graph)
    expected = [x.grad for x in leaves]
    for x in leaves:
        x.zero_grad()
    assert compile(root, target=target, optimize=optimize)() == close(root.data)
    assert [x.grad for x in leaves] == [close(g) for g in expected]


@pytest.mark.parametrize("optimize", [True, False])
@settings(quick, max_examples=80)
@given(graph=GRAPH)
@example(graph=EVERY_OPERATION)
def test_numpy_equals_backward(graph, optimize):
    check_against_backward(graph, "numpy", optimize)


@pytest.mark.parametrize("optimize", [True, False])
@settings(quick, max_examples=12)
@given(graph=GRAPH)
@example(graph=EVERY_OPERATION)
def test_c_equals_backward(graph, optimize):
    check_against_backward(graph, "c", optimize)


@pytest.mark.parametrize("target", ["python", "numpy"])
@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name != "where"])
def test_every_operation_of_the_table(name, target):
    numbers = [0.7, 0.3, 0.2][:len(ops.TABLE[name].rules)]
    for optimize in (True, False):
        check_against_backward((numbers + [1.1], [(name, (0, 1, 2))]), target, optimize)


def batch_case(seed):
    """Numbers, a recipe, and for some leaves a batch or another number as input."""
    chance = random.Random(seed)
    numbers = [chance.uniform(-2, 2) for _ in range(chance.randint(2, 4))]
    recipe = [(chance.choice(DIFFERENTIABLE), tuple(chance.randrange(30) for _ in range(3)))
              for _ in range(chance.randint(1, 6))]
    many = [chance.random() < 0.7 for _ in range(chance.randint(1, len(numbers)))]
    size = chance.randint(1, 5)
    inputs = [[chance.uniform(-2, 2) for _ in range(size)] if each else chance.uniform(-2, 2) for each in many]
    return numbers, recipe, many, size if any(many) else None, inputs


@pytest.mark.parametrize("target", TARGETS)
def test_batches_and_numbers_mixed(target):
    for seed in range(6 if target == "c" else 60):
        numbers, recipe, many, size, inputs = batch_case(seed)
        values, gradients = [], np.zeros(len(numbers))
        for i in range(size or 1):
            sample = [x[i] if each else x for x, each in zip(inputs, many)]
            leaves, root = eager(sample + numbers[len(many):], recipe)
            gradients += [x.grad for x in leaves]
            values.append(root.data)
        leaves = [Value(x) for x in numbers]
        for optimize in (True, False):
            for x in leaves:
                x.zero_grad()
            program = compile(grow(leaves, recipe), leaves[:len(many)], target=target, optimize=optimize)
            found = program(*[np.array(x) if each and i % 2 else x for i, (x, each) in enumerate(zip(inputs, many))])
            assert (list(found) if size else [found]) == [close(v, 1e-11) for v in values]
            assert [x.grad for x in leaves] == [close(g, 1e-11) for g in gradients]


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_follow_ieee_754(target):
    x, zero = Value(2.0, label="x"), Value(0.0)
    for root, value, gradient in [
            (x / zero, math.inf, math.inf), ((x * 500).exp(), math.inf, math.inf), ((x - 2).log(), -math.inf, math.inf),
            ((x - 3).sqrt(), math.nan, math.nan), ((x - 10) ** (1 / 3), math.nan, math.nan),
            (-(x / zero), -math.inf, -math.inf), ((x - 2) ** -1.0, math.inf, -math.inf), ((x - 2) ** 0.0, 1.0, 0.0)]:
        x.zero_grad()
        root.backward()
        expected, x.grad = x.grad, Value(0).grad
        assert compile(root, wrt=[x], target=target)() == close(value)
        assert x.grad == close(expected) == close(gradient)


@pytest.mark.parametrize("target", TARGETS)
def test_choices_are_made_anew_each_time(target):
    x = Value(1.0)
    for function in (ops.relu, ops.abs, lambda x: ops.maximum(x, -x * 0.5), lambda x: ops.clamp(x, -0.5, 0.5), ops.leaky_relu,
                     lambda x: ops.elu(x) * ops.sign(x), lambda x: ops.minimum(x, 2 * x)):
        program = compile(function(x), [x], target=target)
        for data in (1.0, -1.0, 0.25, 0.0):
            here = Value(data)
            root = function(here)
            root.backward()
            x.zero_grad()
            assert program(data) == close(root.data)
            assert x.grad == close(here.grad)


# ------------------------------------------------------------------------------ what a program does
def test_leaves_are_read_and_gradients_added_at_each_call():
    w, x = Value(3.0), Value(2.0)
    program = compile(w * x, wrt=[w])
    assert (program(), w.grad, x.grad) == (6.0, 2.0, 0.0)
    w.data, x.data = 5.0, 4.0
    assert (program(), w.grad) == (20.0, 6.0)


def test_run_touches_no_gradient():
    w = Value(3.0)
    assert compile(w * w).run() == (9.0, (6.0,))
    assert w.grad == 0.0


def test_hooks_run_and_leaves_frozen_later_keep_their_gradient():
    w, v = Value(3.0), Value(2.0)
    program = compile(w * v)
    w.register_hook(lambda g: g * 10)
    v.requires_grad = False
    program()
    assert (w.grad, v.grad) == (20.0, 0.0)


def test_only_wanted_gradients_are_computed():
    a, b = Value(2.0, label="a"), Value(3.0, label="b")
    program = compile((a * b).exp() * b, wrt=[b])
    program()
    assert a.grad == 0.0 and "d_a" not in program.optimized_source
    assert [x.label for x in program.wrt] == ["b"]


def test_a_leaf_the_result_does_not_depend_on_is_left_alone():
    a, b = Value(2.0), Value(3.0)
    program = compile(a * 2, [a, b], wrt=[a, b])
    assert program(5.0, 7.0) == 10.0
    assert (program.wrt, b.grad) == ([a], 0.0)


def test_the_result_may_be_a_leaf_or_not_depend_on_the_batch():
    w, x = Value(3.0), Value(1.0)
    assert compile(w)() == 3.0 and w.grad == 1.0
    w.zero_grad()
    for target in TARGETS:
        assert list(compile(w * w, [x], target=target)([1.0, 2.0, 3.0])) == [9.0, 9.0, 9.0]
    assert w.grad == 3 * 3 * 6.0


@pytest.mark.parametrize("target", TARGETS)
def test_a_batch_may_be_empty_or_any_sequence(target):
    w, x = Value(3.0), Value(1.0)
    program = compile((w * x).exp() + w * w, [x], wrt=[w], target=target)
    assert list(program([])) == [] and w.grad == 0.0
    expected = [math.exp(3.0 * k) + 9.0 for k in range(3)]
    for batch in (range(3), (0.0, 1.0, 2.0), np.arange(3), np.arange(6.0)[::2] / 2, np.arange(3, dtype=np.float32)):
        assert list(program(batch)) == close(expected)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_of_any_kind_are_taken_as_floats(target):
    x = Value(1.0)
    program = compile(x * x * x, [x], target=target)
    for number in (3, True, np.float32(3), np.int64(3), np.array(3.0), 10 ** 20):
        value = program(number)
        assert value == float(number) ** 3 and isinstance(value, float)
    assert {type(value) for value in list(program([1, 2]))} <= {float, np.float64}


def test_optimisation_shares_folds_and_drops():
    x = Value(2.0, label="x")
    y = (x * 1.0 + 0.0) * x.exp() + x.exp()
    program = compile(y)
    assert program.optimized_source.count("exp(x)\n") == 1 and program.source.count("exp(x)\n") == 2
    assert "v1 = x * 1.0\n" in program.source
    assert "1.0 *" not in program.optimized_source and "0.0" not in program.optimized_source
    assert compile(y, optimize=False)() == program() == y.data


def test_the_source_reads_like_a_lesson():
    x, w, b = Value(0.5, label="x"), Value(-1.5, label="w"), Value(0.1, label="b")
    h = (w * x + b).tanh()
    h.label = "h"
    text = compile(h * h, [x], wrt=[w, b]).source
    assert text == """\
def program(w, b, x):
    v1 = w * x
    v2 = v1 + b
    h = tanh(v2)
    v3 = h * h
    # backward: d_x is the derivative of the result by x; in a rule, g is what arrives at y
    d_v3 = 1.0
    d_h = d_v3 * h              # y = a * b sends g * b to a
    d_h += d_v3 * h             # y = a * b sends g * a to b
    d_v2 = d_h * (1.0 - h * h)  # y = tanh(x) sends g * (1.0 - y * y) to x
    d_v1 = d_v2                 # y = a + b sends g to a
    d_b = d_v2                  # y = a + b sends g to b
    d_w = d_v1 * x              # y = a * b sends g * b to a
    return v3, (d_w, d_b)
"""


@pytest.mark.parametrize("target", TARGETS)
def test_any_label_will_do(target):
    labels = ["x", "x", "lambda", "n", "exp", "2 things", "θ²", "", "double", "values", "v1", "d_v1", "a-b", "_", "None"]
    leaves = [Value(0.1 * (i + 1), label=label) for i, label in enumerate(labels)]
    root = sum(x.exp() * x for x in leaves)
    root.label = "program"
    root.backward()
    expected = [x.grad for x in leaves]
    for optimize in (True, False):
        for x in leaves:
            x.zero_grad()
        assert compile(root, [leaves[0]], target=target, optimize=optimize)(0.1) == close(root.data)
        assert [x.grad for x in leaves] == [close(g) for g in expected]


@pytest.mark.parametrize("target", TARGETS)
def test_training_equals_the_eager_one_step_by_step(target):
    chance = random.Random(1)
    points = [(chance.uniform(-1, 1), chance.uniform(-1, 1)) for _ in range(8)]
    signs = [1.0 if a * b > 0 else -1.0 for a, b in points]
    models = []
    for _ in range(2):
        random.seed(1337)
        models.append(MLP(2, [4, 4, 1]))
    slow, fast = models
    x1, x2, sign = Value(0.0), Value(0.0), Value(1.0)
    penalty = sum(p * p for p in fast.parameters()) * (1e-4 / 8)
    program = compile((1 - sign * fast([x1, x2])).relu() * (1 / 8) + penalty, [x1, x2, sign], fast.parameters(), target)
    for _ in range(10):
        scores = [slow([Value(a), Value(b)]) for a, b in points]
        loss = sum((1 - s * y).relu() for s, y in zip(signs, scores)) * (1 / 8) + 1e-4 * sum(p * p for p in slow.parameters())
        slow.zero_grad()
        loss.backward()
        for p in slow.parameters():
            p.data -= 0.1 * p.grad
        assert sum(program.step(0.1, *zip(*points), signs)) == close(loss.data)
        assert [p.data for p in fast.parameters()] == [close(p.data) for p in slow.parameters()]


def test_an_optimiser_works_on_a_program():
    w = Value(0.0)
    program, optimiser = compile((w - 3) ** 2), optim.SGD([w], lr=0.25)
    for _ in range(30):
        optimiser.zero_grad()
        program()
        optimiser.step()
    assert w.data == pytest.approx(3.0, abs=1e-6)


def test_an_operation_of_ones_own():
    @micrograd.op(lambda g, x, y: g * (3 * x * x))
    def cube(x):
        return x * x * x

    @micrograd.op(lambda g, x, y: g * 2.0)
    def stepped(x):
        return 1.0 if x > 0 else -1.0

    x = Value(2.0)
    for target in TARGETS:
        x.zero_grad()
        assert compile(cube(x), target=target)() == 8.0 and x.grad == 12.0
    x.zero_grad()
    assert compile(stepped(x) * x)() == 2.0 and x.grad == 1.0 + 2.0 * 2.0
    with pytest.raises(TypeError, match="stepped works on numbers only"):
        compile(stepped(x), target="c")


# -------------------------------------------------------------------------------------- scripts
def run_script(text, target, folder):
    if target == "c":
        (folder / "script.c").write_text(text)
        subprocess.run([shutil.which("cc"), "-o", folder / "script", folder / "script.c", "-lm"], check=True)
        printed = subprocess.run([folder / "script"], capture_output=True, text=True, check=True).stdout
    else:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(text, {})
        printed = out.getvalue()
    if target == "pytorch":
        sys.modules["torch"].set_default_dtype(sys.modules["torch"].float64)    # as all tests have it
    return {name: float(number) for name, number in (line.split() for line in printed.splitlines())}


@pytest.mark.parametrize("target, optimize", [("python", True), ("python", False), ("numpy", False), ("c", True), ("c", False),
                                              ("pytorch", False), ("jax", False)])
def test_scripts_print_the_same_gradients(target, optimize, tmp_path):
    a, b = Value(0.7, label="a"), Value(1.3, label="b")
    y = sum(ops.TABLE[name](*(a, b, 0.3)[:len(ops.TABLE[name].rules)]) * (k + 1) * 0.1
            for k, name in enumerate(DIFFERENTIABLE) if name != "where") + b.maximum(0.5) + a.minimum(b) ** 2
    y.backward()
    text = source(y, target, optimize)
    builtin_compile = __builtins__["compile"] if isinstance(__builtins__, dict) else __builtins__.compile
    if target != "c":
        builtin_compile(text, "script", "exec")
    if target == "jax" and importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    expected = {"value": y.data, "a": a.grad, "b": b.grad}
    assert run_script(text, target, tmp_path) == {name: close(number, 1e-9) for name, number in expected.items()}


@pytest.mark.parametrize("target", ["python", "numpy", "c", "pytorch"])
def test_scripts_of_numbers_without_end(target, tmp_path):
    a, b = Value(math.inf, label="a"), Value(2.0, label="b")
    assert run_script(source(a * b, target), target, tmp_path) == {"value": math.inf, "a": 2.0, "b": math.inf}


# --------------------------------------------------------------------------------------- Tensors
def layers(x, y, w, b):
    h = (x @ w + b).tanh()
    return ((h - y) * (h - y)).mean() + 1e-3 * (w * w).sum()


def test_a_program_over_tensors_equals_backward():
    chance = np.random.default_rng(0)
    x, y = (Tensor(chance.normal(size=shape), requires_grad=False) for shape in ((7, 3), (7, 2)))
    w, b = Tensor(chance.normal(size=(3, 2)), label="w"), Tensor(chance.normal(size=2), label="b")
    program = compile(layers(x, y, w, b), [x, y], target="numpy")
    for _ in range(3):
        batch = chance.normal(size=(7, 3)), chance.normal(size=(7, 2))
        loss = layers(Tensor(batch[0], requires_grad=False), Tensor(batch[1], requires_grad=False), w, b)
        loss.backward()
        expected = w.grad, b.grad
        w.grad = b.grad = None
        assert program(*batch) == close(loss.item())
        assert w.grad == close(expected[0]) and b.grad == close(expected[1])
        program(*batch)
        assert w.grad == close(2 * expected[0])
        w.grad = b.grad = None
        w.data = w.data - 0.1


TENSOR_CASES = {
    "relu": lambda a, b: (a @ b).relu().sum(),
    "choices": lambda a, b: (micrograd.maximum(a, 0.1) + micrograd.clamp(a, -0.5, 0.5) + a.abs() + a.elu()).sum(),
    "softmax": lambda a, b: ((a @ b).softmax(1) * 2).log().sum() + a.log_softmax(0).mean() + a.logsumexp(1).sum(),
    "shapes": lambda a, b: (a.T.reshape(2, 6) * b.reshape(-1)[None, :6]).permute(1, 0)[1:4, ::2].sum() + a.cumsum(0).sum(),
    "picked": lambda a, b: a[[0, 2, 2], [0, 1, 1]].sum() + (a * a)[a.shape[0] - 1].sum(),
    "joined": lambda a, b: (micrograd.tensor.cat([a, b.T]) ** 2).sum() + micrograd.tensor.stack([a, a * 2]).exp().mean(),
    "batched": lambda a, b: (a.reshape(2, 2, 3) @ b).sigmoid().sum() + a.var() + (a * a).norm(),
    "broadcast": lambda a, b: (a + b.sum()).silu().sum() * a[0, 0] + (a * a[:, :1]).gelu().mean(),
    "bent": lambda a, b: micrograd.erf(a).sum() + (a * a + 1).sqrt().sum() + micrograd.softplus(b).prod(),
}


@pytest.mark.parametrize("name", TENSOR_CASES)
def test_operations_on_arrays(name):
    chance = np.random.default_rng(3)
    a, b = Tensor(chance.normal(size=(4, 3))), Tensor(chance.normal(size=(3, 4)))
    program = compile(TENSOR_CASES[name](a, b), target="numpy")
    for _ in range(2):                                  # the second time with other data: choices are made anew
        loss = TENSOR_CASES[name](a, b)
        loss.backward()
        expected = {x: x.grad for x in (a, b) if x.grad is not None}
        a.grad = b.grad = None
        assert program() == close(loss.item())
        assert {x: x.grad for x in (a, b) if x.grad is not None} == {x: close(g) for x, g in expected.items()}
        a.grad = b.grad = None
        a.data, b.data = -a.data[::-1].copy(), chance.normal(size=(3, 4))


def test_an_operation_of_ones_own_on_arrays():
    @micrograd.op(lambda g, x, y: g * micrograd.cos(x), array=lambda numpy, x: numpy.sin(x))
    def wave(x):
        return math.sin(x)

    a = Tensor([[0.5, 1.0], [2.0, -1.0]])
    program = compile((wave(a) * a).norm(dim=1).sum(), target="numpy")
    loss = (wave(a) * a).norm(dim=1).sum()
    loss.backward()
    expected, a.grad = a.grad, None
    assert program() == close(loss.item()) and a.grad == close(expected)


def test_float32_stays_float32():
    a = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    loss = (a.tanh() * a).sum()
    program = compile(loss, target="numpy")
    loss.backward()
    expected, a.grad = a.grad, None
    program()
    assert a.grad.dtype == np.float32 and a.grad == pytest.approx(expected, rel=1e-6)


def test_values_and_tensors_in_one_program():
    w, x = Value(2.0), Tensor([1.0, 2.0, 3.0])
    loss = (w * x).exp().sum() * w
    loss.backward(retain_graph=True)
    expected = w.grad, x.grad
    w.grad, x.grad = Value(0).grad, None
    assert compile(loss, target="numpy")() == close(loss.item())
    assert w.grad == close(expected[0]) and x.grad == close(expected[1])


def test_a_tensor_program_says_what_it_cannot_do():
    a = Tensor([[1.0, 2.0]])
    with pytest.raises(TypeError, match="cannot compile max yet"):
        compile(a.max(), target="numpy")
    with pytest.raises(TypeError, match="target='numpy'"):
        compile(a.sum())
    with pytest.raises(ValueError, match="compile again"):
        compile((a * a).sum(), [a], target="numpy")(np.ones((2, 2)))
    with pytest.raises(TypeError, match="graphs of Values"):
        source(a.sum())


# --------------------------------------------------------------------------- what cannot be compiled
def test_errors_say_what_to_do():
    x = Value(2.0)
    with pytest.raises(ValueError, match="python, numpy, c, got 'rust'"):
        compile(x * x, target="rust")
    with pytest.raises(ValueError, match="got 'rust'"):
        source(x * x, "rust")
    with pytest.raises(TypeError, match="inputs are leaves"):
        compile((x * x) * x, [x * x])
    with pytest.raises(TypeError, match="takes 1 inputs, got 0"):
        compile(x * x, [x])()
    y = Value(1.0)
    with pytest.raises(ValueError, match="same length"):
        compile(x * y, [x, y])([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="one axis"):
        compile(x * x, [x])(np.ones((2, 2)))
    fixed = Value(1.0, requires_grad=False)
    with pytest.raises(ValueError, match="frozen"):
        compile(x * (fixed + 1), [fixed])
    by_hand = Value(4.0, (x,), "square")
    by_hand._backward = lambda: None
    with pytest.raises(RuntimeError, match="hand-written"):
        compile(by_hand * 2)
    freed = x.exp() * x
    freed.backward(retain_graph=False)
    with pytest.raises(RuntimeError, match="freed"):
        compile(freed)


def test_a_comparison_while_tracing_is_reported():
    def decided(x):
        return x * x if x > 0 else -x

    x = Value(3.0)
    with pytest.warns(UserWarning, match="always go the same way"):
        program = compile(decided, [x])
    assert program(-3.0) == 9.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile(lambda x: x.relu() * 2, [x])(-3.0) == 0.0
        assert x > 1                                    # elsewhere nothing is reported
    with pytest.raises(TypeError, match="one node"):
        compile(lambda x: [x], [x])


# ------------------------------------------------------------------------------------ building C
def test_without_a_compiler_the_error_names_the_other_targets(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("MICROGRAD_CC", raising=False)
    monkeypatch.setattr(build, "_packaged", lambda: None)
    x = Value(2.0)
    for inputs in ([], [x]):
        with pytest.raises(RuntimeError, match="target='python' or target='numpy'"):
            compile(x * x, inputs, target="c")
    monkeypatch.setenv("MICROGRAD_CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match="no-such-compiler"):
        compile(x * x, target="c")


def build_one(number):
    x = Value(number)
    return compile(x * x + 17.25, target="c")()


def test_concurrent_builds_share_one_file(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(build_one, [1.0, 2.0, 3.0, 4.0])) == [18.25, 21.25, 26.25, 33.25]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        assert list(processes.map(build_one, [1.0, 2.0])) == [18.25, 21.25]
    files = list((tmp_path / "micrograd").iterdir())
    assert [f.suffix for f in files] == [".so"]
    before = files[0].stat().st_mtime_ns
    build_one(5.0)
    assert files[0].stat().st_mtime_ns == before        # the second time nothing is built
    x = Value(1.0)
    files[0].unlink()
    files[0].write_bytes(b"damaged")
    assert compile(x * x + 17.25, target="c")() == 18.25


def test_a_cache_that_cannot_be_written_is_no_obstacle(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert build_one(2.0) == 21.25


def test_threads_may_share_a_program():
    for target in TARGETS:
        x = Value(0.0)
        program = compile((x * x).exp(), [x], wrt=[x], target=target)
        batches = [[0.01 * k + 0.001 * i for i in range(50)] for k in range(8)]
        expected = [program.run(batch) for batch in batches]
        wrong = []

        def work(k, program=program, batches=batches, expected=expected, wrong=wrong):
            for _ in range(50):
                value, gradients = program.run(batches[k])
                if list(value) != list(expected[k][0]) or list(gradients) != list(expected[k][1]):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


# ------------------------------------------------------------------------------------------ size
def chain(length):
    x = y = Value(0.3)
    for _ in range(length // 3):
        y = (y * 1.0001 + 0.5).relu()
    return x, y


def test_build_time_grows_linearly():
    times = []
    for length in (1500, 6000):
        _, y = chain(length)
        best = math.inf
        for _ in range(3):
            start = time.process_time()
            compile(y)
            best = min(best, time.process_time() - start)
        times.append(best)
    assert times[1] < 4 * 2 * times[0]


def test_a_long_chain_needs_no_recursion():
    x, y = chain(9000)
    y.backward()
    expected = x.grad
    x.zero_grad()
    assert compile(y)() == y.data and x.grad == expected
    x.zero_grad()
    assert compile(y, target="numpy")() == close(y.data) and x.grad == close(expected)


def test_a_gradient_that_is_a_view_keeps_the_array_that_it_looks_into():
    generator = np.random.default_rng(0)
    inputs = [micrograd.Tensor(generator.normal(size=form)) for form in ((4, 8), (5, 8), (5, 8))]

    def loss(s, q, k):
        return ((s @ q.T) * (s @ k.T)).sum()

    wanted = micrograd.grad(loss(*inputs), inputs)
    micrograd.compile(loss(*inputs), wrt=inputs, target="numpy")()
    for x, gradient in zip(inputs, wanted):
        np.testing.assert_allclose(x.grad, gradient, rtol=1e-12, atol=1e-12)
