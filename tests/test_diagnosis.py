"""What diagnose finds, and that it finds nothing where nothing is wrong."""

import math

import numpy as np
import pytest

from micrograd import Tensor, Value, diagnose, nn, no_grad


def troubles(*arguments, **options):
    return [finding.trouble for finding in diagnose(*arguments, **options)]


def chain(x, n, operation):
    for _ in range(n):
        x = operation(x)
    return x


class Line(nn.Module):
    def __init__(self):
        self.w, self.b, self.unused = Value(2.0), Value(1.0), Value(3.0)

    def forward(self, x):
        return self.w * x + self.b


def test_a_healthy_graph_has_no_finding():
    w = Value(0.5)
    loss = (w * 2 - 3) ** 2
    assert troubles(loss, lr=0.1) == []
    loss.backward()
    assert troubles(loss) == [] and str(diagnose(loss)) == "No trouble found."


@pytest.mark.parametrize("make, born", [
    (lambda x: x.log() * 2, "-inf was born in log(0)"), (lambda x: 1 / x + 1, "inf was born in div(1, 0)"),
    (lambda x: (x + 800).exp() - 1, "inf was born in exp(800)"), (lambda x: (x - 2) ** 0.5, "nan was born in pow(-2, 0.5)"),
    (lambda x: x.sqrt() * 2, "all values are finite, but on the way back a gradient of inf was born in sqrt(0)"),
    (lambda x: x * math.nan, "an input is nan from the start")])
def test_nan_and_inf_are_traced_to_their_birth(make, born):
    found, = diagnose(make(Value(0.0)))
    assert found.trouble == "nan or inf" and found.evidence == born and found.cure


def test_nan_in_arrays_too():
    found, *_ = diagnose((Tensor([1.0, -1.0], label="t").log() * 2).sum())
    assert found.evidence == "nan or inf was born in log(shape (2,))"


def test_dead_relus_of_scalar_neurons_are_those_that_rest_for_every_input():
    w, dead = Value(1.0), Value(-1.0)
    inputs = [0.5 + i / 10 for i in range(10)]
    loss = sum((w * x).relu() + (dead * x).relu() for x in inputs)
    found, = diagnose(loss)
    assert found.trouble == "dead relus" and "1 of 2 relus gave 0 for every input (10 seen)" in found.evidence
    assert troubles(sum((w * x).relu() for x in (-1.0, 1.0))) == []
    assert troubles((Value(-3.0) * 2).relu()) == ["dead relus"]


def test_dead_relus_of_fused_neurons_and_of_arrays():
    neuron = nn.Neuron(1, fused=True)
    neuron.w[0].data, neuron.b.data = -1.0, 0.0
    assert troubles(sum(neuron([x]) for x in (1.0, 2.0, 3.0))) == ["dead relus"]
    X, W = Tensor(np.ones((20, 2)), requires_grad=False), Tensor([[1.0, -1.0], [1.0, -1.0]])
    found, = diagnose((X @ W).relu().sum())
    assert "1 of 2 relus gave 0 for every input (20 seen)" in found.evidence


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_saturated_units(name):
    far, near = Value(9.0) * 1.0, Value(0.3) * 1.0
    assert troubles(getattr(far, name)()) == [f"saturated {name}"]
    assert troubles(getattr(near, name)()) == []
    assert troubles(getattr(Tensor([9.0, -9.0, 8.0, 0.1]), name)().sum()) == [f"saturated {name}"]


def test_twenty_sigmoids_vanish_and_twenty_factors_of_three_explode():
    found, = diagnose(chain(Value(0.0), 20, lambda x: x.sigmoid()))
    assert found.trouble == "vanishing gradients" and "a factor of 0.23 per layer" in found.evidence
    found, = diagnose(chain(Value(1.0), 20, lambda x: x * 3))
    assert found.trouble == "exploding gradients" and "a factor of 3 per layer" in found.evidence
    assert troubles(chain(Value(0.1), 20, lambda x: (x * 1.1).tanh())) == []


def test_parameters_that_the_loss_does_not_reach():
    line = Line()
    loss = line(3.0) ** 2
    found, = diagnose(loss, line)
    assert found.trouble == "parameters out of reach" and found.evidence.endswith("on unused")
    loss.backward()
    assert troubles(loss) == [] and troubles(line) == ["parameters without a gradient"]


def test_a_forgotten_zero_grad():
    line = Line()
    loss = line(3.0) ** 2
    loss.backward()
    loss.backward()
    found, = diagnose(loss)
    assert found.trouble == "gradients of earlier passes" and "2 times the gradient" in found.evidence
    other = line(1.0) ** 2
    other.backward()
    assert troubles(other) == ["gradients of earlier passes"]
    line.zero_grad()
    again = line(1.0) ** 2
    again.backward()
    assert troubles(again) == []


def test_a_graph_that_hangs_on_those_of_earlier_steps():
    w, total = Value(2.0), 0.0
    for step in range(3):
        loss = (w * step - 1) ** 2
        loss.backward()
        w.zero_grad()
        total = total + loss
    assert troubles(total) == ["a graph kept alive"]


@pytest.mark.parametrize("variable", [lambda: Value(3.0), lambda: Tensor([3.0])])
def test_a_learning_rate_beyond_the_curvature(variable):
    w = variable()
    loss = 5 * w * w if not w.rank else (5 * w * w).sum()           # curvature 10: every step above 0.2 climbs
    assert troubles(loss, lr=0.19) == []
    found, = diagnose(loss, lr=0.21)
    assert found.trouble == "learning rate too large" and "any step above 0.2 " in found.evidence
    g, before = 10 * w.data, loss.data
    assert np.all(5 * (w.data - 0.21 * g) ** 2 > before) and np.all(5 * (w.data - 0.19 * g) ** 2 < before)


def test_a_linear_loss_has_no_curvature():
    assert troubles(Value(3.0) * 2, lr=1e9) == []


def test_a_model_after_backward():
    model = nn.MLP(2, [3, 1])
    assert troubles(model) == ["parameters without a gradient"]
    model([1.0, 2.0]).backward()
    assert troubles(model) == []
    model.parameters()[0].data = math.nan
    assert troubles(model) == ["nan or inf"]
    deep = nn.MLP(1, [1] * 30)
    with no_grad():
        for p in deep.parameters():
            p.data = 0.5
    deep([1.0]).backward()
    assert troubles(deep) == ["vanishing gradients"]


def test_nothing_is_changed_and_nothing_is_freed():
    w = Tensor([1.0, 2.0])
    loss = (w * w).sum()
    for _ in range(2):
        diagnose(loss, lr=0.1)
    assert w.grad is None
    loss.backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_findings_print_as_text_with_their_cure():
    found = diagnose((Value(-3.0) * 2).relu())
    assert str(found) == repr(found) == (
        "1. dead relus: 1 of 1 relus gave 0 for every input (1 seen), so no gradient passes them. Lower the learning rate, "
        "start with Kaiming weights and biases above 0, or take leaky_relu.")


@pytest.mark.parametrize("wrong, error", [(3.0, TypeError), (Value(2.0), ValueError),
                                          (Value(2.0, requires_grad=False) * 2, ValueError)])
def test_errors(wrong, error):
    with pytest.raises(error, match="diagnose"):
        diagnose(wrong)
