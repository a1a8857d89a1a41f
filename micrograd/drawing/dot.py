"""A scene as DOT, the language of Graphviz: boxes for numbers, circles for operations, an arrow for each use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from os.path import commonprefix
from typing import Any

from micrograd.drawing.scene import Edge, Node, Scene, finite
from micrograd.drawing.styles import LEVELS, THEMES, Scale

MARKS = ("dead", "saturated")
_PLAIN = re.compile(r"[\w.+—-]+( [\w.+—-]+)*", re.ASCII).fullmatch
_SIGNS = {"*": "×", "/": "÷", "-": "−"}


def visible(text: str, most: int = 80) -> str:
    """A text that every XML parser takes: control characters as pictures of themselves, the rest verbatim."""
    shown = text if len(text) <= most else text[:most - 1] + "…"
    return shown if shown.isprintable() else "".join(
        c if c == "\n" or c.isprintable() or unicodedata.category(c) in ("Zs", "Cf") else
        chr(0x2400 + ord(c)) if c < " " else "\ufffd" for c in shown)


def quoted(text: str, special: str = "") -> str:
    """A DOT string; `special` are characters that records would read as structure."""
    for c in "\\" + special:
        text = text.replace(c, "\\" + c)
    return '"' + text.replace("&", "&amp;").replace('"', '\\"').replace("\n", "\\n") + '"'


def field(text: str) -> str:
    """A text inside a record label, without the quotes; wide letters get room, which Graphviz forgets."""
    if len(text) <= 80 and _PLAIN(text):
        return text                                     # nearly all, and ten times as fast
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    room = "\u00a0" * ((wide + 3) // 4)
    inner = text.strip(" ")                             # records drop spaces; these they keep
    text = "\u00a0" * (len(text) - len(text.lstrip(" "))) + inner.replace("  ", " \u00a0")
    return room + quoted(visible(text), "{}|<>")[1:-1] + room


def mark_of(node: Node, options: Any) -> str:
    """What is wrong with an operation, such as `dead`; '' if nothing is."""
    return next((m for m in node.marks if m.endswith(MARKS)), "") if options.marks else ""


def sign_of(node: Node, options: Any) -> str:
    """The sign of the operation, and in a second line what is wrong with it."""
    mark = mark_of(node, options)
    return _SIGNS.get(node.symbol, node.symbol) + f"\n{mark}" * bool(mark)


def rows_of(node: Node, options: Any) -> list[str]:
    """What a node says, line by line: its label, data, grad."""
    name = node.label or node.id * (options.formulas and node.kind != "constant")
    if node.size > 1 and node.kind != "module":
        name = f"{name} × {node.size}".strip()
    names = [name] * bool(name)
    if options.operations == "inside" and node.symbol:
        names.insert(0, sign_of(node, options))
    words = ("data ", "grad ") if node.kind in ("variable", "inner") else ("", "")
    numbers = [word + text.replace("  ", "\n") for word, text in zip(words, (node.data_text, node.grad_text), strict=True)
               if text]
    return [*names, *numbers, *(mark for mark in node.marks if not mark.endswith(MARKS))]


def record(node: Node, options: Any) -> str:
    """The rows as fields of a record, side by side or one below the other."""
    text = " | ".join(map(field, rows_of(node, options)))
    return f"{{{text}}}" if (options.layout == "row") == (options.rankdir in ("LR", "RL")) else text


def _roles(scene: Scene, scale: Scale, options: Any, lit: set[str]) -> dict[str, str]:
    """The role of every node, which decides its colours."""
    roles = {}
    for node in scene.nodes:
        strength = scale.role(node.magnitude) if options.color == "gradient" else ""
        broken = options.marks and not all(map(finite, (node.data, node.grad)))
        roles[node.id] = ("lit" if node.id in lit else "dim" if options.path else "bad" if broken else strength or (
            "parameter" if node.parameter else node.kind))
    return roles


def dot_lines(scene: Scene, lit: set[str], caption: str, options: Any) -> Iterator[str]:
    """The lines between `digraph {` and `}`; `lit` are ids of nodes and edges to light up."""
    theme, font, start = THEMES[options.theme], quoted(options.font), options.prefix
    scale = Scale(node.magnitude for node in scene.nodes)
    roles = _roles(scene, scale, options, lit)
    left = quoted(visible(caption + "\n" * bool(caption), 10000)).replace("\\n", "\\l")

    colours = {role: f'fillcolor="{fill}" color="{line}" fontcolor="{text}"' for role, (fill, line, text) in theme.items()}
    yield (f'graph [rankdir={options.rankdir} bgcolor="{theme["paper"][0]}" fontcolor="{theme["paper"][2]}" '
           f"fontname={font} fontsize=12 nodesep=0.18 ranksep=0.28 label={left} labeljust=l]")
    yield f'node [fontname={font} fontsize=11 margin="0.09,0.03" width=0.3 height=0.26 style="filled,rounded" shape=record]'
    port = " tailport=e" if options.layout == "row" and options.rankdir == "LR" else ""
    yield (f'edge [fontname={font} fontsize=10 arrowsize=0.6 color="{theme["edge"][1]}" '
           f'fontcolor="{theme["edge"][2]}"{port}]')
    depth: tuple[str, ...] = ()
    order: dict[tuple[str, ...], int] = {}              # of modules, by their first node
    for node in scene.nodes:
        for i in range(len(node.group)):
            order.setdefault(node.group[:i + 1], len(order))
    for node in sorted(scene.nodes, key=lambda node: [order[node.group[:i + 1]] for i in range(len(node.group))]):
        shared = len(depth if node.group == depth else commonprefix([depth, node.group]))
        yield from ["}"] * (len(depth) - shared)
        for i in range(shared, len(node.group)):
            number = order[node.group[:i + 1]]
            yield (f'subgraph cluster{number} {{ graph [id="{start}c{number}" class="group" style="filled,rounded" '
                   f"label={quoted(visible(node.group[i]))} {colours['cluster']}]")
        depth = node.group
        role = roles[node.id]
        thick = " penwidth=2" if node is scene.root or role in ("lit", "bad") else ""
        yield (f'{node.id} [id="{start}{node.id}" class="value {node.kind} {role}" '
               f'label="{record(node, options)}" {colours[role]}{thick}]')
        if node.symbol and options.operations == "nodes":
            text = sign_of(node, options)
            role = "lit" if node.id in lit else "dim" if options.path else mark_of(node, options).split(" ")[-1] or "op"
            yield (f'{node.id}op [id="{start}{node.id}-op" class="op {role}" shape=ellipse width=0.3 height=0.3 '
                   f'margin="0.03,0.01" label={quoted(visible(text))} {colours[role]}]')
    yield from ["}"] * len(depth)
    if options.color == "gradient" and any(role[0] == "g" for role in roles.values()):
        stripes = ":".join(theme[f"g{level}"][0] for level in range(LEVELS))
        yield (f'subgraph clusterlegend {{ graph [class="group" style="filled,rounded" {colours["cluster"]} labeljust=c '
               f'label="|grad| {scale.low:.2g} … {scale.high:.2g}, log"] legend [class="legend" shape=box style=striped '
               f'label="" width=1.9 fillcolor="{stripes}" color="#808080"] }}')
    yield from _edges(scene, options, lit, theme)


def _edges(scene: Scene, options: Any, lit: set[str], theme: Any) -> Iterator[str]:
    """An arrow for each use, one from each operation to its result, and dashed ones back."""
    circles = {node.id for node in scene.nodes if node.symbol and options.operations == "nodes"}
    start = options.prefix

    def arrow(source: str, target: str, id: str, kind: str, role: str, text: str = "", more: str = "") -> str:
        colours = f' color="{theme[role][1]}" fontcolor="{theme[role][2]}"' if role != "edge" else ""
        label = f" label={quoted(visible(text))}" if text else ""
        return f'{source} -> {target} [id="{start}{id}" class="{kind} {role}"{label}{colours}{more}]'

    for node in scene.nodes:
        if node.id in circles:
            role = "lit" if node.id in lit else "dim" if options.path else "edge"
            yield arrow(f"{node.id}op", node.id, f"r{node.id[1:]}", "result", role, "", _LIT * (role == "lit"))
            if options.passes == "both" and node.grad is not None:
                yield arrow(f"{node.id}op", node.id, f"s{node.id[1:]}", "backward", "back", more=_BACK)
    for edge in scene.edges:
        role = "lit" if edge.id in lit else "dim" if options.path else "edge"
        target = f"{edge.target}op" if edge.target in circles else edge.target
        text = edge_text(edge, options) if role != "dim" else ""
        yield arrow(edge.source, target, edge.id, "use", role, text, _LIT * (role == "lit"))
        if options.passes == "both" and (edge.local is not None or edge.product is not None):
            yield arrow(edge.source, target, f"b{edge.id[1:]}", "backward", "back", edge.product_text, _BACK)


def times(factors: list[str]) -> str:
    """A product as it is written by hand: 2.0 · (-1.0)."""
    return " · ".join(f"({text})" if i and text.startswith("-") else text for i, text in enumerate(factors))


def edge_text(edge: Edge, options: Any) -> str:
    """What stands on an arrow: the local derivative, or the chain rule spelled out."""
    count = f"× {edge.size}" if edge.size > 1 else ""
    if count or options.edges is None and not options.path:
        return count
    text = edge.formula or edge.local_text
    if options.edges == "upstream":
        text = edge.upstream_text
    elif options.edges == "product" and edge.product_text:
        chain = f"{times([edge.local_text, edge.upstream_text])} = " if edge.local_text else ""
        text = f"{edge.formula}\n" * bool(edge.formula) + chain + edge.product_text
    return text.replace("  ", "\n")


_LIT = " penwidth=2"
_BACK = " dir=back style=dashed"
