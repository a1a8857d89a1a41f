"""Lesson 15. What does gradient clipping do, and which of its two kinds keeps the direction?

Loss surfaces have cliffs. On a cliff the gradient is huge, and one step throws the weights far away. Clipping shortens
the step: by norm, the whole arrow; by value, each component for itself.
"""

import math

from chart import COLOURS, Chart, page
from course import save, table

from micrograd import Value
from micrograd.optim import SGD, clip_grad_norm_, clip_grad_value_


def angle(g):
    return math.degrees(math.atan2(g[1], g[0]))


# One gradient, (4, 1), clipped both ways to 1.
def clipped(clip=None):
    a, b = Value(0.0), Value(0.0)
    (4 * a + 1 * b).backward()
    if clip:
        clip([a, b], 1.0)
    return a.grad, b.grad


arrows = {"as it came": clipped(), "by norm to 1": clipped(clip_grad_norm_), "by value to 1": clipped(clip_grad_value_)}
table(["gradient", "components", "length", "angle"],
      [[name, f"({g[0]:.3f}, {g[1]:.3f})", f"{math.hypot(*g):.3f}", f"{angle(g):.1f}°"] for name, g in arrows.items()])


# A cliff: the same weight used twelve times in a row, as in a recurrent network. The loss is (w^12 - 0.5)².
def train(clip, w=1.6, steps=60):
    weight = Value(w)
    optimiser, losses = SGD([weight], lr=0.02), []
    for _ in range(steps):
        h = Value(1.0, requires_grad=False)
        for _ in range(12):
            h = h * weight
        loss = (h - 0.5) ** 2
        optimiser.zero_grad()
        loss.backward()
        if clip:
            clip_grad_norm_([weight], 1.0)
        optimiser.step()
        losses.append(loss.data)
    return losses, weight.data


(wild, w_wild), (tame, w_tame) = train(clip=False), train(clip=True)
right = 0.5 ** (1 / 12)
table(["from w = 1.6", "loss, steps 1 to 3", "w at the end"],
      [["unclipped", "  ".join(f"{v:.1e}" for v in wild[:3]), f"{w_wild:.3g}"],
       ["clipped by norm", "  ".join(f"{v:.1e}" for v in tame[:3]), f"{w_tame:.4f} (the answer: {right:.4f})"]])

plane = Chart("one gradient, clipped two ways", x="∂L/∂a", y="∂L/∂b", square=True, limits=(-0.2, 4.4, -0.6, 2.6))
for i, (name, g) in enumerate(arrows.items()):
    plane.arrow([0, g[0]], [0, g[1]], f"{name}, {angle(g):.0f}°", width=(2, 5, 2.6)[i])
plane.line([math.cos(t / 20) for t in range(127)], [math.sin(t / 20) for t in range(127)], colour=COLOURS[6], dash=2, width=1)
curve = Chart("a weight used twelve times: L = (w¹² − 0.5)²", x="step", y="loss", log="y", limits=(-1, None, 1e-5, 1e9))
curve.line(range(1, len(wild) + 1), wild, "unclipped", dash=1).line(range(1, len(tame) + 1), tame, "clipped by norm")
save("15_clipping.svg", page(plane, curve))

print(f"""
Notice
- By norm the angle stays {angle(arrows["by norm to 1"]):.0f}°; by value it turns to
  {angle(arrows["by value to 1"]):.0f}°: small components gain weight.
- Unclipped, the first step goes so far that the loss is {wild[1]:.0e} next, and the training is over.
- Clipped, the same learning rate walks down the cliff: clipping changes the length of the few steep steps only.""")
