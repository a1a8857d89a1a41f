"""What stands beside backward: recording on and off, gradients as a function, derivatives of any order.

Everything here works on Values and on Tensors, because it asks nothing of a node but its gradient.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from micrograd.engine import Value, set_thread, thread


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return thread.recording


class set_grad_enabled:
    """Switch recording on or off: at once, for a `with` block, or for a decorated function. Per thread.

    >>> x = Value(3.0)
    >>> with set_grad_enabled(False):
    ...     (x * x).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode, self.before = bool(mode), [set_thread("recording", bool(mode))]

    def __enter__(self) -> set_grad_enabled:
        self.before.append(set_thread("recording", self.mode))
        if len(self.before) == 2:                       # `with set_grad_enabled(m)`: made a moment ago
            self.before.pop()
        return self

    def __exit__(self, *error: Any) -> None:
        set_thread("recording", self.before.pop())

    def __call__(self, function: Callable) -> Callable:
        if self.before:
            set_thread("recording", self.before.pop())         # decorating alone changes nothing
        return _in_mode(self.mode, function)


def _in_mode(mode: bool, function: Callable) -> Callable:
    """`function` with recording set to `mode` while its body runs; a generator's body too, not its caller."""
    @functools.wraps(function)
    def run(*inputs: Any, **keywords: Any) -> Any:
        before = set_thread("recording", mode)
        try:
            return function(*inputs, **keywords)
        finally:
            set_thread("recording", before)

    @functools.wraps(function)
    def generate(*inputs: Any, **keywords: Any) -> Any:
        generator = function(*inputs, **keywords)
        step: Callable = functools.partial(next, generator)
        try:
            while True:
                try:
                    item = _in_mode(mode, step)()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield item
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)
        finally:
            generator.close()

    return generate if inspect.isgeneratorfunction(function) else run


class _Mode:
    """no_grad and enable_grad: as `with no_grad():`, `@no_grad()` and `@no_grad`."""

    mode = True

    def __new__(cls, function: Callable | None = None) -> Any:
        return super().__new__(cls) if function is None else _in_mode(cls.mode, function)

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> None:
        self.before.append(set_thread("recording", self.mode))

    def __exit__(self, *error: Any) -> None:
        set_thread("recording", self.before.pop())

    def __call__(self, function: Callable) -> Callable:
        return _in_mode(self.mode, function)


class no_grad(_Mode):
    """Record nothing: results require no gradient, cost no graph, and keep nothing alive. Per thread.

    >>> with no_grad():
    ...     y = Value(2.0) * 3.0
    >>> y.requires_grad, y.inputs
    (False, ())
    """

    mode = False


class enable_grad(_Mode):
    """Record again, inside `no_grad`."""


