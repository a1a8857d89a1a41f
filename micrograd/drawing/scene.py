"""A graph is a story in order: every number, what made it, and what each arrow does to a gradient.

`scene(root)` reads a graph once and never changes it. What comes back are plain records: nodes `n0, n1, ...`
in topological order (inputs first), and edges `e3-1` (into `n3`, its input 1), one for each use. Everything
that draws or tells (DOT, Mermaid, animation, stepper page) starts from here, so that all say the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from micrograd.engine import Value, topological_order, unset
from micrograd.names import Prose, formula
from micrograd.ops import TABLE, Ieee

UNSET = "—"                             # the gradient that was never computed; a computed 0 shows as 0.0
SATURATING = ("relu", "tanh", "sigmoid")
SATURATED = 0.05                        # below this slope of tanh or sigmoid hardly any gradient passes


@dataclass(slots=True)
class Node:
    """One number (or array) of the graph; `inputs` are ids, once per use."""

    id: str
    label: str
    kind: str                           # "variable", "constant", "inner"; of a folded scene also "module"
    symbol: str                         # of the operation that made it, "" on a leaf
    operation: str                      # its name in the table
    data: Any
    grad: Any                           # None while unset, and on constants
    data_text: str
    grad_text: str                      # "—" while unset, "" on constants
    inputs: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()         # "dead", "saturated", "nan", "inf", "freed"
    group: tuple[str, ...] = ()         # the modules around it, outermost first
    parameter: bool = False
    size: int = 1                       # how many nodes of the graph it stands for

    @property
    def name(self) -> str:
        """What formulas call it: its label, else its id; a constant by its number."""
        return self.label or (self.data_text if self.kind == "constant" else self.id)

    @property
    def magnitude(self) -> float | None:
        """The size of the gradient, for colours: |grad|, or the root mean square of an array."""
        return None if self.grad is None else size_of(self.grad)


@dataclass(slots=True)
class Edge:
    """One use of a number by an operation, and what the chain rule does along it.

    `product = local * upstream` is what the source receives through this edge. Numbers are None where no
    gradient passes (constants, operations by hand) or none was computed yet; texts are "" then.
    """

    id: str
    source: str
    target: str
    position: int
    local: Any = None
    upstream: Any = None
    product: Any = None
    local_text: str = ""
    upstream_text: str = ""
    product_text: str = ""
    formula: str = ""                   # "∂u/∂w = x = 2.0"
    size: int = 1                       # how many uses it stands for


@dataclass(slots=True)
class Scene:
    """Nodes in topological order, edges in the order of their targets; `values` are the graph's own nodes."""

    nodes: list[Node]
    edges: list[Edge]
    values: list[Any] = field(default_factory=list, repr=False)
    index: dict[int, str] = field(default_factory=dict, repr=False)     # id(value) -> id of the node that shows it

    @property
    def root(self) -> Node:
        return self.nodes[-1]

    def ids(self, values: Iterable[Any]) -> list[str]:
        """The ids of nodes of the graph; one that is not in it is an error."""
        for value in values:
            if id(value) not in self.index:
                raise ValueError(f"{value!r:.80} is not in the graph that is drawn; "
                                 "give nodes that the root depends on")
        return [self.index[id(value)] for value in values]


def scene(root: Any, max_nodes: int = 1000, numbers: str | Callable[[float], str] = "", derivatives: bool = True,
          formulas: bool = False) -> Scene:
    """Everything that a picture of `root` shows, as plain records; the graph is read and left as it is.

    Args:
        root: a node, or several in one picture (a function and its gradient's own graph, say).
        max_nodes: refuse larger graphs.
        numbers: a format such as ".2f", or a function of a float that gives text.
        derivatives, formulas: whether to work out what each edge does, in numbers and in letters.

    >>> x = Value(3.0, label="x")
    >>> y = x * x; y.backward()
    >>> [(n.id, n.symbol, n.data_text, n.grad_text) for n in scene(y).nodes]
    [('n0', '', '3.0', '6.0'), ('n1', '*', '9.0', '1.0')]
    >>> [(e.id, e.source, e.target, e.local_text, e.product_text) for e in scene(y).edges]
    [('e1-0', 'n0', 'n1', '3.0', '3.0'), ('e1-1', 'n0', 'n1', '3.0', '3.0')]
    """
    show = writer(numbers)
    values = _in_order(root, max_nodes)
    found = {id(value): f"n{i}" for i, value in enumerate(values) if isinstance(value, Value)}
    nodes: list[Node] = []
    edges: list[Edge] = []
    for i, value in enumerate(values):
        operands = value.operands() if isinstance(value, Value) else ()
        if not operands:
            nodes.append(_node(value, f"n{i}", (), show))
            continue
        plain = sum(not isinstance(x, Value) for x in operands)     # plain numbers stand right before their use
        inputs = []
        for x in operands:
            inputs.append(found[id(x)] if isinstance(x, Value) else f"n{i - plain}")
            plain -= not isinstance(x, Value)
        node = _node(value, f"n{i}", tuple(inputs), show)
        nodes.append(node)
        into = [Edge(f"e{i}-{j}", source, node.id, j) for j, source in enumerate(inputs)]
        edges += into
        if derivatives or node.operation in SATURATING:
            _derive(value, node, into, [nodes[int(source[1:])] for source in inputs], show, formulas)
    return Scene(nodes, edges, values, found)


def _in_order(root: Any, max_nodes: int) -> list[Any]:
    """The nodes below the roots, each after its inputs; a plain number right before the operation that uses it."""
    values: list[Any] = []
    seen: set[int] = set()
    for one in root if isinstance(root, (list, tuple)) else [root]:
        if not isinstance(one, Value):
            raise TypeError(f"a picture starts from a Value or a Tensor, got {type(one).__name__} {one!r:.60}; "
                            "call it on the result of a computation")
        operations, _ = topological_order(one)
        for node in [*operations, one]:
            if id(node) not in seen:
                operands = node.operands()
                values += [x for x in dict.fromkeys(operands) if isinstance(x, Value) and id(x) not in seen]
                seen.update(map(id, operands))
                values += [x for x in operands if not isinstance(x, Value)]
                values.append(node)
                seen.add(id(node))
    if len(values) > max_nodes:
        raise ValueError(
            f"the graph has {len(values)} nodes, more than max_nodes={max_nodes}; the time for the layout grows much "
            f"faster than the graph (1,000 nodes under a second, 5,000 over a minute). Draw a part of it, fold it with "
            f"model=... and depth=1, or raise the limit: max_nodes={len(values)}")
    return values


def _node(value: Any, id: str, inputs: tuple[str, ...], show: Callable[[Any], str]) -> Node:
    """The record of one node, or of a plain number."""
    if not isinstance(value, Value):
        return Node(id, "", "constant", "", "", value, None, show(value), "")
    kind = "constant" if not value.requires_grad else "variable" if value.is_leaf else "inner"
    grad = None if value.grad is unset or value.grad is None or kind == "constant" else _data(value.grad)
    return Node(id, value.label, kind, value.op.symbol, value.op.name, value.data, grad, show(value.data),
                "" if kind == "constant" else UNSET if grad is None else show(grad), inputs,
                () if inputs or kind != "inner" else ("freed",))


def _derive(value: Any, node: Node, into: list[Edge], sources: list[Node], show: Callable, formulas: bool) -> None:
    """Fill in what the chain rule does along the edges into a node, and mark what stops a gradient."""
    inputs = [source.data for source in sources]
    if node.operation in TABLE:                         # elementwise: the local derivative has the shape of the value
        for i, local in _contributions(value, 1.0 if _plain(node.data) else node.data * 0 + 1, inputs):
            into[i].local, into[i].local_text = local, show(local)
            if formulas:
                names = [Prose(x.name, known=x.data) if x.label or x.kind != "constant" else x.data for x in sources]
                letters = formula(value.op, i, *names, y=Prose(node.name, known=node.data))
                into[i].formula = f"∂{node.name}/∂{sources[i].name} = {letters}"
                if _plain(local) and any(c.isalpha() for c in letters):
                    into[i].formula += f" = {into[i].local_text}"
    if node.grad is not None:
        for i, product in _contributions(value, node.grad, inputs):
            into[i].upstream, into[i].upstream_text = node.grad, node.grad_text
            into[i].product, into[i].product_text = product, show(product)
    node.marks += _marks(node, into)


def _contributions(value: Any, g: Any, inputs: list[Any]) -> list[tuple[int, Any]]:
    """What each input receives when g arrives at the node; nothing is known of operations by hand."""
    try:
        return value.flow.contributions(g, inputs, value.data)
    except ZeroDivisionError:
        return [(i, float(x)) for i, x in value.flow.contributions(g, [*map(Ieee, inputs)], Ieee(value.data))]
    except RuntimeError:
        return []


def _marks(node: Node, into: list[Edge]) -> tuple[str, ...]:
    """Words for what a teacher would point at."""
    local = into[0].local
    if local is None or node.operation not in SATURATING:
        return ()
    dead = node.operation == "relu"
    stopped = local == 0 if dead else abs(local) < SATURATED
    return (("dead" if dead else "saturated"),) if (stopped if _plain(stopped) else stopped.mean() > 0.5) else ()


# ------------------------------------------------------------------------------ numbers as text
def _data(x: Any) -> Any:
    return x.data if isinstance(x, Value) else x


def _plain(x: Any) -> bool:
    """Whether x is one number and no array."""
    return not getattr(x, "ndim", 0)


def finite(x: Any) -> bool:
    """Whether x, a number, an array or None, holds neither nan nor inf."""
    return x is None or math.isfinite(float(x if _plain(x) else (x * 0).sum()))


def size_of(x: Any) -> float:
    """|x| of a number, the root mean square of an array."""
    return abs(float(x)) if _plain(x) else math.sqrt(float((x * x).mean())) if x.size else 0.0


def number_text(x: float) -> str:
    """A number as a teacher writes it: four decimals at most, and powers of ten where those would hide it.

    >>> [number_text(x) for x in (2.0, 24.70408, -1e-7, 1234567.0, 0.0, float("inf"))]
    ['2.0', '24.7041', '-1.0e-07', '1.2346e+06', '0.0', '∞']
    """
    x = float(x) + 0.0                                  # -0.0 is 0.0 here
    if not math.isfinite(x):
        return "nan" if x != x else "∞" if x > 0 else "-∞"
    plain = x == 0 or 1e-3 <= abs(x) < 1e5
    digits, _, power = f"{x:.4f}".partition("e") if plain else f"{x:.4e}".partition("e")
    digits = digits.rstrip("0")
    return digits + "0" * digits.endswith(".") + ("e" + power if power else "")


def writer(numbers: str | Callable[[float], str] = "") -> Callable[[Any], str]:
    """What writes data and gradients, of Values and of Tensors: the one place where numbers become text."""
    one: Callable[[Any], str] = numbers if callable(numbers) else (
        lambda x: format(float(x), numbers)) if numbers else number_text

    def write(x: Any) -> str:
        if _plain(x):
            return one(x)
        if x.size <= 4:
            return _nested(x.tolist(), one)
        return f"{tuple(x.shape)} {x.dtype}  mean {one(x.mean())}  norm {one(math.sqrt(float((x * x).sum())))}".replace(
            ",)", ")")

    return write


def _nested(x: Sequence | float, one: Callable[[Any], str]) -> str:
    return "[" + ", ".join(_nested(y, one) for y in x) + "]" if isinstance(x, list) else one(x)
