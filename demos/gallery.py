"""What can a picture of a computation show? Sixteen pictures and a page, all made by `python -m demos.gallery`.

Every number in them comes from running code. `-o FOLDER` writes them elsewhere.
"""

from __future__ import annotations

import argparse
import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from micrograd import Tensor, Value, animate, draw, nn, optim, relu, stepper
from micrograd.data import moons
from micrograd.drawing.training import decision_boundary, gradient_norms, loss_curve

PICTURES: list[tuple[str, str, Callable[[Path], Any]]] = []


def picture(name: str, caption: str) -> Callable:
    """Enter a function into the gallery: what it returns is drawn into the file `name`."""
    def enter(function: Callable) -> Callable:
        PICTURES.append((name, caption, function))
        return function
    return enter


def drawn(root: Any, **options: Any) -> Callable[[Path], Any]:
    """Write `draw(root, ...)` into a file."""
    return lambda file: file.write_text(draw(root, **options).pipe(encoding="utf-8"), encoding="utf-8", newline="\n")


def neuron() -> Value:
    """The neuron of micrograd's lecture: o = tanh(x1·w1 + x2·w2 + b), with names for all."""
    x1, x2, w1, w2, b = (Value(x, label=name) for name, x in (
        ("x1", 2.0), ("x2", 0.0), ("w1", -3.0), ("w2", 1.0), ("b", 6.8813735870195432)))
    a, c = x1 * w1, x2 * w2
    s = a + c
    n = s + b
    o = n.tanh()
    for node, name in ((a, "x1·w1"), (c, "x2·w2"), (s, "sum"), (n, "n"), (o, "o")):
        node.label = name
    o.backward()
    return o


def network() -> tuple[nn.MLP, Value]:
    """A network of nine neurons, and its squared error on one sample."""
    random.seed(1337)
    model = nn.MLP(2, [4, 4, 1])
    loss = (model([Value(1.0, label="x1"), Value(-2.0, label="x2")]) - 1.0) ** 2
    loss.label = "loss"
    loss.backward()
    return model, loss


@picture("neuron.svg", "A neuron. On each arrow stands the local derivative: how fast the result of the operation "
         "changes with that input alone, in letters and as a number.")
def _neuron(file: Path) -> None:
    drawn(neuron(), edges="local", formulas=True)(file)


@picture("both_passes.svg", "Both passes in one picture, as texts draw it: solid arrows carry values forward, dashed "
         "arrows carry the gradient back.")
def _both_passes(file: Path) -> None:
    drawn(neuron(), passes="both", edges="product")(file)


@picture("animated_neuron.svg", "The same neuron as a film, without script: values light up one operation at a time, "
         "then the gradient flows back, times the local derivative on each wire.")
def _animated_neuron(file: Path) -> None:
    animate(neuron(), file, repeat=True)


@picture("accumulation.svg", "Where paths meet, gradients add up: a is used three times and gathers 1 + 4 + 4. (A film.)")
def _accumulation(file: Path) -> None:
    a = Value(4.0, label="a")
    y = a * a + a
    y.label = "y"
    animate(y, file, repeat=True)


@picture("gradient_graph.svg", "A gradient is a computation, too. Left the function y = x² + relu(x), right the graph "
         "that backward(create_graph=True) made of its derivative; it can be differentiated again.")
def _gradient_graph(file: Path) -> None:
    x = Value(3.0, label="x")
    y = x ** 2 + relu(x)
    y.label = "y"
    y.backward(create_graph=True)
    x.grad.label = "dy/dx"
    drawn([y, x.grad], max_nodes=100)(file)


@picture("mlp_clusters.svg", "MLP(2, [4, 4, 1]) and a loss: a box around each layer and neuron, taken from the running "
         "modules; parameters are green.")
def _mlp_clusters(file: Path) -> None:
    model, loss = network()
    drawn(loss, model=model, operations="inside", numbers=".2f")(file)


@picture("mlp_folded.svg", "The same network with neurons that are alike drawn once: × 4.")
def _mlp_folded(file: Path) -> None:
    model, loss = network()
    drawn(loss, model=model, fold=True, operations="inside", numbers=".2f")(file)


@picture("mlp_layers.svg", "The same network with each layer as one box (depth=1): so even a large one can be drawn.")
def _mlp_layers(file: Path) -> None:
    model, loss = network()
    drawn(loss, model=model, depth=1, numbers=".2f")(file)


@picture("vanishing.svg", "Twenty sigmoids in a row, coloured by the size of the gradient: it vanishes on the way back, "
         "by a factor of at least four a sigmoid.")
def _vanishing(file: Path) -> None:
    y = Value(0.5, label="x")
    for _ in range(20):
        y = y.sigmoid()
    y.label = "y"
    y.backward()
    drawn(y, color="gradient", operations="inside", rankdir="TB", layout="row")(file)


@picture("dead_relu.svg", "A dead relu: its input is negative, its derivative is 0, and nothing that stands before it "
         "learns from this sample.")
def _dead_relu(file: Path) -> None:
    w, x, b, v = Value(0.5, label="w"), Value(2.0, label="x"), Value(-3.0, label="b"), Value(0.8, label="v")
    h = (w * x + b).relu()
    loss = (h + v - 1.0) ** 2
    h.label, loss.label = "h", "loss"
    loss.backward()
    drawn(loss, color="gradient", edges="local")(file)


@picture("path.svg", "Every path from a to the loss, lit, with the product of the local derivatives along each; the "
         "gradient of a is their sum.")
def _path(file: Path) -> None:
    a, b = Value(2.0, label="a"), Value(-3.0, label="b")
    c = a * b
    d = c + a
    loss = d * c
    c.label, d.label, loss.label = "c", "d", "loss"
    loss.backward()
    drawn(loss, path=(a, loss), edges="local")(file)


@picture("batch.svg", "A batch of 100 samples through two layers: each node shows its shape, and broadcasting is a node "
         "like any other.")
def _batch(file: Path) -> None:
    random_numbers = np.random.default_rng(0)
    X = Tensor(random_numbers.normal(size=(100, 2)), label="X", requires_grad=False)
    W1, b1, W2 = (Tensor(random_numbers.normal(size=size), label=name) for name, size in (
        ("W1", (2, 16)), ("b1", (16,)), ("W2", (16, 1))))
    loss = (((X @ W1 + b1).relu() @ W2) ** 2).mean()
    loss.label = "loss"
    loss.backward(retain_graph=True)
    drawn(loss)(file)


@picture("training.html", "A page to step through both passes and through ten steps of training: a neuron learns one "
         "sample. Arrow keys, space, Home and End; point at a number for its history.")
def _training(file: Path) -> None:
    w1, w2, b = Value(0.5, label="w1"), Value(-0.4, label="w2"), Value(0.1, label="b")

    def steps() -> Any:
        for _ in range(10):
            x1, x2 = Value(1.0, label="x1", requires_grad=False), Value(-2.0, label="x2", requires_grad=False)
            y = (x1 * w1 + x2 * w2 + b).tanh()
            loss = (y - 0.3) ** 2
            y.label, loss.label = "y", "loss"
            loss.backward()
            yield loss
            for p in (w1, w2, b):
                p.data -= 0.05 * p.grad
                p.zero_grad()

    stepper(None, file, frames=steps(), title="A neuron learns: ten steps of gradient descent", numbers=".3f")


@functools.cache
def learned() -> tuple[nn.MLP, Any, Any, nn.Monitor]:
    """A network that has learned to part two half-moons, and the record of its training."""
    random.seed(1337)
    X, y = moons(100, seed=1)
    model = nn.MLP(2, [16, 16, 1], backend="numpy")
    monitor, optimizer = nn.Monitor(model), optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.binary_cross_entropy_with_logits(model(X).reshape(-1), y)
        loss.backward()
        monitor.record(loss)
        optimizer.step()
    return model, X, y, monitor


def in_both_themes(file: Path, draw_chart: Callable) -> None:
    """Write a chart for light screens, and one for dark screens beside it."""
    draw_chart(file, "light")
    draw_chart(file.with_stem(f"{file.stem}_dark"), "dark")


@picture("loss.svg", "The loss of a network that learns to part two half-moons.")
def _loss(file: Path) -> None:
    in_both_themes(file, lambda *how: loss_curve(learned()[3].losses, *how))


@picture("gradient_norms.svg", "The norm of the gradient of each layer in each step of that training, as a heat map.")
def _gradient_norms(file: Path) -> None:
    in_both_themes(file, lambda *how: gradient_norms(learned()[3].norms, *how))


@picture("boundary.svg", "What it has learned: the score of each point of the plane, and the line where it is zero.")
def _boundary(file: Path) -> None:
    model, X, y, _ = learned()
    in_both_themes(file, lambda *how: decision_boundary(model, X, y, *how, points=60))


def page() -> str:
    """The gallery as a page that code hosts show."""
    parts = ["# Gallery", "Made by `python -m demos.gallery`, from running code. The graphs follow the colours of your "
             "screen, light or dark."]
    for name, caption, _ in PICTURES:
        stem = name.rpartition(".")[0]
        shown = f"![{caption}]({name})" if name.endswith(".svg") else f"[Open the page]({name})"
        if name in ("loss.svg", "gradient_norms.svg", "boundary.svg"):
            shown = (f'<picture><source media="(prefers-color-scheme: dark)" srcset="{stem}_dark.svg">'
                     f'<img src="{name}" alt="{caption}"></picture>')
        parts.append(f"## {stem.replace('_', ' ').capitalize()}\n\n{caption}\n\n{shown}")
    return "\n\n".join(parts) + "\n"


def main(folder: Path) -> None:
    """Make all pictures, and the page that shows them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, _, make in PICTURES:
        make(folder / name)
        print(folder / name)
    (folder / "README.md").write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the pictures of the gallery.")
    parser.add_argument("-o", metavar="FOLDER", type=Path, default=Path(__file__).with_suffix(""), help="where to write")
    main(parser.parse_args().o)
