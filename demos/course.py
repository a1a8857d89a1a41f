"""What the lessons share: where their pictures go, and tables that are large enough to project.

A lesson takes two options: `-o FOLDER` puts its pictures there instead of beside the script, and `--quick` lets it
train for a moment only, to see that all works.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
try:
    import micrograd  # noqa: F401
except ImportError:                                     # not installed: use the package beside this folder
    sys.path.insert(0, str(HERE.parent))

out, quick = HERE, False
if Path(sys.argv[0]).resolve().parent == HERE and sys.argv[0][-3:] == ".py" and Path(sys.argv[0]).name[0].isdigit():
    _parser = argparse.ArgumentParser(description="One lesson of the course.")
    _parser.add_argument("-o", metavar="FOLDER", type=Path, default=HERE, help="where pictures go")
    _parser.add_argument("--quick", action="store_true", help="train for a moment only")
    _options = _parser.parse_args()
    out, quick = _options.o, _options.quick


def save(name: str, picture: Any) -> None:
    """Write a picture (SVG text, a drawing, or anything with `.svg()`) and say where; a notebook shows it as well."""
    text = (picture if isinstance(picture, str) else picture.svg() if hasattr(picture, "svg")
            else picture.pipe(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    (out / name).write_text(text, encoding="utf-8", newline="\n")
    show(name)


def show(name: str) -> None:
    """Say where a picture is; in a notebook, show it."""
    if "ipykernel" in sys.modules:
        from IPython.display import SVG, display
        display(SVG((out / name).read_text(encoding="utf-8")))
    else:
        print(f"\npicture: {name}")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: text to the left, numbers to the right, with four digits unless they are formatted already."""
    body = [[f"{x:.4g}" if isinstance(x, float) else f"{x:,}" if isinstance(x, int) else str(x) for x in row]
            for row in rows]
    wide = [max(map(len, column)) for column in zip(head, *body)]
    left = [isinstance(x, str) and not x[:1].isdigit() for x in rows[0]]
    print()
    for line in (head, ["-" * w for w in wide], *body):
        print("   ".join(x.ljust(w) if text else x.rjust(w) for x, w, text in zip(line, wide, left)).rstrip())


def seconds(work: Callable[[], Any], at_least: float = 0.05) -> float:
    """How long `work()` takes: the best of several runs that last `at_least` seconds together."""
    best, start = float("inf"), time.perf_counter()
    while True:
        before = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - before)
        if now - start > at_least:
            return best
