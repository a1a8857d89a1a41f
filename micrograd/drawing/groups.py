"""Large graphs become readable when what belongs together is drawn together: modules, and neurons that are alike.

`assign` finds the module of every node from the parameters it uses; `collapse` draws modules as boxes; `fold` draws
repeated parts once. The last two make a smaller scene out of a scene.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from os.path import commonprefix
from typing import Any

from micrograd.drawing.scene import Node, Scene, size_of
from micrograd.engine import Value

Path = tuple[str, ...]
DIGITS = "0123456789"


def parameters(part: Any, path: Path, name: str = "") -> Iterator[tuple[Value, Path, str]]:
    """Every parameter of a module, with the names of the modules around it and its own: ("MLP", "layer 0"), "w3"."""
    if isinstance(part, Value):
        yield part, path, name
    elif isinstance(part, (list, tuple, dict)):
        for key, item in part.items() if isinstance(part, dict) else enumerate(part):
            kind = type(item).__name__ if name.startswith("_") else name.removesuffix("s")
            yield from parameters(item, path, f"{name}{key}" if isinstance(item, Value) else f"{kind} {key}")
    elif hasattr(part, "parameters") and hasattr(part, "__dict__"):
        for key, item in vars(part).items():
            yield from parameters(item, (*path, name) if name else path, key)


def assign(scene: Scene, model: Any) -> None:
    """Tell every node its modules: those of its own parameters, or of the one module that all its inputs come from."""
    named = [*parameters(model, (), type(model).__name__)]
    known = {id(p): (path, name) for p, path, name in reversed(named)}      # who has two names goes by the first
    own: dict[str, bool] = {}                           # whether a node is made of parameters and plain numbers alone
    by_id = {node.id: node for node in scene.nodes}
    for node, value in zip(scene.nodes, scene.values, strict=True):
        if not isinstance(value, Value):
            continue                                    # a plain number goes with what uses it
        inputs = [by_id[i] for i in node.inputs]
        mine = [i.group for i in inputs if own.get(i.id)]
        own[node.id] = bool(mine) and all(own.get(i.id, True) for i in inputs)
        if id(value) in known:
            node.group, name = known[id(value)]
            node.label, node.parameter, own[node.id] = node.label or name, True, True
        elif mine:
            node.group = tuple(commonprefix(mine))
        elif len({i.group for i in inputs}) == 1:
            node.group = inputs[0].group
        for plain in inputs:
            if plain.id not in own:
                plain.group = node.group


def merged(scene: Scene, keys: list[Hashable], summary: Callable[[Hashable, list[Node]], Node]) -> Scene:
    """The scene with all nodes of one key as one node, and all edges between two nodes as one."""
    members: dict[Hashable, list[Node]] = {}
    for node, key in reversed([*zip(scene.nodes, keys, strict=True)]):      # by its last member: inputs stay first
        members.setdefault(key, []).insert(0, node)
    classes = [*reversed(members.items())]
    place = {node.id: f"n{i}" for i, (_, nodes) in enumerate(classes) for node in nodes}
    edges: dict[tuple[str, str], Any] = {}
    for edge in scene.edges:
        ends = place[edge.source], place[edge.target]
        if ends[0] != ends[1]:
            same = edges.get(ends)
            edges[ends] = replace(edge, source=ends[0], target=ends[1]) if same is None else replace(
                same, size=same.size + edge.size, local_text="", upstream_text="", product_text="", formula="")
    into: dict[str, list[Any]] = {}
    for edge in edges.values():
        into.setdefault(edge.target, []).append(edge)
    nodes = []
    for i, (key, group) in enumerate(classes):
        arrows = into.get(f"n{i}", [])
        for j, edge in enumerate(arrows):
            edge.id, edge.position = f"e{i}-{j}", j
        nodes.append(replace(group[0] if len(group) == 1 else summary(key, group), id=f"n{i}",
                             inputs=tuple(edge.source for edge in arrows)))
    return Scene(nodes, [e for i in range(len(nodes)) for e in into.get(f"n{i}", [])], scene.values,
                 {value: place[id] for value, id in scene.index.items()})


def collapse(scene: Scene, depth: int, show: Callable[[Any], str]) -> Scene:
    """Modules deeper than `depth` as boxes: 0 leaves the whole model, 1 its layers."""
    def box(path: Any, nodes: list[Node]) -> Node:
        held = [node for node in nodes if node.parameter]
        grads = [node.magnitude for node in held if node.magnitude is not None]
        count = sum(getattr(node.data, "size", 1) for node in held)
        strength = max(grads, default=None)
        return Node("", path[-1], "module", "", "", None, strength, f"{count} parameters",
                    "" if strength is None else f"max |grad| {show(strength)}", group=path[:-1], size=len(nodes))

    keys: list[Hashable] = [node.group[:depth + 1] if len(node.group) > depth else node.id for node in scene.nodes]
    return merged(scene, keys, box)


def fold(scene: Scene, show: Callable[[Any], str]) -> Scene:
    """Draw parts that are alike once: long sums as Σ, neurons side by side as one that says how many it stands for."""
    uses = Counter(edge.source for edge in scene.edges)
    by_id = {node.id: node for node in scene.nodes}
    sums: dict[str, str] = {node.id: node.id for node in scene.nodes}
    for edge in reversed(scene.edges):
        source, target = by_id[edge.source], by_id[edge.target]
        if source.operation == target.operation == "add" and uses[source.id] == 1 and source.group == target.group:
            sums[source.id] = sums[target.id]
    scene = merged(scene, [sums[node.id] for node in scene.nodes],
                   lambda key, nodes: replace(nodes[-1], symbol="Σ", size=1))
    by_id = {node.id: node for node in scene.nodes}
    in_a_row = set()                                    # modules whose parts feed each other: layers, not neurons
    for edge in scene.edges:
        a, b = by_id[edge.source].group, by_id[edge.target].group
        shared = len(commonprefix([a, b]))
        if shared < min(len(a), len(b)):
            in_a_row.add(a[:shared])
    alike = [tuple(part if node.group[:i] in in_a_row else part.rstrip(DIGITS) for i, part in enumerate(node.group))
             for node in scene.nodes]
    groups: dict[Path, set[Path]] = {}
    for node, star in zip(scene.nodes, alike, strict=True):
        groups.setdefault(star, set()).add(node.group)
    used_by = {edge.source: (by_id[edge.target].symbol, edge.position) for edge in scene.edges}
    keys: dict[str, Hashable] = {}
    numbers: dict[Hashable, int] = {}                   # a key holds the numbers of its inputs' keys, so it stays short
    for node, star in zip(scene.nodes, alike, strict=True):
        key: Hashable = (node.symbol, star, tuple(sorted({keys[i] for i in node.inputs})))  # type: ignore[type-var]
        if not node.inputs:
            key = ((star, node.label.rstrip(DIGITS)) if star else node.id if node.label else (used_by.get(node.id),))
        keys[node.id] = numbers.setdefault(key, len(numbers))
        if len(groups[star]) > 1:
            count = f" × {len(groups[star])}"
            node.group = tuple(b if a == b else a.strip() + count for a, b in zip(star, node.group, strict=True))

    def one_for_all(key: Hashable, nodes: list[Node]) -> Node:
        grads = [node.grad for node in nodes if node.grad is not None]
        marks = [mark for node in nodes for mark in node.marks]
        said = (f"{len(marks)} of {len(nodes)} {marks[0]}",) if marks else ()
        return replace(nodes[-1], marks=said, label=nodes[-1].label.rstrip(DIGITS), size=sum(node.size for node in nodes),
                       data_text=_range([node.data for node in nodes], show), grad=max(map(size_of, grads), default=None),
                       grad_text=_range(grads, show) or nodes[-1].grad_text)

    return merged(scene, [keys[node.id] for node in scene.nodes], one_for_all)


def _range(data: list[Any], show: Callable[[Any], str]) -> str:
    """From the least to the greatest, of numbers."""
    if not data or any(getattr(x, "ndim", 0) for x in data):
        return ""
    return " … ".join(dict.fromkeys((show(min(data)), show(max(data)))))
