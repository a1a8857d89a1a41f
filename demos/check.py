"""Checks your answers: `python -m demos.check` all of exercises.py, `python -m demos.check 5` one, `... solutions` ours.

A check compares with another way to get the same number. A failed one says what came and what was expected.
"""

from __future__ import annotations

import importlib
import math
import random
import sys
from types import ModuleType
from typing import Any

import course  # noqa: F401 - finds the package if it is not installed
import numpy as np

from micrograd import Tensor, Value, grad, jacobian
from micrograd.nn import MLP
from micrograd.optim import SGD


def expect(came: Any, expected: Any) -> None:
    """Fail, in words, unless two numbers or nested lists of numbers agree."""
    assert came is not None, "nothing came back; is there a `return`?"
    assert np.shape(came) == np.shape(expected), f"expected the shape {np.shape(expected)}, got {np.shape(came)}"
    assert np.allclose(came, expected, rtol=1e-6, atol=1e-8), f"expected {expected}, got {came}"


def model(backend: str = "scalar") -> Any:
    random.seed(1)
    return MLP(2, [4, 1], backend=backend)


X = np.random.default_rng(0).normal(size=(9, 2))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


def check_04(answer: Any) -> None:
    neuron = answer()
    said = [neuron(x).data > 0 for x in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert said == [False, False, False, True], f"for (0,0), (0,1), (1,0), (1,1) it says yes: {said}"


def check_06(answer: Any) -> None:
    w = Value(0.0)
    w.grad = 100.0
    answer(w, 100)
    expect(w.data, 3.0)


def check_07(answer: Any) -> None:
    x = Value(3.0)
    y = answer(x)
    expect([y.data, *grad(y, x)], [9.0, 3.0])


def check_08(answer: Any) -> None:
    t = Tensor([1.0, -2.0])
    answer(t)
    expect(t.grad, 2 * t.data + 3 * t.data ** 2)


def check_13(answer: Any) -> None:
    def loss_of(net: Any, inputs: Any, wanted: Any) -> Any:
        return ((net(inputs) - wanted) ** 2).mean()
    whole, in_parts = model("numpy"), model("numpy")
    loss_of(whole, X, Y).backward()
    answer(in_parts, [(X[:5], Y[:5]), (X[5:8], Y[5:8]), (X[8:], Y[8:])], loss_of)
    for p, q in zip(in_parts.parameters(), whole.parameters()):
        expect(p.grad, q.grad)


def check_17(answer: Any) -> None:
    w, plain, velocity = Value(1.0), 1.0, 0.0
    optimiser = SGD([w], lr=0.1, momentum=0.9)
    for g in (2.0, -1.0, 0.5):
        w.grad = g
        optimiser.step()
        plain, velocity = answer(plain, g, velocity, 0.1, 0.9)
    expect(plain, w.data)


def check_24(answer: Any) -> None:
    w, b = Value(-0.5), Value(0.3)
    loss = ((w * 2.0 + b).tanh() - 1) ** 2
    expect(answer(-0.5, 2.0, 0.3), [loss.data, *grad(loss, (w, b))])


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def softmax(x: Any) -> Any:
    return x.softmax(-1)


CHECKS = {
    1: lambda f: expect(f(2.0, -3.0, 6.5), [sigmoid(0.5), 2.0 * sigmoid(0.5) * sigmoid(-0.5)]),
    2: lambda f: expect(f(lambda p: p[0] ** 3 + 2 * p[0] * p[1], [1.5, -1.0]), [4.75, 3.0]),
    3: lambda f: expect(f(2.0, -3.0, 10.0), [7.0, 6.0, -1.0]),
    4: check_04,
    5: lambda f: expect([f(2.0, n) for n in (1, 2, 7)], [n * 2.0 ** (n - 1) for n in (1, 2, 7)]),
    6: check_06, 7: check_07, 8: check_08,
    9: lambda f: expect([f(softmax, Tensor([1.0, 2.0, 0.5]), i) for i in range(3)],
                        jacobian(softmax, Tensor([1.0, 2.0, 0.5]))),
    10: lambda f: expect(1e-9 <= f(math.exp, math.e, 1.0) <= 1e-7, True),
    11: lambda f: expect(f(model(), X.tolist(), Y), np.mean((model("numpy")(X).data > 0) == (Y > 0))),
    12: lambda f: expect(f(model("numpy"), X, Y).item(), np.maximum(0, 1 - Y * model("numpy")(X).data).mean()),
    13: check_13,
    14: lambda f: expect(f(lambda x: 0.5 * x, 5)(2.0), 2.0 * 1.5 ** 5),
    15: lambda f: expect([f([3.0, 4.0], 1.0), f([0.3, 0.4], 1.0)], [[0.6, 0.8], [0.3, 0.4]]),
    16: lambda f: expect([f(step, 10, 50, 0.2) for step in (0, 5, 10, 30, 50)], [0.0, 0.1, 0.2, 0.1, 0.0]),
    17: check_17,
    18: lambda f: expect([f(64), f(100), f(1)], [8, 10, 1]),
    19: lambda f: expect(f(lambda x, y: x * y * y, (2.0, 3.0)), [9.0, 12.0]),
    20: lambda f: expect(f(lambda x: x * x - 2, 1.0), math.sqrt(2)),
    21: lambda f: expect(f([[5.0, 9.0], [1.0, 1.0 + math.log(3)]]), [[1.0, 0.0], [0.25, 0.75]]),
    22: lambda f: expect([f(["ab", "ab"]), f(["a", "b"])], [0.0, math.log(2) / 2]),
    23: lambda f: expect(np.sum(f([1, 1, 7], [1, 7, 7]), axis=1).tolist() + [f([1, 7], [7, 7])[1][7]],
                         [0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 1]),
    24: check_24,
}


def verdict(answers: ModuleType, number: int) -> str:
    """"" if the answer is right, else what is wrong with it."""
    try:
        CHECKS[number](getattr(answers, f"exercise_{number:02}"))
    except NotImplementedError:
        return "not done yet"
    except Exception as error:                          # a student's answer may do anything
        return f"{type(error).__name__}: {error}" if not isinstance(error, AssertionError) else str(error)
    return ""


def main() -> int:
    words = sys.argv[1:]
    answers = importlib.import_module("solutions" if "solutions" in words else "exercises")
    numbers = [int(word) for word in words if word.isdigit() and int(word) in CHECKS] or list(CHECKS)
    said = {number: verdict(answers, number) for number in numbers}
    for number, wrong in said.items():
        print(f"{number:2}  {'right' if not wrong else wrong}")
    print(f"\n{list(said.values()).count('')} of {len(said)} right")
    return int(any(said.values()))


if __name__ == "__main__":
    sys.exit(main())
