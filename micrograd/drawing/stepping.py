"""A page to step through both passes: one file for the browser, that needs no network and no server.

The page holds the graph in its final state and all steps as text; its script only takes away what is still to come.
So it can be read without script, by a screen reader, and on paper.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from micrograd.drawing.scene import Node, size_of
from micrograd.drawing.stage import FONT, SIGNS, chip_texts, escaped, shown, stage, stylesheet
from micrograd.drawing.story import Story, short, story
from micrograd.drawing.styles import THEMES

_ROOM = Path(__file__).parent


def stepper(root: Any, file: Any = None, *, frames: Iterable[Any] | None = None, title: str = "", theme: str = "auto",
            numbers: Any = "", max_nodes: int = 200) -> str:
    """A page that steps through the forward and the backward pass from `root`, written to `file` and returned.

    Args:
        file: where to write it; left out, the text is returned only.
        frames: training steps to show in place of `root`: nodes (each is read when the iterable yields it, so a
            generator that trains will do) or stories kept earlier with `story(loss)`. All have the same graph.
        title: stands above the page.
        theme: "auto" (light or dark, as the reader prefers), "light", "dark" or "print".
        numbers: a format such as ".2f".
        max_nodes: refuse larger graphs.

    The gradients are those of one pass from `root`, whether `backward()` was called or not; nothing is changed.
    In the page, ids are those of the scene: `n3` a node, `e3-1` the second input of `n3`.

    >>> from micrograd import Value
    >>> w, x = Value(-3.0, label="w"), Value(2.0, label="x")
    >>> page = stepper(w * x)
    >>> page[:15], "dn2/dw = dn2/dn2 · ∂n2/∂w = 1.0 · 2.0 = 2.0" in page
    ('<!doctype html>', True)
    """
    told = [one if isinstance(one, Story) else story(one, max_nodes, numbers)
            for one in ([root] if frames is None else frames)]
    if not told:
        raise ValueError("frames is empty; give one node or story for each training step, or leave frames out")
    for i, other in enumerate(told):
        if _form(other) != _form(told[0]):
            raise ValueError(f"frame {i} has another graph than frame 0 ({len(other.scene.nodes)} nodes, there "
                             f"{len(told[0].scene.nodes)}); a page shows one graph with numbers that change")
    drawn = stage(told[0], others=told[1:])
    script = (_ROOM / "stepper.js").read_text(encoding="utf-8")
    name = told[0].scene.root.name
    parts = {
        "title": escaped(title or f"Backpropagation through {name}"),
        "hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "stage": stylesheet(theme), "colours": _colours(theme), "font": FONT,
        "least": f"{0.75 * drawn.width:.0f}", "most": f"{1.6 * drawn.width:.0f}",
        "aspect": f"{drawn.width / drawn.height:.3f}",
        "size": f"0 0 {drawn.width:.2f} {drawn.height:.2f}", "body": drawn.body,
        "text": _text_version(told[0]), "data": _json(told), "script": script,
    }
    template = (_ROOM / "stepper.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)
    if file is not None:
        Path(file).write_text(page, encoding="utf-8")
    return page


def _form(told: Story) -> list:
    return [(node.operation, node.kind, node.inputs) for node in told.scene.nodes] + [list(told.sums)]


def _colours(theme: str) -> str:
    """The colours of the page as CSS variables, the same as those of the graph."""
    def variables(theme: str) -> str:
        of = THEMES[theme]
        named = {"paper": of["paper"][0], "ink": of["paper"][2], "soft": of["cluster"][2], "line": of["cluster"][1],
                 "forward": of["variable"][1], "backward": of["back"][2]}
        return ":root{" + ";".join(f"--{name}:{colour}" for name, colour in named.items()) + "}"
    if theme == "auto":
        return (f":root{{color-scheme:light dark}}{variables('light')}"
                f"@media(prefers-color-scheme:dark){{{variables('dark')}}}")
    return f":root{{color-scheme:{'dark' if theme == 'dark' else 'light'}}}{variables(theme)}"


def _text_version(told: Story) -> str:
    lines = [f"<li>{escaped(step.sentence)}<br>{'<br>'.join(map(escaped, step.formulas))}</li>" for step in told.steps]
    return f"<p>{escaped(_start(told))}</p><ol>{''.join(lines)}</ol>"


def _start(told: Story) -> str:
    """What is known before the first step."""
    given = [f"{node.label} = {short(node.data_text)}" for node in told.scene.nodes if not node.inputs and node.label]
    most = ", ".join(given[:12]) + ", …" * (len(given) > 12)
    return f"Before the first step, only the inputs are known{': ' * bool(most)}{most}."


def _json(told: list[Story]) -> str:
    """The story as data for the script; no character of it can end the element that holds it."""
    first = told[0]
    data = {
        "start": _start(first),
        "nodes": [{"id": node.id, "name": node.name, "kind": node.kind, "inputs": len(node.inputs), "what": _what(node)}
                  for node in first.scene.nodes],
        "edges": [{"id": edge.id, "source": edge.source} for edge in first.scene.edges],
        "steps": [{"phase": step.phase, "node": step.node, "edges": step.edges} for step in first.steps],
        "frames": [{
            "data": [node.data_text for node in one.scene.nodes], "grad": [node.grad_text for node in one.scene.nodes],
            "shown": [shown(node.data_text) for node in one.scene.nodes],
            "numbers": [[_number(node.data), _number(node.grad)] for node in one.scene.nodes],
            "chips": [chip_texts(edge) for edge in one.scene.edges], "sums": one.sums,
            "say": [{"sentence": step.sentence, "formulas": step.formulas} for step in one.steps],
        } for one in told],
    }
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _what(node: Node) -> str:
    if node.inputs:
        return f"made by {SIGNS.get(node.symbol, node.symbol)}"
    return "a parameter" if node.parameter else "a constant" if node.kind == "constant" else "an input"


def _number(x: Any) -> float | None:
    """A number for the line over training: that of an array is its size; JSON knows no infinity."""
    x = None if x is None else size_of(x) if getattr(x, "ndim", 0) else float(x)
    return x if x is not None and math.isfinite(x) else None
