"""Lesson 16. How large should the learning rate be, and what is a warm-up for?

Too small, and nothing happens; too large, and everything happens at once. We sweep it over five powers of ten, look at
three runs from inside, and start a large one gently.
"""

import math
import random

from chart import Chart, page
from course import quick, save, table

from micrograd import data
from micrograd.nn import MLP
from micrograd.nn.losses import binary_cross_entropy_with_logits
from micrograd.optim import SGD, LinearLR

X, y = data.moons(100, noise=0.15, seed=1)
steps = 30 if quick else 120


def train(lr, warm_up=0, depth=2, activation="tanh", seed=5):
    random.seed(seed)
    model = MLP(2, [16] * depth + [1], activation=activation, backend="numpy")
    optimiser = SGD(model.parameters(), lr=lr)
    schedule = LinearLR(optimiser, start_factor=0.01, total_iters=warm_up) if warm_up else None
    losses = []
    for _ in range(steps):
        loss = binary_cross_entropy_with_logits(model(X), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    return losses


rates = [10 ** (k / 4) for k in range(-12, 9)]
runs = {rate: train(rate) for rate in rates}
final = {rate: sum(losses[-5:]) / 5 for rate, losses in runs.items()}
best = min(final, key=final.get)
table(["learning rate", f"loss after {steps} steps"],
      [[f"{rate:.3g}", f"{loss:.4f}" + ("   <- best" if rate == best else "")] for rate, loss in list(final.items())[::2] +
       ([(best, final[best])] if rates.index(best) % 2 else [])])

sweep = Chart("final loss against the learning rate (SGD)", x="learning rate", y="loss at the end", log="xy",
              corner="bottom left")
sweep.line(rates, final.values()).dots(rates, final.values(), colour="#0072b2")
sweep.line([rates[0], rates[-1]], [math.log(2)] * 2, "guessing: ln 2", colour="#5b6472", dash=1, width=1.2)
inside = Chart("three runs from inside", x="step", y="loss", log="y", corner="bottom left")
for name, rate in (("too small", 0.01), ("good", best), ("too large", rates[-1])):
    nearest = min(rates, key=lambda r: abs(math.log(r / rate)))
    inside.line(range(1, steps + 1), runs[nearest], f"{name}: {nearest:.2g}", dash=len(inside.legend))

# Warm-up: the first steps of a fresh network are its worst informed; make them small.
deep = dict(depth=4, activation="relu", seed=6)
cold, warm = train(0.7, **deep), train(0.7, warm_up=30, **deep)
start = Chart("four hidden layers of relu, at 0.7", x="step", y="loss", log="y", corner="bottom left")
start.line(range(1, steps + 1), cold, "from the first step", dash=1)
start.line(range(1, steps + 1), warm, "warmed up over 30 steps")
save("16_learning_rate.svg", page(sweep, inside, start))

print(f"""
Notice
- The sweep is a valley with a steep right side: {best:.2g} is best, and a few times more is a disaster. Stay left of it.
- Cold, the deep network is thrown to a loss of {max(cold):.0f} and ends at {cold[-1]:.4f}; ln 2 = {math.log(2):.4f} is
  guessing: its units have died. Warmed up, the same rate ends at {warm[-1]:.4f}.
- A warm-up makes small the steps of a fresh network, whose gradients are the largest and the worst informed.""")
