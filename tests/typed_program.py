"""A program as a user with types would write it: mypy --strict reads it (tests/test_types.py), and it runs."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

import micrograd
from micrograd import Tensor, Value, compile, explain, grad, gradcheck, hessian, jvp, no_grad, optim, to_mermaid, vjp
from micrograd.nn import MLP, Linear, Module, Sequential


def slope(function: Callable[[Value], Value], at: float) -> float:
    """df/dx, as a number."""
    x = Value(at, label="x")
    y: Value = function(x)
    y.backward()
    gradient: float = x.grad
    return gradient


@no_grad()
def predict(model: MLP, point: list[float]) -> float:
    """The score of a point, without a graph."""
    score: Value = model(point)
    return score.item()


class Line(Module):
    """y = slope * x + shift"""

    def __init__(self) -> None:
        self.slope, self.shift = Value(2.0), Value(1.0)

    def forward(self, x: float) -> Value:
        """The height at x."""
        y: Value = self.slope * x + self.shift
        return y


def train(steps: int) -> list[float]:
    """The losses of a small network on two points."""
    random.seed(0)
    model = MLP(2, [4, 1])
    optimiser = optim.SGD(model.parameters(), lr=0.05)
    losses: list[float] = []
    for _ in range(steps):
        loss: Value = sum((model([x, 1.0]) - t) ** 2 for x, t in ((0.0, -1.0), (1.0, 1.0)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.data)
    assert isinstance(predict(model, [0.0, 1.0]), float)
    return losses


def arrays() -> tuple[int, ...]:
    """A batch through two layers."""
    model = Sequential(Linear(3, 4), Linear(4, 1))
    X = Tensor(np.ones((5, 3)), requires_grad=False)
    loss: Tensor = (model(X) ** 2).mean()
    loss.backward(retain_graph=True)
    shape: tuple[int, ...] = model.parameters()[0].grad.shape
    with no_grad():
        assert not model(X).requires_grad
    return shape


def main() -> None:
    """Each once."""
    assert slope(lambda x: x.tanh() * x, 0.0) == 0.0
    line = Line()
    height: Value = line(3.0)
    height.label = "height"
    assert grad(height, line.parameters()) == (3.0, 1.0)
    text: str = explain(height) + to_mermaid(height) + micrograd.source(height)
    assert "height" in text and compile(height)() == 7.0
    assert gradcheck(lambda x: x.exp(), Value(0.5))
    value, (product,) = vjp(lambda x: x * x, (3.0,), 2.0)
    _, tangent = jvp(lambda x: x * x, (3.0,), (1.0,))
    assert (value, product, tangent) == (9.0, 12.0, 6.0) and hessian(lambda x: x ** 3, 2.0) == 12.0
    handle = line.slope.register_hook(lambda g: g * 2)
    handle.remove()
    losses = train(5)
    assert losses[-1] < losses[0] and arrays() == (4, 3)


if __name__ == "__main__":
    main()
