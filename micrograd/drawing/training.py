"""What to look at while a network learns: is the loss falling, do gradients reach every layer, what has it learned?

Each function draws one picture with matplotlib and returns its Figure; with `file` it is saved as well, the same
bytes each time. What they draw, `nn.Monitor` records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from micrograd.drawing.styles import THEMES
from micrograd.engine import Value

_CLASSES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")     # Okabe and Ito: for all eyes
_MARKERS = "os^Dv*"


def loss_curve(losses: Sequence[float], file: Any = None, theme: str = "light") -> Any:
    """The loss against the training step; on a log scale if it is positive and spans more than one power of ten."""
    values = [float(x) for x in losses]
    figure, axes, colours = _figure(theme, "training step", "loss")
    axes.plot(range(1, len(values) + 1), values, color=colours["variable"][1], linewidth=2)
    if values and min(values) > 0 and max(values) / min(values) > 10:
        axes.set_yscale("log")
    return _saved(figure, file)


def gradient_norms(norms: Sequence[Mapping[str, float]], file: Any = None, theme: str = "light") -> Any:
    """A heat map of gradient norms: a row a layer, a column a training step, colours by log10; 0 stays empty.

    Args:
        norms: for each training step {layer: norm}, as `nn.grad_norms(model)` and `nn.Monitor.norms` give it.
    """
    layers = list(dict.fromkeys(name for step in norms for name in step))
    if not layers:
        raise ValueError("norms is empty; give {layer: norm} for each training step, as nn.Monitor(model).norms has it")
    sizes = [[step.get(name, 0.0) for step in norms] for name in layers]
    rows = [[math.log10(x) if 0 < x < math.inf else math.nan for x in row] for row in sizes]
    figure, axes, colours = _figure(theme, "training step", "")
    picture = axes.imshow(rows, aspect="auto", cmap="cividis", interpolation="nearest",
                          extent=(0.5, len(norms) + 0.5, len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), layers)
    bar = figure.colorbar(picture, ax=axes)
    bar.set_label("log₁₀ of the gradient's norm", color=colours["paper"][2])
    bar.ax.tick_params(colors=colours["paper"][2])
    return _saved(figure, file)


def decision_boundary(model: Callable, X: Any, y: Any, file: Any = None, theme: str = "light",
                      points: int = 120) -> Any:
    """Which class a model gives to each point of the plane, under the samples that it was trained on.

    Args:
        model: a function of an array (n, 2) that gives n scores (positive: the second class) or (n, k), one score a
            class. A model of scalar parameters, such as `MLP`, is called with the two columns, as it expects.
        X, y: samples (n, 2) and their classes.
        points: how fine the grid is, along each side.
    """
    figure, axes, colours = _figure(theme, "x₁", "x₂", size=(5.2, 4.6))
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    X, classes = np.asarray(X, float), np.asarray(y).ravel()
    low, high = X.min(0), X.max(0)
    margin = 0.12 * (high - low)
    sides = [np.linspace(a, b, points) for a, b in zip(low - margin, high + margin, strict=True)]
    scores = _scores(model, np.stack(np.meshgrid(*sides), -1).reshape(-1, 2))
    for i in range(scores.shape[1] if scores.shape[1] > 1 else 0):
        won = (scores.argmax(1) == i).reshape(points, points).astype(float)
        axes.contourf(*sides, won, levels=[0.5, 1.5], colors=[_CLASSES[i % 6]], alpha=0.35)
    if scores.shape[1] == 1:
        score, reach = scores.reshape(points, points), np.abs(scores).max() or 1.0
        paint = LinearSegmentedColormap.from_list("", [_CLASSES[0], colours["paper"][0], _CLASSES[1]])
        axes.contourf(*sides, score, levels=np.linspace(-reach, reach, 21), cmap=paint, alpha=0.55)
        if score.min() < 0 < score.max():
            axes.contour(*sides, score, levels=[0], colors=[colours["paper"][2]], linewidths=1.6)
    for i, kind in enumerate(np.unique(classes)):           # colour and form: two ways to tell them apart
        axes.scatter(*X[classes == kind].T, s=26, c=_CLASSES[i % 6], marker=_MARKERS[i % 6], label=f"{kind:g}",
                     edgecolors=colours["paper"][0], linewidths=0.7)
    legend = axes.legend(title="class", frameon=False, labelcolor=colours["paper"][2], loc="upper left",
                         bbox_to_anchor=(1, 1))
    legend.get_title().set_color(colours["paper"][2])
    return _saved(figure, file)


def _scores(model: Callable, grid: Any) -> Any:
    """The scores of a model for points (n, 2), as an array (n, k)."""
    import numpy as np
    parameters = model.parameters() if hasattr(model, "parameters") else []
    scalar = bool(parameters) and not any(getattr(p.data, "ndim", 0) for p in parameters)
    output = model(grid.T if scalar else grid)
    columns = [np.asarray(x.data if isinstance(x, Value) else x, float)
               for x in (output if isinstance(output, (list, tuple)) else [output])]
    return np.stack([np.broadcast_to(c, len(grid)) for c in columns], 1) if columns[0].ndim < 2 else columns[0]


def _figure(theme: str, x: str, y: str, size: tuple[float, float] = (6.4, 3.6)) -> tuple[Any, Any, dict]:
    """An empty picture in the colours of a theme; without pyplot, so that no window opens and nothing is kept."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('training pictures need matplotlib: pip install "micrograd-studio[demos]"') from None
    colours = THEMES[theme]
    paper, _, ink = colours["paper"]
    figure = Figure(figsize=size, layout="constrained", facecolor=paper)
    axes = figure.add_subplot(facecolor=paper)
    axes.set_xlabel(x, color=ink)
    axes.set_ylabel(y, color=ink)
    axes.tick_params(colors=ink)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(colours["cluster"][1])
    return figure, axes, colours


def _saved(figure: Any, file: Any) -> Any:
    if file is not None:
        import matplotlib
        with matplotlib.rc_context({"svg.hashsalt": "micrograd"}):
            figure.savefig(file, dpi=150, metadata={"Date": None} if str(file).endswith("svg") else None)
    return figure
