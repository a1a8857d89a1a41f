"""Programs that were written for karpathy/micrograd run here as they are, and print the same numbers."""

from __future__ import annotations

import copy
import math
import pickle
import random

import numpy as np
import pytest
import torch
from conftest import close, slope

from micrograd.engine import Value
from micrograd.nn import MLP, Layer, Module, Neuron
from micrograd.tensor import Tensor


# ------------------------------------------------------------------------------- the front page
def test_the_expression_of_the_front_page(capsys):
    a = Value(-4.0)
    b = Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    print(f"{g.data:.4f}")
    g.backward()
    print(f"{a.grad:.4f}")
    print(f"{b.grad:.4f}")
    assert capsys.readouterr().out.split() == ["24.7041", "138.8338", "645.5773"]
    assert (g.data, a.grad, b.grad) == (24.70408163265306, 138.83381924198252, 645.5772594752186)


def test_an_expression_checked_against_pytorch_as_its_own_tests_do():
    def expression(x, relu):
        z = 2 * x + 2 + x
        q = relu(z) + z * x
        h = relu(z * z)
        return h + q + q * x

    x, t = Value(-4.0), torch.tensor(-4.0, dtype=torch.float64, requires_grad=True)
    y, reference = expression(x, Value.relu), expression(t, torch.relu)
    y.backward()
    reference.backward()
    assert (y.data, x.grad) == (reference.item(), t.grad.item()) == (-20.0, 46.0)


# -------------------------------------------------------------------------------- the moons demo
def two_moons(n, noise):
    """Two interleaving half circles; draws from numpy.random in the order of scikit-learn's make_moons."""
    angle = np.linspace(0, np.pi, n // 2)
    outer, inner = np.c_[np.cos(angle), np.sin(angle)], np.c_[1 - np.cos(angle), 0.5 - np.sin(angle)]
    order = np.arange(n)
    np.random.shuffle(order)
    points = np.r_[outer, inner][order]
    return points + np.random.normal(scale=noise, size=points.shape), np.repeat([0, 1], n // 2)[order]


def moons_loss(model, X, y, batch_size=None):
    if batch_size is None:
        Xb, yb = X, y
    else:
        ri = np.random.permutation(X.shape[0])[:batch_size]
        Xb, yb = X[ri], y[ri]
    inputs = [list(map(Value, xrow)) for xrow in Xb]
    scores = list(map(model, inputs))
    losses = [(1 + -yi * scorei).relu() for yi, scorei in zip(yb, scores)]
    data_loss = sum(losses) * (1.0 / len(losses))
    reg_loss = 1e-4 * sum(p * p for p in model.parameters())
    accuracy = [(yi > 0) == (scorei.data > 0) for yi, scorei in zip(yb, scores)]
    return data_loss + reg_loss, sum(accuracy) / len(accuracy)


def test_the_moons_demo_separates_all_hundred_points(no_collector):
    np.random.seed(1337)
    random.seed(1337)
    X, y = two_moons(100, noise=0.1)
    y = y * 2 - 1
    model = MLP(2, [16, 16, 1])
    assert len(model.parameters()) == 337
    assert str(model.layers[0]).startswith("Layer of [ReLUNeuron(2), ReLUNeuron(2)")
    assert str(model).endswith("Layer of [LinearNeuron(16)]]")
    history = []
    for k in range(100):
        total_loss, acc = moons_loss(model, X, y)
        model.zero_grad()
        total_loss.backward()
        learning_rate = 1.0 - 0.9 * k / 100
        for p in model.parameters():
            p.data -= learning_rate * p.grad
        history.append((total_loss.data, acc))
        if acc == 1.0:
            break
    assert close(history[0][0], 0.8958441028683222, 1e-9) and history[0][1] == 0.5
    assert close(history[1][0], 1.7235905336972022, 1e-9) and history[1][1] == 0.81
    assert history[-1][1] == 1.0 and history[-1][0] < 0.1
    assert moons_loss(model, X, y, batch_size=10)[1] >= 0.9


# --------------------------------------------------------------------------- lecture notebooks
def trace(root):
    nodes, edges = set(), set()

    def build(v):
        if v not in nodes:
            nodes.add(v)
            for child in v._prev:
                edges.add((child, v))
                build(child)
    build(root)
    return nodes, edges


def draw_dot(root):
    """The drawing of the lecture, as text."""
    lines = []
    nodes, edges = trace(root)
    for n in nodes:
        uid = str(id(n))
        lines.append('%s [label="{ %s | data %.4f | grad %.4f }"]' % (uid, n.label, n.data, n.grad))    # noqa: UP031
        if n._op:
            lines.append(f'{uid + n._op} [label="{n._op}"]')
            lines.append(f"{uid + n._op} -> {uid}")
    for n1, n2 in edges:
        lines.append(f"{str(id(n1))} -> {str(id(n2)) + n2._op}")
    return lines


def lecture_neuron():
    x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
    w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
    b = Value(6.8813735870195432, label="b")
    x1w1 = x1 * w1; x1w1.label = "x1*w1"                    # noqa: E702
    x2w2 = x2 * w2; x2w2.label = "x2*w2"                    # noqa: E702
    x1w1x2w2 = x1w1 + x2w2; x1w1x2w2.label = "x1*w1 + x2*w2"        # noqa: E702
    n = x1w1x2w2 + b; n.label = "n"                         # noqa: E702
    o = n.tanh(); o.label = "o"                             # noqa: E702
    return x1, x2, w1, w2, b, x1w1, x2w2, x1w1x2w2, n, o


def test_a_notebooks_own_drawing_finds_every_node_and_edge():
    *nodes, o = lecture_neuron()
    o.backward()
    lines = draw_dot(o)
    found, edges = trace(o)
    assert found == {*nodes, o} and len(edges) == 9 and len(lines) == 10 + 5 * 2 + 9
    assert sum("data 0.7071 | grad 1.0000" in line for line in lines) == 1
    assert {n._op for n in found} == {"", "*", "+", "tanh"} and sum(n._op == "" for n in found) == 5


def test_a_drawing_shows_each_constant_as_one_node():
    x = Value(3.0, label="x")
    y = (2 * x + 1) / 4
    nodes, edges = trace(y)
    assert len(nodes) == 7 and len(edges) == 6
    assert trace(y)[0] == nodes and trace(y)[1] == edges    # the same nodes at the second look
    assert sorted(n.data for n in nodes if n._op == "") == [1.0, 2.0, 3.0, 4.0]


def test_backward_pushed_by_hand_node_by_node():
    x1, x2, w1, w2, b, x1w1, x2w2, x1w1x2w2, n, o = lecture_neuron()
    o.grad = 1.0
    for node in (o, n, b, x1w1x2w2, x2w2, x1w1):            # b is a leaf: pushing it does nothing
        node._backward()
    assert [round(v.grad, 10) for v in (n, b, x1w1, x2w2, x1, w1, x2, w2)] == [0.5, 0.5, 0.5, 0.5, -1.5, 1.0, 0.5, 0.0]


def test_a_notebooks_own_topological_sort():
    x1, x2, w1, w2, *_, o = lecture_neuron()
    topo, visited = [], set()

    def build_topo(v):
        if v not in visited:
            visited.add(v)
            for child in v._prev:
                build_topo(child)
            topo.append(v)
    build_topo(o)
    o.grad = 1.0
    for node in reversed(topo):
        node._backward()
    by_hand = [x1.grad, x2.grad, w1.grad, w2.grad]
    for node in topo:
        node.grad = 0.0
    o.backward()
    assert by_hand == [x1.grad, x2.grad, w1.grad, w2.grad] and len(topo) == 10


def test_a_sort_that_counts_uses_over_prev_twice():
    x = Value(3.0)
    y = (2 * x + 1) * (x - 5)
    uses, ready, order = {}, [y], []
    for v in trace(y)[0]:
        for child in v._prev:
            uses[child] = uses.get(child, 0) + 1
    while ready:
        v = ready.pop()
        order.append(v)
        for child in v._prev:
            uses[child] -= 1
            if uses[child] == 0:
                ready.append(child)
    y.grad = 1.0
    for v in order:
        v._backward()
    assert x.grad == 2 * (3 - 5) + 7 and len(order) == 8


def test_a_kept_order_runs_again_after_leaves_were_changed():
    a, b = Value(2.0), Value(-3.0)
    loss = (a * b + 1.0) ** 2
    topo, seen = [], set()

    def build(v):
        if v not in seen:
            seen.add(v)
            for child in v._prev:
                build(child)
            topo.append(v)
    build(loss)
    for step in (0.0, 0.5):
        a.data, b.data = 2.0 + step, -3.0 + step
        product, total = loss._prev[0]._prev[0], loss._prev[0]
        product.data = a.data * b.data                      # the forward pass by hand, in the kept order
        total.data = product.data + 1.0
        loss.data = total.data ** 2
        for v in topo:
            v.grad = 0.0
        loss.grad = 1.0
        for v in reversed(topo):
            v._backward()
        expected = 2 * (a.data * b.data + 1)
        assert (a.grad, b.grad) == (expected * b.data, expected * a.data)


def test_tanh_spelled_out_in_exponentials():
    x1, x2, w1, w2, b = Value(2.0), Value(0.0), Value(-3.0), Value(1.0), Value(6.8813735870195432)
    e = (2 * (x1 * w1 + x2 * w2 + b)).exp()
    o = (e - 1) / (e + 1)
    o.backward()
    assert all(close(a, b, 1e-14, 1e-14) for a, b in zip((o.data, x1.grad, w1.grad, x2.grad, w2.grad),
                                                         (math.sqrt(0.5), -1.5, 1.0, 0.5, 0.0)))


def test_the_softmax_of_the_exercises():
    logits = [Value(0.0), Value(3.0), Value(-2.0), Value(1.0)]
    counts = [logit.exp() for logit in logits]
    denominator = sum(counts)
    probs = [c / denominator for c in counts]
    loss = -probs[3].log()
    loss.backward()
    expected = [0.041772570515350445, 0.8390245074625319, 0.005653302662216329, -0.8864503806400986]
    assert close(loss.data, 2.1755153626167147, 1e-14)
    assert all(close(logit.grad, g, 1e-13) for logit, g in zip(logits, expected))


def test_the_slope_by_a_small_step():
    def f(a, b, c):
        return a * b + c

    a, b, c = Value(2.0), Value(-3.0), Value(10.0)
    d = f(a, b, c)
    d.backward()
    h = 1e-4
    assert abs((f(2.0 + h, -3.0, 10.0) - d.data) / h - a.grad) < 1e-8
    assert close(slope(f, (2.0, -3.0, 10.0), 1), b.grad, 1e-9)


# --------------------------------------------------------------------------- your own operation
def sin_by_hand(x):
    out = Value(math.sin(x.data), (x,), "sin")

    def _backward():
        x.grad += math.cos(x.data) * out.grad
    out._backward = _backward
    return out


def test_an_operation_by_closure_mixes_with_built_in_ones():
    x = Value(1.0)
    y = sin_by_hand(x) * 2
    y.backward()
    assert x.grad == 2 * math.cos(1.0) == 1.0806046117362795
    assert y._prev[0]._op == "sin" and y._prev[0]._prev == (x,)
    y.backward()
    assert x.grad == 4 * math.cos(1.0)
    z = Value(0.5)
    (sin_by_hand(z * z) + sin_by_hand(z)).backward()
    assert close(z.grad, 2 * 0.5 * math.cos(0.25) + math.cos(0.5), 1e-15)


def test_an_operation_by_patching_the_class(monkeypatch):
    monkeypatch.setattr(Value, "sin", sin_by_hand)

    def softsign(self):
        return self / (1 + abs(self))
    monkeypatch.setattr(Value, "softsign", softsign, raising=False)
    x = Value(1.0)
    y = x.sin() + x.softsign()
    y.backward()
    assert close(x.grad, math.cos(1.0) + 0.25, 1e-15) and x.sin()._op == "sin"


def test_patching_an_operator_of_the_class(monkeypatch):
    calls = []
    add = Value.__add__

    def counted(self, other):
        calls.append(other)
        return add(self, other)
    monkeypatch.setattr(Value, "__add__", counted)
    x = Value(1.0)
    (x + 1 + x).backward()
    assert x.grad == 2.0 and len(calls) == 2


def test_an_operation_by_subclass():
    class Number(Value):
        def __init__(self, data, _children=(), _op="", note="none"):
            super().__init__(data, _children, _op)
            self.note = note

        def cube(self):
            out = Number(self.data ** 3, (self,), "cube", note="made")

            def _backward():
                self.grad += 3 * self.data ** 2 * out.grad
            out._backward = _backward
            return out

    x = Number(2.0)
    y = x.cube()
    z = y * x + x
    z.backward()
    assert (z.data, x.grad) == (18.0, 4 * 8 + 1) and (x.note, y.note) == ("none", "made")
    assert isinstance(z, Value) and y._prev == (x,) and "2.0" in repr(x)


class Weight(Value):
    """A Value with more to say, and a constructor of its own."""

    def __init__(self, note, start=0.5):
        super().__init__(start)
        self.note = note


class Named(Tensor):
    __slots__ = ("unit",)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_leaves_of_ones_own_class_are_copied_with_all_they_have(way):
    w, t = Weight(["bias"]), Named([1.0, 2.0], label="t", requires_grad=False)
    t.unit = "cm"
    (w * w).backward()
    twin, other = way(w), way(t)
    assert (type(twin), twin.note, twin.data, twin.grad, twin.requires_grad) == (Weight, ["bias"], 0.5, 1.0, True)
    assert (type(other), other.unit, other.label, other.data.tolist(), other.requires_grad) == (
        Named, "cm", "t", [1.0, 2.0], False)
    assert (twin.note is w.note) == (way is copy.copy) and not np.shares_memory(other.data, t.data)
    with pytest.raises(RuntimeError, match="detach"):
        way(w * w)


def test_an_operation_of_many_parents():
    parts = [Value(float(i)) for i in range(1000)]
    out = Value(sum(p.data for p in parts), parts, "sum")

    def _backward():
        for p in parts:
            p.grad += out.grad
    out._backward = _backward
    (out * 3).backward()
    assert out.data == 499500.0 and {p.grad for p in parts} == {3.0} and len(out._prev) == 1000
    a = Value(2.0)
    twice = Value(4.0, {a}, "double")

    def _backward_twice():
        a.grad += 2 * twice.grad
    twice._backward = _backward_twice
    twice.backward()
    assert a.grad == 2.0


def test_the_backward_of_a_built_in_operation_may_be_replaced():
    x = Value(3.0)
    y = x * x

    def straight_through():
        x.grad += y.grad
    y._backward = straight_through
    (y * 2).backward()
    assert x.grad == 2.0 and y._op == "*" and y._prev == (x, x)


def test_a_node_without_a_backward_passes_nothing_on():
    x = Value(3.0)
    out = Value(9.0, (x,), "?")
    (out * 2).backward()
    assert x.grad == 0.0 and out.grad == 2.0


def test_the_symbol_of_an_operation_may_be_set():
    out = Value(9.0, (Value(3.0),))
    out._op = "square"
    assert out._op == "square"
    y = Value(2.0) + Value(1.0)
    y._op = "plus"
    y.backward()
    assert y._op == "plus" and y._prev[0].grad == 1.0


# -------------------------------------------------------------------------------- training loops
def test_the_training_loop_of_the_lecture():
    random.seed(7)
    n = MLP(3, [4, 4, 1])
    xs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
    ys = [1.0, -1.0, -1.0, 1.0]
    losses = []
    for _ in range(100):
        ypred = [n(x) for x in xs]
        loss = sum((yout - ygt) ** 2 for ygt, yout in zip(ys, ypred))
        for p in n.parameters():
            p.grad = 0.0
        loss.backward()
        for p in n.parameters():
            p.data += -0.05 * p.grad
        losses.append(loss.data)
    assert losses[-1] < 0.02 < losses[0]


def test_sums_start_from_a_number_or_from_a_value():
    def losses():
        w = Value(2.0)
        return w, [(w * x - 1) ** 2 for x in (1.0, 2.0, 3.0)]

    gradients = []
    for start in ([], [0.0], [Value(0)], [Value(0.0)]):
        w, parts = losses()
        loss = sum(parts, *start)
        loss.backward()
        assert loss.data == 35.0
        gradients.append(w.grad)
    assert set(gradients) == {44.0}


def test_numpy_rows_and_scalars_are_data():
    random.seed(1)
    model = MLP(2, [3, 1])
    X = np.array([[0.5, -1.0], [2.0, 0.25]])
    y = np.array([1, -1])
    for row in X:
        as_values, as_list, as_row = model(list(map(Value, row))), model(row.tolist()), model(row)
        assert type(as_row) is Value and as_values.data == as_list.data == as_row.data
    loss = sum((yi - model(row)) ** 2 for row, yi in zip(X, y)) / np.float64(2)
    loss.backward()
    for p in model.parameters():
        p.data -= np.float64(0.1) * p.grad
    assert loss.data > 0 and model(X[0]).data != as_values.data
    p = model.parameters()[0]
    p.data = np.float32(0.5)
    (p * p).backward(1.0)
    assert "np." not in repr(p)


def test_logistic_regression_with_its_own_optimiser_and_sigmoid():
    class SGD:
        def __init__(self, parameters, rate):
            self.parameters, self.rate = parameters, rate

        def step(self):
            for p in self.parameters:
                p.data -= self.rate * p.grad

        def zero_grad(self):
            for p in self.parameters:
                p.grad = 0

    def sigmoid(x):
        return 1 / (1 + (-x).exp())

    w, b = Value(0.0), Value(0)
    optimiser = SGD([w, b], 1.0)
    data = [(-2.0, 0), (-1.0, 0), (0.5, 1), (3.0, 1)]
    for _ in range(60):
        loss = Value(0)
        for x, t in data:
            p = sigmoid(w * x + b)
            loss += -(t * p.log() + (1 - t) * (1 - p).log())
        loss = loss / len(data)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.data < 0.15 and all((sigmoid(w * x + b).data > 0.5) == bool(t) for x, t in data)


def test_early_stopping_learning_rate_decay_and_momentum_by_hand():
    w = Value(5.0)
    velocity, best, patience = 0.0, math.inf, 0
    for k in range(500):
        loss = (w - 1.5) ** 2 + 0.1 * abs(w)
        w.grad = 0.0
        loss.backward()
        velocity = 0.9 * velocity + w.grad
        w.data -= 0.05 * 0.99 ** k * velocity
        patience = 0 if loss < best - 1e-12 else patience + 1
        best = min(best, loss.data)
        if patience > 60:
            break
    assert abs(w.data - 1.45) < 1e-2


def test_xor_with_a_network_written_out_by_hand():
    random.seed(11)
    hidden = [[Value(random.uniform(-1, 1)) for _ in range(3)] for _ in range(4)]
    last = [Value(random.uniform(-1, 1)) for _ in range(5)]
    table = [([0, 0], 0), ([0, 1], 1), ([1, 0], 1), ([1, 1], 0)]

    def forward(x):
        inside = [sum((w * xi for w, xi in zip(row, x)), row[-1]).tanh() for row in hidden]
        return sum((w * h for w, h in zip(last, inside)), last[-1])

    parameters = [w for row in hidden for w in row] + last
    for _ in range(300):
        loss = sum([(forward(x) - t) ** 2 for x, t in table], Value(0))
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
    assert loss.data < 0.01 and [round(forward(x).data) for x, _ in table] == [0, 1, 1, 0]


def test_a_character_network_unrolled_in_time_has_pytorchs_loss_and_gradients():
    text, size = "hello hell", 4
    letters = sorted(set(text))
    ids = [letters.index(c) for c in text]
    chance = random.Random(2)
    shapes = {"Wxh": (size, len(letters)), "Whh": (size, size), "Why": (len(letters), size)}
    numbers = {name: [[chance.gauss(0, 0.3) for _ in range(n)] for _ in range(m)] for name, (m, n) in shapes.items()}
    W = {name: [[Value(x) for x in row] for row in rows] for name, rows in numbers.items()}
    h, losses = [Value(0.0)] * size, []
    for now, then in zip(ids, ids[1:]):
        h = [(W["Wxh"][i][now] + sum(w * hj for w, hj in zip(W["Whh"][i], h))).tanh() for i in range(size)]
        counts = [sum(w * hj for w, hj in zip(row, h)).exp() for row in W["Why"]]
        losses.append(-(counts[then] / sum(counts)).log())
    loss = sum(losses)
    loss.backward()

    T = {name: torch.tensor(rows, requires_grad=True) for name, rows in numbers.items()}
    state, total = torch.zeros(size), 0.0
    for now, then in zip(ids, ids[1:]):
        state = torch.tanh(T["Wxh"][:, now] + T["Whh"] @ state)
        total = total + torch.nn.functional.cross_entropy((T["Why"] @ state)[None], torch.tensor([then]))
    total.backward()
    assert close(loss.data, total.item(), 1e-13)
    for name in shapes:
        np.testing.assert_allclose([[w.grad for w in row] for row in W[name]], T[name].grad, rtol=1e-11, atol=1e-14)


def test_digits_drawn_in_a_grid_are_told_apart():
    shapes = {"0": "###/#.#/#.#/#.#/###", "1": ".#./##./.#./.#./###", "7": "###/..#/.#./.#./.#."}
    images = [[float(c == "#") for c in drawing.replace("/", "")] for drawing in shapes.values()]
    random.seed(4)
    model = Layer(15, 3, nonlin=False)
    for _ in range(30):
        loss = Value(0)
        for target, image in enumerate(images):
            logits = model(image)
            counts = [logit.exp() for logit in logits]
            loss -= (counts[target] / sum(counts)).log()
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.3 * p.grad
    noisy = [[1.0 - pixel if i == 7 else pixel for i, pixel in enumerate(image)] for image in images]
    for target, image in enumerate(images + noisy):
        scores = [score.data for score in model(image)]
        assert scores.index(max(scores)) == target % 3


# ------------------------------------------------------------------------------------ networks
def test_the_seed_gives_the_weights_that_micrograd_draws():
    random.seed(1337)
    model = MLP(2, [16, 16, 1])
    random.seed(1337)
    for layer, (nin, nout) in zip(model.layers, ((2, 16), (16, 16), (16, 1))):
        assert len(layer.neurons) == nout
        for neuron in layer.neurons:
            assert [w.data for w in neuron.w] == [random.uniform(-1, 1) for _ in range(nin)] and neuron.b.data == 0


def test_each_weight_is_drawn_on_its_own():
    random.seed(3)
    first = [w.data for w in Neuron(8).w]
    random.seed(3)
    assert len(set(first)) == 8 and first == [w.data for w in Neuron(8).w]


def test_neurons_layers_and_networks_look_as_in_micrograd():
    assert repr(Neuron(3)) == "ReLUNeuron(3)" and repr(Neuron(3, nonlin=False)) == "LinearNeuron(3)"
    assert repr(Layer(2, 2, nonlin=False)) == "Layer of [LinearNeuron(2), LinearNeuron(2)]"
    assert repr(MLP(1, [1])) == "MLP of [Layer of [LinearNeuron(1)]]"
    assert len(Neuron(3).parameters()) == 4 and len(Layer(3, 2).parameters()) == 8
    assert isinstance(Layer(2, 1)([1.0, 2.0]), Value) and len(Layer(2, 3)([1.0, 2.0])) == 3


def test_a_neuron_is_relu_of_its_weighted_sum():
    n = Neuron(2)
    n.w[0].data, n.w[1].data, n.b.data = 0.5, -1.0, 0.25
    x = [Value(2.0), Value(1.0)]
    out = n(x)
    out.backward()
    assert out.data == 0.25 and [w.grad for w in n.w] == [2.0, 1.0] and n.b.grad == 1.0
    assert [v.grad for v in x] == [0.5, -1.0]
    n.b.data = -5.0
    n.zero_grad()
    n(x).backward()
    assert n(x).data == 0.0 and [w.grad for w in n.w] == [0.0, 0.0]


def test_a_module_of_ones_own():
    class Linear(Module):
        def __init__(self):
            self.w = Value(2.0)
            self.b = Value(1.0)

        def __call__(self, x):
            return self.w * x + self.b

        def parameters(self):
            return [self.w, self.b]

    model = Linear()
    model(3.0).backward()
    assert [p.grad for p in model.parameters()] == [3.0, 1.0]
    model.zero_grad()
    assert [p.grad for p in model.parameters()] == [0, 0]


@pytest.mark.parametrize("module", ["micrograd.engine", "micrograd.nn"])
def test_the_modules_have_the_names_of_micrograds(module):
    assert {"micrograd.engine": "Value", "micrograd.nn": "MLP"}[module] in dir(__import__(module, fromlist=["*"]))
