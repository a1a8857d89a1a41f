"""What backward does not need is not kept: which that is, the rules themselves say."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Sequence
from typing import Any

from micrograd.engine import Flow
from micrograd.engine import _data as data_of


class Released:
    """In place of data that no rule looks at and no variable holds: its form, and how to compute it again."""

    def __init__(self, data: Any, flow: Flow, operands: Sequence) -> None:
        self.shape, self.dtype, self.ndim, self.size = data.shape, data.dtype, data.ndim, data.size
        self.flow, self.operands = flow, operands

    def again(self) -> Any:
        """The data, for a reader."""
        for x in self.operands:
            getattr(x, "look", bool)()
        return self.flow.op.on_arrays(*map(data_of, self.operands), *getattr(self.flow, "parameters", ()))


def looks(flow: Flow) -> set[int]:
    """The positions of the arguments (g, *inputs, y) that the rules of a flow look at, read from their code."""
    op = flow.op
    if op.looks is None:
        op.looks = tuple(map(_looks, op.rules))
    return set().union(*(op.looks[i] for i in flow.reached))


def _looks(rule: Any) -> Sequence[int]:
    code = getattr(rule, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return range(9)
    named = [line.argval for line in dis.get_instructions(code)]
    used = {name for x in named for name in (x if x.__class__ is tuple else (x,))}
    return [i for i, name in enumerate(code.co_varnames[:code.co_argcount]) if name in used]
