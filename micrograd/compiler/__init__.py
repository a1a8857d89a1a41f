"""Backpropagation as a program: a graph becomes straight-line code that can be read, and run without the graph."""

from __future__ import annotations

from micrograd.compiler.program import Program, compile, source

__all__ = ["Program", "compile", "source"]
