"""Measure this installation: `python -m benchmarks [-o results.json]`.

Nothing is installed; peers (torch, autograd) are measured where they are importable. Every comparison is
interleaved in one run: ours, theirs, ours, theirs, and the median of each is taken. One thread: start with
OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1. karpathy/micrograd has our import name, so it is measured in an
interpreter of its own: give that interpreter's path by --micrograd.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.util
import json
import platform
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

from micrograd import Value, nn

MOONS_STEP = """
import gc, random, time, sys
sys.path[:0] = {path!r}
from micrograd.engine import Value
from micrograd.nn import MLP
random.seed(1337)
model = MLP(2, [16, 16, 1])
rows = [(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(100)]
signs = [1.0 if x * y > 0 else -1.0 for x, y in rows]
def step():
    scores = [model([Value(a), Value(b)]) for a, b in rows]
    losses = [(1 + -sign * score).relu() for sign, score in zip(signs, scores)]
    loss = sum(losses) * (1.0 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
{collector}
for _ in range({steps}):
    start = time.perf_counter(); step(); print(time.perf_counter() - start)
"""


def seconds(*functions: Callable, repeats: int = 9) -> list[float]:
    """The median time of each function, measured in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for taken, function in zip(times, functions):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def chain(n: int) -> Value:
    y = Value(0.3)
    for _ in range(n // 3):
        y = (y * 1.0001 + 0.5).relu()
    return y


def scaling() -> list[tuple]:
    """Nanoseconds an operation, forward and backward, from 10**3 to 10**6 operations."""
    rows = []
    for n in (10**3, 10**4, 10**5, 10**6):
        (taken,) = seconds(lambda n=n: chain(n).backward(), repeats=3 if n > 10**5 else 9)
        rows.append((f"chain of {n:,} operations", f"{taken / n * 1e9:.0f} ns an operation"))
    return rows


def memory() -> list[tuple]:
    """Bytes of an operation after the forward pass."""
    gc.collect()
    tracemalloc.start()
    y = chain(99_999)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del y
    return [("memory of an operation", f"{after / 99_999:.1f} bytes")]


def cost_of_a_gradient() -> list[tuple]:
    """A gradient of 1,000 parameters against its forward pass, and against nudging each of them."""
    random.seed(0)
    weights = [Value(random.uniform(-1, 1)) for _ in range(1000)]

    def forward() -> Value:
        total = Value(0.0)
        for w in weights:
            total = total + (w * w).tanh()
        return total

    plain, both = seconds(forward, lambda: forward().backward())
    nudging = 2 * len(weights) * plain
    return [("gradient of 1,000 parameters", f"{both / plain:.1f} x its forward pass"),
            ("the same by nudging each twice", f"{nudging / plain:.0f} x ({nudging / both:.0f} x the gradient)")]


def fused() -> list[tuple]:
    """One step of moons with neurons as they are, and with one node a neuron."""
    rows = []
    points = [(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(100)]

    def step(model: nn.MLP) -> None:
        losses = [(1 + -1.0 * model(list(point))).relu() for point in points]
        (sum(losses) * 0.01).backward()

    models = [nn.MLP(2, [16, 16, 1], fused=kind) for kind in (False, True, "network")]
    plain, neuron, network = seconds(*(functools.partial(step, model) for model in models), repeats=5)
    rows.append(("moons, every operation a node", f"{plain * 1e3:.1f} ms"))
    rows.append(("moons, fused=True: a node a neuron", f"{neuron * 1e3:.1f} ms ({plain / neuron:.1f} x)"))
    rows.append(("moons, fused=\"network\": one node", f"{network * 1e3:.1f} ms ({plain / network:.1f} x)"))
    return rows


def against_micrograd(interpreter: str) -> list[tuple]:
    """The moons step, ours and karpathy's, each in its own process, in turns."""
    rows = []
    for name, collector in (("collector on", ""), ("collector off", "gc.disable()")):
        ours, theirs = [], []
        for _ in range(3):
            for taken, python, path in ((ours, sys.executable, sys.path), (theirs, interpreter, [])):
                text = MOONS_STEP.format(path=path, collector=collector, steps=3)
                done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=True, cwd="/")
                taken += [float(line) for line in done.stdout.split()]
        a, b = statistics.median(ours), statistics.median(theirs)
        rows.append((f"moons step, {name}", f"{a * 1e3:.0f} ms, karpathy's {b * 1e3:.0f} ms: {b / a:.1f} x"))
    return rows


def batches() -> list[tuple]:
    """The training step of an MLP 2-16-16-1 on 100 points: Tensor, NumPy by hand, torch."""
    import numpy as np

    from micrograd import Tensor

    generator = np.random.default_rng(0)
    sizes = [2, 16, 16, 1]
    X, y = generator.normal(size=(100, 2)), np.sign(generator.normal(size=(100, 1)))
    start = [a for n, m in zip(sizes, sizes[1:]) for a in (generator.uniform(-1, 1, (n, m)), np.zeros(m))]
    ours, hand = [Tensor(a) for a in start], [a.copy() for a in start]
    constant, target = Tensor(X, requires_grad=False), Tensor(y, requires_grad=False)

    def tensor_step() -> None:
        h = constant
        for i in range(0, 6, 2):
            h = h @ ours[i] + ours[i + 1]
            h = h.relu() if i < 4 else h
        loss = (1.0 - target * h).relu().sum() * 0.01
        loss.backward()
        for p in ours:
            p.data -= 0.01 * p.grad
            p.zero_grad()

    def hand_step() -> None:
        h, kept = X, [X]
        for i in range(0, 6, 2):
            h = h @ hand[i] + hand[i + 1]
            h = np.maximum(h, 0) if i < 4 else h
            kept.append(h)
        d = np.where(y * h < 1, -0.01 * y, 0.0)
        for i in (4, 2, 0):
            gradients = kept[i // 2].T @ d, d.sum(0)
            d = d @ hand[i].T * (kept[i // 2] > 0) if i else d
            hand[i] -= 0.01 * gradients[0]
            hand[i + 1] -= 0.01 * gradients[1]

    functions = [tensor_step, hand_step]
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        weights = [torch.tensor(a, requires_grad=True) for a in start]
        inputs, goal = torch.tensor(X), torch.tensor(y)

        def torch_step() -> None:
            h = inputs
            for i in range(0, 6, 2):
                h = h @ weights[i] + weights[i + 1]
                h = torch.relu(h) if i < 4 else h
            (torch.relu(1.0 - goal * h).sum() * 0.01).backward()
            with torch.no_grad():
                for p in weights:
                    p -= 0.01 * p.grad
                    p.grad = None

        functions.append(torch_step)
    taken = seconds(*functions, repeats=200)
    names = ["Tensor", "NumPy by hand", "torch"]
    return [(f"MLP 2-16-16-1, 100 points: {name}", f"{t * 1e6:.0f} µs ({t / taken[1]:.2f} x NumPy by hand)")
            for name, t in zip(names, taken)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("-o", metavar="FILE", help="write the results as JSON")
    parser.add_argument("--micrograd", metavar="PYTHON", help="an interpreter that has karpathy's micrograd installed")
    options = parser.parse_args()
    rows = [("machine", f"{platform.machine()}, Python {platform.python_version()}, one thread if the environment says so")]
    for part in (scaling, memory, cost_of_a_gradient, fused):
        rows += part()
    if options.micrograd:
        rows += against_micrograd(options.micrograd)
    if importlib.util.find_spec("numpy"):
        rows += batches()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")
    if options.o:
        with open(options.o, "w", encoding="utf-8") as file:
            json.dump(dict(rows), file, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    main()
