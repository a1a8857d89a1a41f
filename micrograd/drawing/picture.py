"""The picture of a computation, drawn from the running code: what every number is, and how it moves the result."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from micrograd.drawing.dot import dot_lines, times
from micrograd.drawing.groups import assign, collapse, fold
from micrograd.drawing.render import INSTALL, render
from micrograd.drawing.scene import Scene, scene, writer
from micrograd.drawing.styles import THEMES, stylesheet

_CHOICES = {"edges": (None, "local", "upstream", "product"), "passes": ("forward", "both"),
            "color": ("kind", "gradient"), "operations": ("nodes", "inside"), "layout": ("card", "row"),
            "rankdir": ("LR", "RL", "TB", "BT"), "theme": tuple(THEMES)}


@dataclass
class Options:
    """All that `draw`, `draw_dot` and `to_mermaid` can be told."""

    edges: str | None = None            # what stands on arrows: "local" derivative, "upstream" gradient, "product"
    formulas: bool = False              # the local derivative in letters too: ∂u/∂w = x = 2.0
    passes: str = "forward"             # "both": dashed arrows back, with the gradient that flows along each
    color: str = "kind"                 # "gradient": by magnitude, on a log scale, with a legend
    marks: bool = True                  # point at dead relus, saturated units, nan and inf
    model: Any = None                   # a module: draw its parts as clusters
    depth: int | None = None            # 0 draws the whole model as one box, 1 its layers, 2 its neurons
    fold: bool = False                  # draw neurons that are alike once: "× 16"
    highlight: Sequence[Any] = ()       # nodes to light up
    path: tuple[Any, Any] | None = None     # (a, loss): light every path from a to loss, with its product
    operations: str = "nodes"           # "inside": no circles, an operation stands in the card of its result
    layout: str = "card"                # "row": label | data | grad side by side, as in micrograd
    rankdir: str = "LR"                 # the forward pass runs left to right; "TB" from top to bottom
    font: str = "Helvetica"
    numbers: str | Callable[[float], str] = ""      # a format such as ".2f", or a function that gives text
    theme: str = "auto"                 # "light", "dark", "print"; "auto" is dark where the reader's screen is
    caption: str = ""
    prefix: str = ""                    # put before all ids of the SVG, for several pictures in one page
    max_nodes: int = 1000               # refuse larger graphs, because layout time grows much faster than the graph
    timeout: float = 60.0               # seconds for the layout

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is one of {', '.join(map(repr, allowed))}; got {getattr(self, name)!r}")

    @classmethod
    def of(cls, options: dict[str, Any]) -> Options:
        """Options from keywords; an unknown one is an error that names the known ones."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in options if name not in known]
        if unknown:
            raise TypeError(f"draw has no option {unknown[0]!r}; its options are {', '.join(known)}")
        return cls(**options)


def prepared(root: Any, options: Options) -> tuple[Scene, set[str], str]:
    """The scene to draw, the ids to light up in it, and the caption."""
    large = options.depth is not None or options.fold
    derive = options.edges is not None or options.path is not None or options.passes == "both"
    most = options.max_nodes * (100 if large else 1)
    seen = scene(root, most, options.numbers, derive, options.formulas)
    show = writer(options.numbers)
    if options.model is not None:
        assign(seen, options.model)
    if options.depth is not None:
        seen = collapse(seen, options.depth, show)
    if options.fold:
        seen = fold(seen, show)
    lit, caption = set(seen.ids(options.highlight)), options.caption
    if options.path is not None:
        first, last = seen.ids(options.path)
        on_path, told = paths(seen, show, first, last)
        lit, caption = lit | on_path, "\n".join(filter(None, (caption, told)))
    return seen, lit, caption


def paths(scene: Scene, show: Callable[[Any], str], first: str, last: str, most: int = 6) -> tuple[set[str], str]:
    """Ids on any path from `first` to `last`, and the products along the paths, which add up to the derivative."""
    back, after = {last}, {first}
    for edge in reversed(scene.edges):
        if edge.target in back:
            back.add(edge.source)
    total, count = {first: 1.0}, {first: 1}
    onward: dict[str, list[Any]] = {}
    for edge in scene.edges:
        if edge.source in after and edge.target in back:
            after.add(edge.target)
            onward.setdefault(edge.source, []).append(edge)
            local = edge.local if isinstance(edge.local, (int, float)) else math.nan      # an array has no one number
            total[edge.target] = total.get(edge.target, 0.0) + local * total[edge.source]
            count[edge.target] = count.get(edge.target, 0) + count[edge.source]
    names = {node.id: node.name for node in scene.nodes}
    if last not in after:
        raise ValueError(f"no path leads from {names[first]} to {names[last]}; give path=(input, output)")
    lit = (after & back) | {edge.id for edges in onward.values() for edge in edges}
    if math.isnan(total[last]):
        return lit, ""
    lines: list[str] = []
    waiting: list[list[Any]] = [[edge] for edge in reversed(onward.get(first, []))]
    while waiting and len(lines) < most:
        path = waiting.pop()
        if path[-1].target != last:
            waiting += [[*path, edge] for edge in reversed(onward[path[-1].target])]
            continue
        way = [names[first], *(names[edge.target] for edge in path)]
        way = way if len(way) < 9 else [*way[:4], "…", *way[-4:]]
        factors = [edge.local_text for edge in path if edge.local != 1.0] or ["1.0"]
        product = math.prod(edge.local for edge in path)
        chain = f"{times(factors[:12])} = " if len(factors) > 1 else ""
        lines.append(f"{' → '.join(way)}:  {chain}{show(product)}")
    if count[last] > len(lines):
        lines.append(f"… and {count[last] - len(lines)} more paths")
    return lit, "\n".join([*lines, f"∂{names[last]}/∂{names[first]} = {show(total[last])}"])


@functools.cache
def _drawing() -> type:
    """graphviz.Digraph, able to draw without the `dot` program. Made on first use: the package loads then."""
    try:
        import graphviz
    except ImportError:
        raise ImportError(f"a picture needs the package graphviz, which is not installed: {INSTALL}. "
                          "to_dot and to_mermaid give text and need no package") from None

    class Drawing(graphviz.Digraph):                        # type: ignore[misc]    # of a package without types
        """The picture of a graph: `.source`, `.render(filename)`, `.pipe(format)`, and itself in a notebook."""

        theme, timeout = "auto", 60.0

        def pipe(self, format: str | None = None, *more: Any, encoding: str | None = None, **keywords: Any) -> Any:
            """The picture as bytes, or as text if an encoding is given."""
            format = format or self.format
            data = render(self.source, format, self.timeout)
            if format == "svg":
                data = styled(data, self.theme)
            return data.decode(encoding) if encoding else data

        def render(self, filename: Any = None, directory: Any = None, view: bool = False, cleanup: bool = False,
                   format: str | None = None, *more: Any, outfile: Any = None, **keywords: Any) -> str:
            """Write the picture and, unless `cleanup` or `outfile`, its DOT text beside it; gives the picture's path."""
            name = os.fspath(outfile) if outfile else ""
            format = format or os.path.splitext(name)[1][1:] or self.format
            data = self.pipe(format)                    # first, so that a failure leaves no half-written file
            target = name or os.path.join(os.fspath(directory or self.directory),
                                          f"{os.fspath(filename or self.filename)}.{format}")
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            if not (cleanup or name):
                self.save(target.removesuffix(f".{format}"))
            with open(target, "wb") as file:
                file.write(data)
            if view:
                self._view(target, format=format, quiet=False)
            return target

    return Drawing


def styled(svg: bytes, theme: str) -> bytes:
    """The SVG with a title for readers who cannot see it, and the colours of the reader's screen."""
    head, mark, rest = svg.partition(b"<svg ")
    attributes, close, body = rest.partition(b">")
    return b"".join((mark, f'class="mg-{theme}" role="img" aria-label="computation graph" '.encode(), attributes, close,
                     stylesheet(theme).encode(), body))


def to_dot(root: Any, **options: Any) -> str:
    """The DOT text of a picture, with the options of `draw`; needs no package.

    >>> from micrograd import Value
    >>> print(to_dot(Value(2.0, label="x") * 3)[:9])
    digraph {
    """
    return "digraph {\n" + "".join(_lines(root, Options.of(options))) + "}\n"


def _lines(root: Any, options: Options) -> Iterator[str]:
    return (f"\t{line}\n" for line in dot_lines(*prepared(root, options), options))


def draw(root: Any, format: str = "svg", **options: Any) -> Any:
    """The picture of a computation: a card for every number, a circle for every operation, an arrow for every use.

    It is a `graphviz.Digraph`: `.render("file")` writes it, `.pipe("png")` gives bytes, `.source` the DOT text, and a
    notebook shows it. Drawing runs no backward and changes no node.

    Args:
        root: a Value or Tensor, or a list of several in one picture (a loss and its gradients' own graphs).
        format: "svg" and "png" work with pip alone, the rest of Graphviz's formats with the `dot` program.
        options: see `Options`; an unknown one is an error that lists them.

    In the SVG, ids stay: `n3` a number, `n3-op` its operation, `e3-1` its use of its input 1, `r3` the arrow from the
    operation to it, `b3-1` and `s3` the same arrows on the way back; `prefix` goes before them.

    >>> from micrograd import Value
    >>> x, w = Value(2.0, label="x"), Value(-3.0, label="w")
    >>> y = x * w; y.backward()
    >>> picture = draw(y, edges="local", formulas=True)
    >>> "∂n2/∂w = x = 2.0" in picture.source
    True
    """
    chosen = Options.of(options)
    picture = _drawing()(format=format, body=[*_lines(root, chosen)])
    picture.theme, picture.timeout = chosen.theme, chosen.timeout
    return picture


def draw_dot(root: Any, format: str = "svg", rankdir: str = "LR", **options: Any) -> Any:
    """micrograd's picture: `label | data | grad` in a row, operations between; takes all options of `draw`.

    >>> from micrograd import Value
    >>> a = Value(1.0, label="a")
    >>> draw_dot(a + a).pipe("svg").count(b'class="edge use edge"')
    2
    """
    return draw(root, format, rankdir=rankdir, **{"layout": "row", **options})
