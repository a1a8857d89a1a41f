"""Lesson 23. My network does not learn. Where do I look?

A network that reads digits of 8 x 8 pixels, built with four mistakes that everybody makes once. We do not guess: we
look at it as a doctor would, mend one thing after the other, and measure after each.
"""

import numpy as np
from chart import COLOURS, Chart, page
from course import quick, save, table

from micrograd import Tensor, diagnose, manual_seed
from micrograd.nn import Linear, ReLU, Sequential, Sigmoid, init
from micrograd.nn.losses import cross_entropy
from micrograd.optim import SGD

GLYPHS = """.###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ....#
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .###."""
rows = [line.split() for line in GLYPHS.splitlines()]
shapes = np.array([[[c == "#" for c in row[digit]] for row in rows] for digit in range(10)], float)


def digits(n, seed):
    """n images (n, 64) with grey levels 0 to 16, as a scanner might give them, and which digit each shows."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 10, n)
    images = np.zeros((n, 8, 8))
    for image, digit in zip(images, y):
        down, right = random.integers(0, 2), random.integers(1, 3)
        image[down:down + 7, right:right + 5] = shapes[digit] * random.uniform(0.6, 1)
    return np.clip(16 * images + random.normal(0, 1.5, images.shape), 0, 16).reshape(n, 64), y


(X, y), (X_test, y_test) = digits(600, 1), digits(300, 2)


def network(bend, weights):
    manual_seed(0)
    model = Sequential(Linear(64, 32), bend(), Linear(32, 32), bend(), Linear(32, 10))
    for layer in model:
        if isinstance(layer, Linear):
            weights(layer.weight)
    return model


def run(model, pixels, lr, steps=20 if quick else 150):
    """(losses, share of test images that are read right, what diagnose says before the first step)."""
    optimiser, losses, findings = SGD(model.parameters(), lr=lr, momentum=0.9), [], ""
    for _ in range(steps):
        loss = cross_entropy(model(Tensor(pixels(X), requires_grad=False)), y)
        if not losses:
            findings = str(diagnose(loss, model)) or "nothing found"
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses, float((model(Tensor(pixels(X_test), requires_grad=False)).data.argmax(1) == y_test).mean()), findings


def raw(images): return images
def scaled(images): return images / 8 - 1
def wild(w): init.normal_(w, std=1.0)
def fitting(w): init.kaiming_normal_(w, nonlinearity="relu")


stages = {
    "as built": (network(Sigmoid, wild), raw, 0.01),
    "1. pixels from 0..16 to -1..1": (network(Sigmoid, wild), scaled, 0.01),
    "2. relu instead of sigmoid": (network(ReLU, wild), scaled, 0.01),
    "3. initial weights that fit": (network(ReLU, fitting), scaled, 0.01),
    "4. a larger learning rate": (network(ReLU, fitting), scaled, 0.1),
}
runs = {name: run(*stage) for name, stage in stages.items()}
table(["stage", "first loss", "last loss", "read right"],
      [[name, losses[0], losses[-1], f"{right:.0%}"] for name, (losses, right, _) in runs.items()])
for name in ("as built", "3. initial weights that fit"):
    print(f"\ndiagnose, {name}:\n{runs[name][2]}")

best = stages["4. a larger learning rate"][0]
seen = best(Tensor(scaled(X_test[:8]), requires_grad=False)).data.argmax(1)
framed = [np.pad(image.reshape(8, 8), 1) for image in X_test[:8]]
sheet = np.concatenate([np.concatenate(framed[k:k + 4], 1) for k in (0, 4)])
names = [str(seen[4 + k // 10]) if k % 10 == 5 else "" for k in range(40)]
images = Chart("eight test images; below: how the second row is read").cells(np.round(sheet), names, [""] * 20, "")
curves = Chart("mending one thing after the other", x="step", y="loss", log="y", limits=(None, None, None, 1e6))
for i, (name, (losses, _, _)) in enumerate(runs.items()):
    curves.line(range(1, len(losses) + 1), losses, name, dash=i % 4, colour=COLOURS[i])
save("23_digits.svg", page(images, curves))

final = runs["4. a larger learning rate"]
print(f"""
Notice
- A fresh network knows nothing, so it should lose about ln 10 = {np.log(10):.2f}. As built it lost
  {runs["as built"][0][0]:.1f}: a first warning.
- From {runs["as built"][1]:.0%} to {final[1]:.0%} read right, and no layer was added.
- None of the mistakes raised an error. Look at the numbers before you look for a better network.""")
