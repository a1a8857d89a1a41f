"""Pictures of both passes: DOT and Mermaid text, SVG, PNG and PDF, animation, and a page to step through."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {"draw": "picture", "draw_dot": "picture", "to_mermaid": "mermaid",
         "animate": "animation", "stepper": "stepping"}

__all__ = ["animate", "draw", "draw_dot", "stepper", "to_mermaid"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'micrograd.drawing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"micrograd.drawing.{_HOME[name]}"), name)
