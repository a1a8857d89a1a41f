"""Lesson 19. When is it better to carry derivatives forward instead of back?

The chain rule can be multiplied from either end. Forward, one walk tells how ALL outputs move with ONE input;
backward, one walk tells how ONE output moves with ALL inputs. So count your inputs and your outputs.
"""

import math

from chart import Chart
from course import quick, save, seconds, table

from micrograd import jvp, tanh, vjp


def function(inputs, outputs):
    """`inputs` numbers to `outputs` numbers, through a bottleneck of eight."""
    def f(*x):
        middle = [tanh(sum(math.sin(1 + i * j) * v for i, v in enumerate(x))) for j in range(8)]
        return tuple(sum(math.cos(1 + j * k) * m for j, m in enumerate(middle)) for k in range(outputs))
    return f


def unit(n, i):
    return tuple(float(i == j) for j in range(n))


def jacobian_forward(f, x):
    """Column by column: one walk for each input."""
    return list(zip(*(jvp(f, x, unit(len(x), i))[1] for i in range(len(x)))))


def jacobian_reverse(f, x, outputs):
    """Row by row: one walk for each output."""
    return [vjp(f, x, unit(outputs, k))[1] for k in range(outputs)]


largest = 16 if quick else 64
shapes = [(1, largest), (4, largest // 4), (8, 8), (largest // 4, 4), (largest, 1)]
rows, worst = [], 0.0
for n, m in shapes:
    f, x = function(n, m), tuple(math.cos(i) for i in range(n))
    columns, by_rows = jacobian_forward(f, x), jacobian_reverse(f, x, m)
    worst = max([worst, *(abs(a - b) for r, s in zip(columns, by_rows) for a, b in zip(r, s))])
    forward, reverse = seconds(lambda: jacobian_forward(f, x)), seconds(lambda: jacobian_reverse(f, x, m))
    rows.append([f"{n} -> {m}", n, f"{forward * 1e3:.2f} ms", m, f"{reverse * 1e3:.2f} ms",
                 "forward" if forward < reverse else "reverse"])
table(["inputs -> outputs", "walks forward", "took", "walks back", "took", "faster"], rows)
print(f"\nlargest difference between the two tables of derivatives: {worst:.1e}")

sizes = [2 ** k for k in range(7)]
chart = Chart("walks for all derivatives", x="inputs n (and 65 − n outputs)", y="walks",
              limits=(None, None, 0, 84), corner="top left")
inputs = range(1, 65)
chart.line(inputs, list(inputs), "forward: one for each input").line(inputs, [65 - n for n in inputs],
                                                                     "reverse: one for each output", dash=1)
save("19_forward_and_reverse.svg", chart)

print(f"""
Notice
- A loss is {largest} -> 1, with {largest} as large as you like: reverse mode, always. That is backpropagation.
- One knob and many readings (1 -> {largest}) is the case for forward mode: it needs no memory of the past, either.
- Both give the same numbers to {worst:.0e}: it is one chain rule, multiplied from the one end or from the other.""")
