"""Optimisers, clipping and schedules: numbers to the last rounding, and what they refuse."""

import copy
import math

import numpy as np
import pytest
import torch

import micrograd
from micrograd import Tensor, Value, nn, optim


def steps(optimiser_class, start, gradients, kind, **options):
    """Where a parameter goes when it meets these gradients."""
    p = Value(start) if kind == "value" else Tensor([start])
    optimiser, path = optimiser_class([p], **options), []
    for g in gradients:
        p.grad = g if kind == "value" else np.array([g])
        optimiser.step()
        path.append(float(p.data if kind == "value" else p.data[0]))
    return path


KINDS = pytest.mark.parametrize("kind", ["value", "tensor"])


@KINDS
@pytest.mark.parametrize("eps, path", [(1e-8, [0.900000002, 0.8654394181165108, 0.8109953836811554]),
                                       (0.1, [0.9166666666666666, 0.889295424505588, 0.8467953843007001])])
def test_adam_corrects_its_start_and_adds_eps_after_the_root(eps, path, kind):
    assert steps(optim.Adam, 1.0, [0.5, -0.2, 0.3], kind, lr=0.1, eps=eps) == pytest.approx(path, rel=1e-14)


@KINDS
@pytest.mark.parametrize("options, path", [
    ({"momentum": 0.9}, [0.9, 0.71, 0.539]), ({"momentum": 0.9, "nesterov": True}, [0.81, 0.539, 0.3851]),
    ({"momentum": 0.9, "dampening": 0.5}, [0.9, 0.76, 0.634]), ({"weight_decay": 0.1}, [0.89, 0.7811, 0.773289]),
    ({"momentum": 0.9, "weight_decay": 0.1}, [0.89, 0.6821, 0.488169])])
def test_sgd_in_all_its_forms(options, path, kind):
    assert steps(optim.SGD, 1.0, [1.0, 1.0, 0.0], kind, lr=0.1, **options) == pytest.approx(path, rel=1e-14)


@KINDS
def test_adamw_takes_the_decay_out_of_the_gradient(kind):
    options = dict(lr=0.1, weight_decay=0.5)
    for one, path in ((optim.Adam, [1.9000000006666666, 1.8067820375652235]), (optim.AdamW, [1.800000002, 1.6754394180165109])):
        assert steps(one, 2.0, [0.5, -0.2], kind, **options) == pytest.approx(path, rel=1e-14)


@pytest.mark.parametrize("wrong, error", [
    (lambda p: optim.SGD([p, p]), ValueError), (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError),
    (lambda p: optim.SGD([]), ValueError), (lambda p: optim.SGD(iter([])), ValueError),
    (lambda p: optim.SGD([p], lr=-1), ValueError), (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError),
    (lambda p: optim.Adam([p], betas=(0.9, -0.1)), ValueError), (lambda p: optim.Adam([p], eps=-1), ValueError),
    (lambda p: optim.SGD([p * 2]), ValueError), (lambda p: optim.SGD([p], nesterov=True), ValueError),
    (lambda p: optim.SGD([p], momentum=0.9, dampening=0.1, nesterov=True), ValueError),
    (lambda p: optim.SGD([p], lr=math.nan), ValueError), (lambda p: optim.SGD([p], weight_decay=-1), ValueError),
    (lambda p: optim.SGD([{"params": [p], "momentum": -1}]), ValueError), (lambda p: optim.RMSprop([p], alpha=-1), ValueError),
    (lambda p: optim.SGD([1.0]), TypeError), (lambda p: optim.SGD(p), TypeError)])
@KINDS
def test_wrong_arguments_are_refused(wrong, error, kind):
    with pytest.raises(error):
        wrong(Value(1.0) if kind == "value" else Tensor([1.0]))


def test_no_gradient_skips_and_zero_does_not():
    options = dict(lr=0.1, momentum=0.9, weight_decay=0.5)
    for none, zero in ((Value(1.0), Value(1.0)), (Tensor([1.0]), Tensor([1.0]))):
        zero.zero_grad(set_to_none=False) if isinstance(zero, Tensor) else setattr(zero, "grad", 0.0)
        optimiser = optim.SGD([none, zero], **options)
        optimiser.step()
        assert (none.item(), zero.item()) == (1.0, 0.95) and none not in optimiser.state
    reached, other = Value(1.0), Value(1.0)
    (reached * 0.0).backward()
    optim.SGD([reached, other], **options).step()
    assert (reached.data, other.data) == (0.95, 1.0)


def test_zero_grad_says_what_is_left():
    t, v = Tensor([1.0]), Value(1.0)
    optimiser = optim.SGD([t, v])
    (t * v).backward()
    optimiser.zero_grad()
    assert t.grad is None and v.grad == 0.0
    optimiser.zero_grad(set_to_none=False)
    assert t.grad.tolist() == [0.0] and v.grad == 0.0
    optimiser.zero_grad(set_to_none=True)
    assert t.grad is None and v.grad is None
    optimiser.step()
    assert t.data.tolist() == [1.0] and v.data == 1.0


def test_micrograds_way_to_train_goes_on_working():
    p = Value(1.0)
    for _ in range(2):
        p.grad = 0
        (p * p).backward()
        p.data -= 0.1 * p.grad
    assert p.data == pytest.approx(0.64)


def test_a_closure_is_called_and_its_loss_returned():
    p = Value(1.0)
    optimiser = optim.SGD([p], lr=0.1)

    def closure():
        optimiser.zero_grad()
        loss = p * p
        loss.backward()
        return loss
    assert optimiser.step(closure).data == 1.0 and p.data == 0.8


def test_a_gradient_that_is_a_node_is_taken_as_numbers():
    for p in (Value(2.0), Tensor([2.0])):
        (p * p * p).sum().backward(create_graph=True) if isinstance(p, Tensor) else (p * p * p).backward(create_graph=True)
        assert optim.clip_grad_norm_([p], 6.0) == 12.0
        optim.SGD([p], lr=0.1).step()
        assert p.item() == pytest.approx(1.4, abs=1e-6) and not isinstance(p.data, Value)


def test_in_place_steps_keep_shape_dtype_and_gradients_apart():
    a, b = Tensor(np.ones(3, np.float32)), Tensor(np.float32(2.0))
    g = np.ones(3, np.float32)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        optimiser = getattr(optim, name)([a, b], **{"momentum": 0.9} if name == "SGD" else {})
        for _ in range(2):
            a.grad, b.grad = g, np.array(1.0, np.float32)
            optimiser.step()
        assert a.data.dtype == b.data.dtype == np.float32 and b.data.shape == () and isinstance(b.data, np.ndarray)
    assert g.tolist() == [1, 1, 1] and a.data.tolist() != [1, 1, 1]


def test_momentum_does_not_share_memory_with_the_gradient():
    p = Tensor([1.0])
    optimiser = optim.SGD([p], lr=0.1, momentum=0.9)
    p.grad = np.array([1.0])
    optimiser.step()
    p.grad *= 100
    assert optimiser.state[p]["momentum_buffer"].tolist() == [1.0]


def test_loaded_state_is_a_copy_and_goes_on_where_it_was():
    def trained(steps, saved=None):
        micrograd.manual_seed(0)
        model = nn.Linear(2, 2)
        optimiser = optim.Adam(model.parameters(), lr=0.1)
        for k in range(steps):
            if saved is not None and k == steps // 2:
                saved.update(optimiser.state_dict())
                saved["model"] = model.state_dict()
            optimiser.zero_grad()
            (model(Tensor([[1.0, 2.0]], requires_grad=False)) ** 2).sum().backward()
            optimiser.step()
        return model, optimiser
    saved = {}
    whole, first = trained(10, saved)
    model, second = trained(0)
    model.load_state_dict(saved.pop("model"))
    second.load_state_dict(saved)
    kept = copy.deepcopy(saved)
    for _ in range(5):
        second.zero_grad()
        (model(Tensor([[1.0, 2.0]], requires_grad=False)) ** 2).sum().backward()
        second.step()
    np.testing.assert_array_equal(model.weight.data, whole.weight.data)
    assert all(np.array_equal(saved["state"][i]["exp_avg"], kept["state"][i]["exp_avg"]) for i in (0, 1))
    state = second.state_dict()
    before = copy.deepcopy(state["state"][0]["exp_avg"])
    second.step()
    np.testing.assert_array_equal(state["state"][0]["exp_avg"], before)
    assert saved["param_groups"][0]["lr"] == 0.1 and saved["param_groups"][0]["params"] == [0, 1]
    with pytest.raises(ValueError, match="groups with"):
        optim.Adam([Value(1.0)]).load_state_dict(saved)


def test_groups_can_be_added():
    a, b = Value(1.0), Value(1.0)
    optimiser = optim.SGD([a], lr=0.1)
    optimiser.add_param_group({"params": b, "lr": 0.5})
    a.grad = b.grad = 1.0
    optimiser.step()
    assert (a.data, b.data) == (0.9, 0.5) and "lr': 0.5" in repr(optimiser) and repr(optimiser).startswith("SGD(")


# ------------------------------------------------------------------------------------- clipping
def with_gradients(*gradients):
    nodes = []
    for g in gradients:
        nodes.append(Value(0.0) if isinstance(g, float) else Tensor(np.zeros(np.shape(g))))
        nodes[-1].grad = g if isinstance(g, float) else None if g is None else np.array(g)
    return nodes


def test_clipping_nothing_gives_zero():
    assert optim.clip_grad_norm_([Value(1.0), Tensor([1.0])], 1.0) == optim.clip_grad_norm_([], 1.0) == 0.0


def test_clipping_a_generator_and_mixed_nodes():
    nodes = with_gradients(10.0, [10.0, 10.0])
    assert optim.clip_grad_norm_((p for p in nodes), 1.0) == 17.320508075688775
    assert math.hypot(nodes[0].grad, *nodes[1].grad) == pytest.approx(0.9999999422649761, rel=1e-14)
    assert optim.clip_grad_norm_(nodes[0], 9.0) == pytest.approx(nodes[0].grad)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("bound", [0.0, 2.5, 100.0])
def test_clipping_by_norm_is_pytorchs(order, bound):
    gradients = [[1.0, -2.0, 3.0], [[4.0], [-5.0]]]
    nodes, theirs = with_gradients(*gradients), [torch.zeros(3), torch.zeros(2, 1)]
    for t, g in zip(theirs, gradients):
        t.grad = torch.tensor(g)
    total = optim.clip_grad_norm_(nodes, bound, order)
    assert total == pytest.approx(torch.nn.utils.clip_grad_norm_(theirs, bound, order).item(), rel=1e-14)
    for p, t in zip(nodes, theirs):
        np.testing.assert_allclose(p.grad, t.grad.numpy(), rtol=1e-14)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("order", [2.0, math.inf])
def test_clipping_what_is_not_finite(bad, order):
    nodes, theirs = with_gradients([1.0, bad], 2.0), [torch.zeros(2), torch.zeros(1)]
    theirs[0].grad, theirs[1].grad = torch.tensor([1.0, bad]), torch.tensor([2.0])
    with pytest.raises(RuntimeError, match="nothing was changed"):
        optim.clip_grad_norm_(nodes, 1.0, order, error_if_nonfinite=True)
    np.testing.assert_array_equal(nodes[0].grad, [1.0, bad])
    assert nodes[1].grad == 2.0
    total, expected = optim.clip_grad_norm_(nodes, 1.0, order), torch.nn.utils.clip_grad_norm_(theirs, 1.0, order).item()
    np.testing.assert_array_equal([total, *nodes[0].grad, nodes[1].grad],
                                  [expected, *theirs[0].grad.tolist(), *theirs[1].grad.tolist()])


def test_numbers_out_of_all_bounds_are_ieee_and_silent():
    for g in (1e200, np.array([1e200])):
        p = Tensor([0.0]) if isinstance(g, np.ndarray) else Value(0.0)
        p.grad = g
        assert optim.clip_grad_norm_([p], 1.0) == math.inf and float(np.ravel(p.grad)[0]) == 0.0
        for name in ("Adam", "RMSprop", "Adagrad"):
            p.grad = g
            getattr(optim, name)([p]).step()
        assert p.item() == 0.0
    for p, zero in ((Value(1.0), 0.0), (Tensor([1.0]), np.array([0.0]))):
        p.grad = zero
        optim.RMSprop([p], eps=0.0).step()
        assert math.isnan(p.item())                 # 0 / 0, as in PyTorch


def test_clipping_does_not_touch_what_shares_memory():
    shared = np.array([3.0, 4.0])
    a, b = Tensor([0.0, 0.0]), Tensor([0.0, 0.0])
    a.grad = b.grad = shared
    optim.clip_grad_norm_([a], 1.0)
    assert b.grad.tolist() == [3.0, 4.0]


def test_clipping_by_value():
    nodes = with_gradients([-5.0, 0.5, math.nan], None, -7.0, math.nan)
    optim.clip_grad_value_(nodes, 1.0)
    np.testing.assert_array_equal(nodes[0].grad, [-1.0, 0.5, math.nan])
    assert nodes[1].grad is None and nodes[2].grad == -1.0 and math.isnan(nodes[3].grad)


@pytest.mark.parametrize("wrong", [lambda: optim.clip_grad_norm_([], -1.0), lambda: optim.clip_grad_norm_([], 1.0, 0.0),
                                   lambda: optim.clip_grad_value_([], -1.0)])
def test_negative_bounds_are_refused(wrong):
    with pytest.raises(ValueError, match="at least 0"):
        wrong()


# ------------------------------------------------------------------------------------ schedules
@pytest.mark.parametrize("make", [
    lambda o: optim.StepLR(o, 2, 0.5), lambda o: optim.CosineAnnealingLR(o, 5), lambda o: optim.LinearLR(o),
    lambda o: optim.OneCycleLR(o, 1.0, 20), lambda o: optim.LambdaLR(o, [lambda t: 0.9 ** t])])
def test_a_schedule_goes_on_where_it_was(make):
    def fresh(): return optim.SGD([Value(1.0)], lr=0.1, momentum=0.9)
    whole = make(fresh())
    first, half = fresh(), None
    schedule = make(first)
    for k in range(8):
        if k == 4:
            half = schedule.state_dict(), first.state_dict()
        schedule.step(), whole.step()
    optimiser = fresh()
    again = make(optimiser)
    again.load_state_dict(half[0])
    optimiser.load_state_dict(half[1])
    for _ in range(4):
        again.step()
    assert again.get_last_lr() == whole.get_last_lr() == schedule.get_last_lr()


def test_plateau_goes_on_where_it_was():
    first = optim.ReduceLROnPlateau(optim.SGD([Value(1.0)], lr=0.1), patience=1)
    for measure in (1.0, 2.0):
        first.step(Value(measure))
    second = optim.ReduceLROnPlateau(optim.SGD([Value(1.0)], lr=0.1), patience=1)
    second.load_state_dict(first.state_dict())
    second.step(2.0)
    assert second.get_last_lr() == [pytest.approx(0.01)]


@pytest.mark.parametrize("wrong, error", [
    (lambda o: optim.OneCycleLR(o, 1.0), ValueError), (lambda o: optim.OneCycleLR(o, 1.0, 5, anneal_strategy="x"), ValueError),
    (lambda o: optim.LinearLR(o, start_factor=0.0), ValueError), (lambda o: optim.LambdaLR(o, [abs, abs]), ValueError),
    (lambda o: optim.ReduceLROnPlateau(o, factor=1.0), ValueError),
    (lambda o: optim.ReduceLROnPlateau(o, mode="x"), ValueError),
    (lambda o: optim.StepLR([o], 1), TypeError)])
def test_wrong_schedules_are_refused(wrong, error):
    with pytest.raises(error):
        wrong(optim.SGD([Value(1.0)], lr=0.1))


def test_one_cycle_ends():
    schedule = optim.OneCycleLR(optim.SGD([Value(1.0)], lr=0.1), 1.0, 3, pct_start=0.5)
    theirs = torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD([torch.ones(1)], lr=0.1, momentum=0.9), 1.0, 3, pct_start=0.5)
    for _ in range(3):
        theirs.optimizer.step(), schedule.step(), theirs.step()
        assert schedule.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-12)
    with pytest.raises(ValueError, match="3 steps"):
        schedule.step()


def test_the_sweep_finds_the_cliff_and_leaves_no_trace():
    for p in (Value(1.0), Tensor(1.0)):
        optimiser = optim.SGD([p], lr=0.1, momentum=0.5)
        curve = optim.lr_find(optimiser, lambda: p * p, 1e-3, 1e3, 30)  # noqa: B023
        rates = [rate for rate, _ in curve]
        assert rates[0] == 1e-3 and rates == sorted(rates) and 5 < len(curve) < 30
        assert curve[-1][1] > 4 * min(loss for _, loss in curve)
        assert float(p.data) == 1.0 and optimiser.param_groups[0]["lr"] == 0.1 and not optimiser.state
        assert type(p.data) is type(Value(1.0).data) or p.data.shape == ()
