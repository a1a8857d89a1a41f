"""Lesson 20. What can be done with the derivative of a derivative?

The slope says where down is; the curvature says how far. Newton's method divides the one by the other and jumps to the
bottom. And for a network the table of all second derivatives, the Hessian, tells which learning rates can work.
"""

import math

import numpy as np
from chart import Chart, page
from course import save, table

from micrograd import Value, grad, hessian


def f(x):
    """A valley in one dimension, with its bottom where the derivative x - cos(x) is zero."""
    return 0.5 * x * x - x.sin()


def newton(x, steps=7):
    path = [x]
    for _ in range(steps):
        node = Value(x)
        (slope,) = grad(f(node), node, create_graph=True)   # the gradient is a node itself ...
        (bend,) = grad(slope, node)                         # ... so it can be differentiated again
        x -= slope.data / bend
        path.append(x)
    return path


def descent(x, lr=0.4, steps=20):
    path = [x]
    for _ in range(steps):
        node = Value(x)
        f(node).backward()
        x -= lr * node.grad
        path.append(x)
    return path


jumps, steps = newton(3.0), descent(3.0)
bottom = jumps[-1]
table(["step", "Newton", "right digits", "gradient descent", "right digits"],
      [[k, f"{jumps[k]:.15f}", round(-math.log10(abs(jumps[k] - bottom) + 1e-16)), f"{steps[k]:.15f}",
        round(-math.log10(abs(steps[k] - bottom) + 1e-16))] for k in range(len(jumps))])
print(f"\nx = cos(x) at {bottom:.12f}: cos there is {math.cos(bottom):.12f}")

# The Hessian of a small network: how the slope of each weight changes with each other weight.
numbers = tuple(math.sin(2.0 * i + 1) for i in range(13))
samples = [((0.0, 0.0), -1.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), -1.0)]


def loss_of(*weights):
    """The loss as a function of its 13 weights: a network written out."""
    def neuron(w, x, bend):
        z = sum(a * b for a, b in zip(w, x)) + w[-1]
        return z.tanh() if bend else z
    total = 0.0
    for x, wanted in samples:
        hidden = [neuron(weights[3 * k:3 * k + 3], x, True) for k in range(3)]
        total = total + (neuron(weights[9:], hidden, False) - wanted) ** 2
    return total / len(samples)


H = np.array(hessian(loss_of, numbers))
curvatures = np.linalg.eigvalsh(H)
asymmetry = float(np.abs(H - H.T).max())
print(f"\nthe Hessian of a network with {len(numbers)} weights: curvatures from {curvatures[0]:.3f} to {curvatures[-1]:.3f}")
print(f"so gradient descent is stable here for learning rates below 2 / {curvatures[-1]:.2f} = {2 / curvatures[-1]:.2f}")

speed = Chart("distance to the bottom", x="step", y="|x − x*|", log="y", limits=(None, None, 1e-16, 10))
speed.line(range(len(steps)), [abs(v - bottom) for v in steps], "gradient descent", dash=1)
speed.line(range(len(jumps)), [abs(v - bottom) for v in jumps], "Newton").dots(
    range(len(jumps)), [abs(v - bottom) for v in jumps], colour="#d55e00")
names = [f"w{k}" if k % 3 < 2 else f"b{k // 3}" for k in range(9)] + ["v0", "v1", "v2", "c"]
save("20_second_derivatives.svg", page(speed, Chart("the Hessian of a small network").cells(H, names, names, "")))

print(f"""
Notice
- Newton doubles the number of right digits with each step; descent adds the same number each time.
- The Hessian is symmetric (to {asymmetry:.0e}), and has negative curvatures: a network's loss is no bowl.
- It has {len(numbers)} x {len(numbers)} entries; with a billion weights, a billion times a billion: training uses slopes.""")
