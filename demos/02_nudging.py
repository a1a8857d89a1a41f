"""Lesson 2. Why not simply nudge every input and see what happens?

A derivative is the answer to "what if this number were a little larger?", so the obvious way to get one is to try.
That works, once for every number. We count and measure what it costs as the numbers become many.
"""

import math

from chart import Chart
from course import quick, save, seconds, table

from micrograd import Value


# A function of n numbers, made of cheap steps: a chain of products and bends.
def f(numbers):
    y = 1.0
    for k, x in enumerate(numbers):
        y = y * 0.9 + x * math.sin(k)
    return y * y


# By nudging: one run of the function for each number, and one to compare with.
def nudged(point, h=1e-6):
    base = f(point)
    return [(f([*point[:i], x + h, *point[i + 1:]]) - base) / h for i, x in enumerate(point)]


# By walking back: one run, whatever the number of inputs.
def walked_back(point):
    leaves = [Value(x) for x in point]
    f(leaves).backward()
    return [x.grad for x in leaves]


sizes = (10, 30, 100) if quick else (10, 30, 100, 300, 1000)
rows, worst = [], 0.0
for n in sizes:
    point = [math.cos(k) for k in range(n)]
    worst = max([worst, *(abs(a - b) for a, b in zip(nudged(point), walked_back(point)))])
    slow, fast = seconds(lambda: nudged(point)), seconds(lambda: walked_back(point))
    rows.append([n, n + 1, f"{slow * 1e3:.2f} ms", 1, f"{fast * 1e3:.2f} ms", f"{slow / fast:.1f}"])
table(["inputs", "runs to nudge", "took", "walks back", "took", "times as fast"], rows)
print(f"\nlargest difference between the two answers: {worst:.1e}")

# The extrapolation: each nudge is a run of the model, and a run takes at least one step per parameter.
per_step = slow / (n * n)
billion = 10 ** 9
years = billion ** 2 * per_step / (365.25 * 24 * 3600)
print(f"a billion parameters, at {per_step * 1e9:.0f} ns a step: {years:,.0f} years for ONE gradient by nudging")

# The picture counts steps, which are the same on every machine.
counts = [10 ** k for k in range(1, 10)]
chart = Chart("steps of the function for one gradient", x="number of inputs", y="steps", log="xy", corner="top left")
chart.line(counts, [n * (n + 1) for n in counts], "nudge each input: n + 1 runs of n steps each", dash=1)
chart.line(counts, [2 * n for n in counts], "walk back once: n steps forward, n back")
save("02_nudging.svg", chart)

print(f"""
Notice
- Both answers agree to {worst:.0e}, which is what a nudge of 1e-6 can give; lesson 10 finds the best nudge.
- Nudging needs n + 1 runs, so its cost grows with the square; the walk back costs a fixed multiple of one run.
- That one fact is why networks with billions of parameters can be trained at all.""")
