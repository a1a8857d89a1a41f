"""One walk over the table: whatever stands in it is checked, and a new line needs no new test."""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings

import numpy
import pytest
import torch
from conftest import close, slope

import micrograd
from micrograd import Value, grad, jvp, ops
from micrograd.ops import TABLE, Operation

inf, nan = math.inf, math.nan
EDGES = (0.0, -0.0, 1e-300, -1e-300, 1000.0, -1000.0, inf, -inf, nan)
POINTS = (*EDGES, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0)           # all pairs of them are tried: ties, too
ORDINARY = (0.7, -1.3, 2.1, -0.4)                           # far enough from every kink for finite differences
UPSTREAM = (1.0, -2.5, 0.0, inf, nan)                       # what may arrive from above

with_derivative = [op for op in TABLE.values() if any(op.rules)]
each = pytest.mark.parametrize("op", with_derivative, ids=lambda op: op.name)


# --------------------------------------------------------------------------------- the walk
def check(op: Operation) -> None:
    """Everything that a line of the table promises; an AssertionError says what is broken and where."""
    check_arrays(op)
    check_finite_differences(op)
    check_recorded_rules(op)
    check_forward_mode(op)
    if counterpart(op) is not None:
        check_against_torch(op)


def points(op: Operation) -> list[tuple]:
    """All combinations of the points; where an input has no derivative it is a condition."""
    return list(itertools.product(*(POINTS if rule else (True, False) for rule in op.rules)))


def ordinary_points(op: Operation) -> list[tuple]:
    choices = [[x + 0.05 * i for x in ORDINARY] if rule else (True, False) for i, rule in enumerate(op.rules)]
    return [p for p in itertools.product(*choices) if math.isfinite(op(*p))]


def variables(op: Operation, point: tuple) -> list:
    return [Value(x) if rule else x for x, rule in zip(point, op.rules)]


def reached(op: Operation) -> list[int]:
    return [i for i, rule in enumerate(op.rules) if rule]


def value_and_gradient(op: Operation, point: tuple, upstream: float = 1.0) -> tuple[float, list[float]]:
    inputs = variables(op, point)
    y = op(*inputs)
    y.backward(upstream)
    return y.data, [inputs[i].grad for i in reached(op)]


def second_derivatives(op: Operation, point: tuple) -> list[list[float]]:
    """d2 y / dx_i dx_j by differentiating the recorded gradient."""
    inputs = variables(op, point)
    wanted = [inputs[i] for i in reached(op)]
    rows = grad(op(*inputs), wanted, create_graph=True, allow_unused=True)
    return [[x if isinstance(x, float) else x.data for x in grad(row, wanted, materialize_grads=True)]
            if isinstance(row, Value) and row.requires_grad else [0.0] * len(wanted) for row in rows]


def check_arrays(op: Operation) -> None:
    """The kernel on arrays and the rules on arrays say what the scalars say, and keep the dtype."""
    columns = [numpy.array(column) for column in zip(*points(op))]
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        values = op.on_arrays(*columns)
        parts = {i: op.rules[i](numpy.ones(len(values)), *columns, values) for i in reached(op)}
        single = [c.astype(numpy.float32) if c.dtype == float else c for c in columns]
        y = op.on_arrays(*single)
        assert y.dtype == numpy.float32, f"{op.name} makes {y.dtype} of float32"
        for i in reached(op):
            part = numpy.asarray(op.rules[i](numpy.float32(1) * numpy.ones_like(y), *single, y))
            assert part.dtype == numpy.float32, f"{op.name}: rule {i} makes {part.dtype} of float32"
    for k, point in enumerate(points(op)):
        data, gradients = value_and_gradient(op, point)
        assert close(data, values[k], 1e-13), f"{op.name}{point}: scalar {data}, array {values[k]}"
        for i, g in zip(reached(op), gradients):
            part = numpy.broadcast_to(parts[i], values.shape)[k]
            assert close(g, part, 1e-13, 1e-300), f"{op.name}{point}: input {i} receives {g}, in arrays {part}"


def check_finite_differences(op: Operation) -> None:
    """Rules are the slopes of the values, and their own rules are the slopes of the rules."""
    assert ordinary_points(op), f"{op.name} has no ordinary point"
    for point in ordinary_points(op):
        _, gradients = value_and_gradient(op, point)
        second = second_derivatives(op, point)
        for row, i in enumerate(reached(op)):
            numeric = slope(op, point, i)
            if not math.isfinite(numeric) and not math.isfinite(gradients[row]):
                continue                                    # a ** b at a < 0, by b
            assert close(gradients[row], numeric, 1e-7, 1e-9), \
                f"{op.name}{point}: input {i} receives {gradients[row]}, the slope is {numeric}"
            for column, j in enumerate(reached(op)):
                numeric = slope(lambda *p: value_and_gradient(op, p)[1][row], point, j)    # noqa: B023
                if math.isfinite(numeric) or math.isfinite(second[row][column]):
                    assert close(second[row][column], numeric, 1e-7, 1e-9), \
                        f"{op.name}{point}: second derivative {i}, {j} is {second[row][column]}, the slope is {numeric}"


def check_recorded_rules(op: Operation) -> None:
    """A recorded rule is linear in the gradient that arrives: its derivative by that is the partial derivative."""
    for point in points(op):
        _, gradients = value_and_gradient(op, point)
        inputs, upstream = variables(op, point), Value(1.0)
        rows = grad(op(*inputs), [inputs[i] for i in reached(op)], upstream, create_graph=True)
        for i, g, row in zip(reached(op), gradients, rows):
            found = grad(row, upstream, materialize_grads=True)[0] if row.requires_grad else 0.0
            assert close(row.data, g, 1e-13), f"{op.name}{point}: input {i} receives {g}, recorded {row.data}"
            assert close(found, g, 1e-13, 1e-300), f"{op.name}{point}: rule {i} is {g} a unit, its derivative {found}"


def check_forward_mode(op: Operation) -> None:
    """A tangent pushed forward is the gradient pulled back."""
    for point in points(op):
        _, gradients = value_and_gradient(op, point)
        for i, g in zip(reached(op), gradients):
            def along(x: Value, i: int = i, point: tuple = point) -> Value:
                return op(*point[:i], x, *point[i + 1:])

            _, tangent = jvp(along, (point[i],), (1.0,))
            assert close(tangent, g, 1e-13, 1e-300), f"{op.name}{point}: pushed {tangent}, pulled {g}"


# ------------------------------------------------------------------------------ against PyTorch
def counterpart(op: Operation):
    """PyTorch's function of the same name, wherever PyTorch keeps it."""
    places = (torch, torch.nn.functional, torch.special)
    return next((getattr(place, op.name) for place in places if hasattr(place, op.name)), None)


def torch_derivatives(op: Operation, cases: list[tuple]) -> list[tuple]:
    """For each point (value, {i: gradient for each upstream}, {(i, j): second derivative}).

    Inputs that PyTorch takes as plain numbers only (a slope) are left to finite differences.
    """
    function, results = counterpart(op), []
    try:
        columns = [torch.tensor(c, dtype=torch.float64 if rule else torch.bool, requires_grad=bool(rule))
                   for c, rule in zip(zip(*cases), op.rules)]
        y = function(*columns)
    except TypeError:
        if len(cases) > 1:
            return [answer for case in cases for answer in torch_derivatives(op, [case])]
        columns = [torch.tensor(cases[0][:1], dtype=torch.float64, requires_grad=True), *cases[0][1:]]
        y = function(*columns)
    nodes = {i: c for i, c in enumerate(columns) if isinstance(c, torch.Tensor) and c.requires_grad}
    first = [torch.autograd.grad(y, list(nodes.values()), torch.full_like(y, g), retain_graph=True) for g in UPSTREAM]
    recorded = torch.autograd.grad(y, list(nodes.values()), torch.ones_like(y), create_graph=True)
    second = {}
    for i, slopes in zip(nodes, recorded):
        rows = torch.autograd.grad(slopes.sum(), list(nodes.values()), retain_graph=True, allow_unused=True) \
            if slopes.requires_grad else [None] * len(nodes)
        second.update({(i, j): torch.zeros_like(y) if row is None else row for j, row in zip(nodes, rows)})
    for k in range(len(cases)):
        results.append((y[k].item(), {i: [g[n][k].item() for g in first] for n, i in enumerate(nodes)},
                        {key: row[k].item() for key, row in second.items()}))
    return results


def check_against_torch(op: Operation) -> None:
    """Value, gradient and second derivative at every combination of the points, for every upstream gradient."""
    position = {i: n for n, i in enumerate(reached(op))}
    for point, (value, first, second) in zip(points(op), torch_derivatives(op, points(op))):
        for u, upstream in enumerate(UPSTREAM):
            data, gradients = value_and_gradient(op, point, upstream)
            assert close(data, value), f"{op.name}{point} is {data}, PyTorch says {value}"
            for i, answers in first.items():
                ours = gradients[position[i]]
                cut_off = ours == 0 and math.isnan(answers[u]) and not math.isfinite(upstream)  # PyTorch: 0 * inf
                assert close(ours, answers[u]) or cut_off, \
                    f"{op.name}{point}: of {upstream}, input {i} receives {ours}, PyTorch says {answers[u]}"
        ours = second_derivatives(op, point)
        for (i, j), answer in second.items():
            found = ours[position[i]][position[j]]
            # where PyTorch has no number, ours may know the limit: 0 ** b is flat in b
            assert math.isnan(answer) or close(found, answer, abs=1e-15), \
                f"{op.name}{point}: second derivative {i}, {j} is {found}, PyTorch says {answer}"


@each
def test_the_array_kernel_says_what_the_scalars_say(op):
    check_arrays(op)


@each
def test_rules_are_the_slopes_of_values(op):
    check_finite_differences(op)


@each
def test_recorded_rules_are_the_rules(op):
    check_recorded_rules(op)


@each
def test_forward_mode_is_reverse_mode(op):
    check_forward_mode(op)


@pytest.mark.parametrize("op", [op for op in with_derivative if counterpart(op)], ids=lambda op: op.name)
def test_numbers_are_those_of_pytorch(op):
    check_against_torch(op)


def test_nearly_every_operation_has_a_counterpart():
    assert [op.name for op in with_derivative if counterpart(op) is None] == ["gelu_tanh"]


# ------------------------------------------------------------------- a new line checks itself
@contextlib.contextmanager
def entered(make):
    """An operation that stands in the table for a moment."""
    before = dict(TABLE)
    try:
        yield make()
    finally:
        TABLE.clear()
        TABLE.update(before)


def cube() -> Operation:
    return ops.unary("cube", lambda x: x * x * x, lambda g, x, y: g * (3 * x * x))


def test_one_new_line_brings_value_gradient_second_derivative_and_this_test():
    with entered(cube) as op:
        assert op(2.0) == 8.0 and micrograd.cube is op
        x = Value(2.0)
        y = micrograd.cube(x)
        y.backward()
        assert (y.data, x.grad, y.op.symbol) == (8.0, 12.0, "cube")
        assert second_derivatives(op, (2.0,)) == [[12.0]]
        assert list(op.on_arrays(numpy.array([1.0, -2.0]))) == [1.0, -8.0]
        assert jvp(op, (2.0,), (10.0,)) == (8.0, 120.0)
        check(op)


def test_one_new_line_brings_its_picture():
    with entered(cube) as op:
        x = Value(2.0, label="x")
        y = op(x)
        y.backward()
        text = str(micrograd.draw_dot(y))
        assert "cube" in text and "12" in text


def test_a_new_operation_may_become_a_method(monkeypatch):
    with entered(cube) as op:
        monkeypatch.setattr(ops.Operand, "cube", ops._method(op), raising=False)
        x = Value(2.0)
        x.cube().backward()
        assert x.grad == 12.0 and op(x).inputs == (x,)


def number(x):
    return x.detach() if isinstance(x, Value) else x


WRONG = {
    "off by a thousandth": lambda: ops.unary("cube", lambda x: x * x * x, lambda g, x, y: g * (3.003 * x * x)),
    "wrong sign": lambda: ops.unary("cube", lambda x: x * x * x, lambda g, x, y: -g * (3 * x * x)),
    "one input forgotten": lambda: ops.binary("#", lambda a, b: a * b * b, lambda g, a, b, y: g * b * b,
                                              lambda g, a, b, y: g * a * b, "hash"),
    "hidden in the second derivative": lambda: ops.unary("cube", lambda x: x * x * x,
                                                         lambda g, x, y: g * (3 * number(x) * x)),
    "scalars and arrays differ": lambda: ops.unary("cube", lambda x: x * x * x, lambda g, x, y: g * (3 * x * x),
                                                   array=lambda np, x: np.power(np.abs(x), 3)),
    "found by its name in PyTorch": lambda: ops.unary("exp2", lambda x: ops.pow(2.0, x) + 0 * (x > 900),
                                                      lambda g, x, y: ops.where(x < 0, 0.0, g * y * math.log(2))),
    "deaf to what arrives": lambda: ops.unary("square", lambda x: x * x, lambda g, x, y: 2 * x + 0 * g),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_the_walk_catches_a_wrong_rule(make):
    with entered(make) as op, pytest.raises(AssertionError):
        check(op)


def test_right_rules_of_pytorchs_names_pass():
    with entered(lambda: ops.unary("square", lambda x: x * x, lambda g, x, y: g * (2 * x))) as op:
        assert counterpart(op) is torch.square
        check(op)


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="'tanh' already"):
        ops.unary("tanh", lambda x: x, lambda g, x, y: g)


# ----------------------------------------------------------------------- calling an operation
def test_operations_accept_floats_numbers_of_every_kind_and_arrays():
    assert ops.exp(0) == 1.0 and ops.exp(numpy.float32(0.0)) == 1.0 and ops.exp(numpy.array(0.0)) == 1.0
    assert ops.maximum(2, numpy.int64(3)) == 3.0
    assert type(ops.add(1, 2)) is float
    assert ops.add(numpy.array([1.0, 2.0]), 1.0).tolist() == [2.0, 3.0]
    assert ops.where(True, 1.0, 2.0) == 1.0 and ops.where(numpy.array([True, False]), 1.0, 2.0).tolist() == [1.0, 2.0]


def test_operations_never_return_NotImplemented():
    x = Value(2.0)
    for wrong in (lambda: x.maximum("a"), lambda: x.pow("a"), lambda: ops.where(True, x, "a"), lambda: x.elu("a"),
                  lambda: ops.maximum("a", x), lambda: ops.exp("a"), lambda: ops.add(2.0, None), lambda: x + "a",
                  lambda: x + None, lambda: [] * x, lambda: x.clamp("a", 1.0), lambda: ops.add(x, 1j)):
        with pytest.raises(TypeError):
            wrong()


def test_the_number_of_inputs_is_checked():
    with pytest.raises(TypeError, match="mul takes 2 inputs, got 1"):
        ops.mul(2.0)
    with pytest.raises(TypeError, match="tanh takes 1 inputs, got 2"):
        ops.tanh(2.0, 3.0)
    with pytest.raises(TypeError, match="leaky_relu takes 2 inputs, got 1 and slope=; by name it knows negative_slope"):
        ops.leaky_relu(2.0, slope=0.1)
    with pytest.raises(TypeError, match="elu takes 2 inputs, got 2 and alpha=; by name it knows alpha"):
        ops.elu(2.0, 1.0, alpha=1.0)


def test_trailing_inputs_have_pytorchs_defaults():
    assert ops.leaky_relu(-2.0) == -0.02 and ops.leaky_relu(-2.0, 0.5) == -1.0
    assert ops.elu(-1.0) == math.expm1(-1.0) and ops.elu(-1.0, 2.0) == 2 * math.expm1(-1.0)
    assert Value(-2.0).leaky_relu(negative_slope=0.5).data == -1.0
    assert Value(-1.0).elu(alpha=2.0).data == 2 * math.expm1(-1.0)


def test_clamp_and_gelu_take_what_pytorchs_take():
    x = torch.tensor([-3.0, 0.2, 3.0], dtype=torch.float64, requires_grad=True)
    torch.nn.functional.gelu(x, approximate="tanh").sum().backward()
    for number, slope_there in zip((-3.0, 0.2, 3.0), x.grad.tolist()):
        v = Value(number)
        v.gelu(approximate="tanh").backward()
        assert close(v.grad, slope_there, 1e-12)
    assert [ops.clamp(v, 0.0, 1.0) for v in (-1.0, 0.5, 2.0)] == [0.0, 0.5, 1.0]
    assert [ops.clamp(v, min=0.0) for v in (-1.0, 2.0)] == [0.0, 2.0]
    assert [Value(v).clamp(max=1.0).data for v in (-1.0, 2.0)] == [-1.0, 1.0]
    with pytest.raises(ValueError, match="clamp needs min, max or both"):
        ops.clamp(1.0)
    with pytest.raises(ValueError, match="'none' or 'tanh', got 'erf'"):
        ops.gelu(1.0, approximate="erf")


def test_partial_is_the_rule_for_a_gradient_of_one():
    assert ops.mul.partial(0, 3.0, 4.0) == 4.0 and ops.div.partial(1, 1.0, 0.0) == -inf
    assert ops.sqrt.partial(0, 0.0) == inf and ops.log.partial(0, 0.0) == inf
    for op in with_derivative:
        for point in points(op):
            _, gradients = value_and_gradient(op, point)
            for i, g in zip(reached(op), gradients):
                assert close(float(op.partial(i, *point)), g), (op.name, point, i)


def test_own_rules_divide_by_zero_and_overflow_as_ieee_says():
    def inverse_square():
        return ops.unary("inverse_square", lambda x: 1 / (x * x), lambda g, x, y: -2 * g / (x * x * x))

    def difference():
        return ops.unary("difference", lambda x: x, lambda g, x, y: g / (1 - x * x))

    def power():
        return ops.unary("power", lambda x: x ** 3, lambda g, x, y: g * (3 * x ** 2))

    for make, point, value, slope_there in ((inverse_square, 0.0, inf, -inf), (difference, 1.0, 1.0, inf),
                                            (difference, -1.0, -1.0, inf), (power, 1e200, inf, inf)):
        with entered(make) as op:
            assert value_and_gradient(op, (point,)) == (value, [slope_there])


def test_every_public_function_of_the_table_is_at_the_front_door():
    for name in TABLE:
        assert getattr(micrograd, name) in (TABLE[name], ops.gelu) and name in micrograd.__all__
    assert micrograd.gelu is ops.gelu and micrograd.clamp is ops.clamp and "clamp" in micrograd.__all__


def test_methods_are_the_functions_of_the_table():
    for name in ("abs sign exp expm1 log log1p sqrt erf sin cos tan atan sinh cosh tanh sigmoid relu silu softplus "
                 "logsigmoid leaky_relu elu gelu neg").split():
        x = Value(0.7)
        method = getattr(x, name, x.__neg__)
        assert method().data == getattr(micrograd, name)(0.7) and method().inputs[0] is x
    assert Value(2.0).where(True, 3.0).data == 2.0 and Value(2.0).where(False, 3.0).data == 3.0
    assert Value(2.0).maximum(3.0).data == 3.0 and Value(2.0).minimum(3.0).data == 2.0 and Value(2.0).pow(3).data == 8.0
