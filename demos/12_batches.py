"""Lesson 12. Why do real libraries work on whole arrays, and is that the same mathematics?

It is the same graph with arrays in the nodes instead of numbers. We train the network of lesson 11 three ways from the
same start: a node for each number, a node for each neuron, and Tensors. Losses must agree; the time does not.
"""

import random
import time

from chart import Chart
from course import quick, save, table

from micrograd import Tensor, data
from micrograd.engine import topological_order
from micrograd.nn import MLP

n, steps = (20, 4) if quick else (100, 12)
X, y = data.moons(n, noise=0.1, seed=1)
targets = 2.0 * y - 1


def scalar_loss(model):
    return sum((1 - float(t) * model(x)).relu() for x, t in zip(X.tolist(), targets)) / n


def batch_loss(model):
    return (1 - Tensor(targets, requires_grad=False) * model(X)).relu().mean()


def train(model, loss_of):
    losses, start = [], time.perf_counter()
    for _ in range(steps):
        loss = loss_of(model)
        nodes = len(topological_order(loss)[0])
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.5 * p.grad
        losses.append(loss.item())
    return losses, (time.perf_counter() - start) / steps, nodes


ways = {"a node for each number": (dict(), scalar_loss), "a node for each neuron": (dict(fused=True), scalar_loss),
        "a node for each layer": (dict(backend="numpy"), batch_loss)}
runs = {}
for name, (options, loss_of) in ways.items():
    random.seed(1337)
    runs[name] = train(MLP(2, [16, 16, 1], **options), loss_of)

slowest = runs["a node for each number"][1]
table(["way", "nodes", "ms a step", "times as fast", "first loss", "last loss"],
      [[name, nodes, f"{took * 1e3:.2f}", f"{slowest / took:.0f}", f"{losses[0]:.9f}", f"{losses[-1]:.9f}"]
       for name, (losses, took, nodes) in runs.items()])
reference = runs["a node for each number"][0]
worst = max(abs(a - b) for losses, *_ in runs.values() for a, b in zip(reference, losses))
print(f"\nlargest difference between any two losses: {worst:.1e}")

chart = Chart("the same training, three ways", x="step", y="loss")
for (name, (losses, *_)), kind in zip(runs.items(), ("line", "line", "dots")):
    if kind == "line":
        chart.line(range(steps), losses, name, dash=len(chart.legend))
    else:
        chart.dots(range(steps), losses, name)
save("12_batches.svg", chart)

print(f"""
Notice
- The three curves are one curve, to {worst:.0e}: only the order of additions differs.
- The graph shrinks from {runs["a node for each number"][2]:,} nodes to {runs["a node for each layer"][2]}.
  What costs time in Python is nodes, not arithmetic; so give each node more to do.
- Larger batches make the gap wider, until the arithmetic itself takes the time.""")
