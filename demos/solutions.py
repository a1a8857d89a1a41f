"""Answers to exercises.py. There are others; `python -m demos.check` does not mind how you did it."""

import math

from micrograd import Tensor, Value, jvp
from micrograd.nn import Neuron


def exercise_01(x, w, b):
    weight = Value(w)
    y = (weight * x + b).sigmoid()
    y.backward()
    return y.data, weight.grad


def exercise_02(f, point, h=1e-5):
    def at(i, step):
        return f([*point[:i], point[i] + step, *point[i + 1:]])
    return [(at(i, h) - at(i, -h)) / (2 * h) for i in range(len(point))]


def exercise_03(a, b, c):
    left, right = a + b, b + c              # b is used twice: its two paths add up
    return right, right + left, left


def exercise_04():
    neuron = Neuron(2, activation="tanh")
    rows = [((0, 0), -1), ((0, 1), -1), ((1, 0), -1), ((1, 1), 1)]
    for _ in range(200):
        loss = sum((neuron(x) - wanted) ** 2 for x, wanted in rows)
        neuron.zero_grad()
        loss.backward()
        for p in neuron.parameters():
            p.data -= 0.1 * p.grad
    return neuron


def exercise_05(x, n):
    leaf = Value(x)
    y = leaf
    for _ in range(n - 1):
        y = y * leaf
    y.backward()
    return leaf.grad


def exercise_06(w, steps):
    for _ in range(steps):
        w.zero_grad()                       # the old gradient is not ours
        ((w - 3) ** 2).backward()
        w.data -= 0.1 * w.grad


def exercise_07(x):
    return x * x.detach()


def exercise_08(t):
    ((t * t).sum() + (t * t * t).sum()).backward()      # the gradient of a sum is the sum of gradients


def exercise_09(f, x, i):
    y = f(x)
    row = [0.0] * len(y)
    row[i] = 1.0
    x.zero_grad()
    y.backward(Tensor(row, requires_grad=False))
    return x.grad


def exercise_10(f, slope, x):
    steps = [10.0 ** -k for k in range(1, 16)]
    return min(steps, key=lambda h: abs((f(x + h) - f(x)) / h - slope))


def exercise_11(model, X, y):
    return sum((model(row).data > 0) == (wanted > 0) for row, wanted in zip(X, y)) / len(y)


def exercise_12(model, X, y):
    return (1 - Tensor(y, requires_grad=False) * model(X)).relu().mean()


def exercise_13(model, parts, loss_of):
    total = sum(len(y) for _, y in parts)
    model.zero_grad()
    for X, y in parts:
        (loss_of(model, X, y) * (len(y) / total)).backward()


def exercise_14(f, depth):
    def run(x):
        for _ in range(depth):
            x = x + f(x)
        return x
    return run


def exercise_15(gradient, limit):
    length = math.sqrt(sum(g * g for g in gradient))
    return [g * min(1.0, limit / length) for g in gradient] if length else gradient


def exercise_16(step, warm, steps, peak):
    return peak * (step / warm if step < warm else (steps - step) / (steps - warm))


def exercise_17(w, g, velocity, lr, momentum):
    velocity = momentum * velocity + g
    return w - lr * velocity, velocity


def exercise_18(depth):
    return min(range(1, depth + 1), key=lambda k: k + depth / k)


def exercise_19(f, x):
    return [jvp(f, x, tuple(float(i == j) for j in range(len(x))))[1] for i in range(len(x))]


def exercise_20(f, x, steps=20):
    for _ in range(steps):
        leaf = Value(x)
        y = f(leaf)
        y.backward()
        x -= y.data / leaf.grad
    return x


def exercise_21(scores):
    rows = []
    for t, row in enumerate(scores):
        grown = [math.exp(v - max(row[:t + 1])) for v in row[:t + 1]]
        rows.append([g / sum(grown) for g in grown] + [0.0] * (len(row) - t - 1))
    return rows


def exercise_22(names):
    pairs = [pair for name in names for pair in zip(f".{name}", f"{name}.")]
    letters = [now for now, _ in pairs]
    return sum(-math.log(pairs.count(pair) / letters.count(pair[0])) for pair in pairs) / len(pairs)


def exercise_23(wanted, read):
    table = [[0] * 10 for _ in range(10)]
    for i, j in zip(wanted, read):
        table[i][j] += 1
    return table


def exercise_24(w, x, b):
    y = math.tanh(w * x + b)
    error = y - 1
    slope = 2 * error * (1 - y * y)         # what arrives at w * x + b
    return error * error, slope * x, slope
