"""Faults: an interrupt anywhere, a full disk, a cache that is not ours, a renderer that fails in every way."""

from __future__ import annotations

import linecache
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import micrograd
from micrograd import Tensor, Value, nn, optim
from micrograd.drawing.render import render

HOUSE = str(Path(micrograd.__file__).parent)
ROOT = str(Path(HOUSE).parent)


# --------------------------------------------------------------------------------- interrupts
class Interrupted(KeyboardInterrupt):
    """Ctrl-C, at a line that the test chose."""


def interrupted(call, at, functions):
    """Run `call` and interrupt it before the `at`-th line that it runs in `functions`; whether it came so far."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if not frame.f_code.co_filename.startswith(HOUSE) or frame.f_code.co_name not in functions:
            return None
        if event == "line" and linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() != "try:":   # does nothing
            count += 1
            if count == at:
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except BaseException as error:                          # a `with` block that cannot end may cover it
        if not isinstance(error, Interrupted) and not isinstance(error.__context__, Interrupted):
            raise
        return True
    finally:
        sys.settrace(before)
    return False


def everywhere(make, functions, most=400):
    """(what `make` made, whether its call was interrupted) for each line at which it can be."""
    for at in range(1, most):
        made, call = make()
        came = interrupted(call, at, functions)
        yield made, came
        if not came:
            return
    raise AssertionError("there are more lines than the test looks at")


WALK = {"chain_rule", "pull", "hand_down", "contributions", "receive", "run_hooks", "finish", "own", "check_whole"}


@pytest.mark.parametrize("retain_graph", [True, False])
@pytest.mark.parametrize("cls", [Value, Tensor])
def test_an_interrupt_in_the_walk_back_leaves_gradients_as_they_were_or_as_they_will_be(cls, retain_graph):
    def make():
        x, w = cls(0.5), cls(-1.5)
        (x * w).backward()
        inner = (x * w).tanh()
        y = inner * x + w / inner
        handle = w.register_hook(lambda g: g * 2)
        return (x, w, inner, y, handle), lambda: y.backward(retain_graph=retain_graph)

    def gradients(made):
        return [None if node.grad is None else float(node.grad) for node in made[:4]]

    before = gradients(make()[0])
    done, call = make()
    call()
    after, count = gradients(done), 0
    for made, came in everywhere(make, WALK):
        assert gradients(made) == (before if came else after)
        count += came
        if came and retain_graph:                           # and the graph is whole
            made[3].backward(retain_graph=True)
            assert gradients(made) == after
        assert micrograd.autograd.is_grad_enabled()
    assert count > 20


def test_an_interrupt_in_grad_leaves_every_gradient_alone():
    def make():
        x, w = Value(0.5), Value(-1.5)
        y = (x * w).tanh() * w
        y.backward()
        return (x, w, y, x.grad, w.grad), lambda: micrograd.grad(y, [x, w])

    for (x, w, y, dx, dw), _ in everywhere(make, WALK):
        assert (x.grad, w.grad, y.grad) == (dx, dw, 1.0)


@pytest.mark.parametrize("kind", [
    lambda p: optim.SGD(p, lr=0.1), lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    lambda p: optim.Adam(p, lr=0.1), lambda p: optim.RMSprop(p, lr=0.1, momentum=0.5)])
@pytest.mark.parametrize("cls", [Value, Tensor])
def test_an_interrupt_in_a_step_leaves_each_parameter_before_or_after_it(cls, kind):
    def make():
        parameters = [cls(1.0), cls(-2.0), cls(0.5)]
        optimiser = kind(parameters)
        sum(p * p * (i + 1.0) for i, p in enumerate(parameters)).backward()
        return parameters, optimiser.step

    before = [float(p.data) for p in make()[0]]
    done, call = make()
    call()
    after = [float(p.data) for p in done]
    for parameters, came in everywhere(make, {"step", "move", "change"}):
        moved = [float(p.data) == b for p, b in zip(parameters, after)]
        assert [float(p.data) for p in parameters] == [b if m else a for a, b, m in zip(before, after, moved)]
        assert moved == sorted(moved, reverse=True) and (came or all(moved))       # in their order


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_an_interrupt_while_saving_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path, ending):
    path, count = tmp_path / f"model{ending}", 0

    def make():
        nn.save({"a": np.zeros(3), "b": np.ones(2)}, path)
        return path.read_bytes(), lambda: nn.save({"a": np.full(3, 7.0), "b": np.ones(2)}, path)

    for old, came in everywhere(make, {"save", "_write_npz", "_write_safetensors"}):
        left = [p.name for p in tmp_path.iterdir()]
        if left != [path.name]:                             # between the making of the file beside and the block that guards it
            assert count < 8 and len(left) == 2
            next(p for p in tmp_path.iterdir() if p != path).unlink()
        assert nn.load(path)["a"].tolist() in ([0.0] * 3, [7.0] * 3) and (came or path.read_bytes() != old)
        count += came
    assert count > 10


# ------------------------------------------------------------------------------------- disk full
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"


def with_little_room(tmp_path, code):
    """What a program prints that may write no file of more than 4,000 bytes."""
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", FULL + code], capture_output=True, text=True, cwd=tmp_path,
                          env=os.environ | {"PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": "1"}, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_a_full_disk_while_saving_is_an_os_error_and_the_old_file_stays(tmp_path, ending):
    path = tmp_path / f"model{ending}"
    nn.save({"a": np.zeros(3)}, path)
    status, printed, errors = with_little_room(tmp_path, f"""
import numpy
from micrograd import nn
try: nn.save({{"a": numpy.zeros(10_000)}}, "model{ending}")
except OSError as error: print("refused", error.errno)
""")
    assert (status, printed.split()[0], errors) == (0, "refused", "")
    assert [p.name for p in tmp_path.iterdir()] == [path.name] and nn.load(path)["a"].tolist() == [0.0] * 3


def test_a_full_disk_is_one_line_at_the_shell_and_leaves_no_half_of_a_file(tmp_path):
    (tmp_path / "page.html").write_text("old")
    status, _, errors = with_little_room(tmp_path, "from micrograd.__main__ import main; import sys\n"
                                         "sys.exit(main(['step', 'x*x', 'x=2', '-o', 'page.html']))")
    assert status == 2 and errors.count("\n") == 1 and errors.startswith("micrograd: ")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"] and (tmp_path / "page.html").read_text() == "old"


def test_a_full_disk_while_compiling_says_so_and_leaves_no_program(tmp_path):
    status, printed, errors = with_little_room(tmp_path, """
from micrograd import Value, compile
x = y = Value(0.5)
for _ in range(500): y = (y * x).tanh() + x
try: compile(y, target="c")
except (OSError, RuntimeError) as error: print("refused", type(error).__name__)
print(compile(y).run()[0] == y.data)
""")
    assert (status, errors) == (0, "") and printed.split()[0] == "refused" and printed.split()[-1] == "True"


# ------------------------------------------------------------------------------------- the cache
def test_a_read_only_cache_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "micrograd").mkdir(mode=0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    access = os.access                                      # root may write everywhere; the others may not
    x = Value(3.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode, **how: path != tmp_path / "micrograd" and access(path, mode, **how))
        assert micrograd.compile(x * x, target="c")() == 9.0 and x.grad == 6.0
    assert list((tmp_path / "micrograd").iterdir()) == []


# ---------------------------------------------------------------------------------- the renderer
def program(folder, text):
    """A `dot` that does what the text says, first on the PATH."""
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="shell scripts")
@pytest.mark.parametrize("does, error, says", [
    ("kill -SEGV $$", ValueError, "cannot draw this: no reason given"),
    ("exit 3", ValueError, "cannot draw this: no reason given"),
    ("echo one >&2; echo two >&2; exit 1", ValueError, "cannot draw this: two"),
    ("printf '\\377\\376' >&2; exit 1", ValueError, "cannot draw this"), ("exit 0", ValueError, "gave no picture but b''"),
    ("cat", ValueError, "gave no picture but b'digraph"), ("echo garbage", ValueError, "gave no picture but b'garbage"),
    ("sleep 30", TimeoutError, "more than 0.3 s"), ("cat >/dev/null; sleep 30", TimeoutError, "more than 0.3 s"),
    ("yes | head -c 3000000; sleep 30", TimeoutError, "more than 0.3 s")])
def test_a_renderer_that_fails_is_an_error_with_its_reason(tmp_path, monkeypatch, does, error, says):
    program(tmp_path, does)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for format in ("svg", "png"):
        with pytest.raises(error, match=says):
            render("digraph { a -> b }", format, timeout=0.3)
    y = Value(2.0) * 3
    assert "digraph" in micrograd.draw(y).source            # the text needs no renderer


@pytest.mark.skipif(os.name == "nt", reason="shell scripts")
def test_a_renderer_that_fails_leaves_no_file(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "echo garbage")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    with pytest.raises(ValueError, match="gave no picture"):
        micrograd.draw(Value(2.0) * 3).render(str(tmp_path / "picture"))
    assert [p.name for p in tmp_path.iterdir()] == ["bin"]


# -------------------------------------------------------------------------------- a training loop
def test_training_goes_on_after_an_interrupt_as_if_it_had_not_been():
    def train(interrupts):
        random.seed(3)
        model, dice = nn.MLP(2, [4, 1]), random.Random(5)
        optimiser = optim.Adam(model.parameters(), lr=0.05)
        for k in range(20):
            loss = sum((model([0.1 * i, 1 - 0.2 * i]) - i % 2) ** 2 for i in range(4))
            optimiser.zero_grad()
            if interrupts and k % 4 == 3:
                assert interrupted(loss.backward, dice.randrange(1, 100), WALK)
            loss.backward()
            optimiser.step()
        return [p.data for p in model.parameters()]

    assert train(True) == train(False)
