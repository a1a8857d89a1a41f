"""What to look at while a network learns: is the loss falling, do gradients reach every layer, how large are the steps?

Each function draws one picture with matplotlib and returns its Figure; with `file` it is saved as well, the same
bytes each time. `TrainingLog` remembers what they need, one line a training step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from micrograd.drawing.styles import THEMES
from micrograd.engine import Value

HEALTHY = -3                            # log10 of update / data that is often a good learning rate (Karpathy's lecture)
_CLASSES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")     # Okabe and Ito: for colour-blind eyes
_MARKERS = "os^Dv*"


class TrainingLog:
    """Loss, gradient norms and relative step sizes of each layer, kept while a model learns.

    Call `record(loss)` once a step, after `optimizer.step()` and before `zero_grad()`.

    >>> from micrograd.nn import Neuron
    >>> model = Neuron(1, nonlin=False); log = TrainingLog(model)
    >>> (model([2.0]) - 1.0).backward()
    >>> for p in model.parameters(): p.data -= 0.1 * p.grad
    >>> log.record(1.0)
    >>> log.losses, {name: [round(x, 3) for x in norms] for name, norms in log.gradients.items()}
    ([1.0], {'w.0': [2.0], 'b': [1.0]})
    """

    def __init__(self, model: Any) -> None:
        self.layers: dict[str, list[Any]] = {}
        for name, parameter in model.named_parameters():
            self.layers.setdefault(layer_name(name), []).append(parameter)
        self.losses: list[float] = []
        self.gradients: dict[str, list[float]] = {name: [] for name in self.layers}
        self.updates: dict[str, list[float]] = {name: [] for name in self.layers}     # |change of data| / |data|
        self._before = self._copies()

    def record(self, loss: Any) -> None:
        """Note one training step."""
        self.losses.append(float(loss))
        for name, parameters in self.layers.items():
            self.gradients[name].append(_norm(p.grad for p in parameters))
            moved = _norm(p.data - old for p, old in zip(parameters, self._before[name], strict=True))
            size = _norm(self._before[name])
            self.updates[name].append(moved / size if size else math.nan)
        self._before = self._copies()

    def _copies(self) -> dict[str, list[Any]]:
        return {name: [p.data.copy() if hasattr(p.data, "copy") else p.data for p in parameters]
                for name, parameters in self.layers.items()}


def layer_name(name: str) -> str:
    """The layer of a parameter: `layers.0` of `layers.0.neurons.3.w.1`."""
    parts = name.split(".")
    number = next((i for i, part in enumerate(parts[:-1]) if part.isdigit()), len(parts) - 2)
    return ".".join(parts[:number + 1]) or name


def _norm(parts: Any) -> float:
    return math.sqrt(sum(float((x * x).sum() if getattr(x, "ndim", 0) else x * x) for x in parts if x is not None))


def _log10(x: float) -> float:
    return math.log10(x) if 0 < x < math.inf else math.nan


def loss_curve(losses: Sequence[float] | TrainingLog, file: Any = None, theme: str = "light") -> Any:
    """The loss against the training step, on a log scale if it is positive and spans more than one power of ten."""
    values = [float(x) for x in (losses.losses if isinstance(losses, TrainingLog) else losses)]
    figure, axes, colours = _figure(theme, "training step", "loss")
    axes.plot(range(1, len(values) + 1), values, color=colours["variable"][1], linewidth=2)
    if values and min(values) > 0 and max(values) / min(values) > 10:
        axes.set_yscale("log")
    return _saved(figure, file)


def gradient_norms(log: TrainingLog, file: Any = None, theme: str = "light") -> Any:
    """A heat map of log10 of the gradient's norm: a row a layer, a column a training step; no gradient stays empty."""
    figure, axes, colours = _figure(theme, "training step", "")
    rows = [[*map(_log10, norms)] for norms in log.gradients.values()]
    picture = axes.imshow(rows, aspect="auto", cmap="cividis", interpolation="nearest",
                          extent=(0.5, len(log.losses) + 0.5, len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), [*log.gradients])
    bar = figure.colorbar(picture, ax=axes)
    bar.set_label("log₁₀ of the gradient's norm", color=colours["paper"][2])
    bar.ax.tick_params(colors=colours["paper"][2])
    return _saved(figure, file)


def update_ratios(log: TrainingLog, file: Any = None, theme: str = "light") -> Any:
    """How far each layer moved relative to its size, as log10; a dashed line at the -3 that is often healthy."""
    figure, axes, colours = _figure(theme, "training step", "log₁₀ of update / data")
    for i, (name, ratios) in enumerate(log.updates.items()):
        axes.plot(range(1, len(ratios) + 1), [*map(_log10, ratios)], label=name,
                  color=_CLASSES[i % len(_CLASSES)], linestyle=("-", "--", "-.", ":")[i // len(_CLASSES) % 4])
    axes.axhline(HEALTHY, color=colours["paper"][2], linestyle=(0, (4, 4)), linewidth=1)
    axes.legend(frameon=False, labelcolor=colours["paper"][2])
    return _saved(figure, file)


def decision_boundary(model: Callable, X: Any, y: Any, file: Any = None, theme: str = "light",
                      points: int = 120) -> Any:
    """Which class a model gives to each point of the plane, under the samples that it was trained on.

    Args:
        model: a function of an array (n, 2) that gives n scores (positive: class 1) or (n, k), one score a class.
            A model of scalar parameters, such as `MLP`, is called with the two columns, as it expects.
        X, y: samples (n, 2) and their classes; -1 counts as class 0.
        points: how fine the grid is, along each side.
    """
    import numpy as np
    figure, axes, colours = _figure(theme, "x₁", "x₂", size=(5.2, 4.6))
    from matplotlib.colors import LinearSegmentedColormap
    X, classes = np.asarray(X, float), np.asarray(y).ravel()
    low, high = X.min(0), X.max(0)
    margin = 0.12 * (high - low)
    sides = [np.linspace(a, b, points) for a, b in zip(low - margin, high + margin, strict=True)]
    grid = np.stack(np.meshgrid(*sides), -1).reshape(-1, 2)
    scores, shape = _scores(model, grid), (points, points)
    if scores.shape[1] == 1:
        reach = np.abs(scores).max() or 1.0
        paint = LinearSegmentedColormap.from_list("", [_CLASSES[0], colours["paper"][0], _CLASSES[1]])
        axes.contourf(*sides, scores.reshape(shape), levels=np.linspace(-reach, reach, 21), cmap=paint, alpha=0.55)
        axes.contour(*sides, scores.reshape(shape), levels=[0], colors=[colours["paper"][2]], linewidths=1.6)
    else:
        for i in range(scores.shape[1]):
            won = (scores.argmax(1) == i).reshape(shape).astype(float)
            axes.contourf(*sides, won, levels=[0.5, 1.5], colors=[_CLASSES[i % 6]], alpha=0.35)
    for i, kind in enumerate(np.unique(classes)):           # colour and form: two ways to tell them apart
        axes.scatter(*X[classes == kind].T, s=26, c=_CLASSES[i % 6], marker=_MARKERS[i % 6], label=f"{kind:g}",
                     edgecolors=colours["paper"][0], linewidths=0.7)
    axes.legend(title="class", frameon=False, labelcolor=colours["paper"][2], loc="upper left",
                bbox_to_anchor=(1, 1)).get_title().set_color(colours["paper"][2])
    return _saved(figure, file)


def _scores(model: Callable, grid: Any) -> Any:
    """The scores of a model for points (n, 2), as an array (n, k)."""
    import numpy as np
    parameters = model.parameters() if hasattr(model, "parameters") else []
    scalar = bool(parameters) and not any(getattr(p.data, "ndim", 0) for p in parameters)
    output = model(grid.T if scalar else grid)
    columns = [np.asarray(x.data if isinstance(x, Value) else x, float) for x in
               (output if isinstance(output, (list, tuple)) else [output])]
    return np.stack([np.broadcast_to(c, len(grid)) for c in columns], 1) if columns[0].ndim < 2 else columns[0]


def _figure(theme: str, x: str, y: str, size: tuple[float, float] = (6.4, 3.6)) -> tuple[Any, Any, dict]:
    """An empty picture in the colours of a theme; no pyplot, so that nothing opens and nothing is kept."""
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
