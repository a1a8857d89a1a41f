"""Lesson 6. What happens if I forget `zero_grad`, and why does nothing complain?

Gradients add up until someone clears them; that is wanted (lesson 13 uses it). Forgotten, every step also follows all
the gradients of the past. No error appears; the loss even falls for a while.
"""

import random

from chart import Chart, page
from course import quick, save, table

from micrograd import Value, diagnose
from micrograd.nn import MLP


# One weight and the loss (w - 1)², so that everything can be followed on paper.
def path(clear, steps=60, lr=0.05):
    w, seen = Value(0.0), []
    for _ in range(steps):
        if clear:
            w.zero_grad()
        loss = (w - 1) ** 2
        loss.backward()
        w.data -= lr * w.grad
        seen.append(w.data)
    return seen


with_it, without = path(clear=True), path(clear=False)
table(["after step", "with zero_grad", "without"], [[k, with_it[k - 1], without[k - 1]] for k in (1, 2, 5, 10, 20, 40, 60)])


# The same in a network that learns exclusive or.
def train(clear, steps=40 if quick else 200):
    random.seed(2)
    model, losses = MLP(2, [8, 1], activation="tanh", fused=True), []
    rows = [((0.0, 0.0), 0.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), 0.0)]
    for _ in range(steps):
        loss = sum((model(x) - wanted) ** 2 for x, wanted in rows)
        if clear:
            model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.03 * p.grad
        losses.append(loss.data)
    return model, losses, loss


(_, good, _), (forgot, bad, last) = train(clear=True), train(clear=False)
print(f"\nnetwork, last loss with zero_grad {good[-1]:.2g}, without {bad[-1]:.2g}")
print("\nThe library can look for it. diagnose(loss, model) says:\n")
finding = str(diagnose(last, forgot))
print(finding)

weight = Chart("one weight on its way to 1", x="step", y="w", limits=(None, None, -0.1, 2.6))
weight.line(range(1, 61), with_it, "with zero_grad").line(range(1, 61), without, "without", dash=1)
network = Chart("a network learns exclusive or", x="step", y="loss", log="y", limits=(None, None, None, 10))
network.line(range(1, len(good) + 1), good, "with zero_grad").line(range(1, len(bad) + 1), bad, "without", dash=1)
save("06_zero_grad.svg", page(weight, network))

print(f"""
Notice
- Without clearing, the step is the sum of all gradients so far: a ball that rolls without friction. It never rests;
  after {len(without)} steps the weight still swings between {min(without[20:]):.2f} and {max(without[20:]):.2f}.
- The first step is right in both runs, and early losses look fine. That is what makes the mistake so common.
- Momentum (lesson 17) is the same sum with friction: the past fades instead of staying for ever.""")
