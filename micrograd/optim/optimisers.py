"""A gradient says which way the loss grows; an optimiser decides how far to go the other way.

Every rule below is PyTorch's, to the rounding: https://pytorch.org/docs/stable/optim.html
"""

from __future__ import annotations

import contextlib
import copy
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from micrograd.engine import unset


def gradient_of(p: Any) -> Any:
    """The gradient as a number or an array; None if none has arrived yet, which is not the same as zero."""
    if p.grad is None or p.grad is unset:
        return None
    return p.grad.data if hasattr(p.grad, "backward") else p.grad


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
        for name, low, high in (("lr", 0, math.inf), ("momentum", 0, math.inf), ("weight_decay", 0, math.inf),
                                ("eps", 0, math.inf), ("alpha", 0, math.inf), ("lr_decay", 0, math.inf)):
            if not low <= group.get(name, 0) <= high:
                raise ValueError(f"{name} is at least {low}, got {group[name]}")
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
        for group in self.param_groups:
            decay = group.get("weight_decay", 0)
            for p in group["params"]:
                g = gradient_of(p)
                if g is None:
                    continue
                if group.get("maximize"):
                    g = -g
                if decay and self.decoupled:
                    p.data *= 1 - group["lr"] * decay
                elif decay:
                    g = g + decay * p.data
                if p not in self.state:
                    self.state[p] = {}
                p.data -= self.change(g, self.state[p], group)
        return loss

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
        return group["lr"] / (1 - beta1 ** t) * _over(m, root)


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
        step = _over(g, v ** 0.5 + group["eps"])
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
        return group["lr"] / (1 + (t - 1) * group["lr_decay"]) * _over(g, s ** 0.5 + group["eps"])


def _over(a: Any, b: Any) -> Any:
    """a / b; on floats, with the eps of 0, as IEEE 754 says."""
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a)


# ------------------------------------------------------------------------------------- clipping
def _with_gradient(parameters: Any) -> list[Any]:
    nodes: Iterable = [parameters] if hasattr(parameters, "backward") else parameters
    return [p for p in nodes if gradient_of(p) is not None]


def norm(numbers: Sequence[Any], order: float = 2.0) -> float:
    """The norm of all numbers and all entries of all arrays together: (Σ |x|^order) ^ (1 / order)."""
    entries = [abs(x) if not hasattr(x, "ravel") else abs(x).ravel() for x in numbers]
    if order == math.inf:
        largest = [float(x.max()) if hasattr(x, "max") else x for x in entries if getattr(x, "size", 1)]
        return math.nan if any(x != x for x in largest) else max(largest, default=0.0)
    return float(sum(float((x ** order).sum()) if hasattr(x, "sum") else x ** order for x in entries)) ** (1 / order)


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
        numpy = sys.modules.get("numpy")
        with numpy.errstate(invalid="ignore") if numpy else contextlib.nullcontext():       # inf * 0 is nan, as intended
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
