"""Lesson 13. How can I train with a batch that does not fit into memory?

Gradients add up until they are cleared (lesson 6). So take the batch in parts, call `backward()` for each, and step
once. It is exactly the gradient of the big batch, if each part counts by its size; we also do it wrong.
"""

import random

import numpy as np
from chart import Chart
from course import quick, save, table

from micrograd import data
from micrograd.nn import MLP
from micrograd.nn.losses import mse_loss

X, y = data.moons(90, noise=0.1, seed=1)
targets = 2.0 * y - 1
parts = [slice(0, 40), slice(40, 80), slice(80, 90)]        # of unequal size: 40, 40, 10


def fresh():
    random.seed(7)
    return MLP(2, [16, 1], activation="tanh", backend="numpy")


def big_batch(model):
    mse_loss(model(X), targets).backward()


def weighted(model):
    for part in parts:
        (mse_loss(model(X[part]), targets[part]) * (len(X[part]) / len(X))).backward()


def equal_shares(model):
    for part in parts:
        (mse_loss(model(X[part]), targets[part]) / len(parts)).backward()


def undivided(model):
    for part in parts:
        mse_loss(model(X[part]), targets[part]).backward()


def gradient(way):
    model = fresh()
    way(model)
    return np.concatenate([p.grad.ravel() for p in model.parameters()])


ways = {"the big batch": big_batch, "parts, each by its size": weighted, "parts, each by 1/3": equal_shares,
        "parts, not divided": undivided}
truth = gradient(big_batch)
rows, errors, sizes = [], {}, {}
for name, way in ways.items():
    g = gradient(way)
    sizes[name] = float(np.linalg.norm(g))
    errors[name] = float(np.linalg.norm(g - truth) / np.linalg.norm(truth))
    at_once = len(X) if way is big_batch else max(len(X[part]) for part in parts)
    rows.append([name, at_once, sizes[name], f"{errors[name]:.1e}"])
table(["way", "rows in memory", "gradient's norm", "relative error"], rows)
too_long = sizes["parts, not divided"] / sizes["the big batch"]


def train(way, steps=30 if quick else 150, lr=0.1):
    model, losses = fresh(), []
    for _ in range(steps):
        model.zero_grad()
        way(model)
        for p in model.parameters():
            p.data -= lr * p.grad
        losses.append(mse_loss(model(X), targets).item())
    return losses


curves = {name: train(way) for name, way in ways.items()}
chart = Chart("training, one step per big batch", x="step", y="loss", log="y", limits=(None, None, None, 20))
for i, (name, losses) in enumerate(curves.items()):
    chart.line(range(1, len(losses) + 1), losses, name, dash=i, width=5 if i == 0 else 2.2)
save("13_accumulation.svg", chart)

print(f"""
Notice
- By size, the parts give the big batch's gradient to {errors["parts, each by its size"]:.0e}: rounding, no approximation.
- Undivided, the gradient is {too_long:.1f} times too long, as if the learning rate were: and no error message.
- Equal shares are right only if parts are equal; the last, smaller part is the classic mistake.""")
