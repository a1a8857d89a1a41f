"""A module is a thing with parameters, and perhaps with parts that are modules."""

from __future__ import annotations

from typing import Any


class Module:
    """Anything that computes with parameters; a subclass says which in `parameters()`."""

    def zero_grad(self) -> None:
        """Forget the gradient of every parameter."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def parameters(self) -> list[Any]:
        """The nodes that training changes."""
        return []
