"""Backpropagation told in order: values go forward one operation at a time, then gradients come back the same way.

`story(root)` reads a graph once and never changes it. The gradients it tells are those of one pass from `root`,
worked out here: they do not depend on whether `backward()` was called, how often, or what was zeroed since.
Animation and stepper page both play a story, so both say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from micrograd.drawing.scene import Edge, Node, Scene, _contributions, scene, writer
from micrograd.engine import Value
from micrograd.names import ATOM, SIGN, Prose
from micrograd.ops import TABLE


class Literal(Prose):
    """A formula as it was computed: `1·x` stays, where a derivative in letters would say `x`."""

    __slots__ = ()
    simplify: ClassVar[bool] = False


@dataclass
class Step:
    """One operation, forward or backward: where it happens, and what a teacher says meanwhile."""

    phase: str                          # "forward" or "backward"
    node: str                           # the operation's id
    edges: tuple[str, ...]              # what values or gradients pass along, in order
    sentence: str
    formulas: tuple[str, ...]           # the same with names, then with numbers put in


@dataclass
class Story:
    """A scene with the gradients of one pass, and its steps: every operation forward, then every one backward.

    `sums[e]` is what the source of edge `e` has gathered before and after the gradient came along `e`; `growth[n]` are
    the texts of the gradient of node `n` as it grows: "4.0", "4.0 + 6.0", "10.0".
    """

    scene: Scene
    steps: list[Step] = field(default_factory=list)
    sums: dict[str, tuple[str, str]] = field(default_factory=dict)
    growth: dict[str, list[str]] = field(default_factory=dict)


def story(root: Any, max_nodes: int = 300, numbers: Any = "") -> Story:
    """The story of one forward and one backward pass through the graph of `root`.

    >>> x = Value(3.0, label="x")
    >>> y = x * x; y.label = "y"
    >>> for step in story(y).steps: print(step.phase, *step.formulas, sep=" | ")
    forward | y = x·x = 3.0·3.0 = 9.0
    backward | dy/dx = dy/dy · ∂y/∂x = 1.0 · 3.0 = 3.0 | dy/dx += dy/dy · ∂y/∂x = 1.0 · 3.0 = 3.0, so 3.0 + 3.0 = 6.0
    >>> x.grad                          # nothing was touched
    0.0
    """
    told = Story(scene(root, max_nodes, numbers, formulas=True))
    nodes = {node.id: node for node in told.scene.nodes}
    into: dict[str, list[Edge]] = {node.id: [] for node in told.scene.nodes}
    for edge in told.scene.edges:
        into[edge.target].append(edge)
    operations = [pair for pair in zip(told.scene.nodes, told.scene.values, strict=True) if pair[0].inputs]
    if not operations:
        raise ValueError(f"there is nothing to step through: {root!r:.80} was not computed from anything that requires "
                         "a gradient, or backward() freed its graph (keep it with retain_graph=True)")
    for node, value in operations:
        told.steps.append(_forward(node, value, into[node.id], nodes))
    _pass_back(told, operations, into, nodes, writer(numbers))
    return told


def _pass_back(told: Story, operations: list, into: dict[str, list[Edge]], nodes: dict[str, Node], show: Any) -> None:
    """The chain rule once more, on the records; the numbers of other passes are forgotten."""
    for node in told.scene.nodes:
        node.grad = None
    for edge in told.scene.edges:
        edge.upstream = edge.product = None
        edge.upstream_text = edge.product_text = ""
    root, last = told.scene.root, told.scene.values[-1]
    root.grad = (last.data != last.data) * 0.0 + 1.0    # ones in the form of the data, inf and nan included
    told.growth[root.id] = [short(show(root.grad))]
    for node, value in reversed(operations):
        node.grad_text = show(node.grad) if node.grad is not None else ""
        if node.grad is not None:
            arrived = dict(_contributions(value, node.grad, [nodes[i].data for i in node.inputs]))
            arrived = arrived or _by_hand(value, node.grad)
            for edge in into[node.id]:
                _arrive(told, edge, nodes[edge.source], node, arrived, show)
        told.steps.append(_backward(told, node, into[node.id], nodes))
    for node in told.scene.nodes:
        node.grad_text = show(node.grad) if node.grad is not None else ""


def _arrive(told: Story, edge: Edge, source: Node, node: Node, arrived: dict[int, Any], show: Any) -> None:
    """A gradient comes along an edge and is added to what came before."""
    if edge.position not in arrived:
        return
    before = "" if source.grad is None else show(source.grad)
    edge.upstream, edge.upstream_text = node.grad, node.grad_text
    edge.product = arrived[edge.position]
    edge.product_text = show(edge.product)
    source.grad = edge.product if source.grad is None else source.grad + edge.product
    after = show(source.grad)
    told.sums[edge.id] = before, after
    sum_text = [f"{short(before)} + {factor(short(edge.product_text))}"] if before else []
    told.growth.setdefault(source.id, []).extend([*sum_text, short(after)])


def _by_hand(value: Value, gradient: Any) -> dict[int, Any]:
    """What an operation with a hand-written `_backward` gives its inputs: let it run, look, and put all back."""
    inputs = value.operands()
    nodes = list(dict.fromkeys((value, *inputs)))
    before = [node.grad for node in nodes]
    try:
        for node in nodes:
            node.grad = gradient if node is value else node.data * 0.0
        value.flow.pull(value)
        return {inputs.index(node): node.grad for node in nodes[1:] if node.requires_grad}
    finally:
        for node, grad in zip(nodes, before, strict=True):
            node.grad = grad


# ---------------------------------------------------------------------------------- in words
def _forward(node: Node, value: Value, edges: list[Edge], nodes: dict[str, Node]) -> Step:
    """`u = w·x = 3.0·2.0 = 6.0`, and what each input would change."""
    inputs = [nodes[i] for i in node.inputs]
    if node.operation in TABLE:
        letters = [Literal.of(x.data) if x.kind == "constant" and not x.label and not _many(x.data_text)
                   else Literal(Prose.simple(x.name), known=x.data) for x in inputs]
        texts = [_text(value, letters)]
        if node.operation != "where" and not any(_many(x.data_text) for x in inputs):
            keep = node.operation == "pow"              # x², not x^2.0
            texts.append(_text(value, [piece if keep and x.kind == "constant" else _figure(x.data_text)
                                       for x, piece in zip(inputs, letters, strict=True)]))
    else:
        names = [x.name for x in inputs]
        infix = len(names) == 2 and not node.symbol.replace("_", "").isalnum()
        texts = [f" {node.symbol} ".join(names) if infix else f"{node.symbol}({', '.join(names)})"]
    texts = list(dict.fromkeys(x for x in [node.name, *texts, short(node.data_text)] if x))
    slopes = dict.fromkeys(short(edge.formula or edge.local_text) for edge in edges if edge.local is not None)
    sentence = f"{node.name} is computed: {' = '.join(texts[1:])}."
    if slopes:
        sentence += f" Its local derivative{'s are' if len(slopes) > 1 else ' is'} {_listed(slopes)}."
    return Step("forward", node.id, tuple(edge.id for edge in edges), sentence, (" = ".join(texts),))


def _backward(told: Story, node: Node, edges: list[Edge], nodes: dict[str, Node]) -> Step:
    """What the gradient at a node gives to each of its inputs, and the running sums where paths meet."""
    root, name = Prose.simple(told.scene.root.name), Prose.simple(node.name)
    if node.grad is None:
        return Step("backward", node.id, (), f"No gradient arrives at {node.name}, so it passes none on.", ())
    arrived = short(node.grad_text)
    start = f"{node.name} has received all of its gradient"
    if node is told.scene.root:
        start = "The way back starts at the end"
    passed = [edge for edge in edges if edge.id in told.sums]
    formulas, received = [], []
    for edge in passed:
        source, (before, after) = nodes[edge.source].name, told.sums[edge.id]
        product, many = short(edge.product_text), _many(after)
        figures, receives = f" = {product}", product
        if product.startswith("("):
            figures, receives = f", shape {product}", f"an array of shape {product}"
        if edge.local_text and not many and not _many(node.grad_text + edge.local_text):
            receives = f"{arrived} · {factor(edge.local_text)} = {product}"
            figures = f" = {receives}"
        total = f", so {before} + {factor(product)} = {after}" if before and not many else ""
        of = Prose.simple(source)
        formulas.append(f"d{root}/d{of} {'+=' if before else '='} d{root}/d{name} · ∂{name}/∂{of}{figures}{total}")
        adds = f", which adds to {short(before)} from another use" if before else ""
        received.append(f"{source} receives {receives}{adds}{f': {after}' if total else ''}")
    how = f"By the rule of {node.symbol}"
    if any(edge.local_text for edge in passed):
        how = f"Multiplied by {'its' if len(passed) == 1 else 'each'} local derivative"
    return Step("backward", node.id, tuple(edge.id for edge in passed),
                f"{start}: d{root}/d{name} = {arrived}. {how}: {'; '.join(received)}.", tuple(formulas))


def short(text: str) -> str:
    """A number as it is; of an array, which is told by its shape, mean and norm, the shape alone."""
    return re.sub(r"(\([\d, ]*\)) \w+  mean .*", r"\1", text)


def _many(text: str) -> bool:
    return text.startswith(("(", "["))


def factor(text: str) -> str:
    """A number as it stands after a sign of operation: negative ones in parentheses."""
    return f"({text})" if text.startswith("-") else text


def _figure(text: str) -> Literal:
    return Literal(text, SIGN if text.startswith("-") else ATOM)


def _text(value: Value, pieces: list[Literal]) -> str:
    """An operation written down, in names or in figures."""
    return str(getattr(Literal.of(Literal("").apply(value.op, *pieces)), "text", ""))


def _listed(texts: Iterable[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last
