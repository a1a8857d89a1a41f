"""One exercise for each lesson. Replace each `raise` by your answer, then run `python -m demos.check`.

`python -m demos.check 5` checks one of them. Answers are in solutions.py; look when you have tried.
"""


def exercise_01(x, w, b):
    """A neuron with a sigmoid: return (its output, the gradient of w), for three plain numbers. Use Value."""
    raise NotImplementedError


def exercise_02(f, point, h=1e-5):
    """The gradient of f at a list of numbers, by central differences: (f(x + h) - f(x - h)) / 2h for each."""
    raise NotImplementedError


def exercise_03(a, b, c):
    """L = (a + b) * (b + c). Return (dL/da, dL/db, dL/dc), with pencil and paper: no Value, no nudging."""
    raise NotImplementedError


def exercise_04():
    """Train a Neuron(2, activation="tanh") to say AND: above 0 for (1, 1), below 0 for the other three. Return it."""
    raise NotImplementedError


def exercise_05(x, n):
    """Multiply n times by the same Value, and return the gradient: it should be that of x ** n."""
    raise NotImplementedError


def exercise_06(w, steps):
    """Walk the Value w downhill on (w - 3) ** 2, with a rate of 0.1, whatever is in w.grad when you get it."""
    raise NotImplementedError


def exercise_07(x):
    """Return a node whose data is x * x and whose derivative by x is x.data, not 2 * x.data."""
    raise NotImplementedError


def exercise_08(t):
    """Leave in t.grad the gradients of (t * t).sum() and of (t * t * t).sum() together; call backward() once."""
    raise NotImplementedError


def exercise_09(f, x, i):
    """Row i of the Jacobian of f at the Tensor x, by one call of backward with a gradient."""
    raise NotImplementedError


def exercise_10(f, slope, x):
    """The h of 1e-1, 1e-2, ..., 1e-15 for which (f(x + h) - f(x)) / h comes nearest to the given slope."""
    raise NotImplementedError


def exercise_11(model, X, y):
    """The share of rows of X that a model of Values puts on the right side; y holds -1 and 1."""
    raise NotImplementedError


def exercise_12(model, X, y):
    """The mean hinge loss, max(0, 1 - y * score), of a model of Tensors: no loop over rows."""
    raise NotImplementedError


def exercise_13(model, parts, loss_of):
    """parts are pairs (X, y) of different lengths. Leave in the parameters the gradient of the mean over all rows.

    loss_of(model, X, y) is the mean loss of one part.
    """
    raise NotImplementedError


def exercise_14(f, depth):
    """A function that applies the block x -> x + f(x) as often as depth says."""
    raise NotImplementedError


def exercise_15(gradient, limit):
    """A list of numbers clipped by norm: the same direction, no longer than limit."""
    raise NotImplementedError


def exercise_16(step, warm, steps, peak):
    """A rate that rises evenly to peak at step `warm`, and falls evenly to 0 at step `steps`."""
    raise NotImplementedError


def exercise_17(w, g, velocity, lr, momentum):
    """One step of momentum as SGD does it, for plain numbers: return (new w, new velocity)."""
    raise NotImplementedError


def exercise_18(depth):
    """The number of checkpoint segments k that makes k + depth / k smallest."""
    raise NotImplementedError


def exercise_19(f, x):
    """The gradient of f at a tuple of numbers, by forward mode only: use jvp."""
    raise NotImplementedError


def exercise_20(f, x, steps=20):
    """Solve f(x) = 0 by Newton's method, x -= f(x) / f'(x), with the slope from Value."""
    raise NotImplementedError


def exercise_21(scores):
    """A square list of rows: each row t as shares (softmax) of the first t + 1 entries, 0 for the rest."""
    raise NotImplementedError


def exercise_22(names):
    """What loss does counting reach? The mean of -log p(next | letter) over all pairs in ".name.", p by counting."""
    raise NotImplementedError


def exercise_23(wanted, read):
    """A 10 x 10 list of lists: row i, column j counts the digits i that were read as j."""
    raise NotImplementedError


def exercise_24(w, x, b):
    """(loss, dloss/dw, dloss/db) of (tanh(w * x + b) - 1) ** 2, as straight-line code with math.tanh only."""
    raise NotImplementedError
