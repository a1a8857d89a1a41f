"""A graph as Mermaid text, which code hosts draw inside a README."""

from __future__ import annotations

from typing import Any

from micrograd.drawing.dot import edge_text, rows_of, sign_of, visible
from micrograd.drawing.picture import Options, prepared
from micrograd.drawing.styles import THEMES


def to_mermaid(root: Any, **options: Any) -> str:
    """The picture as a Mermaid flowchart, with the options of `draw`; needs no package.

    >>> from micrograd import Value
    >>> y = Value(2.0, label="x") * 3; y.backward()
    >>> print(to_mermaid(y).partition("classDef")[0].rstrip())
    flowchart LR
      n0["x<br>data 2.0<br>grad 3.0"]:::variable
      n1["3.0"]:::constant
      n2["data 6.0<br>grad 1.0"]:::inner
      o2(("×"))
      o2 --> n2
      n0 --> o2
      n1 --> o2
    """
    chosen = Options.of(options)
    scene, lit, _ = prepared(root, chosen)
    lines = [f"flowchart {chosen.rankdir}"]
    ends = {}
    for node in scene.nodes:
        role = "lit" if node.id in lit else "parameter" if node.parameter else node.kind
        lines.append(f'{node.id}["{_text(chr(10).join(rows_of(node, chosen)))}"]:::{role}')
        ends[node.id] = node.id
        if node.symbol and chosen.operations == "nodes":
            ends[node.id] = f"o{node.id[1:]}"
            lines += [f'{ends[node.id]}(("{_text(sign_of(node, chosen))}"))', f"{ends[node.id]} --> {node.id}"]
    for edge in scene.edges:
        text = edge_text(edge, chosen)
        lines.append(f"{edge.source} -->" + f'|"{_text(text)}"|' * bool(text) + f" {ends[edge.target]}")
        if chosen.passes == "both" and edge.product_text:
            lines.append(f'{ends[edge.target]} -.->|"{_text(edge.product_text)}"| {edge.source}')
    for role in ("variable", "parameter", "constant", "inner", "module", "lit"):
        fill, line, color = THEMES[chosen.theme][role]
        lines.append(f"classDef {role} fill:{fill},stroke:{line},color:{color}")
    return "\n  ".join(lines) + "\n"


def _text(text: str) -> str:
    """A text inside quotes, with everything that Mermaid or Markdown would read as a sign written as its number."""
    return "".join(f"#{ord(c)};" if c in "#\"&<>`*_~+\\|{}[]" else c for c in visible(text)).replace("\n", "<br>")
