"""The list of lessons, or all of them in a row: `python -m demos`, `python -m demos 5 12`, `python -m demos all -o out/`."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
import runpy
import time
from html import escape
from pathlib import Path

import course

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>From a derivative to a GPT</title><style>
body{margin:0 auto;max-width:60rem;padding:1rem;font:1rem/1.5 system-ui,sans-serif;color:#1b2430;background:#fff}
nav a{display:inline-block;margin:0 .6rem .3rem 0} section{border-top:1px solid #d5dae1;padding:1rem 0}
h2{margin:.2rem 0}
figure{margin:1rem 0;overflow-x:auto} img{max-width:max(100%,36rem);height:auto;display:block;background:#fff}
pre{overflow-x:auto;background:#f4f6f8;padding:.8rem;border-radius:.4rem;font-size:.8rem;line-height:1.35}
.question{font-size:1.15rem;font-weight:600} summary{cursor:pointer;color:#0059a3}
@media print{details{display:none} section{break-inside:avoid}}
</style></head><body><h1>From a derivative to a GPT</h1>
<p>{count} lessons; each is a script that runs alone. What they print and draw, as it came out here.</p><nav>{links}</nav>
{sections}</body></html>
"""


def lessons() -> dict[int, tuple[Path, str, str]]:
    """{number: (script, question, the rest of its introduction)}"""
    found = {}
    for path in sorted(course.HERE.glob("[0-9][0-9]_*.py")):
        first, _, rest = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")
        found[int(path.name[:2])] = (path, first.split(". ", 1)[1], rest.strip())
    return found


def run(path: Path) -> str:
    """Run one lesson; what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(path), run_name="__main__")
    return said.getvalue()


def prose(text: str) -> str:
    """Text as HTML, with `code` between backquotes."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def section(number: int, path: Path, question: str, rest: str, said: str) -> str:
    """One lesson on the page: question, pictures, what to notice, all that was printed, the script."""
    pictures = sorted(p.name for p in course.out.glob(f"{number:02}_*.svg"))
    images = "".join(f'<figure><img src="{name}" alt="Picture of lesson {number}: {escape(question)}"></figure>'
                     for name in pictures)
    pages = "".join(f'<p><a href="{p.name}">Step through it</a></p>' for p in course.out.glob(f"{number:02}_*.html"))
    table, _, notice = said.partition("\nNotice\n")
    table = "\n".join(line for line in table.splitlines() if not line.startswith(("picture: ", "page: ")))
    code = escape(path.read_text(encoding="utf-8"))
    return (f'<section id="lesson{number}"><h2>{number}. {escape(path.stem[3:].replace("_", " "))}</h2>'
            f'<p class="question">{prose(question)}</p><p>{prose(rest)}</p>{images}{pages}'
            f"<pre>{escape(table.strip())}</pre><h3>Notice</h3><ul>"
            + "".join(f"<li>{prose(' '.join(item.split()))}</li>" for item in notice.strip("\n- ").split("\n- "))
            + f"</ul><details><summary>the script</summary><pre>{code}</pre></details></section>")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m demos", description="The lessons of the course.")
    parser.add_argument("which", nargs="*", help="numbers of lessons, or all; left out, the lessons are listed")
    parser.add_argument("-o", metavar="FOLDER", type=Path, help="put pictures and index.html there")
    parser.add_argument("--quick", action="store_true", help="train for a moment only")
    options = parser.parse_args()
    known = lessons()
    if not options.which:
        print("\n".join(f"{number:2}  {path.stem[3:]:24} {question}" for number, (path, question, _) in known.items()))
        print("\npython -m demos 5 12 runs two of them, python -m demos all -o out/ all, with a page of every picture")
        return
    wrong = [name for name in options.which if name != "all" and not (name.isdigit() and int(name) in known)]
    if wrong:
        parser.error(f"no lesson {wrong[0]!r}; lessons are 1 to {max(known)}, or all")
    course.quick, course.out = options.quick, options.o or course.out
    numbers = list(known) if "all" in options.which else [int(name) for name in options.which]
    sections, began = [], time.perf_counter()
    for number in numbers:
        path, question, rest = known[number]
        before = time.perf_counter()
        said = run(path)
        if options.o is None:
            print(f"=== {number}. {question}\n{said}")
        else:
            print(f"{number:2}  {path.stem[3:]:24} {time.perf_counter() - before:5.1f} s")
            sections.append(section(number, path, question, rest, said))
    if options.o is not None:
        links = "".join(f'<a href="#lesson{n}">{n}. {escape(known[n][0].stem[3:].replace("_", " "))}</a>' for n in numbers)
        text = PAGE.replace("{count}", str(len(numbers))).replace("{links}", links).replace("{sections}", "\n".join(sections))
        (options.o / "index.html").write_text(text, encoding="utf-8")
        print(f"all in {time.perf_counter() - began:.0f} s; the page is {options.o / 'index.html'}")


if __name__ == "__main__":
    main()
