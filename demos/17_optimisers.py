"""Lesson 17. Why do optimisers differ, if all of them follow the same gradient?

In a narrow valley the gradient points across, to the other wall, and hardly along. Plain descent goes to and fro;
momentum lets the to and fro cancel; Adam gives each direction its own measure. We draw their paths.
"""

import math

from chart import COLOURS, Chart, page
from course import save, table

from micrograd import Value
from micrograd.optim import SGD, Adam, RMSprop

STEEP = 40.0                            # the valley is 40 times as steep across as along


def valley(a, b):
    return 0.5 * (a * a + STEEP * b * b)


def walk(optimiser_of, steps=300, **options):
    a, b = Value(-9.0), Value(1.5)
    optimiser, path, losses = optimiser_of([a, b], **options), [(a.data, b.data)], []
    for _ in range(steps):
        loss = valley(a, b)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        path.append((a.data, b.data))
        losses.append(loss.data)
    return path, losses


runs = {
    "gradient descent": walk(SGD, lr=0.045),
    "momentum 0.8": walk(SGD, lr=0.02, momentum=0.8),
    "RMSprop": walk(RMSprop, lr=0.2),
    "Adam": walk(Adam, lr=0.5),
}


def steps_to(losses, goal=1e-3):
    """The first step after which the loss stays under the goal."""
    return next((k for k in range(len(losses)) if max(losses[k:]) < goal), None)


table(["optimiser", "steps until loss < 0.001", "loss after 20 steps", "loss after 300"],
      [[name, steps_to(losses) or "never", f"{losses[20]:.3g}", f"{losses[-1]:.1e}"] for name, (_, losses) in runs.items()])

charts = []
for i, (name, (path, _)) in enumerate(runs.items()):
    chart = Chart(f"{name}: the first 40 steps", x="along the valley", y="across", limits=(-10, 4, -2.2, 2.2))
    for level in (0.5, 4, 15, 40, 90):
        turn = [t * math.tau / 120 for t in range(121)]
        chart.line([math.sqrt(2 * level) * math.cos(t) for t in turn],
                   [math.sqrt(2 * level / STEEP) * math.sin(t) for t in turn], colour="#c3cad3", width=1)
    chart.line(*zip(*path[:41]), colour=COLOURS[i]).dots(*zip(*path[:41]), colour=COLOURS[i], size=2.5)
    charts.append(chart)
save("17_optimisers.svg", page(*charts))

limit, needed = 2 / STEEP, {name: steps_to(losses) for name, (_, losses) in runs.items()}
print(f"""
Notice
- Plain descent needs a rate below 2 / {STEEP:.0f} = {limit:g}, or it climbs the walls: the steepest direction dictates.
- Momentum turns to and fro into a glide: {needed["momentum 0.8"]} steps instead of {needed["gradient descent"]}.
- Adam's first step is the learning rate in each direction, whatever the slope: it goes diagonally at once.
- RMSprop and Adam measure each direction by its own past gradients, so their paths look alike in valleys of any width.
- None is best everywhere: here, tuned, plain momentum wins.""")
