"""What a doctor of networks asks: does the gradient arrive everywhere, is it whole, and is it of a sane size?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from micrograd.engine import Value, topological_order, unset
from micrograd.explanation import handed_down, number_of, quiet

_BENDS = ("relu", "leaky_relu", "elu", "gelu", "silu", "softplus", "tanh", "sigmoid")
_CURES = {
    "nan or inf": "Look at what went in; scaled data, a smaller learning rate or clipped gradients often help.",
    "nan or inf in log": "Keep its input above 0: log(x + 1e-8), or log_softmax for probabilities.",
    "nan or inf in div": "Keep the divisor away from 0, for example by adding 1e-8.",
    "nan or inf in exp": "Keep its input small; softmax, logsumexp and softplus do so by themselves.",
    "nan or inf in sqrt": "Keep its input above 0: its slope at 0 is infinite.",
    "nan or inf in pow": "Keep the base above 0: roots of negative numbers are nan, slopes at 0 can be infinite.",
    "parameters out of reach": "Use them in the forward pass, or look for a detach(), item() or no_grad() on the way.",
    "parameters without a gradient": "Call backward() on the loss; if it ran, the loss does not depend on them.",
    "dead relus": "Lower the learning rate, start with Kaiming weights and biases above 0, or take leaky_relu.",
    "saturated tanh": "Scale inputs to mean 0 and deviation 1, start with smaller (Xavier) weights, or normalise.",
    "saturated sigmoid": "Scale inputs to mean 0 and deviation 1, start with smaller (Xavier) weights, or normalise.",
    "vanishing gradients": "Use relu for sigmoid or tanh, residual paths, normalisation, or Kaiming/Xavier weights.",
    "exploding gradients": "Start with smaller weights, normalise, clip gradients, or lower the learning rate.",
    "gradients of earlier passes": "Call zero_grad() before each backward(), unless you add up on purpose.",
    "a graph kept alive": "Add up losses with loss.item(), and carry a state to the next step with .detach().",
    "learning rate too large": "Take one below the inverse of the curvature, or warm up."}


@dataclass(frozen=True)
class Finding:
    """What is wrong, how it shows, and the usual cure."""

    trouble: str
    evidence: str
    cure: str

    def __str__(self) -> str:
        return f"{self.trouble}: {self.evidence}. {self.cure}"


class Findings(list):
    """What `diagnose` found: a list that prints as text."""

    def __str__(self) -> str:
        return "\n".join(f"{n}. {finding}" for n, finding in enumerate(self, 1)) or "No trouble found."

    __repr__ = __str__


def diagnose(root_or_model: Any, model: Any = None, lr: float | None = None) -> Findings:
    """Look for the usual troubles of training: in a graph, before or after `backward()`, or in a model after it.

    Of a graph: nan and inf and where they were born, dead relus, saturated tanh and sigmoid, gradients that vanish
    or explode on the way, a forgotten `zero_grad()`, and a graph that hangs on those of earlier steps. Of a model:
    parameters without a gradient, nan and inf, and layers that get too little or too much. Nothing is changed.

    Args:
        model: with a graph: the model whose parameters the loss should reach.
        lr: with a graph: the learning rate, to be judged by the curvature along the gradient.

    >>> x = Value(0.0, label="x")
    >>> print(diagnose(x.log() * 2))
    1. nan or inf: -inf was born in log(0). Keep its input above 0: log(x + 1e-8), or log_softmax for probabilities.
    """
    if not isinstance(root_or_model, Value) and not hasattr(root_or_model, "parameters"):
        raise TypeError(f"diagnose takes a loss (a Value or a Tensor) or a model, got {type(root_or_model).__name__}")
    if isinstance(root_or_model, Value) and not root_or_model.operands():
        raise ValueError(f"diagnose looks at a result and its graph, and {root_or_model!r:.60} has none")
    with quiet():
        graph = isinstance(root_or_model, Value)
        found = list(_Graph(root_or_model).troubles(model, lr) if graph else _in_model(root_or_model))
    return Findings(Finding(trouble.partition(" in ")[0], evidence, _CURES.get(trouble) or _CURES["nan or inf"])
                    for trouble, evidence in found)


class _Graph:
    """The graph of a loss, and the gradients of one pass back, which leaves every `.grad` alone."""

    def __init__(self, root: Value) -> None:
        self.root = root
        self.operations, leaves = topological_order(root)
        self.gradients: dict[int, Any] = {id(root): root.data ** 0}
        self.born: tuple[Value, Any] | None = None      # the operation that made the first gradient of nan or inf
        for node in reversed(self.operations):
            g = self.gradients.get(id(node))
            for i, part in () if g is None else handed_down(node, g):
                x = node.operands()[i]
                self.gradients[id(x)] = part + self.gradients.get(id(x), 0.0)
                if self.born is None and _finite(g) and not _finite(part):
                    self.born = node, part
        self.variables = [x for x in leaves if x.requires_grad and id(x) in self.gradients]

    def troubles(self, model: Any, lr: float | None) -> Iterator[tuple[str, str]]:
        """(trouble, evidence) of everything that is wrong."""
        yield from self.not_finite()
        if model is not None:
            names = [name for name, p in _parameters(model) if p.requires_grad and id(p) not in self.gradients]
            if names:
                yield "parameters out of reach", f"the loss does not depend on {_listed(names)}"
        yield from self.dead()
        for name, steepest in (("tanh", 1.0), ("sigmoid", 0.25)):
            slopes = [1 - y * y if name == "tanh" else y * (1 - y) for y in (node.data for node in self.bends(name))]
            share = sum(_mean(slope < steepest / 20) for slope in slopes) / max(len(slopes), 1)
            if share > 0.5:
                yield f"saturated {name}", f"{share:.0%} of its values pass on less than a twentieth of a gradient"
        yield from _over_depth(self.sizes())
        yield from self.left_over()
        walked = sum(_set(node.grad) for node in self.operations)
        if walked and not _set(self.root.grad):
            yield "a graph kept alive", (f"{walked} of {len(self.operations)} operations were part of an earlier "
                                         "backward(), and still hang on this loss")
        if lr is not None:
            yield from self.too_fast(lr)

    def bends(self, *names: str) -> list[Value]:
        """The operations that bend, also where a fused neuron hides them."""
        return [node for node in self.operations if node.op.name.rpartition(" ")[2] in names]

    def not_finite(self) -> Iterator[tuple[str, str]]:
        for node in self.operations:
            if not _finite(node.data):
                ill = next((x for x in node.operands() if not _finite(_data(x))), None)
                if ill is None:
                    yield f"nan or inf in {node.op.name}", f"{_shown(node)} was born in {_call(node)}"
                else:
                    yield "nan or inf", f"{getattr(ill, 'label', '') or 'an input'} is {_shown(ill)} from the start"
                return
        if self.born is not None:
            node, part = self.born
            yield f"nan or inf in {node.op.name}", (
                f"all values are finite, but on the way back a gradient of {_shown(part)} was born in {_call(node)}")

    def dead(self) -> Iterator[tuple[str, str]]:
        seen: dict[Any, list[bool]] = {}
        for node in self.bends("relu"):
            if number_of(node) is None:
                rows = node.data.reshape(-1, node.data.shape[-1]) <= 0
                seen.update({(id(node), i): list(rows[:, i]) for i in range(rows.shape[1])})
            else:
                seen.setdefault(_unit(node), []).append(node.data <= 0)
        dead = [inputs for inputs in seen.values() if all(inputs)]
        if dead and (len(dead[0]) >= 8 or len(dead) > len(seen) / 2):      # of few inputs, some are always at rest
            yield "dead relus", (f"{len(dead)} of {len(seen)} relus gave 0 for every input ({len(dead[0])} seen), so "
                                 "no gradient passes them")

    def sizes(self) -> list[float]:
        """The largest gradient at each level of bends (or products, if nothing bends), from the last to the first."""
        layers = set(map(id, self.bends(*_BENDS) or [x for x in self.operations if x.op.name in ("mul", "matmul")]))
        level: dict[int, int] = {}
        sizes: dict[int, float] = {}
        for node in reversed(self.operations):
            here = level.get(id(node), 0)
            if id(node) in layers:
                sizes[here] = max(_size(self.gradients.get(id(node), 0.0)), sizes.get(here, 0.0))
                here += 1
            level.update({id(x): max(here, level.get(id(x), 0)) for x in node.operands()})
        return [sizes[i] for i in sorted(sizes)]

    def left_over(self) -> Iterator[tuple[str, str]]:
        """`.grad` beside the gradient of this loss: is it that, a multiple of it, or something else?"""
        factors = []
        for x in self.variables:
            g = self.gradients[id(x)]
            if _set(x.grad) and _finite(g) and _finite(x.grad) and _size(g):
                factor = _dot(x.grad, g) / _dot(g, g)
                factors.append(factor if _size(x.grad - factor * g) <= 1e-6 * _size(x.grad) else math.nan)
        times = {round(f) if abs(f - round(f)) < 1e-6 else 0 for f in (f if f == f else 0.5 for f in factors)}
        if len(times) == 1 and min(times) > 1:
            yield "gradients of earlier passes", (
                f"each .grad is {min(times)} times the gradient of this loss: backward() ran {min(times)} times")
        elif times - {1}:
            yield "gradients of earlier passes", "what is in .grad is not, or not only, the gradient of this loss"

    def too_fast(self, lr: float) -> Iterator[tuple[str, str]]:
        """The curvature along the gradient g is gᵀ H g / gᵀ g; a step above twice its inverse climbs."""
        from micrograd.autograd import grad
        first = grad(self.root, self.variables, create_graph=True)
        along: Any = sum((g * g.data).sum() if getattr(g.data, "ndim", 0) else g * g.data for g in first)
        second = grad(along, self.variables, retain_graph=True, allow_unused=True) if along.requires_grad else ()
        curve = sum(_dot(_data(h), g.data) for h, g in zip(second, first) if h is not None)
        curvature = curve / (sum(_dot(g.data, g.data) for g in first) or math.inf)
        if lr * curvature > 2:
            yield "learning rate too large", (f"lr={lr:g}, but with a curvature of {curvature:.3g} along the gradient "
                                              f"any step above {2 / curvature:.3g} makes the loss larger")


def _in_model(model: Any) -> Iterator[tuple[str, str]]:
    """(trouble, evidence) of a model whose `.grad`s are looked at."""
    parameters = [(name, p) for name, p in _parameters(model) if p.requires_grad]
    without = [name for name, p in parameters if not _set(p.grad)]
    ill = [name for name, p in parameters if not (_finite(p.data) and _finite(p.data if p.grad is None else p.grad))]
    if without:
        yield "parameters without a gradient", f"{_listed(without)} got none"
    if ill:
        yield "nan or inf", f"in {_listed(ill)}"
    layers: dict[str, float] = {}
    for name, p in parameters:
        if name not in without and name not in ill:
            layer = re.sub(r"(\d)\b.*", r"\1", name)         # layers.3 of layers.3.neurons.0.w.1
            layers[layer] = max(_size(p.grad), layers.get(layer, 0.0))
    yield from _over_depth(list(reversed(layers.values())))


# -------------------------------------------------------------------------------------- helpers
def _over_depth(sizes: list[float]) -> Iterator[tuple[str, str]]:
    """Judge the sizes of gradients from the last layer to the first."""
    if len(sizes) < 2 or not all(0 < size < math.inf for size in sizes):
        return
    ratio = sizes[-1] / sizes[0]
    if not 1e-4 < ratio < 1e4:
        yield f"{'vanishing' if ratio < 1 else 'exploding'} gradients", (
            f"{sizes[0]:.2g} at the last layer, {sizes[-1]:.2g} at the first of {len(sizes)}: "
            f"a factor of {ratio ** (1 / (len(sizes) - 1)):.2g} per layer")


def _set(grad: Any) -> bool:
    return grad is not unset and grad is not None


def _data(x: Any) -> Any:
    return x.data if isinstance(x, Value) else x


def _finite(x: Any) -> bool:
    return _mean(x - x == 0) == 1


def _mean(x: Any) -> float:
    return float(x.mean()) if getattr(x, "ndim", 0) else float(x)


def _dot(a: Any, b: Any) -> float:
    return _mean(a * b) * getattr(a * b, "size", 1)


def _size(x: Any) -> float:
    """The root mean square."""
    return math.sqrt(_mean(x * x))


def _shown(x: Any) -> str:
    return "nan or inf" if number_of(x) is None else str(number_of(x))


def _call(node: Value) -> str:
    """log(0); for arrays log(shape (3, 2))"""
    inputs = [f"shape {_data(x).shape}" if number_of(x) is None else f"{number_of(x):g}" for x in node.operands()]
    return f"{node.op.name}({', '.join(inputs)})" + (f" = {node.label}" if node.label else "")


def _unit(node: Value) -> Any:
    """What makes a scalar neuron the same for every input: the variables that are added and multiplied in it."""
    found, waiting = set(), list(node.operands())
    while waiting:
        x = waiting.pop()
        if isinstance(x, Value) and x.is_leaf and x.requires_grad:
            found.add(id(x))
        elif isinstance(x, Value) and x.op.name in ("add", "sub", "mul"):
            waiting += x.operands()
    return frozenset(found) or id(node)


def _parameters(model: Any) -> list[tuple[str, Any]]:
    """The parameters with their names, or numbers where a model has no names for them."""
    if hasattr(model, "named_parameters"):
        return list(model.named_parameters())
    return [(p.label or f"parameter {i}", p) for i, p in enumerate(model.parameters())]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
