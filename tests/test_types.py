"""Types: a user who checks a program with mypy --strict is told what is wrong, and only that."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
ROOT = Path(__file__).parent.parent
WRONG = """
from micrograd import Tensor, Value, compile, explain, grad, jvp, no_grad, vjp
from micrograd.nn import MLP

Value()
Value(1.0, lable="x")
Value(2.0).backward(retain=True)
x: str = Value(2.0).item()
Tensor()
grad("y", [])
vjp(3, (1.0,))
jvp(abs)
explain(Value(2.0), format=3)
compile(Value(1.0), optimise=True)
MLP(2)

@no_grad()
def double(x: float) -> float:
    return 2 * x

double("a")
"""


def checked(path):
    """What mypy --strict says, read as a user's program that finds the package on its path."""
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file=", "--ignore-missing-imports",
                           "--follow-imports=silent", "--cache-dir", os.devnull, str(path)],
                          capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(ROOT)}, cwd=path.parent)
    return done.stdout


def test_a_typed_program_is_clean_and_runs():
    path = ROOT / "tests" / "typed_program.py"
    assert checked(path).startswith("Success")
    runpy.run_path(str(path), run_name="__main__")


def test_every_mistake_of_a_program_is_found_at_its_line(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    found = {int(line) for line in re.findall(r"wrong\.py:(\d+): error", checked(path))}
    lines = WRONG.splitlines()
    assert found == {n for n, line in enumerate(lines, 1) if "(" in line and not line.startswith(("@", "def", "from", " "))}
