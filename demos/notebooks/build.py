"""Makes the notebooks from the lessons: `python demos/notebooks/build.py`, or with numbers, those lessons only.

Jupytext reads a script, comments that stand alone become text, and nbclient runs the result, so that tables and
pictures are in the file. Never edit a notebook: edit the lesson, and build again.

    pip install jupytext nbclient ipykernel
"""

import ast
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
SETUP = "import sys\n\nsys.path.insert(0, '..')            # the lessons' helpers, course.py and chart.py, are one folder up"


def notebook(script: Path) -> nbformat.NotebookNode:
    """A lesson as a notebook, not yet run."""
    text = script.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    title, _, rest = ast.literal_eval(first.value).partition("\n")
    body = "\n".join(text.splitlines()[first.end_lineno:]).strip()
    built = jupytext.reads(body, fmt="py:light")
    opening = nbformat.v4.new_markdown_cell(f"# {title}\n\n{rest.strip()}")
    built.cells = [opening, nbformat.v4.new_code_cell(SETUP), *built.cells]
    for i, cell in enumerate(built.cells):
        cell.id = f"cell-{i}"                           # else a new one each time
    built.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return nbformat.validator.normalize(built)[1]


def main() -> None:
    wanted = [f"{int(number):02}" for number in sys.argv[1:]]
    for script in sorted(HERE.parent.glob("[0-9][0-9]_*.py")):
        if not wanted or script.name[:2] in wanted:
            built = notebook(script)
            NotebookClient(built, timeout=600, record_timing=False, resources={"metadata": {"path": str(HERE)}}).execute()
            built.metadata.pop("language_info", None)   # the version of Python that happened to run it
            nbformat.write(built, HERE / f"{script.stem}.ipynb")
            print(script.stem)


if __name__ == "__main__":
    main()
