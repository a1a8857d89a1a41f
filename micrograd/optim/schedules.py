"""Large steps first, small steps later: a schedule sets the learning rate, one `step()` an epoch or a batch.

Every curve is PyTorch's, written in closed form: https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

from micrograd.optim.optimisers import Optimizer


class Schedule:
    """Sets the learning rate of each group to `rate(base, t)`, where t counts the steps from 0."""

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"a schedule takes an optimiser, got {type(optimizer).__name__}")
        self.optimizer, self.last_epoch = optimizer, -1
        self.base_lrs = [group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups]
        self.step()

    def rate(self, base: float, t: int, i: int) -> float:
        """The learning rate at step t of group i, whose rate was `base` at first."""
        raise NotImplementedError

    def step(self) -> None:
        """Go on by one; call it after `optimizer.step()`."""
        self.last_epoch += 1
        for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs)):
            group["lr"] = self.rate(base, self.last_epoch, i)

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule stands; functions are not saved."""
        return {name: value for name, value in vars(self).items() if name != "optimizer" and not callable(value)
                and name != "functions"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another schedule stood; the rates are those that the optimiser's own state holds."""
        vars(self).update(state_dict)


class LambdaLR(Schedule):
    """base * lr_lambda(t), with one function for all groups or a list of one each.

    >>> from micrograd import Value
    >>> optimiser = Optimizer([Value(1.0)], {"lr": 0.5})
    >>> schedule = LambdaLR(optimiser, lambda t: 0.5 ** t)
    >>> schedule.step(); schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable]) -> None:
        self.functions = [lr_lambda] * len(optimizer.param_groups) if callable(lr_lambda) else list(lr_lambda)
        if len(self.functions) != len(optimizer.param_groups):
            raise ValueError(f"{len(optimizer.param_groups)} groups need as many functions, got {len(self.functions)}")
        super().__init__(optimizer)

    def rate(self, base: float, t: int, i: int) -> float:
        return base * self.functions[i](t)


class StepLR(Schedule):
    """base * gamma ^ (t // step_size): a drop every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, base: float, t: int, i: int) -> float:
        return base * self.gamma ** (t // self.step_size)


class ExponentialLR(StepLR):
    """base * gamma ^ t"""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        super().__init__(optimizer, 1, gamma)


class LinearLR(Schedule):
    """From base * start_factor to base * end_factor in `total_iters` steps: the linear warm-up."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0,
                 total_iters: int = 5) -> None:
        if not (0 < start_factor <= 1 and 0 <= end_factor <= 1):
            raise ValueError(f"factors are between 0 and 1, the first above 0; got {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def rate(self, base: float, t: int, i: int) -> float:
        share = min(t, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class CosineAnnealingLR(Schedule):
    """From base to eta_min along half a cosine of `T_max` steps (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, base: float, t: int, i: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2


class OneCycleLR(Schedule):
    """Up to max_lr and down to almost nothing, while the momentum goes down and up (Smith and Topin, 2019).

    Args:
        max_lr: the peak, for all groups or a list of one each.
        total_steps: how many steps there will be; or give `epochs` and `steps_per_epoch`.
        pct_start: the share of the steps that goes up. three_phase: down as long as up, then down to nothing.
        anneal_strategy: "cos" or "linear".
        div_factor, final_div_factor: max_lr is div_factor times the first rate, and that is final_div_factor times the
            last one.
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float = 0.85,
                 max_momentum: float = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
                 three_phase: bool = False) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps = total_steps or epochs * steps_per_epoch      # type: ignore[operator]
        self.linear, self.moves_momentum = anneal_strategy == "linear", cycle_momentum
        groups = optimizer.param_groups
        peaks = list(max_lr) if isinstance(max_lr, Sequence) else [max_lr] * len(groups)
        up = pct_start * self.total_steps - 1
        ends = [up, 2 * up, self.total_steps - 1] if three_phase else [up, self.total_steps - 1]
        firsts = [peak / div_factor for peak in peaks]
        self.rates = [list(zip([-1.0, *ends], [first, peak, *[first] * three_phase, first / final_div_factor]))
                      for first, peak in zip(firsts, peaks)]
        self.momenta = list(zip([-1.0, *ends], [max_momentum, base_momentum, max_momentum, max_momentum]))
        for group, first in zip(groups, firsts):
            group["initial_lr"] = first
        super().__init__(optimizer)

    def rate(self, base: float, t: int, i: int) -> float:
        if t >= self.total_steps:
            raise ValueError(f"the schedule was made for {self.total_steps} steps, and this would be step {t + 1}")
        group = self.optimizer.param_groups[i]
        if self.moves_momentum:
            momentum = self.along(self.momenta, t)
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            elif "momentum" in group:
                group["momentum"] = momentum
        return self.along(self.rates[i], t)

    def along(self, points: list[tuple[float, float]], t: int) -> float:
        """The curve through the points (step, value) at step t."""
        start, first = 0.0, points[0][1]
        for end, last in points[1:]:
            if t <= end or end == points[-1][0]:
                share = (t - start) / (end - start)
                bent = share if self.linear else (1 - math.cos(math.pi * share)) / 2
                return first + (last - first) * bent
            start, first = end, last
        raise AssertionError("the last point is at the last step")


class ReduceLROnPlateau:
    """The rate times `factor` when a measure has not become better for more than `patience` steps.

    Args:
        mode: "min" if small is good (a loss), "max" if large is (an accuracy).
        threshold, threshold_mode: what counts as better: by a share ("rel") or by an amount ("abs").
        cooldown: steps to wait after a cut. min_lr: the floor. eps: a smaller cut is not made.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0,
                 eps: float = 1e-8) -> None:
        if factor >= 1 or mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError("factor is below 1, mode 'min' or 'max', threshold_mode 'rel' or 'abs'; "
                             f"got {factor}, {mode!r}, {threshold_mode!r}")
        self.optimizer, self.sign, self.factor, self.patience = optimizer, 1 if mode == "min" else -1, factor, patience
        self.threshold, self.relative, self.cooldown = threshold, threshold_mode == "rel", cooldown
        self.min_lr, self.eps, self.best, self.bad, self.resting = min_lr, eps, math.inf * self.sign, 0, 0

    def step(self, measure: Any) -> None:
        """Look at the newest measure (a number or a node), and cut the rate if it is time."""
        measure = float(measure)
        margin = self.threshold * (self.best * self.sign if self.relative else 1.0)
        if self.best in (math.inf, -math.inf) or measure * self.sign < self.best * self.sign - margin:
            self.best, self.bad = measure, 0
        else:
            self.bad += 1
        if self.resting:
            self.resting, self.bad = self.resting - 1, 0
        if self.bad > self.patience:
            for group in self.optimizer.param_groups:
                lower = max(group["lr"] * self.factor, self.min_lr)
                group["lr"] = lower if group["lr"] - lower > self.eps else group["lr"]
            self.resting, self.bad = self.cooldown, 0

    get_last_lr, state_dict, load_state_dict = Schedule.get_last_lr, Schedule.state_dict, Schedule.load_state_dict


def lr_find(optimizer: Optimizer, loss: Callable[[], Any], low: float = 1e-6, high: float = 1.0,
            steps: int = 50) -> list[tuple[float, float]]:
    """Train with ever larger rates and give the curve [(rate, loss)]; a good rate is where it falls most steeply.

    Stops when the loss is four times the best. Parameters and optimiser are put back as they were (Smith, 2017).

    Args:
        loss: builds the loss of the next batch, a node.
        low, high, steps: the rates, in equal ratios.
    """
    nodes = [p for group in optimizer.param_groups for p in group["params"]]
    before, memory = [copy.copy(p.data) for p in nodes], optimizer.state_dict()
    curve: list[tuple[float, float]] = []
    try:
        for i in range(steps):
            rate = low * (high / low) ** (i / max(1, steps - 1))
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            value = loss()
            value.backward()
            optimizer.step()
            curve.append((rate, float(value)))
            if not curve[-1][1] <= 4 * abs(min(point[1] for point in curve)):
                break
    finally:
        for p, data in zip(nodes, before):
            p.data = data
        optimizer.load_state_dict(memory)
        optimizer.zero_grad()
    return curve
