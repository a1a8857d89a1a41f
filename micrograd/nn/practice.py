"""Training goes wrong silently; these look inside: the size of gradients layer by layer, and units that died.

**A batch too large for memory** is the sum of smaller ones, because gradients add up until `zero_grad`; divide each
loss by their number, and step once:

    optimiser.zero_grad()
    for X, y in parts:
        (loss(model(X), y) / len(parts)).backward()
    optimiser.step()
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from micrograd.nn.module import Module
from micrograd.optim import gradient_of, norm


def grad_norms(model: Module) -> dict[str, float]:
    """The norm of the gradients of each layer, {name: norm}; a layer is a module that has parameters of its own."""
    return {name: norm([g for g in map(gradient_of, layer.parameters()) if g is not None])
            for name, layer in layers(model).items()}


def layers(model: Module) -> dict[str, Module]:
    """The modules with arrays of their own, and the layers of neurons, by name, in their order."""
    found: dict[str, Module] = {}
    for name, module in model.named_modules():
        above = any(name.startswith(f"{other}.") for other in found)
        own = any("." not in key or key.split(".")[0] in ("neurons", "w") for key, _ in module.named_parameters())
        if own and not above:
            found[name] = module
    return found


def summary(model: Module) -> str:
    """A table of the layers: name, kind, parameters, how many of them are trained; and the sums.

    >>> from micrograd.nn import MLP
    >>> print(summary(MLP(2, [3, 1])))
    layer     kind   parameters  trained
    layers.0  Layer           9        9
    layers.1  Layer           4        4
    total                    13       13
    """
    def count(nodes: Iterable) -> int: return sum(getattr(p.data, "size", 1) for p in nodes)

    def row(name: str, kind: str, nodes: list) -> list[str]:
        return [name, kind, f"{count(nodes):,}", f"{count(p for p in nodes if p.requires_grad):,}"]

    rows = [["layer", "kind", "parameters", "trained"]]
    rows += [row(name or "-", type(layer).__name__, layer.parameters()) for name, layer in layers(model).items()]
    rows.append(row("total", "", model.parameters()))
    wide = [max(len(line[k]) for line in rows) for k in range(4)]
    return "\n".join("  ".join([a.ljust(wide[0]), b.ljust(wide[1]), c.rjust(wide[2]), d.rjust(wide[3])])
                     for a, b, c, d in rows)


class Monitor:
    """Records a training run: the loss, the norm of the gradients of each layer, and the share of dead units.

    A unit of a layer is dead if its output after the bend was 0 for every example since the last `record`. Call
    `record(loss)` after `backward()`; `draw()` gives the whole run as SVG, in a notebook it shows itself.

    >>> from micrograd.nn import MLP
    >>> model = MLP(2, [3, 1])
    >>> monitor = Monitor(model)
    >>> loss = model([1.0, 2.0]) ** 2
    >>> loss.backward(); monitor.record(loss)
    >>> len(monitor.losses), list(monitor.norms[0])
    (1, ['layers.0', 'layers.1'])
    """

    def __init__(self, model: Module) -> None:
        self.model, self.losses = model, []                 # type: tuple[Module, list[float]]
        self.norms: list[dict[str, float]] = []
        self.dead: list[dict[str, float]] = []
        self._alive: dict[str, Any] = {}
        self._handles = [part.register_forward_hook(self._see(name)) for name, part in model.named_modules() if part.is_bend]

    def _see(self, name: str) -> Any:
        def hook(module: Module, inputs: tuple, output: Any) -> None:
            if isinstance(output, list):                    # of neurons
                alive = [bool(v.data.any() if hasattr(v.data, "any") else v.data) for v in output]
            elif hasattr(output.data, "any"):
                alive = (output.data.reshape(-1, output.data.shape[-1]) != 0).any(0).tolist()
            else:
                return
            before = self._alive.get(name, alive)
            self._alive[name] = [a or b for a, b in zip(alive, before)]
        return hook

    def record(self, loss: Any) -> None:
        """Note a step: its loss, and what the layers look like now."""
        self.losses.append(float(loss))
        self.norms.append(grad_norms(self.model))
        self.dead.append({name: 1 - sum(alive) / len(alive) for name, alive in self._alive.items()})
        self._alive.clear()

    def close(self) -> None:
        """Take the hooks away from the model."""
        for handle in self._handles:
            handle.remove()

    def draw(self) -> str:
        """The run as SVG: the loss, a row of colour for the gradients of each layer (blue vanishes, red explodes), and
        a row for dead units (black)."""
        n = max(1, len(self.losses))
        step = max(1, n // 300)
        kept, out, y = range(0, len(self.losses), step), [], 110.0
        finite = [v for v in self.losses if math.isfinite(v)] or [0.0]
        low, high = min(finite), max(finite)
        points = " ".join(f"{150 + 600 * i / n:.1f},{90 - 70 * (self.losses[i] - low) / (high - low or 1):.1f}"
                          for i in kept if math.isfinite(self.losses[i]))
        out.append(f'<text x="4" y="50">loss {low:.3g} to {high:.3g}</text>'
                   f'<polyline points="{points}" fill="none" stroke="#333" stroke-width="1.5"/>')
        def grey(share: float) -> str: return f"rgb{(round(235 * (1 - share)),) * 3}"

        for title, history, colour in (("gradient", self.norms, _warmth), ("dead", self.dead, grey)):
            for name in history[-1] if history else ():
                last = history[-1][name]
                out.append(f'<text x="4" y="{y + 12}">{title} {name}</text>'
                           f'<text x="756" y="{y + 12}">{last:.2g}</text>')
                out += [f'<rect x="{150 + 600 * i / n:.1f}" y="{y}" width="{600 * step / n + 0.5:.1f}" height="16" '
                        f'fill="{colour(history[i].get(name, 0.0))}"/>' for i in kept]
                y += 20
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 {y:.0f}" font-family="sans-serif" '
                'font-size="12"><rect width="100%" height="100%" fill="white"/>' + "".join(out) + "</svg>")

    _repr_svg_ = draw


def _warmth(size: float) -> str:
    """Blue for a gradient of 1e-6 and less, grey for 1e-2, red for 100 and more, black for nan and infinity."""
    if not math.isfinite(size):
        return "#000"
    warm = max(-1.0, min(1.0, (math.log10(size) + 2) / 4 if size > 0 else -1.0))
    pale = round(225 * (1 - abs(warm)))
    return f"rgb({225 if warm > 0 else pale},{pale},{225 if warm < 0 else pale})"


class EarlyStopping:
    """Says when a measure (small is good) has not become better for `patience` looks; keeps the best state.

    >>> stop = EarlyStopping(patience=2)
    >>> [stop(loss) for loss in (1.0, 0.5, 0.6, 0.7)]
    [False, False, False, True]
    """

    def __init__(self, patience: int = 10, min_delta: float = 0.0, model: Module | None = None) -> None:
        self.patience, self.min_delta, self.model = patience, min_delta, model
        self.best, self.waited, self.best_state = math.inf, 0, {}       # type: tuple[float, int, dict]

    def __call__(self, measure: Any) -> bool:
        self.waited += 1
        if float(measure) < self.best - self.min_delta:
            self.best, self.waited = float(measure), 0
            self.best_state = self.model.state_dict() if self.model is not None else {}
        return self.waited >= self.patience

    def restore(self) -> None:
        """Bring the model back to its best."""
        if self.model is not None and self.best_state:
            self.model.load_state_dict(self.best_state)


def progress(steps: Iterable, **keywords: Any) -> Iterable:
    """`steps` behind a tqdm bar where tqdm is installed and somebody looks: a terminal or a notebook."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return steps
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return steps
    return tqdm(steps, **keywords)
