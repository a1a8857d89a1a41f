"""Lesson 11. Can a few neurons learn a border that no straight line can draw?

This is the demo of karpathy/micrograd: two half moons, a network of 337 numbers, every one of them a Value. Nothing is
hidden: the loss is one expression, and its graph has a node for each thing that was computed.
"""

import random

import course
from course import quick, show, table

from micrograd import data
from micrograd.drawing.training import decision_boundary
from micrograd.engine import topological_order
from micrograd.nn import MLP

random.seed(1337)
X, y = data.moons(100, noise=0.1, seed=1)
samples = list(zip(X.tolist(), (2 * y - 1).tolist()))       # classes as -1 and 1
model = MLP(2, [16, 16, 1], fused=True)                     # fused: a neuron is one node, the numbers are the same


def loss_and_accuracy():
    scores = [model(x) for x, _ in samples]
    # the "max-margin" loss: zero once a point is on its side by at least 1
    margin = sum((1 - wanted * score).relu() for (_, wanted), score in zip(samples, scores)) / len(samples)
    small_weights = 1e-4 * sum(p * p for p in model.parameters())
    right = sum((score > 0) == (wanted > 0) for (_, wanted), score in zip(samples, scores))
    return margin + small_weights, right / len(samples)


steps = 12 if quick else 60
rows, losses, accuracies = [], [], []
for k in range(steps):
    loss, accuracy = loss_and_accuracy()
    model.zero_grad()
    loss.backward()
    rate = 1.0 - 0.9 * k / 100
    for p in model.parameters():
        p.data -= rate * p.grad
    losses.append(loss.data)
    accuracies.append(accuracy)
    if k % 10 == 0 or k == steps - 1:
        rows.append([k, loss.data, f"{accuracy:.0%}"])
table(["step", "loss", "right"], rows)

operations, leaves = topological_order(loss)
print(f"\nthe graph of one step: {len(operations):,} operations over {len(leaves):,} leaves, {len(model.parameters())} of "
      "them parameters")

# The model is called with whole columns here: the graph of Values runs over the batch at once (lesson 12).
decision_boundary(model, X, y, course.out / "11_moons.svg", points=60)
show("11_moons.svg")

print(f"""
Notice
- From {accuracies[0]:.0%} to {accuracies[-1]:.0%} in {steps} steps; the loop is the same as for one neuron in lesson 4.
- The border is bent, but made of straight pieces: each relu is a fold.
- Look at the border far from the points: there the network guesses, and nothing in training tells it how.""")
