"""Lesson 14. Why are deep networks hard to train, and what made them possible?

On its way back a gradient is multiplied once a layer. Twenty factors below 1 leave nothing, twenty above 1 leave
nothing but overflow. We look at chains of single numbers first, then at ten layers, and at three cures.
"""

import numpy as np
from chart import Chart
from course import save, table

from micrograd import Tensor, Value, manual_seed
from micrograd.nn import LayerNorm, Linear, Residual, Sequential, Sigmoid, Tanh, init


# Chains of one number: the derivative of twenty equal steps.
def slope(step, depth=20):
    x = y = Value(0.0)
    for _ in range(depth):
        y = step(y)
    y.backward()
    return x.grad


sigmoids = slope(lambda v: v.sigmoid())
triples = slope(lambda v: 3 * v)
halves = slope(lambda v: 0.5 * v)
table(["20 steps of", "derivative of the end by the start"],
      [["sigmoid", f"{sigmoids:.1e}"], ["times 3", f"{triples:,.0f}"], ["times 0.5", f"{halves:.1e}"]])

# Ten layers of 32 units. What arrives at the weights of each?
DEPTH, WIDTH = 10, 32


def network(bend, weights, block=lambda *parts: Sequential(*parts)):
    manual_seed(0)
    blocks = []
    for _ in range(DEPTH):
        linear = Linear(WIDTH, WIDTH)
        weights(linear.weight)
        blocks.append(block(linear, bend()))
    return Sequential(*blocks)


def small(w):
    init.normal_(w, std=0.02)


def large(w):
    init.normal_(w, std=1.0)


def xavier(w):
    init.xavier_normal_(w, gain=init.calculate_gain("tanh"))


networks = {
    "sigmoid, small weights": network(Sigmoid, small),
    "tanh, small weights (0.02)": network(Tanh, small),
    "tanh, large weights (1)": network(Tanh, large),
    "cure 1: initial weights fit (Xavier)": network(Tanh, xavier),
    "cure 2: normalised (LayerNorm)": network(Tanh, small, lambda linear, bend: Sequential(linear, LayerNorm(WIDTH), bend)),
    "cure 3: residual path, x + f(x)": network(Tanh, small, lambda linear, bend: Residual(linear, bend)),
}
X = np.random.default_rng(0).normal(size=(64, WIDTH))
wanted = np.random.default_rng(1).normal(size=(64, WIDTH))
norms = {}
for name, model in networks.items():
    ((model(Tensor(X, requires_grad=False)) - wanted) ** 2).mean().backward()
    norms[name] = [float(np.linalg.norm(p.grad)) for key, p in model.named_parameters() if p.data.ndim == 2]
table(["ten layers", "first layer", "last layer", "first / last"],
      [[name, f"{sizes[0]:.1e}", f"{sizes[-1]:.1e}", f"{sizes[0] / sizes[-1]:.1e}"] for name, sizes in norms.items()])

chart = Chart("gradient at each layer's weights", x="layer (1 is next to the input)", y="norm of the gradient", log="y",
              corner="bottom right")
for name, sizes in norms.items():
    chart.line(range(1, DEPTH + 1), sizes, name, dash=int("cure" not in name))
save("14_vanishing_exploding.svg", chart)

starved, cured = norms["tanh, small weights (0.02)"], norms["cure 2: normalised (LayerNorm)"]
healthy = norms["cure 3: residual path, x + f(x)"]
starved, cured, healthy = (sizes[0] / sizes[-1] for sizes in (starved, cured, healthy))      # first layer / last
print(f"""
Notice
- 3^20 is {3 ** 20:,}; (1/4)^20 would be {0.25 ** 20:.0e}, and twenty sigmoids are near it: each passes on at most a quarter.
- Small weights starve the first layer by a factor of {1 / starved:.0e}.
- Normalising undoes the shrinking in each layer: first / last is {cured:.0e} instead of {starved:.0e}.
- A residual path adds 1 to each factor: first / last is {healthy:.1f}, with the same small weights.""")
