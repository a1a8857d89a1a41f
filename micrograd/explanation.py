"""What a good teacher says while pointing at the graph: forward line by line, then the chain rule back.

`explain(root)` reads the graph and changes nothing in it. Formulas are not written here: the rules of the
table are run on names (`names.py`), so an operation that was defined a minute ago explains itself.
"""

from __future__ import annotations

import contextlib
import html
import itertools
import math
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from micrograd.engine import Value, freed, topological_order
from micrograd.names import ESCAPED, PRODUCT, Latex, Name, Prose
from micrograd.ops import Ieee, add, sub

MARK = "\ue000"                     # stands before and after a formula in a sentence; each format shows it in its way
MANY = 12                           # of more inputs than these only the first are written
BELOW = "below"                     # marks a line that belongs to the one above
SHORT = 40                          # terms up to this length stand in the line of their sum, without a name

# what becomes of a gradient on its way back through an array operation
_ARRAYS = {"sum": "copied to every entry that was added", "broadcast_to": "added up over the copies",
           "index": "put at the places that were picked, with 0 elsewhere",
           **dict.fromkeys(("reshape", "permute", "swapaxes"), "brought back into the old form")}


@dataclass
class Contribution:
    """One use of a number, on the way back: what arrived at the line that uses it, times that line's rate of change."""

    line: Value
    user: Value                         # the operation inside the line
    position: int                       # which input of the user the source is
    source: Value
    arrived: Any
    rate: Any                           # how fast the line alone changes with this use; None for arrays
    slope: Any                          # the same as a formula; None if the rule has only numbers
    part: Any                           # arrived · rate
    before: Any                         # the sum of what came over other ways; None on the first
    total: Any                          # that sum with this part
    order: int                          # 1 on the first way to the source, and so on


Section = tuple[str, str, list[tuple[str, str]]]         # heading, words, and lines with what stands before them


def explain(root: Value, wrt: Value | str | None = None, format: str = "text", max_operations: int = 60,
            digits: int = 4) -> str:
    """Tell how `root` was computed, and step by step how it changes with what it was computed from.

    Args:
        root: one number that was computed from variables: a loss, usually.
        wrt: a node or its label; tells only what concerns it, with every path and the sum over the paths.
        format: "text", "markdown", "latex" or "html".
        max_operations: refuse longer stories.
        digits: how many digits a number may have.

    Nothing is changed: `.grad` plays no part, and `backward()` need not have run.

    >>> x, w = Value(2.0, label="x"), Value(3.0, label="w")
    >>> print(explain(w * x, format="markdown").splitlines()[4])
    - (1) `L = w·x = 3·2 = 6`
    """
    if format not in _FORMATS:
        raise ValueError(f"format is one of {', '.join(map(repr, _FORMATS))}; got {format!r}")
    style: Any = type("Style", (Latex if format == "latex" else Prose,), {"__slots__": (), "digits": digits})
    return _rendered(Story(root, wrt, style, max_operations).sections(), format)


class Story:
    """The graph below `root` with a name for each node, and the contributions of one pass back.

    >>> x = Value(3.0, label="x")
    >>> [(c.rate, c.part, c.total) for c in Story(x * x).contributions]
    [(3.0, 3.0, 3.0), (3.0, 3.0, 6.0)]
    """

    def __init__(self, root: Value, wrt: Value | str | None = None, style: type[Prose] = Prose,
                 max_operations: int = 60) -> None:
        _check(root)
        self.root, self.style = root, style
        self.literal = type("Literal", (style,), {"__slots__": (), "simplify": False})("")      # as it was computed
        self.operations, self.leaves = topological_order(root)
        self.wrt = None if wrt is None else self._find(wrt)
        if self.wrt is not None:
            self._keep_what_concerns(self.wrt)
        if len(self.operations) > max_operations:
            raise ValueError(
                f"the graph has {len(self.operations):,} operations, and a story of more than {max_operations} helps "
                "nobody: explain one neuron or one sample, ask for one variable with wrt=..., look at the whole with "
                "draw(root, depth=1), or raise the limit with max_operations=...")
        self.names: dict[int, Any] = {}
        self.folded: set[int] = set()                   # what stands as a formula in the line of its only user
        self._name()
        self.lines = list(enumerate((node for node in self.operations if id(node) not in self.folded), 1))
        self.gradients: dict[int, Any] = {id(root): root.data ** 0}
        self.ways: Counter[int] = Counter()             # how many contributions a node has received
        with quiet():
            self.back = [(n, line, list(self._back(line))) for n, line in reversed(self.lines)]
        self.contributions = [c for _, _, group in self.back for c in group]

    # ------------------------------------------------------------------------- what is told of
    def _find(self, wrt: Value | str) -> Value:
        """The node that is asked for."""
        nodes = [*self.leaves, *self.operations]
        found = [x for x in nodes if x is wrt or isinstance(wrt, str) and x.label == wrt]
        if not found:
            known = ", ".join(dict.fromkeys(x.label for x in nodes if x.label)) or "nothing with a label"
            raise ValueError(f"wrt={wrt!r:.60} is not in the graph; in it there is: {known}")
        if not found[0].requires_grad:
            raise ValueError(f"{found[0]!r:.60} is a constant, nothing depends on it; make it with requires_grad=True")
        return found[0]

    def _keep_what_concerns(self, wrt: Value) -> None:
        """Drop the operations that do not depend on `wrt`."""
        self.concerned = {id(wrt)}
        operations, self.operations = self.operations, []
        for node in operations:
            if node is not wrt and any(id(x) in self.concerned for x in node.operands()):
                self.concerned.add(id(node))
                self.operations.append(node)

    def _name(self) -> None:
        """Labels; without one v1, v2, ... for results, p1, ... for variables, c1, ... for all else, L for the root."""
        nodes = dict.fromkeys(x for node in self.operations for x in (*node.operands(), node) if isinstance(x, Value))
        uses = Counter(id(x) for node in self.operations for x in node.operands())
        added = {id(x) for node in self.operations if node.op in (add, sub) for x in node.operands()}
        told = set(map(id, self.operations))
        labels, used = {_clean(x.label) for x in nodes}, set[str]()
        schemes = {stem: map(f"{stem}{{}}".format, itertools.count(1)) for stem in "vpc"}
        for x in nodes:
            label, number = _clean(x.label), number_of(x)
            if not label and not x.requires_grad and number is not None:
                self.names[id(x)] = self.style.of(number)
                continue
            if not label and uses[id(x)] == 1 and id(x) in told and id(x) in added and number is not None:
                formula = self.formula(x)
                if len(formula.text) <= SHORT:
                    self.names[id(x)] = formula
                    self.folded.add(id(x))
                    continue
            stem = "v" if id(x) in told else "p" if x.is_leaf and x.requires_grad else "c"
            own = itertools.accumulate(itertools.repeat("′"), initial=label or "L")
            names = own if label or x is self.root else schemes[stem]
            text = next(n for n in names if n not in used and (n == label or n not in labels))
            used.add(text)
            self.names[id(x)] = self.style(self.style.label(text), known=number)

    def piece(self, x: Any) -> Any:
        """The name of a node, or a number, as a piece of formula."""
        return self.names[id(x)] if isinstance(x, Value) else self.style.of(x)

    def figures(self, x: Any) -> Any:
        """The number of a node, as a piece of formula."""
        return self.formula(x, self.figures) if id(x) in self.folded else self.style.of(number_of(x))

    def formula(self, node: Value, piece: Callable | None = None) -> Name:
        """What was computed, in names or in other pieces."""
        pieces = [*map(piece or self.piece, node.operands())]
        if node.op.name == "where" and number_of(node.operands()[0]) is not None:
            pieces[0] = self.style("true" if number_of(node.operands()[0]) else "false")
        if len(pieces) > MANY or node.op.name == "where":
            return self.literal.call(node.op.name, *pieces[:MANY], *([self.style("...")] if len(pieces) > MANY else []))
        if node.op.name == "matmul":
            return self.literal.infix("*", PRODUCT, *pieces)
        if node.op.name.startswith("weighted_sum"):     # of a neuron: spelled out
            literal = type(self.literal)
            return node.op.forward(*(literal(x.text, x.precedence, x.parts, x.known) for x in pieces))
        return self.literal.of(self.literal.apply(node.op, *pieces))

    # --------------------------------------------------------------------------- the pass back
    def _back(self, line: Value) -> Iterator[Contribution]:
        """What a line hands to each of its inputs."""
        if id(line) in self.gradients:                  # else only a condition hangs on it
            yield from self._inside(line, line, self.gradients[id(line)], line.data ** 0, 1.0)

    def _inside(self, line: Value, node: Value, arrived: Any, rate: Any, slope: Any) -> Iterator[Contribution]:
        """The same from one operation inside a line; `rate` and `slope` are those of the line by this operation."""
        inputs = node.operands()
        plain = rate is not None and all(number_of(x) is not None for x in (node, *inputs))
        rates, slopes = dict(handed_down(node, rate)) if plain else {}, self._slopes(node, slope)
        for i, part in handed_down(node, arrived):
            x = inputs[i]
            if id(x) in self.folded:
                yield from self._inside(line, x, part, rates.get(i), slopes.get(i))
            elif self.wrt is None or id(x) in self.concerned:
                before = self.gradients.get(id(x))
                self.gradients[id(x)] = total = part if before is None else before + part
                self.ways[id(x)] += 1
                yield Contribution(line, node, i, x, self.gradients[id(line)], rates.get(i), slopes.get(i),
                                   part, before, total, self.ways[id(x)])

    def _slopes(self, node: Value, g: Any) -> dict[int, Any]:
        """The rates of change as formulas: the rule of the operation, run on names."""
        pieces = [self.piece(x) if isinstance(x, Value) else x for x in node.operands()]
        if len(pieces) > MANY:
            return {}
        try:
            slopes = dict(node.flow.contributions(g, pieces, self.piece(node)))
            return {i: x for i, x in slopes.items() if isinstance(x, (Name, float))}
        except Exception:                               # a rule that is not written in operators has numbers only
            return {}

    def paths(self) -> Iterator[list[Contribution]]:
        """Every way back from the root to `wrt`, as the contributions along it."""
        onward: dict[int, list[Contribution]] = {}
        for c in self.contributions:
            onward.setdefault(id(c.line), []).append(c)
        waiting: list[list[Contribution]] = [[c] for c in reversed(onward.get(id(self.root), []))]
        while waiting:
            path = waiting.pop()
            if path[-1].source is self.wrt:
                yield path
            waiting += [[*path, c] for c in reversed(onward.get(id(path[-1].source), []))]

    # -------------------------------------------------------------------------------- in words
    def sections(self) -> list[Section]:
        """The whole story, for any format."""
        variables = [x for x in self.leaves if x.requires_grad] if self.wrt is None else [self.wrt]
        if not variables:
            raise ValueError(f"there is nothing to explain about {self.root!r:.80}: all that it depends on was frozen since")
        root, one = self.piece(self.root).text, variables[0]
        forward = (f"How {self._equal(root, self.root.data)} comes about", self._given(),
                   [(f"({n}) ", self._computed(node)) for n, node in self.lines])
        back = (
            f"How fast it changes with {'each number' if self.wrt is None else _m(self.piece(one).text)}",
            f"{_m(self.rate(one).text)} is the change of {_m(root)} per small change of {_m(self.piece(one).text)}. "
            f"Start at the end, where {_m(self.rate(self.root).text + ' = 1')}, and walk back. At each line, what has "
            "arrived is multiplied by the rate of change of that line alone, and goes on to its inputs (the chain "
            "rule). Where several ways meet, their contributions add up.",
            [line for n, node, group in self.back for line in (
                (f"({n}) ", _m(f"{self.piece(node).text} = {self.formula(node).text}")),
                *((BELOW, self._told(c)) for c in group))])
        paths = [] if self.wrt is None else [self._paths()]
        return [forward, back, *paths, self._result(variables)]

    def rate(self, x: Any) -> Prose:
        """The change of the root per change of x, as a piece of formula."""
        return self.style.rate(self.piece(self.root), self.piece(x))

    def _equal(self, name: str, data: Any) -> str:
        """w = 3, or for arrays: W of shape (2, 16)"""
        number = number_of(data)
        return f"{_m(name)} of shape {data.shape}" if number is None else _m(f"{name} = {self.style.number(number)}")

    def _given(self) -> str:
        """What the computation starts from."""
        inside = {id(node) for node in self.operations}
        given = dict.fromkeys(x for node in self.operations for x in node.operands()
                              if isinstance(x, Value) and id(x) not in inside)
        texts = [self._equal(self.piece(x).text, x.data) + ("" if x.requires_grad else " (constant)")
                 for x in given if x.requires_grad or x.label or number_of(x) is None]
        more = f" and {len(texts) - MANY} more" if len(texts) > MANY else ""
        return f"Given {', '.join(texts[:MANY])}{more}." if texts else ""

    def _computed(self, node: Value) -> str:
        """u = w·x = 3·2 = 6"""
        plain = all(number_of(x) is not None for x in node.operands())
        texts = [self.piece(node).text, self.formula(node).text, self.formula(node, self.figures).text if plain else ""]
        return self._equal(" = ".join(dict.fromkeys(filter(None, texts))), node.data)

    def _told(self, c: Contribution) -> str:
        """dL/dw = dL/du · x = 14 · 2 = 28, and the running sum where ways meet."""
        left, ways = self.rate(c.source).text, self.ways[id(c.source)]
        opening = f"{left} = " if c.order == 1 else ""
        if c.rate is None:
            told = self._on_arrays(c, opening)
        else:
            formula = [] if c.slope is None else [self.style.times(self.rate(c.line), c.slope)]
            figures = [self.style.times(number_of(c.arrived), number_of(c.rate)), self.style.number(number_of(c.part))]
            told = _m(opening + " = ".join(dict.fromkeys(formula + figures)))
        if isinstance(c.slope, Name) and c.slope.since:
            told += f", since {_m(', '.join(c.slope.since))}"
        if c.order == 1:
            return told + (f" (1st of {ways} contributions)" if ways > 1 else "")
        if c.rate is None:
            return f"{_m(left)} gets its {_ordinal(c.order)} contribution, which is added: {told}"
        before, part, total = (self.style.of(number_of(x)) for x in (c.before, c.part, c.total))
        return (f"{_m(left)} gets its {_ordinal(c.order)} contribution: {told}; "
                f"{_m(f'{self.literal.apply(add, before, part).text} = {total.text}')}")

    def _on_arrays(self, c: Contribution, opening: str) -> str:
        """The same for arrays: the rule in matrix form or in words, and shapes."""
        arrived, operands, shape = self.rate(c.line).text, c.user.operands(), getattr(c.source.data, "shape", ())
        if c.slope is not None:
            return f"{_m(opening + self.style.times(self.rate(c.line), c.slope))}, entry by entry, shape {shape}"
        if c.user.op.name != "matmul":
            words = _ARRAYS.get(c.user.op.name, f"sent back through {c.user.op.name}")
            return f"{_m(opening + arrived)}, {words}, shape {shape}"
        a, b = (self.piece(x).text + self.style.transposed for x in operands)
        rows, columns = (x.data.shape[:-2] + x.data.shape[:-3:-1] for x in operands)        # transposed
        product = [arrived, b] if c.position == 0 else [a, arrived]
        shapes = [c.line.data.shape, columns] if c.position == 0 else [rows, c.line.data.shape]
        return f"{_m(opening + self.style.dot.join(product))}, {'·'.join(map(str, shapes))} -> {shape}"

    def _paths(self) -> Section:
        """Every way from `wrt` to the root, and what comes along it."""
        lines = []
        for path in itertools.islice(self.paths(), 10):
            names = self.style.arrow.join(self.piece(x).text for x in (*(c.source for c in reversed(path)), self.root))
            rates = [number_of(c.rate) for c in reversed(path)]
            known = [] if None in rates else [self.style.times(*rates), self.style.number(math.prod(rates))]
            product = ": " + _m(" = ".join(dict.fromkeys(known))) if known else ""
            lines.append(("", _m(names) + product))
        return (f"Every path from {_m(self.piece(self.wrt).text)} to {_m(self.piece(self.root).text)}",
                "The rates along a path multiply, and the paths add up." + " The first ten:" * (len(lines) == 10), lines)

    def _result(self, variables: list[Value]) -> Section:
        """The gradients, and one of them in words."""
        gradients = {id(x): self.gradients.get(id(x), 0.0) for x in variables}
        lines = [("", self._equal(self.rate(x).text, x.data if number_of(x) is None else gradients[id(x)])) for x in variables]
        known = [(g, x) for x in variables if number_of(x) is not None and (g := number_of(gradients[id(x)])) - g == 0 != g]
        words = ""
        if known:
            g, x = max(known, key=lambda pair: abs(pair[0]))
            words = (f"In words: raise {_m(self.piece(x).text)} by {_m('0.001')}, and {_m(self.piece(self.root).text)} "
                     f"{'rises' if g > 0 else 'falls'} by about {_m(self.style.number(abs(g) / 1000))}.")
        elif all(number_of(g) == 0 for g in gradients.values()):
            words = f"A small change does not move {_m(self.piece(self.root).text)} at all here."
        told = [number_of(x) for c in self.contributions for x in (c.line, c.rate, c.part, c.total)]
        if any(x is not None and x % 1 and float(f"{x:.{self.style.digits}g}") != x for x in told):
            words += f" Numbers are rounded to {self.style.digits} digits."
        return "Result", words.strip(), lines


# ---------------------------------------------------------------------------- reading the graph
def _check(root: Any) -> None:
    """Refuse what has no story, and say why."""
    if not isinstance(root, Value):
        raise TypeError(f"explain takes a Value or a Tensor, got {type(root).__name__} {root!r:.60}")
    reason = ("backward() freed its graph; keep it with retain_graph=True" if root.flow is freed else
              "it depends on nothing that requires a gradient" if not root.requires_grad else
              "it was not computed from anything" if root.is_leaf else
              f"it has the shape {root.data.shape}, and explain tells of one number; take .sum(), .mean() or one entry"
              if number_of(root) is None else "")
    if reason:
        raise ValueError(f"there is nothing to explain about {root!r:.80}: {reason}")


def number_of(x: Any) -> Any:
    """The number that a node or an array of one entry holds; None if there are several."""
    data = x.data if isinstance(x, Value) else x
    return None if data is None or getattr(data, "size", 1) != 1 else data.item() if hasattr(data, "item") else float(data)


def handed_down(node: Value, g: Any) -> list[tuple[int, Any]]:
    """What each input receives when g arrives at the node."""
    inputs = node.operands()
    datas = [x.data if isinstance(x, Value) else x for x in inputs]
    try:
        return node.flow.contributions(g, datas, node.data)
    except ZeroDivisionError:
        return [(i, float(part)) for i, part in node.flow.contributions(g, [Ieee(x) for x in datas], Ieee(node.data))]
    except (RuntimeError, IndexError):                  # a backward by hand: let it run, look, and put all back
        nodes = list(dict.fromkeys((node, *inputs)))
        before = [x.grad for x in nodes]
        try:
            for x in nodes:
                x.grad = g if x is node else x.data * 0.0
            node.flow.pull(node)
            return [(inputs.index(x), x.grad) for x in nodes[1:]]
        finally:
            for x, grad in zip(nodes, before):
                x.grad = grad


def quiet() -> Any:
    """No NumPy warnings in this block: nan and inf are told of, or looked for."""
    return sys.modules["numpy"].errstate(all="ignore") if "numpy" in sys.modules else contextlib.nullcontext()


def _clean(label: str) -> str:
    """A label that stays on its line."""
    return " ".join("".join(c if c.isprintable() else " " for c in label).split())


def _ordinal(n: int) -> str:
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10 * (n % 100 not in (11, 12, 13)), 'th')}"


# ---------------------------------------------------------------------------------- the formats
def _m(formula: str) -> str:
    return f"{MARK}{formula}{MARK}"


def _rendered(sections: list[Section], format: str) -> str:
    """The story with its formulas, words, headings and lines as a format wants them."""
    formula, words, heading, paragraph, begin, end, line, below = _FORMATS[format]

    def show(text: str) -> str:
        return "".join((formula if i % 2 else words)(part) for i, part in enumerate(text.split(MARK)))

    blocks = ["\n".join(filter(None, (
        heading.format(show(title)), paragraph(show(told)) if told else "", begin,
        *(line.format(mark, show(text)) if mark != BELOW else below.format(show(text)) for mark, text in lines), end)))
        for title, told, lines in sections]
    return "\n\n".join(blocks).replace("\xa0", " ")


# formulas, words, heading, paragraph, before the lines, after them, a line, a line below it
_FORMATS: dict[str, tuple] = {
    "text": (lambda x: x.replace(" ", "\xa0"), str, "{}",                  # paragraphs break between formulas only
             lambda x: textwrap.fill(x, 96, initial_indent="  ", subsequent_indent="  "), "", "", "  {}{}", "      {}"),
    "markdown": (lambda x: "`" + x.replace("`", "'") + "`", html.escape, "### {}\n", "{}\n".format, "", "",
                 "- {}{}", "    - {}"),
    "latex": (lambda x: f"${x}$", lambda x: x.translate(ESCAPED).replace("->", r"$\to$"), r"\subsection*{{{}}}", str,
              r"\begin{itemize}", r"\end{itemize}", r"\item[{}] {}", r"\item[] \quad {}"),
    "html": (lambda x: f"<code>{html.escape(x)}</code>", html.escape, "<h3>{}</h3>", "<p>{}</p>".format, "<ul>", "</ul>",
             "<li>{}{}</li>", '<li style="margin-left: 2em">{}</li>')}
