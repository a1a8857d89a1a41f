"""A gradient says which way the loss grows; an optimiser decides how far to go the other way.

They touch `p.data` and `p.grad` and nothing else of a node, so floats and arrays are trained alike. Optimisers turn
gradients into steps, clipping bounds the gradients first, and schedules change how long the steps are while training
goes on. Every rule and every curve is PyTorch's, to the rounding: https://pytorch.org/docs/stable/optim.html
"""

from __future__ import annotations

import contextlib
import copy
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from micrograd.engine import unset
from micrograd.ops import div, pow


def gradient_of(p: Any) -> Any:
    """The gradient as a number or an array; None if none has arrived yet, which is not the same as zero."""
    if p.grad is None or p.grad is unset:
        return None
    return p.grad.data if hasattr(p.grad, "backward") else p.grad


def quietly() -> Any:
    """A block in which NumPy makes inf and nan without a word, as floats do and PyTorch does."""
    numpy = sys.modules.get("numpy")
    return numpy.errstate(all="ignore") if numpy else contextlib.nullcontext()


class Optimizer:
    """Steps for a set of parameters, or for groups of them with options of their own.

    Args:
        params: nodes, or dicts {"params": nodes, "lr": ..., ...}; every node in one place only.
        defaults: the options of a group that does not say otherwise.

    A subclass says in `change` what to take away from the data of one parameter. A parameter without a gradient
    (None, or a Value that backward has not met) is left alone; one with gradient zero is not.
    """

    decoupled = False                       # whether weight decay shrinks the data instead of joining the gradient

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if hasattr(params, "backward"):
            raise TypeError("an optimiser takes a list of parameters, got one node; write [p], or model.parameters()")
        params = list(params)
        if not params:
            raise ValueError("the optimiser got an empty list of parameters; an iterator can be used up only once")
        self.defaults, self.state, self.param_groups = defaults, {}, []      # type: tuple[dict, dict, list]
        for group in params if isinstance(params[0], dict) else [{"params": params}]:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Take on more parameters, {"params": nodes, "lr": ...}; what the group leaves out is as in the others."""
        nodes = group["params"]
        group = {**self.defaults, **group, "params": [nodes] if hasattr(nodes, "backward") else list(nodes)}
        seen = {p for other in self.param_groups for p in other["params"]}
        for p in group["params"]:
            if not hasattr(p, "backward"):
                raise TypeError(f"an optimiser changes Values and Tensors, got {type(p).__name__} {p!r:.40}")
            if not p.is_leaf:
                raise ValueError("an optimiser changes leaves, and this node was computed from others")
            if p in seen:
                raise ValueError(f"the same parameter was given twice, and would be stepped twice: {p!r:.60}")
            seen.add(p)
        for name in ("lr", "momentum", "weight_decay", "eps", "alpha", "lr_decay"):
            if not group.get(name, 0) >= 0:
                raise ValueError(f"{name} is at least 0, got {group[name]}")
        if not all(0 <= beta < 1 for beta in group.get("betas", ())):
            raise ValueError(f"betas are at least 0 and below 1, got {group['betas']}")
        if group.get("nesterov") and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Forget the gradients: back to 0.0 for Values and None for Tensors, or as `set_to_none` says."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none is None:
                    p.zero_grad()
                else:
                    p.zero_grad(set_to_none=set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns what `closure`, if given, computed before."""
        loss = closure() if closure is not None else None
        with quietly():
            for group in self.param_groups:
                for p in group["params"]:
                    self.move(p, gradient_of(p), group, group.get("weight_decay", 0))
        return loss

    def move(self, p: Any, g: Any, group: dict[str, Any], decay: float) -> None:
        """The step of one parameter."""
        if g is None:
            return
        if group.get("maximize"):
            g = -g
        if decay and self.decoupled:
            p.data *= 1 - group["lr"] * decay
        elif decay:
            g = g + decay * p.data
        p.data -= self.change(g, self.state.setdefault(p, {}), group)

    def change(self, g: Any, state: dict[str, Any], group: dict[str, Any]) -> Any:
        """What to take away from the data, for gradient `g`; `state` remembers, `group` has the options."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Memory and options as a copy; parameters are numbered in their order."""
        order = {p: i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [{**group, "params": [order[p] for p in group["params"]]} for group in self.param_groups]
        return copy.deepcopy({"state": {order[p]: state for p, state in self.state.items()}, "param_groups": groups})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another optimiser of equal groups was; takes copies."""
        loaded = copy.deepcopy(state_dict)
        sizes = [[len(group["params"]) for group in groups] for groups in (self.param_groups, loaded["param_groups"])]
        if sizes[0] != sizes[1]:
            raise ValueError(f"this state is of groups with {sizes[1]} parameters, here are groups with {sizes[0]}")
        nodes: dict[int, Any] = {}
        for mine, theirs in zip(self.param_groups, loaded["param_groups"]):
            nodes.update(zip(theirs["params"], mine["params"]))
            mine.update({**theirs, "params": mine["params"]})
        self.state = {nodes[i]: state for i, state in loaded["state"].items()}

    def __repr__(self) -> str:
        groups = [{k: v for k, v in group.items() if k != "params"} for group in self.param_groups]
        return f"{type(self).__name__}({', '.join(map(str, groups))})"


class SGD(Optimizer):
    """p -= lr v,  where v = momentum v + (1 - dampening) g, and v = g in the first step.

    >>> from micrograd import Value
    >>> p = Value(1.0)
    >>> optimiser = SGD([p], lr=0.1)
    >>> (p * p).backward(); optimiser.step(); p.data
    0.8
    """

    def __init__(self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov, maximize=maximize))

    def change(self, g: Any, state: dict[str, Any], group: dict[str, Any]) -> Any:
        if group["momentum"]:
            v = state.get("momentum_buffer")
            v = g * 1.0 if v is None else group["momentum"] * v + (1 - group["dampening"]) * g
            state["momentum_buffer"] = v
            g = g + group["momentum"] * v if group["nesterov"] else v
        return group["lr"] * g


class Adam(Optimizer):
    """p -= lr m / (sqrt(v) + eps),  with running means m of g and v of g², both corrected for their start at 0.

    >>> from micrograd import Value
    >>> p = Value(1.0)
    >>> optimiser = Adam([p], lr=0.1)
    >>> (p * p).backward(); optimiser.step(); round(p.data, 6)
    0.9
    """

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, *, maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize))

    def change(self, g: Any, state: dict[str, Any], group: dict[str, Any]) -> Any:
        beta1, beta2 = group["betas"]
        t = state["step"] = state.get("step", 0) + 1
        m = state["exp_avg"] = beta1 * state.get("exp_avg", 0.0) + (1 - beta1) * g
        v = state["exp_avg_sq"] = beta2 * state.get("exp_avg_sq", 0.0) + (1 - beta2) * (g * g)
        root = v ** 0.5 / math.sqrt(1 - beta2 ** t) + group["eps"]
        return group["lr"] / (1 - beta1 ** t) * div(m, root)


class AdamW(Adam):
    """Adam, where weight decay shrinks the data itself: p -= lr weight_decay p (Loshchilov and Hutter, 2019)."""

    decoupled = True

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, *, maximize: bool = False) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, maximize=maximize)


class RMSprop(Optimizer):
    """p -= lr g / (sqrt(v) + eps),  with a running mean v of g² (less its mean squared if centered)."""

    def __init__(self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, *, maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum,
                                      centered=centered, maximize=maximize))

    def change(self, g: Any, state: dict[str, Any], group: dict[str, Any]) -> Any:
        alpha = group["alpha"]
        v = state["square_avg"] = alpha * state.get("square_avg", 0.0) + (1 - alpha) * (g * g)
        if group["centered"]:
            mean = state["grad_avg"] = alpha * state.get("grad_avg", 0.0) + (1 - alpha) * g
            v = v - mean * mean
        step = div(g, v ** 0.5 + group["eps"])
        if group["momentum"]:
            step = state["momentum_buffer"] = group["momentum"] * state.get("momentum_buffer", 0.0) + step
        return group["lr"] * step


class Adagrad(Optimizer):
    """p -= lr g / (sqrt(s) + eps),  with the sum s of all g² so far."""

    def __init__(self, params: Any, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, *, maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, maximize=maximize))

    def change(self, g: Any, state: dict[str, Any], group: dict[str, Any]) -> Any:
        t = state["step"] = state.get("step", 0) + 1
        s = state["sum"] = state.get("sum", group["initial_accumulator_value"]) + g * g
        return group["lr"] / (1 + (t - 1) * group["lr_decay"]) * div(g, s ** 0.5 + group["eps"])


# ------------------------------------------------------------------------------------- clipping
def _with_gradient(parameters: Any) -> list[Any]:
    nodes: Iterable = [parameters] if hasattr(parameters, "backward") else parameters
    return [p for p in nodes if gradient_of(p) is not None]


def norm(numbers: Sequence[Any], order: float = 2.0) -> float:
    """The norm of all numbers and all entries of all arrays together: (Σ |x|^order) ^ (1 / order)."""
    with quietly():
        if order == math.inf:
            largest = [float(abs(x).max()) if hasattr(x, "max") else abs(x) for x in numbers if getattr(x, "size", 1)]
            return math.nan if any(x != x for x in largest) else max(largest, default=0.0)
        return sum(float((abs(x) ** order).sum()) if hasattr(x, "sum") else pow(abs(x), order) for x in numbers) ** (1 / order)


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False) -> float:
    """Shorten all gradients together, direction kept, so that their norm is at most `max_norm`; gives the norm before.

    A nan or an infinity in a gradient makes the norm so, and spoils the gradients as in PyTorch, or raises
    RuntimeError before anything was changed if `error_if_nonfinite`.

    >>> from micrograd import Value
    >>> p = Value(1.0); (p * 5).backward()
    >>> clip_grad_norm_([p], 1.0), round(p.grad, 5)
    (5.0, 1.0)
    """
    if max_norm < 0 or norm_type <= 0:
        raise ValueError(f"max_norm is at least 0 and norm_type above 0, got {max_norm} and {norm_type}")
    nodes = _with_gradient(parameters)
    total = norm([gradient_of(p) for p in nodes], norm_type)
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(f"the norm of the gradients is {total}, so they cannot be clipped; nothing was changed")
    share = max_norm / (total + 1e-6)
    if not share >= 1:
        with quietly():                                     # inf * 0 is nan, as intended
            for p in nodes:
                p.grad = p.grad * share
    return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Hold every entry of every gradient between -clip_value and clip_value; nan stays nan."""
    if clip_value < 0:
        raise ValueError(f"clip_value is at least 0, got {clip_value}")
    for p in _with_gradient(parameters):
        g = p.grad
        p.grad = g.clip(-clip_value, clip_value) if hasattr(g, "clip") else max(min(g, clip_value), -clip_value)


# ------------------------------------------------------------------------------------ schedules
class Schedule:
    """Sets the learning rate of each group to `rate(base, t)`, where t counts the calls of `step()` from 0."""

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
        if t > self.total_steps:                            # the loop's last call, after the last step, is no harm
            raise ValueError(f"the schedule was made for {self.total_steps} steps, and this would be step {t}")
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
