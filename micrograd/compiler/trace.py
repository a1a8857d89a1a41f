"""The rules of the table, run on names: what comes out is not a number but the program that computes it.

A graph is walked once forward and once backward, as `backward()` does, but through each operation flows a `Step`
instead of a number. A step knows the operation and the steps it was made of. `Trace` collects them in order, and
while doing so leaves away what changes no result.
"""

from __future__ import annotations

import functools
import keyword
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, ClassVar

from micrograd import ops
from micrograd.engine import ByHand, Value, freed, topological_order
from micrograd.names import _INFIX, ATOM, BOTH, COMPARISON, Name
from micrograd.ops import TABLE, Operation

# what rules use beside the table: they have no derivative, and only compiled programs know them
AND = Operation("and", "and", lambda a, b: a and b, (None, None))
CONDITIONS = {symbol: Operation(symbol, symbol, function, (None, None)) for symbol, function in {
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b}.items()}
COPY = Operation("copy", "", lambda x: x, (None,))              # another name for the same
TOTAL = Operation("total", "total", lambda x: x, (None,))       # the sum over the batch
GIVEN = Operation("", "", lambda: None, ())                    # leaves, and the size of the batch
BOOLEAN = {ops.equal, AND, *CONDITIONS.values()}
_PLAIN = {ops.add, ops.sub, ops.mul, ops.div}
_RESERVED = ("n", "i", "given", "batch", "values", "gradients", "program", "inf", "nan", "main", "math", "np", "torch",
             "jax", "jnp", "print", "zip", "float", "abs", "auto", "break", "case", "char", "const", "continue", "default",
             "do", "double", "enum", "extern", "goto", "inline", "int", "long", "register", "restrict", "return", "short",
             "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile")
ONCE, EACH, AFTER = range(3)        # when a step runs: once, for each sample, after a sum over the batch


class Style(Name):
    """How a target writes what the table does; subclasses fill these in.

    `names` are the operations that the target has a function for (all others are composed of these),
    `repeats` those whose text mentions an input more than once, so that the input must be a name.
    """

    __slots__ = ()
    expand = simplify = False
    assign: ClassVar[str] = "{} = {}"
    again: ClassVar[str] = "{} += {}"
    alphabet: ClassVar[int] = 0                         # re.ASCII where names are ASCII only
    calls_anything: ClassVar[bool] = False              # whether operations outside of the table can be called
    loops: ClassVar[bool] = True                        # whether a batch is a loop, or one array
    names: ClassVar[dict[str, str]] = {}
    repeats: ClassVar[set[Operation]] = set()
    infixes: ClassVar[dict[Operation, tuple[str, int]]] = {
        AND: ("and", BOTH), **{op: (symbol, COMPARISON) for symbol, op in CONDITIONS.items()}}

    def write(self, op: Operation, *inputs: Name) -> Name:
        """The text of one step."""
        if op in self.infixes:
            return self.infix(*self.infixes[op], *inputs)
        if op is COPY:
            return inputs[0]
        return self.apply(op, *inputs)

    def call(self, name: str, *inputs: Name) -> Name:
        return super().call(self.names.get(name, name), *inputs)


class Step(Name):
    """One operation of a program. `parts` are the operation and its inputs; `value` is set if it is a constant.

    `when` says whether it runs once, for each sample, or after a sum over the batch. The text is written
    when the program is: a name, or the formula itself if that is needed in one place only.
    """

    __slots__ = ("comment", "name", "size", "trace", "uses", "value", "when")

    def __init__(self, trace: Trace, parts: tuple, when: int = ONCE, name: str = "", value: Any = None) -> None:
        self.text, self.precedence, self.parts = name, ATOM, parts
        self.trace, self.when, self.name, self.value = trace, when, name, value
        self.comment, self.uses, self.size = "", 0, 0

    def apply(self, op: Operation, *inputs: Any) -> Any: return self.trace.record(op, inputs)
    def unary(self, op: Operation) -> Any: return self.trace.record(op, (self,))
    def binary(self, op: Operation, other: Any) -> Any:
        if other.__class__ is Step and op in _PLAIN and self.value is None and other.value is None:
            return self.trace.enter(op, self, other)
        return self.trace.record(op, (self, other))

    def reflected(self, op: Operation, other: Any) -> Any: return self.trace.record(op, (other, self))
    def infix(self, symbol: str, precedence: int, a: Any, b: Any) -> Any:
        return self.trace.record(AND if symbol == "and" else CONDITIONS[symbol], (a, b))

    def __bool__(self) -> bool:
        raise TypeError("a step of a program has no value yet, so Python cannot choose by it; "
                        "in a rule write where(condition, a, b)")


def composed(op: Operation) -> bool:
    """Whether the value of an operation is written in others, as that of sigmoid."""
    return op not in _INFIX and op.array is None and getattr(op.forward, "__module__", "_operator") not in (
        "_operator", "builtins", __name__) and op not in (ops.where, TOTAL)


class _Words(Name):
    """Formulas as comments show them: sigmoid stays sigmoid."""

    __slots__ = ()
    expand = False


@functools.cache
def rule(op: Operation, i: int) -> str:
    """A rule as a sentence: `y = a * b sends g * b to a`."""
    code = op.rules[i].__code__
    g, *inputs, y = [_Words(text) for text in code.co_varnames[:code.co_argcount]]
    value, part = inputs[0].apply(op, *inputs), inputs[0].of(op.rules[i](g, *inputs, y))
    text = f"y = {value.text} sends {part.text} to {inputs[i].text}"
    return text if len(text) < 70 else f"the rule of {op.name}"


class Tape:
    """What `compile` remembers of a graph: its operations in order, and its leaves."""

    def __init__(self, root: Value, inputs: Sequence[Value] = (), wrt: Sequence[Value] | None = None) -> None:
        operations, leaves = topological_order(root)
        present = set(leaves)
        self.root, self.inputs = root, tuple(inputs)
        self.operations = [(node, node.flow, node.operands()) for node in operations]
        for node in (*operations, *leaves):
            if isinstance(node.flow, ByHand):
                raise RuntimeError(f"the operation {node.op.symbol!r} has a hand-written _backward, which cannot be "
                                   "compiled; define it with @micrograd.op")
            if node.flow is freed:
                raise RuntimeError("part of this graph was freed by backward(); call that one with retain_graph=True, "
                                   "or compute the result again")
        for i, x in enumerate(self.inputs):
            if not isinstance(x, Value) or not x.is_leaf:
                raise TypeError(f"inputs are leaves (Values that you made), but input {i} is {x!r:.80}")
            if x not in present and not x.requires_grad:
                raise ValueError(f"input {i}, {x!r:.80}, is not in the graph: it requires no gradient, so what was "
                                 "computed from it was not recorded but frozen; make it a Value that does")
        self.over_arrays = any(node.rank for node in (*operations, *leaves))
        given = set(self.inputs)
        self.given = [x for x in leaves if x not in given]
        reached = {root}                                # where a gradient arrives, and from where it goes on to `wrt`
        for node, flow, operands in reversed(self.operations):
            if node in reached:
                reached.update(operands[i] for i in flow.reached)
        self.wrt = [x for x in dict.fromkeys(leaves if wrt is None else wrt) if x in reached and x.requires_grad]
        self.needed = set(self.wrt)
        for node, flow, operands in self.operations:
            if node in reached and any(operands[i] in self.needed for i in flow.reached):
                self.needed.add(node)


class Trace:
    """The steps of a program, in order.

    Args:
        tape: the graph.
        style: how the target writes.
        batched: for each input, whether a batch stands for it.
        optimize: share what is computed twice, drop what is not needed, and name only what has to be named.
        backward: whether to write the way back as well.
    """

    def __init__(self, tape: Tape, style: type[Style], batched: Sequence[bool] = (), optimize: bool = True,
                 backward: bool = True) -> None:
        self.start(tape, style, optimize)
        of: dict[Any, Step] = {}
        for x in tape.given:
            of[x] = self.leaf(x, ONCE, "p" if x.requires_grad else "c")
        for x, many in zip(tape.inputs, batched or [False] * len(tape.inputs)):
            of[x] = self.leaf(x, EACH if many else ONCE, "x")
        self.given, self.inputs = [of[x] for x in tape.given], [of[x] for x in tape.inputs]
        for node, flow, operands in tape.operations:
            inputs = [of[x] if x in of else self.constant(x) for x in operands]
            as_it_is = not optimize and flow.op in _INFIX           # the plain form shows x * 1.0, too
            y = self.enter(flow.op, *inputs) if as_it_is else self.record(flow.op, inputs)
            if not optimize or y.parts[0] is flow.op:
                y = self.call_it(y, node.label, "v", flow.op.name if composed(flow.op) or flow.op is ops.relu else "")
            of[node] = y
        self.value = of[tape.root]
        last_forward = self.steps[-1] if self.steps else None
        self.gradients = self.walk_back(of, any(batched)) if backward else []
        self.count_uses()
        self.first_backward = 0 if optimize or last_forward is None else self.steps.index(last_forward) + 1

    def start(self, tape: Tape, style: type[Style], optimize: bool) -> None:
        self.tape, self.style, self.optimize = tape, style, optimize
        self.steps: list[Step] = []
        self.known: dict[Any, Step] = {}
        self.counts: dict[str, int] = {}
        self.taken = {*style.names.values(), *style.names, *TABLE, *keyword.kwlist, *_RESERVED}
        self.n = Step(self, (GIVEN,), name="n")

    # ------------------------------------------------------------------------ making steps
    def leaf(self, x: Value, when: int, letter: str) -> Step:
        return Step(self, (GIVEN,), when, self.free_name(x.label, letter))

    def constant(self, x: Any) -> Step:
        """A number or a bool, as a step."""
        if isinstance(x, Step):
            return x
        key = repr(x)
        if key not in self.known:
            step = self.known[key] = Step(self, (GIVEN,), value=x)
            text = self.style.of(x)
            step.text, step.precedence = text.text, text.precedence
        return self.known[key]

    def record(self, op: Operation, inputs: Sequence) -> Step:
        """The step that applies `op`, unless it can be done without."""
        inputs = tuple([x if x.__class__ is Step else self.constant(x) for x in inputs])
        if op not in _PLAIN or inputs[0] is inputs[1] or inputs[0].value is not None or inputs[1].value is not None:
            simple = self.simple(op, inputs)
            if simple is not None:
                return simple
        return self.enter(op, *inputs)

    def enter(self, *parts: Any) -> Step:
        """The step of these parts, new unless it is known."""
        if self.optimize and (known := self.known.get(parts)) is not None:
            return known
        step = self.known[parts] = self.new(parts)
        return step

    def new(self, parts: tuple) -> Step:
        """A step of these parts."""
        when = parts[1].when
        for x in parts[2:]:
            if x.when > when:
                when = x.when
        step = Step(self, parts, AFTER if parts[0] is TOTAL else when)
        self.steps.append(step)
        return step

    def simple(self, op: Operation, inputs: tuple[Step, ...]) -> Step | None:
        """What the operation comes to where it needs no step of its own, or where others do its work."""
        values = [x.value for x in inputs]
        if None not in values:
            return self.constant(op.scalar(*values))
        raw = [x if value is None else value for x, value in zip(inputs, values)]
        simple = inputs[0].simpler(op, *raw)
        if simple is None and self.optimize and (op is ops.add or op is ops.sub):
            simple = inputs[0] if values[1] == 0 else inputs[1] if values[0] == 0 and op is ops.add else None
        if self.optimize and op is ops.neg and inputs[0].parts[0] is ops.where:
            condition, a, b = inputs[0].parts[1:]
            if a.value is not None and b.value is not None:         # of two numbers: choose between the negative ones
                return self.record(ops.where, (condition, -a.value, -b.value))
        if simple is None and op is AND:
            simple = (inputs[1] if values[0] else False) if values[0] is not None else None
        if simple is None and op.name not in self.style.names and composed(op):
            try:
                simple = op.forward(*inputs)
            except TypeError:                           # it asks for numbers: only its own function will do
                if not self.style.calls_anything:
                    raise TypeError(f"{op.name} works on numbers only, so this target cannot express it; write it in "
                                    "operators and functions of micrograd, or use target='python'") from None
        return None if simple is None else self.constant(simple)

    def free_name(self, label: str, letter: str = "v") -> str:
        """An identifier that is not taken: the label if possible, else a letter and a number."""
        label = re.sub(r"\W", "_", unicodedata.normalize("NFKC", label), flags=self.style.alphabet)
        label = "" if not label.strip("_") else label if label.isidentifier() else f"{letter}_{label}"
        base, i = label or letter, 2 if label else self.counts.get(letter, 1)
        name = label or f"{base}{i}"
        while name in self.taken:
            name, i = f"{base}_{i}" if label else f"{base}{i + 1}", i + 1
        if not label:
            self.counts[letter] = i + 1
        self.taken.add(name)
        return name

    def call_it(self, step: Step, name: str, letter: str, comment: str = "") -> Step:
        """Give the step a name; a second name makes a copy."""
        if self.optimize:
            if name and not step.name:
                step.name = self.free_name(name)
            return step
        if step.name or step.value is not None:
            step = self.enter(COPY, step)
        step.name, step.comment = self.free_name(name, letter), comment
        return step

    # --------------------------------------------------------------------------- the way back
    def walk_back(self, of: dict[Any, Step], batch: bool) -> list[Step]:
        """The chain rule on steps: the gradient by each leaf that is wanted.

        Where a sample's step meets one that runs once for all samples, gradients are summed over the batch.
        """
        grads: dict[Any, Step] = {}                     # by node: two nodes may share a step
        summed: dict[Any, Step] = {}                    # of these the sum over the batch is still to come
        tape = self.tape
        seed = self.n if batch and self.value.when == ONCE else self.constant(1.0)
        self.arrive(grads, tape.root, of, seed, "")
        for node, flow, operands in reversed(tape.operations):
            if node not in tape.needed:
                continue
            y, g = of[node], self.complete(node, of, grads, summed)
            inputs = [of[x] if x in of else self.constant(x) for x in operands]
            for i, part in flow.contributions(g, inputs, y):
                target = operands[i]
                if target in tape.needed:
                    part = part if part.__class__ is Step else self.constant(part)
                    comment = "" if self.optimize else rule(flow.op, i)
                    if y.when != EACH or of[target].when == EACH:
                        self.arrive(grads, target, of, part, comment)
                    elif part.when == EACH:
                        self.arrive(summed, target, of, part, comment, "g_")
                    else:
                        self.arrive(grads, target, of, self.n * part, comment)
        found = []
        for x in tape.wrt:
            g = self.complete(x, of, grads, summed)
            if of[x].when == EACH:
                g = self.record(TOTAL, (g,)) if g.when == EACH else self.n * g
            found.append(g)
        return found

    def arrive(self, grads: dict[Any, Step], x: Any, of: dict[Any, Step], part: Step, comment: str,
               prefix: str = "d_") -> None:
        """Add what arrives at x to what arrived before."""
        old = grads.get(x)
        if old is None:
            new = part
        elif old.value is None and part.value is None:
            new = self.new((ops.add, old, part))        # a sum that hardly anybody else has: not worth remembering
        else:
            new = old + part
        if not self.optimize:
            if old is None or old.when != new.when:     # what is added up in a loop must begin there
                new = self.call_it(new, prefix + of[x].name, "g", comment)
            else:
                new.name, new.comment = old.name, comment
        grads[x] = new

    def complete(self, x: Any, of: dict[Any, Step], grads: dict[Any, Step], summed: dict[Any, Step]) -> Step:
        """The gradient of x, now that everything has arrived."""
        if x in summed:
            self.arrive(grads, x, of, self.record(TOTAL, (summed.pop(x),)), "summed over the batch")
        return grads[x]

    # ---------------------------------------------------------------------- what to write down
    def count_uses(self) -> None:
        """How often each step is needed, from the results back; what nothing needs is dropped."""
        repeats = self.style.repeats
        for step in (self.value, *self.gradients):
            step.uses += 2
        for step in reversed(self.steps):
            if step.name and not self.optimize:
                step.uses += 2
            if step.uses:
                more = 2 if step.parts[0] in repeats else 1
                when = step.when
                for x in step.parts[1:]:
                    x.uses += more if x.when == when else more + 1
        self.steps = [step for step in self.steps if step.uses]
