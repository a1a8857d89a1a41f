"""Modules, neurons and layers: PyTorch's and micrograd's meaning, name for name and number for number."""

import copy
import gc
import json
import math
import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

import micrograd
from micrograd import Tensor, Value, nn, optim
from micrograd.engine import topological_order

RANDOM = np.random.default_rng(0)


# ------------------------------------------------------------------------------------ layers
def same(ours, theirs, x, rename=lambda name: name, call=None, integers=False):
    """Forward and every gradient of a layer, here and in PyTorch, with the weights of ours."""
    theirs.load_state_dict({rename(k): torch.tensor(v) for k, v in ours.state_dict().items()})
    mine, other = (x, torch.tensor(x)) if integers else (Tensor(x), torch.tensor(x, requires_grad=True))
    y, expected = ours(mine), (call or (lambda layer, t: layer(t)))(theirs, other)
    np.testing.assert_allclose(y.data, expected.detach().numpy(), rtol=0, atol=1e-10)
    upstream = RANDOM.normal(size=y.shape)
    y.backward(upstream)
    expected.backward(torch.tensor(upstream))
    if not integers:
        np.testing.assert_allclose(mine.grad, other.grad.numpy(), rtol=0, atol=1e-10)
    gradients = {name: p.grad for name, p in theirs.named_parameters()}
    for name, p in ours.named_parameters():
        np.testing.assert_allclose(p.grad, gradients[rename(name)].numpy(), rtol=0, atol=1e-10, err_msg=name)
    back = {k: v.numpy() for k, v in theirs.state_dict().items()}
    ours.load_state_dict({k: back[rename(k)] for k in ours.state_dict()})


LAYERS = {
    "linear": (lambda: nn.Linear(5, 3), lambda: torch.nn.Linear(5, 3), (4, 5)),
    "linear without bias": (lambda: nn.Linear(5, 3, bias=False), lambda: torch.nn.Linear(5, 3, bias=False), (2, 4, 5)),
    "linear of a vector": (lambda: nn.Linear(5, 3), lambda: torch.nn.Linear(5, 3), (5,)),
    "layer norm": (lambda: nn.LayerNorm(5), lambda: torch.nn.LayerNorm(5), (4, 5)),
    "layer norm of two axes": (lambda: nn.LayerNorm((4, 5), eps=1e-3), lambda: torch.nn.LayerNorm((4, 5), eps=1e-3), (2, 4, 5)),
    "layer norm plain": (lambda: nn.LayerNorm(5, elementwise_affine=False),
                         lambda: torch.nn.LayerNorm(5, elementwise_affine=False), (4, 5)),
    "layer norm without bias": (lambda: nn.LayerNorm(5, bias=False), lambda: torch.nn.LayerNorm(5, bias=False), (4, 5)),
    "rms norm": (lambda: nn.RMSNorm(5), lambda: torch.nn.RMSNorm(5), (4, 5)),
    "rms norm of two axes": (lambda: nn.RMSNorm((4, 5), eps=0.1), lambda: torch.nn.RMSNorm((4, 5), eps=0.1), (2, 4, 5)),
    "batch norm": (lambda: nn.BatchNorm1d(5), lambda: torch.nn.BatchNorm1d(5), (6, 5)),
    "batch norm with length": (lambda: nn.BatchNorm1d(5, momentum=None),
                               lambda: torch.nn.BatchNorm1d(5, momentum=None), (3, 5, 4)),
    "batch norm without statistics": (lambda: nn.BatchNorm1d(5, affine=False, track_running_stats=False),
                                      lambda: torch.nn.BatchNorm1d(5, affine=False, track_running_stats=False), (6, 5)),
    "relu": (nn.ReLU, torch.nn.ReLU, (4, 5)), "tanh": (nn.Tanh, torch.nn.Tanh, (4, 5)),
    "sigmoid": (nn.Sigmoid, torch.nn.Sigmoid, (4, 5)), "silu": (nn.SiLU, torch.nn.SiLU, (4, 5)),
    "softplus": (nn.Softplus, torch.nn.Softplus, (4, 5)), "logsigmoid": (nn.LogSigmoid, torch.nn.LogSigmoid, (4, 5)),
    "gelu": (nn.GELU, torch.nn.GELU, (4, 5)),
    "gelu by tanh": (lambda: nn.GELU("tanh"), lambda: torch.nn.GELU("tanh"), (4, 5)),
    "leaky relu": (lambda: nn.LeakyReLU(0.2), lambda: torch.nn.LeakyReLU(0.2), (4, 5)),
    "elu": (lambda: nn.ELU(alpha=0.5), lambda: torch.nn.ELU(alpha=0.5), (4, 5)),
    "softmax": (lambda: nn.Softmax(dim=0), lambda: torch.nn.Softmax(dim=0), (4, 5)),
    "log softmax": (lambda: nn.LogSoftmax(1), lambda: torch.nn.LogSoftmax(1), (4, 5)),
    "flatten": (nn.Flatten, torch.nn.Flatten, (4, 5, 2)), "identity": (nn.Identity, torch.nn.Identity, (4, 5)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_pytorchs(name):
    ours, theirs, shape = LAYERS[name]
    same(ours(), theirs(), RANDOM.normal(size=shape))


def test_embedding_is_pytorchs():
    same(nn.Embedding(7, 3), torch.nn.Embedding(7, 3), np.array([[1, 6, 1], [0, 1, 2]]), integers=True)


def test_the_padding_row_is_zero_and_learns_nothing():
    ours = nn.Embedding(7, 3, padding_idx=-6)
    assert not ours.weight.data[1].any() and ours.padding_idx == 1
    same(ours, torch.nn.Embedding(7, 3, padding_idx=1), np.array([[1, 6, 1], [0, 1, 2]]), integers=True)
    assert not ours.weight.grad[1].any()


@pytest.mark.parametrize("index, error", [([7], IndexError), ([-1], IndexError), ([0.5], TypeError)])
def test_embedding_refuses_what_is_no_index(index, error):
    with pytest.raises(error, match="0 to 6|integers"):
        nn.Embedding(7, 3)(index)


def test_causal_attention_is_pytorchs():
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    same(nn.CausalSelfAttention(6, 2), torch.nn.MultiheadAttention(6, 2, batch_first=True), RANDOM.normal(size=(3, 4, 6)),
         call=lambda layer, t: layer(t, t, t, attn_mask=mask, need_weights=False)[0])


def test_attention_sees_nothing_of_the_future():
    layer, x = nn.CausalSelfAttention(6, 3), RANDOM.normal(size=(1, 4, 6))
    before = layer(Tensor(x)).data[0, :3].copy()
    x[0, 3] += 100.0
    np.testing.assert_array_equal(layer(Tensor(x)).data[0, :3], before)
    with pytest.raises(ValueError, match="multiple"):
        nn.CausalSelfAttention(6, 4)


def test_residual_is_the_input_and_what_is_added():
    layer, x = nn.Residual(nn.Linear(3, 3), nn.Tanh()), Tensor(RANDOM.normal(size=(2, 3)))
    np.testing.assert_array_equal(layer(x).data, x.data + np.tanh(x.data @ layer[0].weight.data.T + layer[0].bias.data))
    assert list(layer.state_dict()) == ["0.weight", "0.bias"]


def test_layer_norm_of_a_constant_row():
    x = Tensor([[5.0, 5.0, 5.0, 5.0]])
    y = nn.LayerNorm(4)(x)
    y[0, 0].backward()
    assert not y.data.any()
    np.testing.assert_allclose(x.grad, [[237.17082451262843, *[-79.05694150420948] * 3]], rtol=1e-12)
    zero = Tensor([[0.0, 0.0]])
    nn.RMSNorm(2, eps=1e-5)(zero).sum().backward()
    np.testing.assert_allclose(zero.grad, [[316.2277660168379] * 2], rtol=1e-12)


def test_batch_norm_in_training_and_after():
    ours, theirs = nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    for _ in range(3):
        x = RANDOM.normal(2.0, 3.0, (8, 3))
        ours(Tensor(x)), theirs(torch.tensor(x))
    for name, value in ours.state_dict().items():
        np.testing.assert_allclose(value, theirs.state_dict()[name].detach().numpy(), atol=1e-12, err_msg=name)
    assert ours.eval() is ours and not ours.training
    theirs.eval()
    same(ours, theirs, RANDOM.normal(size=(1, 3)))
    with pytest.raises(ValueError, match="no variance"):
        ours.train()(Tensor([[1.0, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="takes"):
        ours(Tensor([[1.0, 2.0]]))


def test_dropout_at_the_ends_of_its_range():
    x = Tensor(np.ones(10000))
    nn.Dropout(1.0)(x).sum().backward()
    assert not nn.Dropout(1.0)(x).data.any() and not x.grad.any()
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)
    micrograd.manual_seed(0)
    layer = nn.Dropout(0.25)
    y = layer(x)
    assert set(y.data.tolist()) == {0.0, 1.3333333333333333}
    assert abs((y.data > 0).mean() - 0.75) < 0.02
    x.grad = None
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, y.data)
    assert layer.eval()(x) is x
    assert not layer.train()(x).data.all()
    micrograd.manual_seed(3)
    first = layer(x).data
    micrograd.manual_seed(3)
    np.testing.assert_array_equal(first, layer(x).data)


def test_float32_stays_float32():
    model = nn.Sequential(nn.Linear(3, 4, dtype=np.float32), nn.BatchNorm1d(4, dtype=np.float32), nn.Dropout(0.5), nn.GELU(),
                          nn.LayerNorm(4, dtype=np.float32), nn.RMSNorm(4, dtype=np.float32))
    y = model(Tensor(np.ones((4, 3), np.float32) * [[1], [2], [3], [4]]).detach().data.astype(np.float32))
    y.sum().backward()
    assert y.dtype == np.float32 and all(p.grad.dtype == np.float32 for p in model.parameters())


@pytest.mark.parametrize("layer, x", [(nn.Linear(3, 2), np.ones((2, 4))), (nn.LayerNorm(3), np.ones((2, 4)))])
def test_a_wrong_width_is_named(layer, x):
    with pytest.raises(ValueError, match=r"got an input of shape \(2, 4\)"):
        layer(Tensor(x))


def test_an_activation_takes_only_its_own_arguments():
    assert repr(nn.LeakyReLU(0.3)) == "LeakyReLU(negative_slope=0.3)" and nn.ReLU()(Value(-1.0)).data == 0.0
    for wrong in (lambda: nn.ReLU(0.1), lambda: nn.GELU(alpha=1), lambda: nn.ELU(1.0, 2.0)):
        with pytest.raises(TypeError, match="takes"):
            wrong()


# ---------------------------------------------------------------------------- initial weights
BOUNDS = {"xavier_uniform_": math.sqrt(6 / 500), "kaiming_uniform_": math.sqrt(2) * math.sqrt(3 / 300)}
DEVIATIONS = {"xavier_normal_": math.sqrt(2 / 500), "kaiming_normal_": math.sqrt(2 / 300), **{
    name: bound / math.sqrt(3) for name, bound in BOUNDS.items()}}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_initial_weights_spread_as_they_should(name):
    micrograd.manual_seed(0)
    w = getattr(nn.init, name)(Tensor(np.zeros((200, 300))))
    theirs = getattr(torch.nn.init, name)(torch.empty(200, 300))
    assert w.data.std() == pytest.approx(DEVIATIONS[name], rel=0.02) == pytest.approx(theirs.std().item(), rel=0.03)
    assert abs(w.data.mean()) < 0.001
    if name in BOUNDS:
        assert 0.999 * BOUNDS[name] < abs(w.data).max() <= BOUNDS[name]


def test_fans_gains_and_modes_are_pytorchs():
    t = torch.empty(4, 3, 2, 5)
    assert nn.init.fans(Tensor(t.numpy())) == torch.nn.init._calculate_fan_in_and_fan_out(t)
    for name in ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)
    w = nn.init.kaiming_uniform_(Tensor(np.zeros((50, 400))), mode="fan_out", nonlinearity="tanh")
    assert abs(w.data).max() == pytest.approx(5 / 3 * math.sqrt(3 / 50), rel=0.01)
    for wrong in (lambda: nn.init.calculate_gain("sine"), lambda: nn.init.kaiming_normal_(w, mode="fan"),
                  lambda: nn.init.xavier_normal_(Tensor([1.0]))):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 2, 3)])
def test_orthogonal_rows_are_orthogonal(shape):
    w = nn.init.orthogonal_(Tensor(np.zeros(shape)), gain=2.0).data.reshape(shape[0], -1)
    small = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)


def test_plain_fillings():
    t = Tensor(np.full((2, 2), 9.0))
    for fill, value in ((nn.init.zeros_, 0.0), (nn.init.ones_, 1.0), (lambda t: nn.init.constant_(t, 0.3), 0.3)):
        assert (fill(t).data == value).all()


def test_linear_starts_within_pytorchs_bounds():
    micrograd.manual_seed(0)
    layer = nn.Linear(25, 400)
    for p in (layer.weight, layer.bias):
        assert 0.19 < abs(p.data).max() <= 0.2 and p.data.std() == pytest.approx(0.2 / math.sqrt(3), rel=0.05)
    attention = nn.CausalSelfAttention(8, 2)
    assert abs(attention.in_proj_weight.data).max() <= math.sqrt(6 / 32) and not attention.out_proj.bias.data.any()
    assert nn.Embedding(500, 40).weight.data.std() == pytest.approx(1.0, rel=0.02)


# ---------------------------------------------------------------------- neurons as in micrograd
def test_the_same_seed_gives_micrograds_weights():
    random.seed(1337)
    expected = [random.uniform(-1, 1) for _ in range(3 * 2 + 2)]
    random.seed(1337)
    model = nn.MLP(3, [2, 1])
    assert [w.data for layer in model.layers for n in layer.neurons for w in n.w] == expected
    assert all(n.b.data == 0 for layer in model.layers for n in layer.neurons)
    assert repr(model) == ("MLP of [Layer of [ReLUNeuron(3), ReLUNeuron(3)], Layer of [LinearNeuron(2)]]")
    random.seed(1337)
    batched = nn.MLP(3, [2, 1], backend="numpy")
    assert [*batched.layers[0].weight.data.ravel(), *batched.layers[1].weight.data.ravel()] == expected


def test_the_demo_network_has_337_parameters():
    model = nn.MLP(2, [16, 16, 1])
    assert len(model.parameters()) == 337 and [p for _, p in model.named_parameters()] == model.parameters()
    assert sum(p.size for p in nn.MLP(2, [16, 16, 1], backend="numpy").parameters()) == 337


def test_each_weight_is_drawn_separately():
    random.seed(0)
    first = [w.data for w in nn.Neuron(8).w]
    random.seed(0)
    assert len(set(first)) == 8 and [w.data for w in nn.Neuron(8).w] == first


ACTIVATIONS = ["relu", "tanh", "sigmoid", "gelu", "leaky_relu", "elu", "silu", "softplus", "linear", "exp"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("inputs", [Value, float])
def test_a_fused_network_gives_the_very_same_numbers(activation, inputs):
    def run(fused):
        random.seed(3)
        model = nn.MLP(2, [4, 3, 1], activation=activation, fused=fused)
        rows = [[inputs(random.uniform(-1, 1)) for _ in range(2)] for _ in range(3)]
        loss = sum((model(row) - 1.0) ** 2 for row in rows)
        loss.backward()
        loss.backward()
        return [loss.data, *[p.grad for p in model.parameters()], *[x.grad for row in rows for x in row if inputs is Value]]
    assert run(False) == run(True)
    assert run("network") == pytest.approx(run(False), rel=1e-11)


def test_a_network_in_one_node():
    random.seed(1)
    model = nn.MLP(2, [3, 2, 1], activation="tanh", fused="network")
    x = [Value(0.5), Value(-1.0)]
    y = model(x)
    assert set(y.inputs) == {*x, *model.parameters()} and topological_order(y)[0] == [y] and y.op.symbol == "Σ 2-3-2-1"
    y.backward()
    numbers = [p.data for p in y.operands()]
    told = [g for _, g in y.flow.contributions(1.0, numbers, y.data)]
    assert told == pytest.approx([p.grad for p in y.operands()], rel=1e-12)
    assert y.op.partial(5, *numbers) == pytest.approx(y.operands()[5].grad, rel=1e-12)
    model.fused = False
    for layer in model.layers:
        for neuron in layer.neurons:
            neuron.fused = False
    first = micrograd.grad(model(x), model.parameters(), create_graph=True)
    model.fused = "network"
    again = micrograd.grad(model(x), model.parameters(), create_graph=True)
    assert [float(g) for g in again] == pytest.approx([float(g) for g in first], rel=1e-12)
    seconds = [micrograd.grad(sum(g * g for g in gradients), model.parameters(), allow_unused=True, materialize_grads=True)
               for gradients in (first, again)]
    assert seconds[0] == pytest.approx(seconds[1], rel=1e-10)
    with micrograd.no_grad():
        assert model(x).data == y.data and not model(x).requires_grad
    model.layers[0].neurons[0].w[0] = Value(2.0)            # looked up anew in each call
    model([1.0, 1.0]).backward()
    assert model.layers[0].neurons[0].w[0].grad != 0.0
    assert len(nn.MLP(2, [3, 2], fused="network")(x)) == 2
    assert model(np.ones((2, 5))).shape == (5,)


def test_a_fused_neuron_is_one_node_with_true_derivatives():
    neuron = nn.Neuron(3, activation="tanh", fused=True)
    x = [Value(0.3), Value(-0.2), Value(0.1)]
    y = neuron(x)
    operations, leaves = topological_order(y)
    assert operations == [y] and set(leaves) == {*x, *neuron.w, neuron.b} and y.op.symbol == "Σ tanh"
    assert set(y.inputs) == set(leaves)
    y.backward()
    told = dict(y.flow.contributions(1.0, [p.data for p in y.operands()], y.data))
    assert [told[i] for i in range(7)] == [p.grad for p in y.operands()]
    assert all(y.op.partial(i, *[p.data for p in y.operands()]) == told[i] for i in told)


def test_a_fused_neuron_has_second_derivatives():
    def second(fused):
        random.seed(1)
        neuron, x = nn.Neuron(2, activation="tanh", fused=fused), [Value(0.3), Value(-0.7)]
        first, = micrograd.grad(neuron(x) ** 2, [x[0]], create_graph=True)
        return list(micrograd.grad(first, [*x, *neuron.w, neuron.b]))
    assert second(True) == pytest.approx(second(False), rel=1e-12)


def test_dead_fused_neurons_hand_down_computed_zeros():
    neuron, x = nn.Neuron(1, fused=True), Value(1.0)
    neuron.w[0].data, neuron.b.data = -1.0, -1.0
    neuron([x]).backward()
    optimiser = optim.SGD(neuron.parameters(), lr=0.1, weight_decay=1.0)
    optimiser.step()                            # a gradient of zero does not skip
    assert x.grad == 0.0 and neuron.w[0].data == pytest.approx(-0.9)


def test_fused_neurons_answer_as_ieee_and_hand_down_once():
    def run(fused):
        random.seed(1)
        model = nn.MLP(1, [2, 2, 1], activation="sqrt", fused=fused)
        for neuron in model.layers[0].neurons:
            neuron.w[0].data, neuron.b.data = 0.0, 0.0
        model.layers[1].neurons[0].b.data = model.layers[1].neurons[1].b.data = 1.0
        model([1.0]).backward()
        return [p.grad for p in model.parameters()]
    np.testing.assert_array_equal(run(True), run(False))
    np.testing.assert_allclose(run("network"), run(False), rtol=1e-12)
    assert math.inf in map(abs, run("network")) and all(math.isfinite(g) for g in run("network")[4:])


def test_a_tensor_without_axes_keeps_its_gradient_in_a_fused_neuron():
    neuron, x = nn.Neuron(1, nonlin=False, fused=True), Tensor(2.0)
    neuron([x]).backward()
    assert x.grad == neuron.w[0].data


def test_detect_anomaly_sees_into_fused_neurons():
    neuron = nn.Neuron(1, activation="log", fused=True)
    neuron.w[0].data = neuron.b.data = 0.0
    with micrograd.detect_anomaly(), pytest.raises(Exception, match="log"):
        neuron([1.0]).backward()


def test_fused_neurons_keep_to_frozen_paused_and_mixed_inputs():
    neuron = nn.Neuron(2, fused=True)
    with micrograd.no_grad():
        assert not neuron([1.0, 2.0]).requires_grad
    x = Value(2.0)
    neuron([x, 3.0]).backward()
    assert x.grad in (0.0, neuron.w[0].data)
    neuron.zero_grad()
    neuron.requires_grad_(False)
    assert not neuron([1.0, 2.0]).requires_grad
    neuron.b.requires_grad = True
    neuron.b.data = 10.0
    neuron([1.0, 2.0]).backward()
    assert neuron.b.grad == 1.0 and neuron.w[0].grad == 0.0
    plain = nn.Neuron(2, fused=False)
    plain.w, plain.b = neuron.w, neuron.b
    batch = np.array([[1.0, 2.0, -30.0], [0.0, 1.0, 0.5]])
    np.testing.assert_array_equal(neuron(batch).data, plain(batch).data)


def test_a_network_of_values_takes_a_batch():
    model = nn.MLP(2, [4, 1])
    X = RANDOM.normal(size=(5, 2))
    single = [model(row.tolist()) for row in X]
    sum(single).backward()
    expected = [p.grad for p in model.parameters()]
    model.zero_grad()
    y = model(X.T)
    y.sum().backward()
    np.testing.assert_allclose(y.data, [v.data for v in single], atol=1e-12)
    np.testing.assert_allclose([p.grad for p in model.parameters()], expected, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "tanh", "leaky_relu"])
def test_the_numpy_backend_is_the_same_network(activation):
    random.seed(5)
    scalar = nn.MLP(2, [4, 3], activation=activation)
    random.seed(5)
    batched = nn.MLP(2, [4, 3], activation=activation, backend="numpy")
    X = RANDOM.normal(size=(6, 2))
    np.testing.assert_allclose(batched(X).data, [[v.data for v in scalar(row.tolist())] for row in X], atol=1e-12)
    assert nn.MLP(2, [1], backend="numpy")(X).shape == (6,)


def test_a_network_of_ones_own_kind():
    class Own(nn.MLP):
        def __init__(self, width, name):
            super().__init__(2, [width, 1])
            self.name = name
    assert len(Own(3, name="mine").parameters()) == 13


@pytest.mark.parametrize("wrong", [lambda: nn.MLP(2, [1], backend="torch"), lambda: nn.Neuron(2, activation="sine wave"),
                                   lambda: nn.Neuron(2, activation="mul"), lambda: nn.Neuron(2)([1.0])])
def test_wrong_neurons_are_refused(wrong):
    with pytest.raises(ValueError, match="backend|activation|weights"):
        wrong()


# ------------------------------------------------------------------------------------- modules
class Net(nn.Module):
    def __init__(self):
        self.own = nn.Parameter(np.ones(2))
        self.number = nn.Parameter(0.5)
        self.rows = [[nn.Linear(2, 2)], (nn.Linear(2, 3),)]
        self.named = {"head": nn.Linear(3, 1, bias=False)}
        self.mask = np.ones(3)

    def forward(self, x):
        return self.named["head"](self.rows[1][0](self.rows[0][0](x * self.own * self.number))).sum()


def test_layers_in_lists_tuples_and_dicts_are_found():
    assert [name for name, _ in Net().named_parameters()] == [
        "own", "number", "rows.0.0.weight", "rows.0.0.bias", "rows.1.0.weight", "rows.1.0.bias", "named.head.weight"]
    assert [name for name, _ in Net().named_children()] == ["rows.0.0", "rows.1.0", "named.head"]
    assert len(nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]).parameters()) == 4
    assert [name for name, _ in nn.Sequential(nn.Linear(1, 1), nn.ReLU()).named_modules()] == ["", "0", "1"]


def test_a_part_may_know_its_owner():
    model = nn.Sequential(nn.Linear(1, 1))
    model[0].owner = model
    assert list(model.state_dict()) == ["0.weight", "0.bias"] and len(model.modules()) == 2


def test_tied_weights_are_one_parameter_under_two_names():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    assert len(model.parameters()) == 1 and list(model.state_dict()) == ["0.weight", "1.weight"]


def test_shared_layers_in_a_list_are_noticed():
    with pytest.warns(UserWarning, match="share their weights"):
        nn.Sequential(*[nn.Linear(8, 8)] * 4)
    model = Net()
    with pytest.warns(UserWarning, match="Net.layers"):
        model.layers = [nn.Linear(8, 8)] * 4


def test_frozen_parameters_do_not_move():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    before = model.state_dict()
    optimiser = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.5)
    for _ in range(2):
        optimiser.zero_grad()
        model(Tensor([[1.0, 2.0]], requires_grad=False)).sum().backward()
        optimiser.step()
    moved = {name: not np.array_equal(value, before[name]) for name, value in model.state_dict().items()}
    assert moved == {"0.weight": False, "0.bias": False, "1.weight": True, "1.bias": True} and model[0].weight.grad is None
    scalar = nn.Neuron(2)
    scalar.requires_grad_(False)
    scalar.b.requires_grad, scalar.b.data, w = True, 5.0, [p.data for p in scalar.w]
    scalar([0.1, 0.1]).backward()
    optim.SGD(scalar.parameters(), lr=0.1, weight_decay=0.5).step()
    assert [p.data for p in scalar.w] == w and scalar.b.data != 5.0


def test_train_eval_apply_and_zero_grad_reach_every_part():
    model = nn.Sequential(nn.Residual(nn.Linear(2, 2), nn.Dropout()), nn.Linear(2, 1))
    model.eval()
    assert not any(part.training for part in model.modules())
    seen = []
    model.train().apply(seen.append)
    assert all(part.training for part in model.modules()) and seen[-1] is model and len(seen) == 5
    model(Tensor([[1.0, 2.0]])).sum().backward()
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.zero_grad(set_to_none=False)
    assert all((p.grad == 0).all() for p in model.parameters())


def test_forward_hooks_see_replace_and_go():
    layer, seen = nn.Linear(1, 1), []
    handle = layer.register_forward_hook(lambda module, inputs, output: seen.append((module, inputs[0].item(), output.item())))
    layer.register_forward_hook(lambda module, inputs, output: output * 0.0)
    assert layer(Tensor([2.0])).item() == 0.0 and seen[0][:2] == (layer, 2.0)
    handle.remove()
    layer(Tensor([2.0]))
    assert len(seen) == 1 and nn.Linear(1, 1)._hooks == {}


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="define forward"):
        nn.Module()(1.0)


def test_the_repr_counts():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1, bias=False)))
    assert repr(model) == ("Sequential(\n  (0): Linear(2, 3)\n  (1): ReLU()\n  (2): Sequential(\n"
                           "    (0): Linear(3, 1, bias=False)\n  )  # 3 parameters\n)  # 12 parameters")


def test_micrograd_style_modules_run_unmodified():
    class Old(nn.Module):
        def __init__(self): self.w = [Value(2.0), Value(3.0)]
        def __call__(self, x): return self.w[0] * x + self.w[1]
        def parameters(self): return self.w
    old = Old()
    old(4.0).backward()
    assert [p.grad for p in old.parameters()] == [4.0, 1.0]
    old.zero_grad()
    assert [p.grad for p in old.parameters()] == [0.0, 0.0]


def test_modules_can_be_copied_and_pickled():
    for model, x in ((nn.MLP(2, [3, 1], fused="network"), [1.0, 2.0]), (nn.MLP(2, [3, 1], backend="numpy"), [[1.0, 2.0]])):
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert other(x).item() == model(x).item() and other.parameters()[0] is not model.parameters()[0]


def test_opening_nn_opens_no_numpy():
    script = ("import sys, micrograd.nn as nn, micrograd.optim as optim; m = nn.MLP(2, [2, 1], fused=True); "
              "m([1.0, 2.0]).backward(); optim.Adam(m.parameters()).step(); optim.clip_grad_norm_(m.parameters(), 1.0); "
              "nn.mse_loss([m([1., 2.])], [0.]); m.load_state_dict(m.state_dict()); nn.summary(m); nn.Monitor(m); "
              "sys.exit('numpy' in sys.modules)")
    root = os.path.dirname(os.path.dirname(micrograd.__file__))
    assert subprocess.run([sys.executable, "-c", script], cwd=root).returncode == 0
    assert "Linear" in dir(nn) and nn.functional.mse_loss is nn.mse_loss
    with pytest.raises(AttributeError, match="Lienar"):
        nn.Lienar  # noqa: B018


# ------------------------------------------------------------------------------ saving, loading
def test_a_state_is_a_snapshot():
    for model in (nn.MLP(2, [2, 1]), nn.Linear(2, 1)):
        best = model.state_dict()
        before = json.dumps({k: np.asarray(v).tolist() for k, v in best.items()})
        for p in model.parameters():
            p.data += 1.0
        assert json.dumps({k: np.asarray(v).tolist() for k, v in best.items()}) == before
        model.load_state_dict(best)
        for p in model.parameters():
            p.data += 1.0
        assert json.dumps({k: np.asarray(v).tolist() for k, v in best.items()}) == before


def test_json_there_and_back_bit_for_bit():
    model, other = nn.MLP(2, [3, 1]), nn.MLP(2, [3, 1])
    other.load_state_dict(json.loads(json.dumps(model.state_dict())))
    assert other([0.1, 0.2]).data == model([0.1, 0.2]).data
    linear, second = nn.Linear(2, 3), nn.Linear(2, 3)
    second.load_state_dict(json.loads(json.dumps({k: v.tolist() for k, v in linear.state_dict().items()})))
    np.testing.assert_array_equal(second.weight.data, linear.weight.data)


@pytest.mark.parametrize("change, message", [
    (lambda s: s.pop("bias"), "missing: bias"), (lambda s: s.update(extra=1.0), "not known here: extra"),
    (lambda s: s.update(weight=np.ones((2, 3))), r"shape \(2, 3\) came, \(3, 2\)"),
    (lambda s: s.update(weight=np.ones((3, 2)) * 1j), "dtype complex128"),
    (lambda s: s.update(weight=np.full((3, 2), "a")), "dtype <U1"), (lambda s: s.update(weight=[[1.0], [1.0, 2.0]]), "weight")])
def test_a_state_that_does_not_fit_changes_nothing(change, message):
    model = nn.Linear(2, 3)
    before, wrong = model.state_dict(), {k: v + 1 for k, v in model.state_dict().items()}
    change(wrong)
    with pytest.raises(RuntimeError, match=message):
        model.load_state_dict(wrong)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
    with pytest.raises(RuntimeError, match="real number"):
        nn.Neuron(1).load_state_dict({"w.0": [1.0], "b": 0.0})
    model.load_state_dict({"weight": np.zeros((3, 2)), "more": 1}, strict=False)
    assert not model.weight.data.any() and model.bias.data.any()


def test_from_pytorch_and_back_key_for_key():
    ours = nn.Sequential(nn.Embedding(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    theirs = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    assert set(ours.state_dict()) == set(theirs.state_dict())
    theirs.load_state_dict({k: torch.tensor(v) for k, v in ours.state_dict().items()})
    ours.load_state_dict(theirs.state_dict())
    index = np.array([0, 3, 3])
    np.testing.assert_allclose(ours(index).data, theirs(torch.tensor(index)).detach().numpy(), atol=1e-12)


ENDINGS = [".safetensors", ".npz"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_saved_and_loaded(tmp_path, ending):
    model = nn.Sequential(nn.Linear(2, 3, dtype=np.float32), nn.BatchNorm1d(3), nn.MLP(2, [2]))
    nn.save(model, tmp_path / f"model{ending}")
    other = nn.Sequential(nn.Linear(2, 3, dtype=np.float32), nn.BatchNorm1d(3), nn.MLP(2, [2]))
    state = nn.load(tmp_path / f"model{ending}", other)
    for name, value in model.state_dict().items():
        assert state[name].dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(value, other.state_dict()[name])
    odd = {"empty": np.ones((0, 3)), "flag": np.array([True]), "strided": np.arange(6).reshape(2, 3).T}
    nn.save(odd, str(tmp_path / f"b{ending}"))
    state = nn.load(tmp_path / f"b{ending}")
    assert state["empty"].shape == (0, 3) and state["strided"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_crash_while_saving_leaves_the_old_file(tmp_path, ending, monkeypatch):
    path = tmp_path / f"model{ending}"
    nn.save({"a": np.ones(3)}, path)
    def crash(*paths): raise OSError("no more")
    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="no more"):
        nn.save({"a": np.zeros(3)}, path)
    assert nn.load(path)["a"].tolist() == [1, 1, 1] and os.listdir(tmp_path) == [path.name]
    with pytest.raises(ValueError, match="ends in"):
        nn.save({"a": np.ones(3)}, tmp_path / "model.pt")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_cut_short_anywhere_is_refused(tmp_path, ending):
    path, model = tmp_path / f"model{ending}", nn.Linear(2, 1)
    nn.save(model, path)
    whole, before = path.read_bytes(), model.state_dict()
    for length in [*range(0, len(whole), 7), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="no readable"):
            nn.load(path, model)
    np.testing.assert_array_equal(model.weight.data, before["weight"])


def hostile(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


ENTRY = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
HOSTILE = {
    "empty": b"", "foreign": b"PK\x03\x04 and so on and so on", "text": b"hello, this is no file of numbers",
    "header longer than the file": hostile({}, length=2 ** 63), "no table": hostile([1, 2]), "no json": hostile(b"{'a': 1}"),
    "a number as entry": hostile({"a": 1}), "unknown dtype": hostile({"a": {**ENTRY, "dtype": "F65"}}, b"x" * 8),
    "dtype is an object": hostile({"a": {**ENTRY, "dtype": "O"}}, b"x" * 8),
    "offsets past the end": hostile({"a": ENTRY}, b"x" * 7), "bytes left over": hostile({"a": ENTRY}, b"x" * 9),
    "negative": hostile({"a": {**ENTRY, "shape": [-1]}}, b"x" * 8),
    "a gap": hostile({"a": {**ENTRY, "data_offsets": [8, 16]}}, b"x" * 16),
    "overlap": hostile({"a": ENTRY, "b": ENTRY}, b"x" * 8), "wrong size": hostile({"a": {**ENTRY, "shape": [2]}}, b"x" * 8),
    "enormous": hostile({"a": {**ENTRY, "shape": [2 ** 62, 4]}}, b"x" * 8),
    "float shape": hostile({"a": {**ENTRY, "shape": [1.0]}}, b"x" * 8),
    "bool shape": hostile({"a": {**ENTRY, "shape": [True]}}, b"x" * 8),
    "three offsets": hostile({"a": {**ENTRY, "data_offsets": [0, 8, 8]}}, b"x" * 8),
    "nested too deep": hostile(b"[" * 100000), "not utf-8": hostile(b"\xff\xfe{}"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path, name):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ValueError, match="no readable"):
        nn.load(path)


def test_a_pickle_in_an_npz_is_not_run(tmp_path):
    np.savez(tmp_path / "model.npz", a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(ValueError, match="no readable"):
        nn.load(tmp_path / "model.npz")
    (tmp_path / "other.npz").write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(ValueError, match="no readable"):
        nn.load(tmp_path / "other.npz")


def test_a_file_of_another_model_is_refused(tmp_path):
    nn.save(nn.Linear(2, 3), tmp_path / "model.safetensors")
    with pytest.raises(RuntimeError, match="nothing was loaded"):
        nn.load(tmp_path / "model.safetensors", nn.Linear(3, 2))
    with pytest.raises(TypeError, match="complex"):
        nn.save({"a": np.ones(2) * 1j}, tmp_path / "c.safetensors")
    with pytest.raises(FileNotFoundError):
        nn.load(tmp_path / "nowhere.npz")


# ------------------------------------------------------------------------------------ practice
def test_gradient_norms_layer_by_layer():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    assert nn.grad_norms(model) == {"0": 0.0, "2": 0.0}
    model(Tensor([[1.0, 2.0]])).sum().backward()
    norms = nn.grad_norms(model)
    assert norms["2"] == pytest.approx(math.hypot(*model[2].weight.grad.ravel(), *model[2].bias.grad))
    scalar = nn.MLP(2, [2, 1])
    scalar([1.0, 2.0]).backward()
    assert nn.grad_norms(scalar)["layers.0"] == pytest.approx(math.hypot(*[p.grad for p in scalar.layers[0].parameters()]))
    assert list(nn.grad_norms(nn.Linear(1, 1))) == [""]


def test_the_summary_counts_and_shows_what_is_frozen():
    model = nn.Sequential(nn.Linear(20, 100), nn.ReLU(), nn.CausalSelfAttention(4, 2))
    model[0].requires_grad_(False)
    lines = [line.split() for line in nn.summary(model).splitlines()]
    assert lines[1] == ["0", "Linear", "2,100", "0"] and lines[2] == ["2", "CausalSelfAttention", "80", "80"]
    assert lines[-1] == ["total", "2,180", "80"]


@pytest.mark.parametrize("kind", ["values", "tensors", "numpy"])
def test_the_monitor_sees_vanishing_gradients_and_dead_units(kind):
    import xml.etree.ElementTree as ElementTree
    if kind == "values":
        model, x = nn.MLP(1, [2, 1]), [Value(1.0)]
        model.layers[0].neurons[0].w[0].data, model.layers[0].neurons[1].w[0].data = -1.0, 1.0
        dead = "layers.0"
    elif kind == "numpy":
        model, x, dead = nn.MLP(1, [2, 1], backend="numpy"), [[1.0], [2.0]], "bends.0"
        model.layers[0].weight.data[:] = [[-1.0], [1.0]]
    else:
        model, x = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)), Tensor([[1.0], [2.0]])
        model[0].weight.data[:], model[0].bias.data[:] = [[-1.0], [1.0]], 0.0
        dead = "1"
    monitor = nn.Monitor(model)
    for _ in range(3):
        model.zero_grad()
        loss = model(x) ** 2 if kind == "values" else (model(x) ** 2).mean()
        loss.backward()
        monitor.record(loss)
    assert len(monitor.losses) == 3 and monitor.dead[-1][dead] == 0.5
    assert list(monitor.norms[-1].values()) == list(nn.grad_norms(model).values())
    monitor.record(float("nan"))
    picture = ElementTree.fromstring(monitor.draw())
    assert len(picture.findall("{*}rect")) > 8 and "gradient" in monitor._repr_svg_()
    monitor.close()
    model(x)
    assert not monitor._alive
    ElementTree.fromstring(nn.Monitor(model).draw())


def test_the_monitors_colours_tell_small_from_large():
    from micrograd.nn.practice import _warmth
    assert _warmth(1e-9) == _warmth(0.0) == "rgb(0,0,225)" and _warmth(1e4) == "rgb(225,0,0)"
    assert _warmth(1e-2) == "rgb(225,225,225)" and _warmth(float("nan")) == "#000"


def test_early_stopping_brings_back_the_best():
    model = nn.Linear(1, 1)
    stop = nn.EarlyStopping(patience=2, min_delta=0.1, model=model)
    assert not stop(1.0)
    best = model.weight.data.copy()
    model.weight.data += 1.0
    assert [stop(0.95), stop(Value(2.0))] == [False, True]
    stop.restore()
    np.testing.assert_array_equal(model.weight.data, best)


def test_progress_stays_quiet_where_nobody_looks():
    assert list(nn.progress(range(3))) == [0, 1, 2] and nn.progress([1]) == [1]


def test_a_model_is_freed_without_the_collector():
    import weakref
    gc.disable()
    try:
        for make in (lambda: nn.MLP(2, [2, 1], fused=True), lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))):
            model = make()
            gone = weakref.ref(model)
            del model
            assert gone() is None
    finally:
        gc.enable()
