"""Lesson 18. Can memory be traded for time?

The backward pass needs the values of the forward pass, so they are kept: memory grows with depth. A checkpoint keeps
the ends of a segment only and computes its inside again when the walk comes back to it. We measure both.
"""

import time
import tracemalloc

import numpy as np
from chart import Chart
from course import quick, save, table

from micrograd import Tensor, checkpoint

DEPTH = 64
SIZE = 2_000 if quick else 100_000
start = np.linspace(-1.0, 1.0, SIZE)
forward_runs = 0


def segment(length):
    """`length` layers in a row; each keeps one array."""
    def run(x):
        global forward_runs
        for _ in range(length):
            forward_runs += 1
            x = x.sin()
        return x
    return run


def measure(segments):
    """(arrays held at the peak, layers computed, seconds, gradient) with this many segments; 0: no checkpoints."""
    global forward_runs
    forward_runs = 0
    x = Tensor(start)
    tracemalloc.start()
    before = time.perf_counter()
    y = x
    for k in range(segments):
        y = checkpoint(segment(DEPTH * (k + 1) // segments - DEPTH * k // segments), y)
    y = y if segments else segment(DEPTH)(x)
    y.sum().backward()
    took, peak = time.perf_counter() - before, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / start.nbytes), forward_runs, took, x.grad


plain = measure(0)
counts = (1, 2, 4, 8, 16, 32, 64)
runs = {k: measure(k) for k in counts}
table(["segments", "arrays held at the peak", "layers computed", "time"],
      [["none: keep all", plain[0], plain[1], f"{plain[2] * 1e3:.0f} ms"]] +
      [[f"{k} of {DEPTH // k}", run[0], run[1], f"{run[2] * 1e3:.0f} ms"] for k, run in runs.items()])
same = all(np.array_equal(run[3], plain[3]) for run in runs.values())
print(f"\nall gradients the same, to the last bit: {same}")

best = min(counts, key=lambda k: runs[k][0])
chart = Chart(f"{DEPTH} layers: arrays held at the peak", x="segments", y="arrays", log="x", limits=(0.9, 80, 0, None))
chart.line(counts, [run[0] for run in runs.values()], "with checkpoints").dots(counts, [run[0] for run in runs.values()],
                                                                               colour="#0072b2")
chart.line(counts, [plain[0]] * len(counts), "keep all", dash=1)
chart.text(best, runs[best][0] - 7, f"{best} segments: {runs[best][0]}", anchor="middle")
save("18_checkpointing.svg", chart)

print(f"""
Notice
- Each layer is computed twice instead of once: {runs[best][1]} against {plain[1]}. That is the whole price.
- With k segments, the k ends and the inside of one are held: least near k = √{DEPTH} = {DEPTH ** 0.5:.0f}.
- One segment saves nothing, and {DEPTH} save nothing either; {best} hold {runs[best][0] / plain[0]:.0%} of the memory.""")
