"""The stage of a story: every number a card, every use of it a wire with a chip for the local derivative.

Graphviz decides where things go; the drawing is done here, in its final state, so that a viewer without
animation and without script sees all of it. Ids are those of the scene (`n3`, `e3-1`), classes say what a part is:
`node` holds `halo halo_back card badge label data grad`, `edge` holds `wire back pulse pulse_back chip slope
product`; halos and pulses are seen only while something happens.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from micrograd.drawing.dot import visible
from micrograd.drawing.render import layout, render
from micrograd.drawing.scene import Edge, Node
from micrograd.drawing.story import Story, factor, short
from micrograd.drawing.styles import THEMES

FONT = "'Helvetica Neue',Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif"
ROW, SIZE, EDGE = 17, 12.5, 12          # the height of a line of text, its size, and the room around a card's text
PAD = 12                                # around the whole
SIGNS = {"*": "×", "/": "÷", "-": "−", "**": "^", "neg": "−"}


@dataclass
class Stage:
    """A drawing that knows its size; `body` is what stands between `<svg>` and `</svg>`."""

    width: float
    height: float
    body: str


def stylesheet(theme: str) -> str:
    """The colours of a stage as CSS; "auto" turns dark with the reader's screen."""
    if theme not in THEMES:
        raise ValueError(f"theme is one of {', '.join(THEMES)}; got {theme!r}")
    rules = _rules("light" if theme == "auto" else theme)
    return rules + (f"\n@media(prefers-color-scheme:dark){{{_rules('dark')}}}" if theme == "auto" else "")


def _rules(theme: str) -> str:
    colours = {f"{role}{i}": colour for role, three in THEMES[theme].items() for i, colour in enumerate(three)}
    return Template(Path(__file__).with_name("stage.css").read_text(encoding="utf-8")).substitute(colours, font=FONT)


def stage(story: Story, mark: Callable[..., str] = lambda part, id, at=0: "", prefix: str = "",
          gathering: bool = False, others: Sequence[Story] = ()) -> Stage:
    """The graph of a story, drawn.

    Args:
        mark: gives attributes for a part of the node or edge `id`; the animation tells its times so.
        prefix: goes before every id, for several drawings on one page.
        gathering: draw the texts of a gradient as it grows, too, not the last one alone.
        others: stories with the same graph, whose numbers need room, too.
    """
    cards = [_Card(node, story.growth.get(node.id, []), node is story.scene.root) for node in story.scene.nodes]
    chips = {edge.id: chip_texts(edge) for edge in story.scene.edges}
    room = {id: max(map(text_width, texts)) for id, texts in chips.items()}
    for other in others:
        for card, node in zip(cards, other.scene.nodes, strict=True):
            card.width = max(card.width, _Card(node, other.growth.get(node.id, []), False).width)
        for edge in other.scene.edges:
            room[edge.id] = max(room[edge.id], *map(text_width, chip_texts(edge)))
    places = layout(render(_dot(cards, story.scene.edges, room)))
    parts = [_wire(edge, chips[edge.id], places, mark, prefix) for edge in story.scene.edges]
    parts += [card.drawn(places["nodes"][card.node.id], mark, prefix, gathering) for card in cards]
    width, height = places["size"]
    return Stage(width, height, f'<g transform="translate({PAD} {_n(height - PAD)})">' + "\n".join(parts) + "</g>")


def shown(text: str) -> str:
    """What a card shows: a number as it is, of an array its shape and its mean."""
    return " ".join([short(text), *text.split("  ")[1:2]])


def chip_texts(edge: Edge) -> tuple[str, str]:
    """What the chip on a wire says: the local derivative after the forward pass, then the product of the chain rule."""
    if not edge.product_text:
        return ("× " + short(edge.local_text)) * bool(edge.local_text), ""
    if not edge.local_text or edge.local_text != short(edge.local_text):
        return "", short(edge.product_text)
    product = f"{short(edge.upstream_text)} · {factor(edge.local_text)} = {edge.product_text}"
    return f"× {factor(edge.local_text)}", product


# --------------------------------------------------------------------------------------- layout
def _dot(cards: list[_Card], edges: list[Edge], room: dict[str, float]) -> str:
    """Boxes of the right size for Graphviz; a chip is a box on the way, so that nothing covers it."""
    lines = [f"digraph{{graph[rankdir=LR nodesep=0.2 ranksep=0.42 ordering=in pad={PAD / 72}]"
             'node[shape=box fixedsize=true label=""]edge[dir=none]']
    lines += [f'"{c.node.id}"[id="{c.node.id}" width={c.full / 72:.3f} height={c.height / 72:.3f}]' for c in cards]
    for edge in edges:
        if not room[edge.id]:
            lines.append(f'"{edge.source}":e->"{edge.target}":w[id="{edge.id}a"]')
            continue
        lines.append(f'"{edge.id}"[id="{edge.id}" width={(room[edge.id] * 0.92 + 14) / 72:.3f} height=0.28]')
        lines.append(f'"{edge.source}":e->"{edge.id}":w[id="{edge.id}a"]"{edge.id}":e->"{edge.target}":w[id="{edge.id}b"]')
    return "\n".join([*lines, "}"])


def text_width(text: str, size: float = SIZE) -> float:
    """About how wide a text is, in the widest of the fonts."""
    return size * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.34 if c in " .,()·il|" else 0.62
                      for c in text)


# -------------------------------------------------------------------------------------- drawing
class _Card:
    """A number with its name, and the operation that made it as a badge on its left side."""

    def __init__(self, node: Node, growth: list[str], is_root: bool) -> None:
        self.node, self.is_root = node, is_root
        self.title = visible(node.label, 40) or ("" if node.kind == "constant" else node.id)
        self.symbol = visible(SIGNS.get(node.symbol, node.symbol), 24)
        self.badge = max(24.0, text_width(self.symbol) + 14) if node.inputs else 0.0
        self.rows = [("data", [shown(node.data_text)]), ("grad", growth)][:1 + bool(growth)]
        widest = max(text_width(text) for _, texts in self.rows for text in texts) + 34 * (self.title != "")
        self.width = max(text_width(self.title, 13.5), widest) + 2 * EDGE + self.badge * 0.3
        self.height = ROW * (len(self.rows) + (self.title != "")) + EDGE

    @property
    def full(self) -> float:
        """The width with the badge, half of which stands out."""
        return self.width + self.badge * 0.7

    def drawn(self, place: tuple[float, float, float, float], mark: Callable, prefix: str, gathering: bool) -> str:
        node, (x, y, full, height) = self.node, place
        left, top = x + full / 2 - self.width, y - height / 2
        kind = "parameter" if node.parameter else node.kind
        said = f"{node.name}: data {node.data_text}" + (f", gradient {node.grad_text}" if node.grad_text else "")
        parts = [f'<g id="{prefix}{node.id}" class="node {kind}{" result" * self.is_root}" role="img" '
                 f'aria-label="{escaped(said)}" {mark("node", node.id)}>',
                 *(f'<rect class="{name}" x="{_n(left)}" y="{_n(top)}" width="{_n(self.width)}" height="{_n(height)}" '
                   f'rx="9" {mark(name, node.id)}/>' for name in ("halo", "halo_back", "card"))]
        if self.badge:
            parts.append(f'<rect class="badge" x="{_n(x - full / 2)}" y="{_n(y - 12)}" width="{_n(self.badge)}" '
                         'height="24" rx="12"/>' + _text("symbol", x - full / 2 + self.badge / 2, y + 4.5, self.symbol))
            left += self.badge * 0.3
        at = top + EDGE / 2 - 4.5
        if self.title:
            at += ROW
            parts.append(_text("label" if node.label else "label unnamed", left + EDGE, at, self.title))
        for name, texts in self.rows:
            at += ROW
            if self.title:
                parts.append(_text(f"row row_{name}", left + EDGE, at, name,
                                   mark(f"row_{name}", node.id)))
            for i, text in enumerate(texts):
                last = i == len(texts) - 1
                if last or gathering:
                    parts.append(_text(name if last else f"{name} passing", left + EDGE + 32 * (self.title != ""), at,
                                       text, mark(name, node.id, i)))
        return "".join(parts) + "</g>"


def _wire(edge: Edge, chip: tuple[str, str], places: dict, mark: Callable, prefix: str) -> str:
    """A use: solid forward, dashed back, a chip in the middle, and a pulse that is seen while something travels."""
    path = places["edges"][edge.id + "a"] + places["edges"].get(edge.id + "b", "").replace("M", "L", 1)
    numbers = re.findall(r"-?[\d.]+", path)
    (x, y), (tx, ty) = map(float, numbers[:2]), map(float, numbers[-2:])
    shift = 3 if edge.product_text else 0
    parts = [f'<g id="{prefix}{edge.id}" class="edge" {mark("edge", edge.id)}>'
             f'<g transform="translate(0 {-shift})" {mark("wire", edge.id)}><path class="wire" d="{path}"/>'
             + _arrow("head", tx, ty, 1) + "</g>"]
    if edge.product_text:
        parts.append(f'<g class="back_wire" transform="translate(0 {shift})" {mark("back", edge.id)}>'
                     f'<path class="back" d="{path}"/>'
                     + _arrow("tip", x, y, -1) + "</g>")
    for name in ("pulse", "pulse_back")[:1 + bool(edge.product_text)]:
        parts.append(f'<path class="{name}" pathLength="1" d="{path}" {mark(name, edge.id)}/>')
    if any(chip):
        cx, cy, width, height = places["nodes"][edge.id]
        parts.append(f'<rect class="chip" x="{_n(cx - width / 2)}" y="{_n(cy - height / 2)}" width="{_n(width)}" '
                     f'height="{_n(height)}" rx="{_n(height / 2)}" {mark("chip", edge.id)}/>')
        if chip[0]:
            parts.append(_text("slope" + " passing" * bool(chip[1]), cx, cy + 4, chip[0], mark("slope", edge.id)))
        if chip[1]:
            parts.append(_text("product", cx, cy + 4, chip[1], mark("product", edge.id)))
    return "".join(parts) + "</g>"


def _arrow(name: str, x: float, y: float, way: int) -> str:
    return f'<path class="{name}" d="M{_n(x)},{_n(y)}l{-7 * way},-3.5v7z"/>'


def _text(name: str, x: float, y: float, text: str, more: str = "") -> str:
    return f'<text class="{name}" x="{_n(x)}" y="{_n(y)}" {more}>{escaped(text)}</text>'


def escaped(text: str) -> str:
    """Text as it may stand in SVG and HTML, whatever a label holds."""
    return html.escape(visible(text, 10000))


def _n(x: float) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".")
