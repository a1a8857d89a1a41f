"""A program over whole arrays: the buffers are made once, and every call of NumPy writes into one of them.

The way back is recorded by running the rules on Tensors, as for second derivatives. Only comparisons need
care: a Tensor answers them at once, but a program has to ask again each time, so the tracing Tensor records them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from micrograd import ops
from micrograd.compiler.arrays import Buffers, NumPy, buffered_source, functions
from micrograd.compiler.trace import AND, BOOLEAN, CONDITIONS, EACH, GIVEN, ONCE, Step, Tape, Trace
from micrograd.engine import Flow, Value, set_thread, topological_order
from micrograd.ops import TABLE, Operation

_FROZEN = {"max", "min", "cross_entropy", "layer_norm"}     # their rules look at data, which would be frozen
_LOOKS_AT_DATA = ("target='numpy' cannot compile {} yet: data that it looks at would be frozen; "
                  "compose it of other operations, or use backward()")
_VIEWS: dict[str, Callable[..., str]] = {
    "reshape": lambda x, shape: f"{x}.reshape({shape})", "permute": lambda x, dims: f"{x}.transpose({dims})",
    "swapaxes": lambda x, a, b: f"{x}.swapaxes({a}, {b})"}


@functools.cache
def _tracing() -> type:
    from micrograd.tensor.node import Tensor, record

    class Tracing(Tensor):
        """A Tensor whose comparisons are recorded."""

        __slots__ = ()
        rank = 9

        def apply(self, op: Operation, *inputs: Any) -> Any:
            return Tensor.apply_to(op, inputs) if any(op.rules) else self.ask(op, *inputs)

        def ask(self, op: Operation, *inputs: Any) -> Any:
            data = op.forward(*(x.data if isinstance(x, Value) else x for x in inputs)) if op is not AND else (
                inputs[0].data & inputs[1].data)
            node = record(data, Flow(op), *(x if isinstance(x, Value) else float(x) for x in inputs))
            node.__class__ = Tracing
            return node

        def __and__(self, other: Any) -> Any:
            return self.ask(AND, self, other) if isinstance(other, Value) else self if other else False

        def __rand__(self, other: Any) -> Any: return self & other
        def __lt__(self, other: Any) -> Any: return self.ask(CONDITIONS["<"], self, other)
        def __gt__(self, other: Any) -> Any: return self.ask(CONDITIONS[">"], self, other)
        def __le__(self, other: Any) -> Any: return self.ask(CONDITIONS["<="], self, other)
        def __ge__(self, other: Any) -> Any: return self.ask(CONDITIONS[">="], self, other)

    return Tracing


class TensorTrace(Trace):
    """The steps of a program over arrays; each knows the shape and type of its result."""

    def __init__(self, tape: Tape) -> None:
        self.start(tape, NumPy, True)
        self.constants: dict[str, Any] = {}
        self.like: dict[Step, tuple] = {}               # the shape and the type of what is no plain number
        self.parameters: dict[Step, tuple] = {}
        of: dict[Any, Step] = {}
        for x in (*tape.given, *tape.inputs):
            of[x] = self.array(self.free_name(x.label, "p" if x.requires_grad else "x"), x.data)
        self.given, self.inputs = [of[x] for x in tape.given], [of[x] for x in tape.inputs]
        for node, flow, operands in tape.operations:
            of[node] = self.convert(node, flow, [of[x] if x in of else x for x in operands])
        self.value = of[tape.root]
        self.gradients = self.walk_back_on_tensors(of)
        self.count_uses()

    def array(self, name: str, data: Any) -> Step:
        """A step for what is given."""
        step = Step(self, (GIVEN,), EACH if getattr(data, "ndim", 0) else ONCE, name)
        self.like[step] = (getattr(data, "shape", ()), str(getattr(data, "dtype", "float64")))
        return step

    def frozen(self, data: Any) -> Step:
        """A step for an array that a rule brought along."""
        if not data.ndim:
            return self.constant(data.item())
        if (data != data.flat[:1]).any():
            raise TypeError(_LOOKS_AT_DATA.format("an operation whose rule uses plain arrays"))
        name = self.free_name("", "k")
        self.constants[name] = data
        return self.array(name, data)

    def convert(self, node: Any, flow: Flow, inputs: list) -> Step:
        """The step for a recorded node. Broadcasting is left to NumPy, and done only where a whole array is needed."""
        op, parameters = flow.op, getattr(flow, "parameters", ())
        if op.name in _FROZEN:
            raise TypeError(_LOOKS_AT_DATA.format(op.name))
        if TABLE.get(op.name) is op or op in BOOLEAN:
            return self.record(op, inputs)
        steps = [self.constant(x) for x in inputs]
        if op.name == "broadcast_to" or op.name == "reshape" and not self.like.get(steps[0], ((),))[0]:
            return steps[0]
        shapes = [getattr(getattr(x, "data", None), "shape", ()) for x in node.operands()]
        steps = [self.whole(x, shape) for x, shape in zip(steps, shapes)]
        return self.call(op, steps, () if op.name == "cat" else parameters, node.data)

    def call(self, op: Operation, steps: list[Step], parameters: tuple, data: Any) -> Step:
        """The step for an operation on whole arrays; `data` shows the shape and type of its result."""
        key = (op, *steps, repr(parameters) if _simple(parameters) else id(parameters))
        if key not in self.known:
            step = self.known[key] = Step(self, (op, *steps), EACH if getattr(data, "ndim", 0) else ONCE)
            self.steps.append(step)
            self.parameters[step] = parameters
            self.like[step] = (getattr(data, "shape", ()), str(getattr(data, "dtype", "float64")))
        return self.known[key]

    def whole(self, x: Step, shape: tuple) -> Step:
        """x in its full shape, for what does not broadcast by itself."""
        import numpy as np
        if self.like.get(x, ((),))[0] == shape:
            return x
        return self.call(_BROADCAST, [x], (shape,), np.broadcast_to(np.zeros((), self.like.get(x, (0, "d"))[1]), shape))

    def simple(self, op: Operation, inputs: tuple[Step, ...]) -> Step | None:
        a = inputs[0]
        if op is ops.add and a is inputs[1] and a.parts[0] is ops.mul and a.parts[1].when == ONCE:
            return (a.parts[1] + a.parts[1]) * a.parts[2]       # doubling is exact, and cheaper on one number
        return super().simple(op, inputs)

    def enter(self, *parts: Any) -> Step:
        step = super().enter(*parts)
        if step not in self.like:
            import numpy as np
            likes = [self.like[x] for x in parts[1:] if x in self.like]
            shape = np.broadcast_shapes(*(shape for shape, _ in likes))
            dtype = "bool" if parts[0] in BOOLEAN else str(np.result_type(*[d for _, d in likes if d != "bool"] or ["d"]))
            self.like[step], step.when = (shape, dtype), EACH if shape else ONCE
        return step

    def walk_back_on_tensors(self, of: dict[Any, Step]) -> list[Step]:
        """The chain rule on Tensors that record, and from what they recorded the steps."""
        import numpy as np
        tracing, tape = _tracing(), self.tape
        stands: dict[Any, Any] = {}
        before = set_thread("recording", True)
        try:
            for node in (*tape.given, *tape.inputs, *(node for node, _, _ in tape.operations)):
                stands[node] = tracing(node.data)
                of[stands[node]] = of[node]
            seed = tracing(np.ones(np.shape(tape.root.data)))
            of[seed] = self.constant(1.0) if not seed.ndim else self.frozen(seed.data)
            grads: dict[Any, Any] = {tape.root: seed}
            for node, flow, operands in reversed(tape.operations):
                if node in tape.needed:
                    inputs = [stands.get(x, x) for x in operands]
                    for i in flow.reached:
                        if operands[i] in tape.needed:
                            part = flow.op.rules[i](grads[node], *inputs, stands[node], *getattr(flow, "parameters", ()))
                            part = part if isinstance(part, Value) else tracing(part, requires_grad=False)
                            old = grads.get(operands[i])
                            grads[operands[i]] = part if old is None else old + part
            found = [grads[x] for x in tape.wrt]
            operations, leaves = topological_order(Value(0.0, found))
        finally:
            set_thread("recording", before)
        for x in leaves:
            if x not in of:
                of[x] = self.frozen(np.asarray(x.data))
        for node in operations[:-1]:
            if node not in of:
                of[node] = self.convert(node, node.flow, [of[x] if x in of else x for x in node.operands()])
        return [self.whole(of[g], np.shape(x.data)) for g, x in zip(found, tape.wrt)]


def _broadcast_to(x: Any, shape: tuple) -> Any:
    import numpy as np
    return np.broadcast_to(x, shape)


_BROADCAST = Operation("broadcast_to", "broadcast_to", _broadcast_to, (None,))


def _simple(x: Any) -> bool:
    return all(_simple(k) for k in x) if isinstance(x, tuple) else x is None or isinstance(x, (int, float, slice, type(...)))


class ArrayBuffers(Buffers):
    """Buffers for each shape and type."""

    trace: TensorTrace

    def __init__(self, trace: TensorTrace, namespace: dict[str, Any]) -> None:
        super().__init__(trace)
        self.namespace = namespace
        # the sum of a product over all axes is a dot product
        self.squares = {step.parts[1] for step in trace.steps if step in trace.parameters and step.parts[0].name == "sum"
                        and trace.parameters[step][0] is None and self.is_square(step.parts[1])}
        for x in (trace.value, *trace.gradients):
            self.last[x] = len(trace.steps)
        for i, step in reversed(list(enumerate(trace.steps))):
            if step in trace.parameters and step.parts[1] in self.squares:
                for x in step.parts[1].parts[1:]:
                    self.last[x] = max(self.last[x], i)
            if step in trace.parameters and step.parts[0].name != "matmul":     # what may be a view keeps its base alive
                for x in step.parts[1:]:
                    self.last[x] = max(self.last.get(x, i), self.last.get(step, i))

    def is_square(self, x: Step) -> bool:
        """Whether x is a product of two arrays of one shape that is needed for its sum only."""
        likes = [self.trace.like.get(y) for y in x.parts[1:]]
        return x.parts[0] is ops.mul and x.uses <= 1 + (x.when == EACH) and likes[0] == likes[1] == self.trace.like[x]

    def writes(self, step: Step) -> bool:
        return step.when == EACH or step in self.trace.parameters

    def kind(self, step: Step) -> Any:
        return self.trace.like.get(step)

    def lines(self, i: int, step: Step) -> list[str]:
        if step in self.squares:
            return []
        if step not in self.trace.parameters:
            return super().lines(i, step)
        op, *inputs = step.parts
        parameters, texts = self.trace.parameters[step], [x.text for x in inputs]
        step.text = ""
        if op.name in _VIEWS:
            line = _VIEWS[op.name](*texts, *parameters)
        elif op.name == "matmul" and step.when == EACH:
            step.text = self.take(self.kind(step))
            self.give_back(i, tuple(inputs))
            return [f"matmul({', '.join(texts)}, {step.text})"]
        elif op.name == "sum" and len(parameters) == 2:
            axis, keep = parameters
            if inputs[0] in self.squares:
                inputs = list(inputs[0].parts[1:])
                line = f"vdot({inputs[0].text}, {inputs[1].text})"
            elif step.when == EACH:
                step.text = self.take(self.kind(step))
                self.give_back(i, tuple(inputs))
                axis = axis[0] if axis is not None and len(axis) == 1 else axis
                return [f"total({texts[0]}, {axis}, None, {step.text}, {keep})"]
            else:
                line = f"total({texts[0]}, {axis}, None, None, {keep})"
        else:
            name = self.trace.free_name("", "f")
            function = op.forward if parameters or op.array is None else op.on_arrays      # an operation of the user's
            self.namespace[name] = functools.partial(_apply, function, parameters)
            line = f"{name}({', '.join(texts)})"
        step.text = self.trace.free_name("", "v")
        self.give_back(i, tuple(inputs))
        return [f"{step.text} = {line}"]


def _apply(forward: Callable, parameters: tuple, *inputs: Any) -> Any:
    import numpy as np
    return forward(*map(np.asarray, inputs), *parameters)


def tensor_source(tape: Tape) -> tuple[str, dict[str, Any]]:
    """The source of a function over arrays, and what it works with: functions, buffers, constants."""
    import numpy as np
    trace, namespace = TensorTrace(tape), functions()
    namespace.update(total=np.add.reduce, vdot=np.vdot, matmul=np.matmul, **trace.constants)
    buffers = ArrayBuffers(trace, namespace)
    text = buffered_source(trace, buffers, namespace)
    for kind, names in buffers.made.items():
        namespace.update({name: np.empty(*kind) for name in names})
    return text, namespace


def tensor_text(tape: Tape, batched: Sequence[bool], optimize: bool) -> str:
    """The source of the program."""
    return tensor_source(tape)[0]


def tensor_run(tape: Tape, batched: Sequence[bool], optimize: bool) -> Callable:
    """What runs the program: given the data of the leaves and the inputs."""
    import numpy as np
    source, namespace = tensor_source(tape)
    exec(source, namespace)
    program = namespace["program"]
    shapes = [np.shape(x.data) for x in (*tape.given, *tape.inputs)]

    def run(data: list, inputs: Sequence, samples: int | None) -> tuple:
        given = [x if x.__class__ is np.ndarray else np.asarray(x) for x in (*data, *inputs)]
        if [x.shape for x in given] != shapes:
            raise ValueError(f"this program was compiled for arrays of the shapes {shapes}, got {[x.shape for x in given]}; "
                             "shapes are frozen by tracing, so compile again for others")
        with np.errstate(all="ignore"):
            value, gradients = program(*given)
        return value.copy() if value.ndim else float(value), gradients

    return run
