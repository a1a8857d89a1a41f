"""Losses: PyTorch's, forward and gradient, on batches, on Values and on lists of Values."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from micrograd import Tensor, Value, nn

RANDOM = np.random.default_rng(0)
LOGITS, ONES = RANDOM.normal(size=(4, 3)) * 3, RANDOM.integers(0, 2, (4, 3)) * 1.0
REAL, SHARES = RANDOM.normal(size=(4, 3)) * 3, 1 / (1 + np.exp(-LOGITS))
WEIGHT = RANDOM.uniform(0.5, 2.0, (4, 3))

ELEMENTWISE = {
    "mse": (nn.mse_loss, F.mse_loss, LOGITS, REAL, {}), "l1": (nn.l1_loss, F.l1_loss, LOGITS, REAL, {}),
    "huber": (nn.huber_loss, F.huber_loss, LOGITS, REAL, {}),
    "huber 0.5": (nn.huber_loss, F.huber_loss, LOGITS, REAL, {"delta": 0.5}),
    "smooth l1": (nn.smooth_l1_loss, F.smooth_l1_loss, LOGITS, REAL, {}),
    "smooth l1 2.5": (nn.smooth_l1_loss, F.smooth_l1_loss, LOGITS, REAL, {"beta": 2.5}),
    "smooth l1 0": (nn.smooth_l1_loss, F.smooth_l1_loss, LOGITS, REAL, {"beta": 0.0}),
    "hinge": (nn.hinge_loss, lambda x, t, reduction: {"mean": torch.mean, "sum": torch.sum, "none": lambda v: v}[reduction](
        (1 - t * x).clamp(min=0)), LOGITS, 2 * ONES - 1, {}),
    "bce": (nn.binary_cross_entropy, F.binary_cross_entropy, SHARES, ONES, {}),
    "bce soft": (nn.binary_cross_entropy, F.binary_cross_entropy, SHARES, 0.3 + 0.4 * ONES, {"weight": WEIGHT}),
    "bce logits": (nn.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, LOGITS * 20, ONES, {}),
    "bce logits weighted": (nn.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, LOGITS, ONES,
                            {"weight": WEIGHT, "pos_weight": WEIGHT[0]}),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_elementwise_loss_is_pytorchs(name, reduction):
    ours, theirs, x, t, options = ELEMENTWISE[name]
    mine, other = Tensor(x), torch.tensor(x, requires_grad=True)
    loss = ours(mine, t, reduction=reduction, **options)
    expected = theirs(other, torch.tensor(t), reduction=reduction, **{
        k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()})
    np.testing.assert_allclose(loss.data, expected.detach().numpy(), rtol=1e-12, atol=1e-10)
    loss.backward(np.ones(loss.shape))
    expected.backward(torch.ones(loss.shape))
    np.testing.assert_allclose(mine.grad, other.grad.numpy(), rtol=1e-12, atol=1e-10)
    if not any(isinstance(v, np.ndarray) for v in options.values()):
        values = [Value(v) for v in x.ravel()]
        scalar = ours(values, t.ravel().tolist(), reduction=reduction, **options)
        if reduction == "none":
            assert len(scalar) == 12
            scalar = sum(scalar)
        scalar.backward()
        assert scalar.data == pytest.approx(expected.sum().item(), rel=1e-12)
        np.testing.assert_allclose([v.grad for v in values], other.grad.numpy().ravel(), rtol=1e-12, atol=1e-10)


def graded(loss, x, *rest, **options):
    node = Value(x)
    y = loss(node, *rest, **options)
    y.backward()
    return y.data, node.grad


@pytest.mark.parametrize("x, t, loss, gradient", [
    (-100.0, 0.0, 0.0, 3.7200759760208356e-44), (1000.0, 0.0, 1000.0, 1.0), (-1000.0, 1.0, 1000.0, -1.0),
    (0.0, 0.0, 0.6931471805599453, 0.5), (1000.0, 1.0, 0.0, 0.0)])
def test_bce_with_logits_at_the_extremes(x, t, loss, gradient):
    assert graded(nn.binary_cross_entropy_with_logits, x, t) == pytest.approx((loss, gradient), rel=1e-12, abs=1e-40)


def test_bce_of_infinite_logits_is_nan_as_in_pytorch():
    assert math.isnan(nn.binary_cross_entropy_with_logits(Value(-math.inf), 0.0).data)


@pytest.mark.parametrize("p, t", [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1e-300, 1.0), (0.25, 0.5)])
def test_bce_of_certain_probabilities_is_pytorchs(p, t):
    other = torch.tensor(p, requires_grad=True)
    F.binary_cross_entropy(other, torch.tensor(t)).backward()
    expected = F.binary_cross_entropy(other, torch.tensor(t)).item(), other.grad.item()
    assert graded(nn.binary_cross_entropy, p, t) == pytest.approx(expected, rel=1e-8)     # its 1e-12 is a float32
    batch = Tensor([p])
    nn.binary_cross_entropy(batch, [t]).backward()
    assert batch.grad[0] == pytest.approx(expected[1], rel=1e-8)


@pytest.mark.parametrize("p", [1.5, -0.1])
def test_bce_takes_probabilities_only(p):
    for x, t in ((Value(p), 1.0), (Tensor([0.5, p]), [1.0, 0.0]), ([Value(p)], [1.0])):
        with pytest.raises(ValueError, match="between 0 and 1"):
            nn.binary_cross_entropy(x, t)


@pytest.mark.parametrize("loss, options, expected", [
    (nn.smooth_l1_loss, {"beta": 1.0}, [(0, 0), (0.125, 0.5), (1.5, 1), (0.5, -1)]),
    (nn.smooth_l1_loss, {"beta": 0.5}, [(0, 0), (0.25, 1), (1.75, 1), (0.75, -1)]),
    (nn.smooth_l1_loss, {"beta": 0.0}, [(0, 0), (0.5, 1), (2, 1), (1, -1)]),
    (nn.huber_loss, {"delta": 1.0}, [(0, 0), (0.125, 0.5), (1.5, 1), (0.5, -1)]),
    (nn.huber_loss, {"delta": 0.5}, [(0, 0), (0.125, 0.5), (0.875, 0.5), (0.375, -0.5)])])
def test_huber_and_smooth_l1_differ_by_beta(loss, options, expected):
    assert [graded(loss, d, 0.0, **options) for d in (0.0, 0.5, 2.0, -1.0)] == expected
    x = Tensor([0.0, 0.5, 2.0, -1.0])
    loss(x, np.zeros(4), reduction="sum", **options).backward()
    assert x.grad.tolist() == [g for _, g in expected]


def test_l1_at_equality():
    x = Tensor([1.0, 2.0])
    loss = nn.l1_loss(x, [1.0, 4.0])
    loss.backward()
    assert (loss.item(), x.grad.tolist()) == (1.0, [0.0, -0.5])


CLASSES = np.array([2, 0, -100, 1])
MIXED = RANDOM.dirichlet(np.ones(3), 4)
CROSS = {
    "plain": (LOGITS, np.array([2, 0, 0, 1]), {}), "ignored": (LOGITS, CLASSES, {}),
    "weighted": (LOGITS, CLASSES, {"weight": WEIGHT[0]}), "smoothed": (LOGITS, CLASSES, {"label_smoothing": 0.1}),
    "all": (LOGITS, abs(CLASSES) % 3, {"label_smoothing": 0.2, "weight": WEIGHT[0], "ignore_index": 0}),
    "probabilities": (LOGITS, MIXED, {}), "probabilities, all": (LOGITS, MIXED, {"label_smoothing": 0.2, "weight": WEIGHT[0]}),
    "one sample": (LOGITS[0], np.array(2), {}), "large": (LOGITS * 1e3, np.array([2, 0, 0, 1]), {}),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", CROSS)
def test_cross_entropy_is_pytorchs(name, reduction):
    x, t, options = CROSS[name]
    mine, other = Tensor(x), torch.tensor(x, requires_grad=True)
    loss = nn.cross_entropy(mine, t, reduction=reduction, **options)
    expected = F.cross_entropy(other, torch.tensor(t), reduction=reduction, **{
        k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()})
    np.testing.assert_allclose(loss.data, expected.detach().numpy(), rtol=1e-12, atol=1e-10)
    loss.backward(np.ones(loss.shape))
    expected.backward(torch.ones(loss.shape))
    np.testing.assert_allclose(mine.grad, other.grad.numpy(), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", [*CROSS, "one weighted sample"])
def test_cross_entropy_of_values_is_that_of_batches(name, reduction):
    x, t, options = CROSS.get(name, (LOGITS[0], np.array(2), {"weight": WEIGHT[0]}))
    batch, values = Tensor(x), [Value(v) for v in x.ravel()]
    losses = nn.cross_entropy(batch, t, reduction=reduction, **options)
    rows = [values[k:k + 3] for k in range(0, len(values), 3)]
    ours = nn.cross_entropy(rows if x.ndim == 2 else values, t.tolist(), reduction=reduction, **options)
    ours = ours if isinstance(ours, list) else [ours]
    np.testing.assert_allclose([v.data for v in ours], losses.data.ravel(), rtol=1e-12)
    losses.sum().backward()
    sum(ours).backward()
    np.testing.assert_allclose([v.grad for v in values], batch.grad.ravel(), rtol=1e-10, atol=1e-12)


def test_targets_of_cross_entropy():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert math.isnan(nn.cross_entropy(x, [-100, -100]).item())
    assert nn.cross_entropy(x, [0, -100]).item() == 1.3132616875182228
    assert math.isnan(nn.cross_entropy(Tensor(np.zeros((0, 2))), np.zeros(0, int)).item())
    for wrong in (5, -1):
        for loss in (lambda: nn.cross_entropy(x, [0, wrong]), lambda: nn.nll_loss(x, [0, wrong]),  # noqa: B023
                     lambda: nn.cross_entropy([Value(1.0), Value(2.0)], wrong)):  # noqa: B023
            with pytest.raises(IndexError):
                loss()
    values = [Value(1.0), Value(2.0)]
    assert math.isnan(nn.cross_entropy([values], [-100]).data)
    for row, target, weight in ((values, 0, [1.0]), (values, [1.0], None)):
        with pytest.raises(ValueError):
            nn.cross_entropy(row, target, weight=weight)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("options", [{}, {"weight": WEIGHT[0]}, {"weight": WEIGHT[0], "ignore_index": 0}])
def test_nll_is_pytorchs(reduction, options):
    mine, other = Tensor(LOGITS), torch.tensor(LOGITS, requires_grad=True)
    classes = CLASSES if "ignore_index" not in options else abs(CLASSES) % 3
    loss = nn.nll_loss(mine, classes, reduction=reduction, **options)
    expected = F.nll_loss(other, torch.tensor(classes), reduction=reduction, **{
        k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()})
    np.testing.assert_allclose(loss.data, expected.detach().numpy(), atol=1e-12)
    loss.backward(np.ones(loss.shape))
    expected.backward(torch.ones(loss.shape))
    np.testing.assert_allclose(mine.grad, other.grad.numpy(), atol=1e-12)
    assert nn.nll_loss(Tensor(LOGITS[0]), 2).item() == -LOGITS[0, 2]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=1, max_size=5), st.sampled_from(
    [nn.mse_loss, nn.l1_loss, nn.huber_loss, nn.smooth_l1_loss, nn.hinge_loss]))
def test_values_and_batches_agree(pairs, loss):
    x, t = map(list, zip(*pairs))
    batch, values = Tensor(x), list(map(Value, x))
    a, b = loss(batch, t), loss(values, t)
    a.backward(), b.backward()
    assert b.data == pytest.approx(a.item(), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose([v.grad for v in values], batch.grad, rtol=1e-12, atol=1e-12)


def test_shapes_that_would_broadcast_are_noticed():
    x = Tensor(np.zeros((3, 1)))
    for loss in (nn.mse_loss, nn.l1_loss, nn.huber_loss, nn.smooth_l1_loss, nn.hinge_loss):
        with pytest.warns(UserWarning, match=r"shape \(3, 1\) and targets of shape \(3,\)"):
            loss(x, np.zeros(3))
    for loss in (nn.binary_cross_entropy, nn.binary_cross_entropy_with_logits):
        with pytest.raises(ValueError, match="differ"):
            loss(x, np.zeros(3))
    with pytest.raises(ValueError, match="as many targets"):
        nn.mse_loss([Value(1.0)], [1.0, 2.0])


@pytest.mark.parametrize("wrong", [
    lambda: nn.mse_loss(Value(1.0), 1.0, reduction="average"), lambda: nn.huber_loss(Value(1.0), 1.0, delta=0.0),
    lambda: nn.smooth_l1_loss(Value(1.0), 1.0, beta=-1.0)])
def test_wrong_options_are_refused(wrong):
    with pytest.raises(ValueError, match="got"):
        wrong()


def test_losses_as_modules_keep_their_options():
    x, t = Tensor(LOGITS), np.array([2, 0, 0, 1])
    assert nn.CrossEntropyLoss(label_smoothing=0.1)(x, t).item() == nn.cross_entropy(x, t, label_smoothing=0.1).item()
    assert nn.MSELoss(reduction="sum")(x, REAL).item() == nn.mse_loss(x, REAL, "sum").item()
    for name in ("L1Loss", "HuberLoss", "SmoothL1Loss", "HingeLoss", "BCEWithLogitsLoss"):
        assert getattr(nn, name)()(x, ONES).item() > 0
    assert nn.BCELoss()(Tensor(SHARES), ONES).item() > 0 and nn.NLLLoss()(x, t).item() == nn.nll_loss(x, t).item()


def test_the_loss_in_float32_stays_float32():
    x = Tensor(LOGITS.astype(np.float32))
    for loss, t in ((nn.mse_loss, REAL.astype(np.float32)), (nn.binary_cross_entropy_with_logits, ONES.astype(np.float32)),
                    (nn.nll_loss, np.array([2, 0, 0, 1]))):
        y = loss(x, t)
        y.backward()
        assert y.dtype == np.float32 == x.grad.dtype
