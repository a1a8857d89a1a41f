"""Twenty steps of every optimiser and schedule, beside PyTorch, and micrograd's demo in three ways."""

import random

import numpy as np
import pytest
import torch

import micrograd
from micrograd import Tensor, Value, data, nn, optim

OPTIMISERS = {
    "SGD": dict(lr=0.1), "SGD momentum": dict(lr=0.05, momentum=0.9), "SGD all": dict(
        lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01), "SGD dampening": dict(lr=0.05, momentum=0.9, dampening=0.5),
    "SGD maximize": dict(lr=0.01, maximize=True, weight_decay=0.1),
    "Adam": dict(lr=0.05), "Adam all": dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, maximize=True),
    "AdamW": dict(lr=0.05, weight_decay=0.1), "RMSprop": dict(lr=0.01), "RMSprop all": dict(
        lr=0.01, alpha=0.9, eps=1e-4, weight_decay=0.1, momentum=0.9, centered=True),
    "Adagrad": dict(lr=0.05), "Adagrad all": dict(lr=0.05, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.1),
}
SCHEDULES = {
    "StepLR": dict(step_size=3, gamma=0.5), "ExponentialLR": dict(gamma=0.9), "LinearLR": dict(start_factor=0.1, total_iters=7),
    "CosineAnnealingLR": dict(T_max=8, eta_min=0.001), "LambdaLR": dict(lr_lambda=lambda t: 1 / (1 + t)),
    "OneCycleLR": dict(max_lr=0.5, total_steps=25), "OneCycleLR linear": dict(
        max_lr=0.5, epochs=5, steps_per_epoch=5, anneal_strategy="linear", three_phase=True, pct_start=0.4),
}


def pair():
    """The same small network here and in PyTorch."""
    micrograd.manual_seed(0)
    ours = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 4))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 4))
    theirs.load_state_dict({name: torch.tensor(value) for name, value in ours.state_dict().items()})
    return ours, theirs


def batch():
    random_numbers = np.random.default_rng(1)
    return random_numbers.normal(size=(16, 3)), random_numbers.integers(0, 4, 16)


def train_both(make, schedule=None, steps=20):
    ours, theirs = pair()
    X, y = batch()
    optimisers = [make(optim, ours.parameters()), make(torch.optim, theirs.parameters())]
    schedules = [schedule(optim, optimisers[0]), schedule(torch.optim.lr_scheduler, optimisers[1])] if schedule else []
    for _ in range(steps):
        for model, optimiser, cross_entropy, wrap in ((ours, optimisers[0], nn.cross_entropy, lambda a: a),
                                                      (theirs, optimisers[1], torch.nn.functional.cross_entropy, torch.tensor)):
            optimiser.zero_grad()
            inputs = Tensor(X, requires_grad=False) if model is ours else torch.tensor(X)
            cross_entropy(model(inputs), wrap(y)).backward()
            optimiser.step()
        for one in schedules:
            one.step()
        assert optimisers[0].param_groups[0]["lr"] == pytest.approx(optimisers[1].param_groups[0]["lr"], rel=1e-12)
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters()):
        np.testing.assert_allclose(mine.data, other.detach().numpy(), rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("case", OPTIMISERS)
def test_twenty_steps_are_pytorchs(case):
    train_both(lambda room, p: getattr(room, case.split()[0])(p, **OPTIMISERS[case]))


@pytest.mark.parametrize("case", SCHEDULES)
@pytest.mark.parametrize("optimiser", ["SGD", "AdamW"])
def test_twenty_scheduled_steps_are_pytorchs(case, optimiser):
    more = {"momentum": 0.9} if optimiser == "SGD" else {}
    train_both(lambda room, p: getattr(room, optimiser)(p, lr=0.1, **more),
               lambda room, o: getattr(room, case.split()[0])(o, **SCHEDULES[case]))


def test_groups_have_their_own_options():
    def make(room, parameters):
        parameters = list(parameters)
        return room.SGD([{"params": parameters[:2], "lr": 0.01}, {"params": parameters[2:], "weight_decay": 0.1}], lr=0.1)
    train_both(make, lambda room, o: room.StepLR(o, 5))


@pytest.mark.parametrize("more", [dict(), dict(mode="max", threshold_mode="abs", cooldown=2, min_lr=0.02, threshold=0.01)])
def test_plateau_is_pytorchs(more):
    measures = [1.0, 0.9, 0.95, 0.91, 0.92, 0.9, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.7, 0.4, float("nan"), 0.4, 0.4, 0.4, 0.4, 0.4]
    optimisers = optim.SGD([Value(1.0)], lr=0.1), torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    schedules = (optim.ReduceLROnPlateau(optimisers[0], patience=2, factor=0.5, **more),
                 torch.optim.lr_scheduler.ReduceLROnPlateau(optimisers[1], patience=2, factor=0.5, **more))
    for measure in measures:
        for schedule in schedules:
            schedule.step(measure)
        assert schedules[0].get_last_lr() == schedules[1].get_last_lr()
    assert schedules[0].get_last_lr() != [0.1]


def moons_demo(kind, steps, fused=False):
    """micrograd's demo: hinge loss and L2 on two moons; gives the losses and the share of right answers."""
    random.seed(1337)
    X, y = data.moons(100, seed=1)
    y = 2.0 * y - 1.0
    model = nn.MLP(2, [16, 16, 1], fused=fused, backend="numpy" if kind == "numpy" else "scalar")
    optimiser, losses = optim.SGD(model.parameters(), lr=1.0), []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 1.0 - 0.9 * step / 100
        scores = [model(list(map(Value, row))) for row in X] if kind == "scalar" else model(X.T if kind == "batches" else X)
        loss = nn.hinge_loss(scores, y.tolist() if kind == "scalar" else y)
        for p in model.parameters():
            loss = loss + 1e-4 * (p * p if kind != "numpy" else (p * p).sum())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    right = [(float(score) > 0) == (target > 0) for score, target in zip(scores, y)]
    return losses, sum(right) / len(right)


def test_the_moons_demo_is_the_same_three_ways_and_ends_right():
    by_batch, right = moons_demo("numpy", 100)
    assert right == 1.0
    fused, right = moons_demo("scalar", 100, fused="network")
    assert right == 1.0
    np.testing.assert_allclose(fused, by_batch, rtol=0, atol=1e-9)
    np.testing.assert_allclose(moons_demo("scalar", 3)[0], by_batch[:3], rtol=0, atol=1e-9)
    np.testing.assert_allclose(moons_demo("batches", 10)[0], by_batch[:10], rtol=0, atol=1e-9)


def test_a_fused_network_trains_with_the_very_same_numbers():
    assert moons_demo("scalar", 2) == moons_demo("scalar", 2, fused=True)


def test_values_and_tensors_in_one_optimiser():
    weight, shift = Tensor([1.0, 2.0]), Value(0.5)
    optimiser = optim.Adam([weight, shift], lr=0.1)
    theirs = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(0.5, requires_grad=True)
    reference = torch.optim.Adam(theirs, lr=0.1)
    for _ in range(20):
        for mine, w, b in ((optimiser, weight, shift), (reference, *theirs)):
            mine.zero_grad()
            ((w * 3.0 + b) ** 2).sum().backward()
            mine.step()
    np.testing.assert_allclose([*weight.data, shift.data], [*theirs[0].tolist(), theirs[1].item()], rtol=0, atol=1e-12)


def test_micro_batches_of_values_add_up():
    def loss(w, rows): return nn.mse_loss([w * x for x, _ in rows], [y for _, y in rows])
    w, rows = Value(0.5), list(zip([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 6.0, 8.0]))
    loss(w, rows).backward()
    assert w.grad == -19.5
    w.zero_grad()
    for part in (rows[:2], rows[2:]):
        (loss(w, part) / 2).backward()
    assert w.grad == -19.5


def test_parts_of_a_batch_add_up_to_the_whole():
    model = nn.Linear(3, 1)
    X, _ = batch()
    nn.mse_loss(model(Tensor(X)), np.ones((16, 1))).backward()
    whole = model.weight.grad.copy()
    model.zero_grad()
    for part in (X[:8], X[8:]):
        (nn.mse_loss(model(Tensor(part)), np.ones((8, 1))) / 2).backward()
    np.testing.assert_allclose(model.weight.grad, whole, rtol=0, atol=1e-14)


def test_memory_stays_flat_with_and_without_the_collector():
    import gc
    import tracemalloc
    model = nn.MLP(2, [4, 1], fused=True)
    batched = nn.MLP(2, [4, 1], backend="numpy")
    optimisers = [optim.Adam(m.parameters(), lr=1e-3) for m in (model, batched)]

    def train(steps):
        for _ in range(steps):
            for network, optimiser, inputs in ((model, optimisers[0], [0.5, -1.0]), (batched, optimisers[1], [[0.5, -1.0]])):
                optimiser.zero_grad()
                (network(inputs) ** 2).sum().backward() if network is batched else (network(inputs) ** 2).backward()
                optimiser.step()

    gc.collect()
    gc.disable()                                # nothing may wait for the collector
    try:
        train(100)
        assert gc.collect() == 0
        tracemalloc.start()
        train(20)
        gc.collect()                            # CPython's own stock of empty tuples
        before = tracemalloc.get_traced_memory()[0]
        train(250)
        assert gc.collect() == 0
        # caches of Python and NumPy fill up and stay; a node kept a step would be 25 kB
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
        gc.enable()
