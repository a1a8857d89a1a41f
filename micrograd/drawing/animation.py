"""Both passes as a film: an SVG that moves by itself, with no script, in a README as well as on a projector.

Everything is drawn in its final state; CSS keyframes only hide it until its time comes. So a reader who prefers
reduced motion, and a viewer that knows no CSS animation, see the whole result at once.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from micrograd.drawing.scene import Node
from micrograd.drawing.stage import chip_texts, escaped, stage, stylesheet, text_width
from micrograd.drawing.story import Story, short, story
from micrograd.names import Prose

_RULES = """
.mg-stage [style]{animation-duration:%.2fs;animation-timing-function:linear;animation-fill-mode:both;\
animation-iteration-count:%s}
%s
@media(prefers-reduced-motion:reduce){.mg-stage [style]{animation:none!important}}"""


def animate(root: Any, file: Any = None, *, seconds: float | None = None, repeat: bool = False, theme: str = "auto",
            numbers: Any = "", prefix: str = "", max_nodes: int = 120) -> str:
    """The forward and the backward pass from `root` as an animated SVG, which is written to `file` and returned.

    Args:
        file: where to write it; left out, the text is returned only.
        seconds: per operation and per gradient that passes; left out, 1, and less if that took over a minute.
        repeat: begin again after a pause; else the final state stays.
        theme: "auto" (light or dark, as the reader prefers), "light", "dark" or "print".
        numbers: a format such as ".2f".
        prefix: goes before every id, for several drawings on one page.
        max_nodes: refuse larger graphs: no one could follow.

    The gradients are those of one pass from `root`, whether `backward()` was called or not; nothing is changed.

    >>> from micrograd import Value
    >>> w, x = Value(-3.0, label="w"), Value(2.0, label="x")
    >>> picture = animate(w * x)
    >>> picture[:4], "<script" in picture, w.grad
    ('<svg', False, 0.0)
    """
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds is a positive number; got {seconds!r}")
    told = story(root, max_nodes, numbers)
    film = _Film(told, seconds, repeat, f"{prefix}{theme}{numbers}")
    drawn = stage(told, film.mark, prefix, gathering=True)
    width = max([drawn.width, *(text_width(text, 15) * 0.95 + 32 for _, text, _ in film.captions)])
    body = f'<g transform="translate({(width - drawn.width) / 2:.2f} 0)">{drawn.body}</g>' + "".join(
        f'<text class="caption {kind}" x="16" y="{drawn.height + 22:.0f}" {when}>{escaped(text)}</text>'
        for kind, text, when in film.captions)
    rules = stylesheet(theme) + _RULES % (film.end, "infinite" if repeat else 1, "\n".join(film.keyframes.values()))
    height = drawn.height + 40
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" class="mg-stage" viewBox="0 0 {width:.2f} {height:.2f}" '
           f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escaped(film.result)}">'
           f"<style>{rules}</style>{body}</svg>\n")
    if file is not None:
        Path(file).write_text(svg, encoding="utf-8")
    return svg


class _Film:
    """When each part of a stage is seen. Times are seconds; keyframes say them as a share of the whole."""

    def __init__(self, told: Story, seconds: float | None, repeat: bool, salt: str) -> None:
        self.told = told
        self.beat = seconds or min(1.0, 60 / (len(told.steps) / 2 + len(told.sums) + 3))
        self.keyframes: dict[str, str] = {}
        self.captions: list[tuple[str, str, str]] = []
        # keyframes are global to a page: two films on it must not share a name
        texts = [(node.label, node.symbol, node.data_text, node.inputs) for node in told.scene.nodes]
        self.key = hashlib.sha256(f"{salt}{seconds}{repeat}{texts}".encode()).hexdigest()[:6]
        self.lit: dict[str, float] = {node.id: 0.0 for node in told.scene.nodes}          # when a value is known
        self.left: dict[str, float] = {}                                                 # when a wire carries it
        self.returned: dict[str, float] = {}                                             # when a gradient sets out
        self.silent = {edge.id for edge in told.scene.edges if not chip_texts(edge)[0]}
        self.gathered: dict[str, list[float]] = {node.id: [] for node in told.scene.nodes}
        said = self._schedule()
        self.end = self.now + self.beat * (5 if repeat else 1)
        self._caption(said)

    def _schedule(self) -> list[tuple[float, str, str]]:
        """Walk through the story with a clock in hand; gives what is said from when on."""
        told, root = self.told, self.told.scene.root
        source = {edge.id: edge.source for edge in told.scene.edges}
        self.now = self.beat
        said = [(0.0, "forward", "Forward: the inputs are known")]
        for step in told.steps:
            if step.phase == "forward":
                self.left.update(dict.fromkeys(step.edges, self.now))
                self.lit[step.node] = self.now + 0.6 * self.beat
                said.append((self.now, "forward", f"Forward: {step.formulas[0]}"))
                self.now += self.beat
        said.append((self.now, "forward", f"The result is {root.name} = {short(root.data_text)}"))
        self.now += 1.5 * self.beat
        said.append((self.now, "backward", f"Backward: {self._rate(root)}"))
        self.gathered[root.id].append(self.now)
        self.now += self.beat
        for step in told.steps:
            for edge, formula in zip(step.edges, step.formulas, strict=True) if step.phase == "backward" else ():
                self.returned[edge] = self.now
                sums = self.gathered[source[edge]]
                sums += [self.now + 0.6 * self.beat, self.now + 1.2 * self.beat][:2 if sums else 1]
                said.append((self.now, "backward", f"Backward: {formula}"))
                self.now += self.beat * (1.5 if len(sums) > 1 else 1)
        return said

    def _caption(self, said: list[tuple[float, str, str]]) -> None:
        """Subtitles: one at a time, and the gradients of the leaves in the end."""
        leaves = [node for node in self.told.scene.nodes if not node.inputs and node.grad_text and node.label]
        self.result = f"{self.told.scene.root.name} = {short(self.told.scene.root.data_text)}" + "".join(
            f",  {self._rate(leaf)}" for leaf in leaves[:4]) + ", …" * (len(leaves) > 4)
        ends = [start for start, _, _ in said[1:]] + [self.now]
        self.captions = [(f"{kind} passing", text, self._when("between", start, end))
                         for (start, kind, text), end in zip(said, ends, strict=True)]
        self.captions.append(("", self.result, self._when("show", self.now)))

    def _rate(self, node: Node) -> str:
        """dL/dw = 6.0"""
        return f"d{Prose.simple(self.told.scene.root.name)}/d{Prose.simple(node.name)} = {short(node.grad_text)}"

    def mark(self, part: str, id: str, at: int = 0) -> str:
        """The attribute that gives a part of the stage its time."""
        if part == "node" and self.lit[id]:
            return self._when("light", self.lit[id])
        if part == "halo" and self.lit[id]:
            return self._when("flash", self.lit[id])
        if part == "halo_back" and self.gathered[id]:
            return self._when("flash", self.gathered[id][-1])
        if part in ("data", "row_data") and self.lit[id]:
            return self._when("show", self.lit[id])
        times = self.gathered.get(id, [])
        if part == "row_grad":
            return self._when("show", times[0])
        if part == "grad":
            last = at >= len(times) - 1
            return self._when("show", times[-1]) if last else self._when("between", times[at], times[at + 1])
        arrival = self.left.get(id, 0.0) + 0.6 * self.beat
        if part == "chip" and id in self.silent:
            arrival = self.returned.get(id, arrival)        # nothing to say before the gradient comes
        if part == "wire":
            return self._when("light", arrival)
        if part == "pulse":
            return self._when("travel", self.left[id], 1)
        if part == "slope":
            return self._when("between", arrival, self.returned.get(id, self.end))
        if id in self.returned:
            if part == "pulse_back":
                return self._when("travel", self.returned[id], -1)
            if part in ("back", "product"):
                return self._when("show", self.returned[id] + 0.3 * self.beat)
        return self._when("show", arrival) if part == "chip" else ""

    def _when(self, kind: str, start: float, other: float = 0.0) -> str:
        """The style of a part that does `kind` at `start`; its keyframes are written down once."""
        def at(beats: float) -> str: return f"{min(100 * (start + beats * self.beat) / self.end, 100):.3f}%"
        out, home = (0, -0.9) if other > 0 else (-0.9, 0)
        rest = (other - start) / self.beat
        rules = {
            "show": lambda: f"0%,{at(0)}{{opacity:0}}{at(.25)},100%{{opacity:1}}",
            "light": lambda: f"0%,{at(0)}{{opacity:.3}}{at(.25)},100%{{opacity:1}}",
            "between": lambda: f"0%,{at(0)}{{opacity:0}}{at(min(.25, rest))},{at(rest)}{{opacity:1}}"
                               f"{at(rest + .05)},100%{{opacity:0}}",
            "flash": lambda: f"0%,{at(0)}{{opacity:0}}{at(.25)}{{opacity:.45}}{at(1)},100%{{opacity:0}}",
            "travel": lambda: f"0%,{at(0)}{{opacity:0;stroke-dashoffset:{out}}}{at(.02)},{at(.58)}{{opacity:.85}}"
                              f"{at(.6)},100%{{opacity:0;stroke-dashoffset:{home}}}",
        }
        name = f"{kind}-{self.key}-{start:.3f}-{other:.3f}".replace(".", "_")
        self.keyframes.setdefault(name, f"@keyframes {name}{{{rules[kind]()}}}")
        return f'style="animation-name:{name}"'
