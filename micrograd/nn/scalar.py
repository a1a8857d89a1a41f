"""A neuron is a weighted sum and a bend; a layer is neurons side by side; a network is layers in a row."""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from micrograd import engine
from micrograd.engine import Flow, Inputs, Value, constant, unset
from micrograd.nn.module import Module
from micrograd.ops import TABLE, Operation, add, relu


def activation_named(name: str) -> Operation | None:
    """The operation that bends: one of the table by name, None for "linear" (no bend)."""
    if name == "linear":
        return None
    fits = [known for known, op in TABLE.items() if len(op.rules) - len(op.defaults) == 1 and any(op.rules)]
    if name not in fits:
        raise ValueError(f"activation is 'linear' or one of {', '.join(sorted(fits))}; got {name!r}")
    return TABLE[name]


class WeightedSum(Flow):
    """b + w * x + w * x + ... in one node; whoever reads the graph is shown the products and their sums."""

    def pull(self, node: Value) -> None:
        weights, x, g = node._left, node._right, node.grad
        for w, v in zip(weights, x):
            to_w, to_v = g * v.data, g * w.data
            w.grad = w.grad + to_w
            v.grad = v.grad + to_v
        for b in weights[len(x):]:
            b.grad = b.grad + g

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        n = len(inputs) // 2
        return [*enumerate([*(g * v for v in inputs[-n:]), *[g] * (len(inputs) % 2), *(g * w for w in inputs[:n])])]

    def unfold(self, node: Value, gradient: Any) -> bool:
        def made(data: float, flow: Flow, a: Value, b: Value) -> Value:
            inner = engine._node(data, flow, a, b)
            inner.grad = gradient
            return inner

        weights, x = node._left, node._right
        products = [made(w.data * v.data, engine._product, w, v) for w, v in zip(weights, x)]
        last = functools.reduce(lambda a, b: made(a.data + b.data, engine._sum, a, b), (*weights[len(x):], *products))
        node.flow, node._left, node._right = last.flow, last._left, last._right     # this node is the last of them
        return True


_weighted_sum = WeightedSum(add)


def weighted_sum(weights: Sequence, x: Sequence) -> Any:
    """b + w * x + w * x + ..., where b is one weight more than there are x, or is left out.

    One node, and much faster, if all are Values that want a gradient; in pictures it has its products and sums.

    >>> w, x = [Value(2.0), Value(-1.0)], [Value(3.0), Value(5.0)]
    >>> y = weighted_sum(w, x); y.backward()
    >>> y.data, w[0].grad, x[1].grad
    (1.0, 3.0, -1.0)
    """
    if not 0 <= len(weights) - len(x) <= 1 or not len(x):
        raise ValueError(f"a weighted sum of {len(x)} inputs has as many weights, or one more for b; got {len(weights)}")
    if engine._ordinary and len(weights) > 1:
        numbers = [w.data for w in weights if w.__class__ is Value and w.flow is not constant]
        given = [v.data for v in x if v.__class__ is Value and v.flow is not constant]
        if len(numbers) == len(weights) and len(given) == len(x):
            data = functools.reduce(operator.add, map(operator.mul, numbers, given), *numbers[len(x):])
            return engine._node(data, _weighted_sum, together(weights), together(x))
    return functools.reduce(operator.add, map(operator.mul, weights, x), *weights[len(x):])


def together(nodes: Sequence) -> Inputs:
    """As one thing, which the sort looks through once, however many nodes are made of it."""
    return nodes if isinstance(nodes, Inputs) else Inputs(nodes)


class Network(Flow):
    """Σ: a neuron, or layers of neurons, in one node; its inputs are x, then all weights, then all biases.

    It remembers what it computed on the way, so its gradients are those of the data as it was then.
    """

    def __init__(self, op: Operation, sizes: tuple[int, ...], bends: tuple[Operation | None, ...], *reached: int) -> None:
        super().__init__(op, *reached)
        self.sizes, self.bends = sizes, bends

    def layers(self, inputs: Sequence) -> list[tuple[int, int, list, list, Any]]:
        """For each layer where its weights and biases begin, what comes in, the sums, the bend; of whatever flows."""
        layers, h, weight = [], list(inputs[:self.sizes[0]]), self.sizes[0]
        bias = weight + sum(n * size for n, size in zip(self.sizes, self.sizes[1:]))
        for size, bend in zip(self.sizes[1:], self.bends):
            n, sums = len(h), list(inputs[bias:bias + size])
            for k in range(size):
                for x, w in zip(h, inputs[weight + k * n:]):
                    sums[k] = sums[k] + w * x
            layers.append((weight, bias, h, sums, bend))
            h, weight, bias = [bend(z) if bend else z for z in sums], weight + n * size, bias + size
        return layers

    def contributions(self, g: Any, inputs: Sequence, y: Any) -> list[tuple[int, Any]]:
        parts, gradients = list(inputs), [g]
        for weight, bias, h, sums, bend in reversed(self.layers(inputs)):
            slopes, n = [slope(bend, g, z, bend(z)) if bend else g for g, z in zip(gradients, sums)], len(h)
            parts[bias:bias + len(sums)] = slopes
            parts[weight:weight + n * len(sums)] = [g * x for g in slopes for x in h]
            gradients = [0.0] * n
            for k, g in enumerate(slopes):
                gradients = [total + g * w for total, w in zip(gradients, inputs[weight + k * n:])]
        parts[:len(gradients)] = gradients
        return [(i, parts[i]) for i in self.reached]

    def pull(self, node: Value) -> None:
        inputs, gradients, (numbers, run, finite) = node._left, [node.grad], node._extra["run"]     # type: ignore[index]
        bias, weight = len(inputs), len(inputs) - sum(self.sizes[1:])
        for (h, sums, outputs), bend in zip(reversed(run), reversed(self.bends)):
            if bend is relu:
                gradients = [0.0 if y <= 0.0 else g for g, y in zip(gradients, outputs)]
            elif bend is not None:
                gradients = [slope(bend, g, z, y) for g, z, y in zip(gradients, sums, outputs)]
            n, down = len(h), [0.0] * len(h)
            for g in reversed(gradients):
                bias, weight = bias - 1, weight - n
                b = inputs[bias]
                if g or b.grad is unset or not finite:  # half of all neurons have nothing but zeros to give
                    b.grad = b.grad + g
                    for w, x in zip(inputs[weight:weight + n], h):
                        w.grad = w.grad + g * x
                    down = [total + g * w for total, w in zip(down, numbers[weight:weight + n])]
            gradients = down
        if self.reached[0] == 0:
            for x, g in zip(inputs, gradients):
                x.grad = x.grad + g


def slope(bend: Operation, g: Any, z: Any, y: Any) -> Any:
    """What a gradient is before the bend."""
    try:
        return bend.rules[0](g, z, *bend.defaults.values(), y)
    except ZeroDivisionError:                           # of floats; IEEE 754 has an answer
        return g * bend.partial(0, z, *bend.defaults.values())


@functools.cache
def network(sizes: tuple[int, ...], bends: tuple[Operation | None, ...]) -> tuple[Network, Network]:
    """The operation of a network with one output as two flows: to x and all weights, and to the weights only."""
    def forward(*inputs: Any) -> Any:
        *_, (z,), bend = flow.layers(inputs)[-1]
        return bend(z) if bend else z

    def rule(i: int) -> Callable:
        one = Network(op, sizes, bends, i)
        return lambda g, *numbers: one.contributions(g, numbers[:-1], numbers[-1])[0][1]

    count = sizes[0] + sum((n + 1) * size for n, size in zip(sizes, sizes[1:]))
    name = "-".join(map(str, sizes)) if len(sizes) > 2 else bends[0].name if bends[0] else ""
    op = Operation(f"weighted_sum {name}".strip(), f"Σ {name}".strip(), forward, (None,) * count)
    flow = Network(op, sizes, bends, *range(count))
    op.rules = tuple(map(rule, range(count)))
    return flow, Network(op, sizes, bends, *range(sizes[0], count))


def fuse(layers: Sequence[Sequence[Neuron]], weights: tuple[Value, ...], x: tuple[Value, ...], numbers: list[float],
         reached: bool) -> Value:
    """The one output of layers of neurons, with all weights and then all biases, of inputs as `scalars` gives them."""
    nodes = x + weights
    flow = network((len(x), *map(len, layers)), tuple([layer[0]._bend for layer in layers]))[0 if reached else 1]
    numbers, h, run = [p.data for p in nodes], numbers, []
    finite = math.isfinite(sum(numbers))                # then what is multiplied by 0 can be left out
    weight, bias = len(h), len(nodes) - sum(flow.sizes[1:])
    for size, bend in zip(flow.sizes[1:], flow.bends):
        end, sums = weight + len(h) * size, numbers[bias:bias + size]
        if size == 1:
            sums = [functools.reduce(operator.add, map(operator.mul, h, numbers[weight:end]), sums[0])]
        else:
            for i, given in enumerate(h, weight):
                if given or not finite:
                    sums = [z + given * w for z, w in zip(sums, numbers[i:end:len(h)])]
        if bend is relu:
            outputs = [0.0 if z <= 0.0 else z for z in sums]
        else:
            outputs = [bend.scalar(z, *bend.defaults.values()) for z in sums] if bend else sums
        run.append((h, sums, outputs))
        h, weight, bias = outputs, end, bias + size
    if not engine.thread.recording or not reached and all(p.flow is constant for p in weights):
        return Value(h[0], requires_grad=False)
    node = engine._node(h[0], flow, Inputs(nodes), None)
    node._extra = {"run": (numbers, run, finite)}
    return node


class Neuron(Module):
    """bend(w · x + b), with weights drawn from uniform(-1, 1) by `random`, as in micrograd.

    Args:
        nonlin: False leaves the bend out.
        activation: any operation of the table with one input, by name.
        fused: one Σ node instead of 2n + 1 nodes, with the same numbers.

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
        self._bend, self._weights = activation_named(self.activation), Inputs()

    def forward(self, x: Sequence) -> Any:
        if len(x) != len(self.w):
            raise ValueError(f"a neuron with {len(self.w)} weights got {len(x)} inputs; pass one for each weight")
        if self.fused and (given := scalars(x)):
            return fuse([[self]], (*self.w, self.b), *given)
        weights, bend = (*self.w, self.b), self._bend
        if weights != self._weights:                    # by identity: somebody put other nodes in
            self._weights = Inputs(weights)
        act = weighted_sum(self._weights, x)
        return act if bend is None else bend(act) if bend.defaults else act.unary(bend)

    def parameters(self) -> list[Value]:
        return [*self.w, self.b]

    def __repr__(self) -> str:
        name = {"relu": "ReLU", "linear": "Linear"}.get(self.activation, self.activation.title())
        return f"{name}Neuron({len(self.w)})"


def scalars(x: Sequence) -> tuple[tuple[Value, ...], list[float], bool] | None:
    """x as nodes, as numbers, and whether gradients reach it; None if it is no case for fusion.

    That is so for batches, if only a part of x is reached, and while `detect_anomaly` watches every operation.
    """
    if engine.thread.observer or any(isinstance(v, Value) or getattr(v, "ndim", 0) for v in x if v.__class__ is not Value):
        return None
    nodes = tuple([v if v.__class__ is Value else Value(v, requires_grad=False) for v in x])
    reached = [v.flow is not constant for v in nodes]
    return (nodes, [v.data for v in nodes], reached[0]) if reached and reached.count(reached[0]) == len(x) else None


class Layer(Module):
    """`nout` neurons that see the same `nin` inputs."""

    is_bend = True

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        self.neurons = [Neuron(nin, **kwargs) for _ in range(nout)]

    def forward(self, x: Sequence) -> Any:
        x = Inputs(x) if x.__class__ is list else x
        out = [neuron(x) for neuron in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self) -> list[Value]:
        return [p for neuron in self.neurons for p in neuron.parameters()]

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(str(neuron) for neuron in self.neurons)}]"


class MLP(Module):
    """Layers in a row, bent between them and not after the last.

    Args:
        nin, nouts: number of inputs, and of neurons in each layer.
        activation: as for `Neuron`.
        fused: True makes one Σ node of each neuron; "network" makes one node of the whole network, if it has one output
            and gets numbers, which is the fastest that plain Python can do.
        backend: "numpy" gives the same network of Tensors: the same initial numbers for a seed, X (n, nin) in,
            (n, nouts[-1]) out, or (n,) if that is 1.

    >>> random.seed(1337)
    >>> model = MLP(2, [16, 16, 1])
    >>> len(model.parameters()), round(model([1.0, -1.0]).data, 4)
    (337, -0.9245)
    """

    def __new__(cls, *sizes: Any, backend: str = "scalar", **options: Any) -> Any:
        if backend not in ("scalar", "numpy"):
            raise ValueError(f"backend is 'scalar' or 'numpy', got {backend!r}")
        if backend == "scalar":
            return super().__new__(cls)
        from micrograd.nn.layers import BatchMLP
        return BatchMLP(MLP(*sizes, **options))

    def __init__(self, nin: int, nouts: Sequence[int], activation: str = "relu", fused: bool | str = False, *,
                 backend: str = "scalar") -> None:
        sizes = [nin, *nouts]
        self.layers = [Layer(sizes[i], sizes[i + 1], nonlin=i != len(nouts) - 1, activation=activation,
                             fused=bool(fused)) for i in range(len(nouts))]
        self.fused, self._seen, self._weights = fused, ([], []), ()     # type: tuple[Any, tuple[list, list], tuple]

    def forward(self, x: Sequence) -> Any:
        layers = [layer.neurons for layer in self.layers]
        if self.fused == "network" and len(layers[-1]) == 1 and len(x) == len(layers[0][0].w) and (given := scalars(x)):
            neurons = list(chain.from_iterable(layers))
            now = [neuron.w for neuron in neurons], [neuron.b for neuron in neurons]
            if now != self._seen:                       # by identity: somebody put other nodes in
                self._seen = list(map(list, now[0])), now[1]
                self._weights = (*chain.from_iterable(now[0]), *now[1])
            return fuse(layers, self._weights, *given)
        for layer in self.layers:
            x = layer(x if hasattr(x, "__len__") else [x])
        return x

    def parameters(self) -> list[Value]:
        return [p for layer in self.layers for p in layer.parameters()]

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(str(layer) for layer in self.layers)}]"
