"""A neuron is a weighted sum and a bend; a layer is neurons side by side; a network is layers in a row."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any

from micrograd import engine
from micrograd.engine import Flow, Value, constant, unset
from micrograd.nn.module import Module
from micrograd.ops import TABLE, Operation, relu


def activation_named(name: str) -> Operation | None:
    """The operation that bends: one of the table by name, None for "linear" (no bend)."""
    if name == "linear":
        return None
    fits = [known for known, op in TABLE.items() if len(op.rules) - len(op.defaults) == 1 and any(op.rules)]
    if name not in fits:
        raise ValueError(f"activation is 'linear' or one of {', '.join(sorted(fits))}; got {name!r}")
    return TABLE[name]


class WeightedSum(Flow):
    """Σ: n inputs, n weights and a bias in one node, and the bend with them; the gradient goes to all at once."""

    __slots__ = ("activation", "size")

    def __init__(self, op: Operation, size: int, activation: Operation | None, *reached: int) -> None:
        super().__init__(op, *reached)
        self.size, self.activation = size, activation

    def slope(self, g: Any, inputs: Sequence, y: Any) -> Any:
        """The gradient of the sum, before it was bent."""
        if self.activation is None:
            return g
        return self.activation.rules[0](g, _total(self.size, inputs), *self.activation.defaults.values(), y)

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        g, n = self.slope(g, inputs, y), self.size
        return [(i, g if i == 2 * n else g * inputs[i + n if i < n else i - n]) for i in self.reached]

    def pull(self, node: Value) -> None:
        inputs, g, n = node._left, node.grad, self.size
        if self.activation is relu:
            if node.data <= 0.0:                        # half of all neurons: nothing but zeros to hand down
                if inputs[0].grad is unset or inputs[-1].grad is unset:
                    for x in inputs:
                        x.grad = x.grad + 0.0           # no longer unset
                return
        elif self.activation is not None:
            g = self.slope(g, [x.data for x in inputs], node.data)
        bias = inputs[-1]
        bias.grad = bias.grad + g
        if len(self.reached) == len(inputs):
            for x, w in zip(inputs, inputs[n:-1]):
                to_w = g * x.data
                x.grad = x.grad + g * w.data
                w.grad = w.grad + to_w
        else:
            for x, w in zip(inputs, inputs[n:-1]):
                w.grad = w.grad + g * x.data


def _total(size: int, inputs: Sequence) -> Any:
    """b + w1 x1 + w2 x2 + ..., of whatever comes in the order x..., w..., b."""
    z = inputs[-1]
    for x, w in zip(inputs[:size], inputs[size:]):
        z = z + w * x
    return z


@functools.cache
def weighted_sum(size: int, activation: Operation | None) -> tuple[WeightedSum, WeightedSum]:
    """The operation `bend(b + Σ w x)` of `size` inputs as two flows: to all of x, w and b, and to w and b only."""
    def rule(i: int) -> Callable:
        flow = WeightedSum(op, size, activation, i)
        return lambda g, *numbers: flow.contributions(g, numbers[:-1], numbers[-1])[0][1]

    def forward(*inputs: Any) -> Any:
        return activation(_total(size, inputs)) if activation else _total(size, inputs)

    name = activation.name if activation else ""
    op = Operation(f"weighted_sum {name}".strip(), f"Σ {name}".strip(), forward, (None,) * (2 * size + 1))
    op.rules = tuple(map(rule, range(2 * size + 1)))
    return (WeightedSum(op, size, activation, *range(2 * size + 1)),
            WeightedSum(op, size, activation, *range(size, 2 * size + 1)))


class Neuron(Module):
    """bend(w · x + b), with weights drawn from uniform(-1, 1) by `random`, as in micrograd.

    Args:
        nonlin: False leaves the bend out.
        activation: any operation of the table with one input, by name.
        fused: one Σ node instead of 2n + 1 nodes; the same numbers, ten times as fast.

    >>> neuron = Neuron(2, activation="tanh", fused=True)
    >>> neuron.w[0].data, neuron.w[1].data, neuron.b.data = -3.0, 1.0, 6.8813735870195432
    >>> y = neuron([2.0, 0.0]); y.backward()
    >>> round(y.data, 4), round(neuron.w[0].grad, 4)
    (0.7071, 1.0)
    """

    def __init__(self, nin: int, nonlin: bool = True, activation: str = "relu", fused: bool = False) -> None:
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0)
        self.nonlin, self.activation, self.fused = nonlin, activation if nonlin else "linear", fused
        self._bend = activation_named(self.activation)

    def forward(self, x: Sequence) -> Any:
        if len(x) != len(self.w):
            raise ValueError(f"a neuron with {len(self.w)} weights got {len(x)} inputs; pass one for each weight")
        if self.fused and (given := scalars(x)):
            return self.weigh(*given)
        act = self.b
        for wi, xi in zip(self.w, x):
            act = act + wi * xi
        return act if self._bend is None else self._bend(act)

    def weigh(self, x: tuple[Value, ...], numbers: list[float], reached: bool) -> Value:
        """The whole neuron as one node, of inputs as `scalars` gives them."""
        z = sum(map(mul, numbers, [w.data for w in self.w]), self.b.data)
        flow = weighted_sum(len(x), self._bend)[0 if reached else 1]
        if not engine._ordinary or self.b.flow is constant:
            return flow.op(*x, *self.w, self.b)         # paused, watched or frozen: the general way
        if self._bend is not None:
            z = self._bend.scalar(z, *self._bend.defaults.values())
        return engine._node(z, flow, (*x, *self.w, self.b), None)

    def __repr__(self) -> str:
        name = {"relu": "ReLU", "linear": "Linear"}.get(self.activation, self.activation.title())
        return f"{name}Neuron({len(self.w)})"


def scalars(x: Sequence) -> tuple[tuple[Value, ...], list[float], bool] | None:
    """x as nodes, as numbers, and whether gradients reach it; None for batches, and if only part of it is reached."""
    if any(getattr(v, "ndim", 0) for v in x if v.__class__ is not Value):
        return None
    nodes = tuple([v if v.__class__ is Value else Value(v, requires_grad=False) for v in x])
    reached = [v.flow is not constant for v in nodes]
    return (nodes, [v.data for v in nodes], reached[0]) if reached and reached.count(reached[0]) == len(x) else None


class Layer(Module):
    """`nout` neurons that see the same `nin` inputs."""

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        self.neurons = [Neuron(nin, **kwargs) for _ in range(nout)]

    def forward(self, x: Sequence) -> Any:
        given = self.neurons[0].fused and len(x) == len(self.neurons[0].w) and scalars(x)
        out = [neuron.weigh(*given) for neuron in self.neurons] if given else [neuron(x) for neuron in self.neurons]
        return out[0] if len(out) == 1 else out

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(str(neuron) for neuron in self.neurons)}]"


class MLP(Module):
    """Layers in a row, bent between them and not after the last.

    Args:
        nin, nouts: number of inputs, and of neurons in each layer.
        activation, fused: as for `Neuron`.
        backend: "numpy" gives the same network of Tensors: the same initial numbers for a seed, X (n, nin) in,
            (n, nouts[-1]) out, or (n,) if that is 1.

    >>> random.seed(1337)
    >>> model = MLP(2, [16, 16, 1])
    >>> len(model.parameters()), round(model([1.0, -1.0]).data, 4)
    (337, -0.9245)
    """

    def __new__(cls, nin: int = 0, nouts: Sequence[int] = (), activation: str = "relu", fused: bool = False,
                backend: str = "scalar") -> Any:
        if backend not in ("scalar", "numpy"):
            raise ValueError(f"backend is 'scalar' or 'numpy', got {backend!r}")
        if backend == "scalar":
            return super().__new__(cls)
        from micrograd.nn.layers import BatchMLP
        return BatchMLP(MLP(nin, nouts, activation))

    def __init__(self, nin: int, nouts: Sequence[int], activation: str = "relu", fused: bool = False,
                 backend: str = "scalar") -> None:
        sizes = [nin, *nouts]
        self.layers = [Layer(sizes[i], sizes[i + 1], nonlin=i != len(nouts) - 1, activation=activation, fused=fused)
                       for i in range(len(nouts))]

    def forward(self, x: Sequence) -> Any:
        for layer in self.layers:
            x = layer(x if hasattr(x, "__len__") else [x])
        return x

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(str(layer) for layer in self.layers)}]"
