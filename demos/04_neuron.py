"""Lesson 4. How does one neuron learn to say yes and no?

A neuron weighs its inputs, adds a bias and bends the sum. We give it the four rows of OR, and after each row it moves
every weight a little against its gradient. Nothing else happens in the training of the largest network.
"""

import random

from chart import COLOURS, Chart, page
from course import save, table

from micrograd.nn import Neuron

random.seed(3)
neuron = Neuron(2, activation="tanh")
rows = [((0.0, 0.0), -1.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), 1.0)]     # OR, with -1 for no


def total_loss():
    return sum((neuron(x) - wanted) ** 2 for x, wanted in rows)


def border():
    """Where the neuron says 0: the line w0 x + w1 y + b = 0, at x = -0.3 and x = 1.3."""
    (w0, w1), b = (w.data for w in neuron.w), neuron.b.data
    return (-0.3, 1.3), [-(w0 * x + b) / w1 for x in (-0.3, 1.3)]


before, losses = border(), []
for _ in range(60):
    loss = total_loss()
    neuron.zero_grad()
    loss.backward()
    for p in neuron.parameters():
        p.data -= 0.1 * p.grad
    losses.append(loss.data)

table(["x", "wanted", "neuron says"], [[str(x), wanted, neuron(x).data] for x, wanted in rows])
print(f"\nloss {losses[0]:.3f} -> {losses[-1]:.3f}; w = [{neuron.w[0]:.2f}, {neuron.w[1]:.2f}], b = {neuron.b:.2f}")

curve = Chart("the loss falls", x="step", y="loss (sum of squares)")
curve.line(range(1, len(losses) + 1), losses)
plane = Chart("where the neuron changes its mind", x="x₁", y="x₂", limits=(-0.3, 1.3, -0.4, 1.4))
plane.line(*before, "before", colour=COLOURS[6], dash=1)
plane.line(*border(), "after", colour=COLOURS[2])
for x, wanted in rows:
    plane.dots([x[0]], [x[1]], colour=COLOURS[0] if wanted > 0 else COLOURS[1], size=8)
    plane.text(x[0] + 0.06, x[1] - 0.02, "yes" if wanted > 0 else "no")
save("04_neuron.svg", page(curve, plane))

print("""
Notice
- The neuron was told what to say, never how: the weights came from gradients alone.
- Its border is a straight line. Exclusive or cannot be cut by one line; that takes a layer (lesson 6).
- The loss never gets to 0: tanh reaches 1 only at infinity.""")
