"""The main jobs without a line of Python: `python -m micrograd draw "tanh(x*w + b)" x=2 w=-3 b=6.9 -o neuron.svg`.

Each command is a function that takes the options and gives back what it has to say, as text and as data for
`--json`. It fetches from the library what it needs when it runs, and `main` turns every failure into one line.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import os
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import micrograd
from micrograd.expression import read, variables

Answer = tuple[str, dict[str, Any]]
NEURON = '"tanh(x1*w1 + x2*w2 + b)" x1=2 w1=-3 x2=0 w2=1 b=6.8813735870195432'


# ------------------------------------------------------------------------------------ commands
def draw(options: argparse.Namespace) -> Answer:
    """value and gradients of an expression, and its picture"""
    root, names = _graph(options)
    text, data = _gradients(options, root, names)
    if options.output:
        kind = _kind(options.output, ("svg", "png", "pdf", "dot", "mmd"))
        wanted = {name: value for name in PICTURE if (value := getattr(options, name)) is not None}
        wanted |= {"numbers": options.number_format, "formulas": options.formulas,
                   "highlight": [_named(names, name) for name in options.highlight]}
        if options.path:
            wanted["path"] = _named(names, options.path), root
        with _replacing(options.output) as file:
            if kind == "mmd":
                file.write_text(micrograd.to_mermaid(root, **wanted), encoding="utf-8")
            else:
                picture = micrograd.draw(root, **wanted)
                file.write_bytes(picture.source.encode() if kind == "dot" else picture.pipe(format=kind))
    return _with_file(options, text, data)


def explain(options: argparse.Namespace) -> Answer:
    """the chain rule, told step by step"""
    root, names = _graph(options)
    wrt = _named(names, options.wrt) if options.wrt else None
    text = micrograd.explain(root, wrt, options.format, digits=options.digits)
    _, data = _gradients(options, root, names)
    if not options.output:
        return text, {**data, "text": text}
    with _replacing(options.output) as file:
        file.write_text(text + "\n", encoding="utf-8")
    return _with_file(options, *_gradients(options, root, names))


def step(options: argparse.Namespace) -> Answer:
    """a page that steps through both passes"""
    return _moving(options, "stepper")


def animate(options: argparse.Namespace) -> Answer:
    """both passes as an animated SVG"""
    return _moving(options, "animate")


def check(options: argparse.Namespace) -> Answer:
    """the gradient by the chain rule beside the gradient by nudging each variable a little"""
    root, names = _graph(options)
    if root.requires_grad:
        root.backward()
    rows, given = [], variables(options.numbers)
    for name, number in given.items():
        nudge = 6e-6 * max(1.0, abs(number))
        up, down = (read(options.expression, given | {name: number + sign * nudge})[0].data for sign in (1, -1))
        rule, nudged = names[name].grad, (up - down) / (2 * nudge)
        agree = rule == nudged or abs(rule - nudged) <= 1e-5 + 1e-3 * abs(nudged)
        rows.append([name, number, rule, nudged, "yes" if agree else "NO: a kink or a jump?"])
    return _table(["name", "value", "chain rule", "nudging", "agree"], rows), {
        "agree": all(row[4] == "yes" for row in rows),
        "gradients": {row[0]: {"chain_rule": row[2], "nudging": row[3]} for row in rows}}


def train(options: argparse.Namespace) -> Answer:
    """a small network on two classes of points, and what it learned"""
    import random

    from micrograd import nn, optim
    X, y, classes = _points(options)
    random.seed(options.seed)
    model: Any = nn.MLP(X.shape[1], [*options.layers, 1], backend=options.backend)
    monitor = nn.Monitor(model)
    optimiser = getattr(optim, options.optimizer)(model.parameters(), lr=options.lr)
    batch = X.T if options.backend == "scalar" else X
    for _ in nn.progress(range(options.steps)):
        loss = nn.binary_cross_entropy_with_logits(model(batch), y)
        optimiser.zero_grad()
        loss.backward()
        monitor.record(loss)
        optimiser.step()
    accuracy = float(((model(batch).data > 0) == (y > 0)).mean())
    data = {"loss": monitor.losses, "accuracy": accuracy, "classes": classes,
            "parameters": sum(getattr(p.data, "size", 1) for p in model.parameters())}
    text = (f"{len(X)} points, {options.steps} steps: loss {monitor.losses[0]:.4f} -> {monitor.losses[-1]:.4f}, "
            f"accuracy {accuracy:.0%}")
    files = _results(options, model, monitor, X, y)
    return _with_file(options, f"{text}\n{', '.join(files)}".strip(), data | {"files": files})


def _results(options: argparse.Namespace, model: Any, monitor: Any, X: Any, y: Any) -> list[str]:
    """What training leaves in its folder."""
    if not options.output:
        return []
    from micrograd import nn
    from micrograd.drawing import training
    from micrograd.nn.layers import BatchMLP
    folder, written = Path(options.output), []

    def leave(name: str, write: Callable[[Path], Any]) -> None:
        with _replacing(str(folder / name)) as file:
            write(file)
        written.append(name)

    with _telling(f"cannot make the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    batch = model if options.backend == "numpy" else BatchMLP(model)
    loss = nn.binary_cross_entropy_with_logits(batch(X), y)
    leave("model.npz", lambda file: nn.save(model, file))
    leave("training.svg", lambda file: file.write_text(monitor.draw(), encoding="utf-8"))
    leave("stepper.html", lambda file: micrograd.stepper(loss, str(file)))
    if X.shape[1] == 2:
        try:
            leave("boundary.svg", lambda file: training.decision_boundary(model, X, y, str(file)))
        except ImportError as error:                    # the rest is worth having
            written.append(f"(no boundary.svg: {error})")
    return written


def demo(options: argparse.Namespace) -> Answer:
    """run a lesson of the course, or list them"""
    folder = Path(str(micrograd.__file__)).parent.parent / "demos"
    lessons = {path.stem: path for path in sorted(folder.glob("[0-9]*_*.py"))}
    if not lessons:
        raise ValueError("the lessons are in the folder demos/ of the repository, which is not here; run this from a clone")
    if not options.name:
        return _table(["lesson", "question"], [
            [name, path.read_text(encoding="utf-8").partition("\n")[0].strip('"')] for name, path in lessons.items()]), {
            "lessons": list(lessons)}
    found = [path for name, path in lessons.items() if options.name.zfill(2) in (name, *name.split("_", 1))]
    if not found:
        raise ValueError(f"there is no lesson {options.name!r:.60}; micrograd demo lists them")
    sys.argv, sys.path[0] = [str(found[0]), "-o", options.output], str(folder)     # as `python demos/01_... .py -o .`
    runpy.run_path(str(found[0]), run_name="__main__")
    return "", {"lesson": found[0].stem}


def bench(options: argparse.Namespace) -> Answer:
    """how fast this machine is: a few seconds"""
    from micrograd import nn
    x = micrograd.Value(0.5)

    def chain() -> Any:
        y = x
        for _ in range(5_000):
            y = y * 1.0001 + x
        return y

    model = nn.MLP(2, [16, 16, 1])
    points = [[math.cos(i), math.sin(i)] for i in range(20)]
    rows: list[list[Any]] = [
        ["forward, per operation", _seconds(chain) / 10_000 * 1e9, "ns"],
        ["forward and backward, per operation", _seconds(lambda: chain().backward()) / 10_000 * 1e9, "ns"],
        ["MLP(2, [16, 16, 1]) on 20 points, one step", _seconds(
            lambda: sum((model(point) - 1) ** 2 for point in points).backward()) * 1e3, "ms"]]
    return _table(["what", "time", ""], rows), {row[0]: f"{row[1]:.4g} {row[2]}" for row in rows}


def version(options: argparse.Namespace) -> Answer:
    """the version"""
    return f"micrograd-studio {micrograd.__version__}", {"version": micrograd.__version__}


# ------------------------------------------------------------------------------ what they share
def _graph(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The expression of the command line as a graph."""
    return read(options.expression, variables(options.numbers))


def _named(names: dict[str, Any], name: str) -> Any:
    """The node of a name in the expression."""
    if name not in names:
        raise ValueError(f"{name} is not in the expression; in it there is {', '.join(names) or 'no name'}")
    return names[name]


def _gradients(options: argparse.Namespace, root: Any, names: dict[str, Any]) -> Answer:
    """Run backward, and show the value and every gradient."""
    if root.requires_grad:
        root.backward()
    rows = [[name, node.data, node.grad if node.requires_grad else "constant"] for name, node in names.items()]
    text = f"{' '.join(options.expression.split())} = {_number(root.data)}"
    return text + (f"\n\n{_table(['name', 'value', 'gradient'], rows)}" if rows else ""), {
        "expression": options.expression, "value": root.data,
        "values": {name: node.data for name, node in names.items()},
        "gradients": {name: node.grad for name, node in names.items() if node.requires_grad}}


def _moving(options: argparse.Namespace, name: str) -> Answer:
    """Write the page or the animation of an expression."""
    root, names = _graph(options)
    _kind(options.output, ("html",) if name == "stepper" else ("svg",))
    with _replacing(options.output) as file:
        getattr(micrograd, name)(root, str(file))
    return _with_file(options, *_gradients(options, root, names))


def _points(options: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    """Points (n, k), their classes as 0.0 and 1.0, and the names of the classes."""
    import numpy
    makers = {name: getattr(micrograd.data, name) for name in ("moons", "circles", "spirals", "xor")}
    if options.data in makers:
        X, y = makers[options.data](options.points, seed=options.seed)
        return X, y.astype(float), ["0", "1"]
    if not options.data.lower().endswith(".csv"):
        raise ValueError(f"there are no data {options.data!r}; there is {', '.join(makers)}, or a file that ends in .csv")
    with _telling(f"cannot read {options.data}"), open(options.data, newline="", encoding="utf-8-sig") as file:
        rows = [(n, [cell.strip() for cell in row]) for n, row in enumerate(csv.reader(file), 1) if any(row)]
    if rows and not any(map(_is_number, rows[0][1][:-1])):
        del rows[0]                                     # a header
    points, kinds = [], []
    for n, row in rows:
        where = f"{options.data}, line {n}"
        if len(row) != len(rows[0][1]) or len(row) < 2:
            raise ValueError(f"{where}: {len(row)} columns, expected {max(2, len(rows[0][1]))} (numbers, then the class)")
        for column, cell in enumerate(row[:-1], 1):
            if not _is_number(cell):
                raise ValueError(f"{where}, column {column}: {cell!r:.40} is not a finite number")
        points.append([*map(float, row[:-1])])
        kinds.append(row[-1])
    classes = sorted(set(kinds))
    if len(classes) != 2:
        raise ValueError(f"{options.data}: the last column must hold two classes, and it holds {len(classes)}: "
                         f"{', '.join(map(repr, classes[:5]))}")
    return numpy.array(points), numpy.array([float(classes.index(kind)) for kind in kinds]), classes


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _seconds(job: Callable[[], Any]) -> float:
    """The shortest of the runs that fit into half a second."""
    end, best = time.perf_counter() + 0.5, math.inf
    while (start := time.perf_counter()) < end or best == math.inf:
        job()
        best = min(best, time.perf_counter() - start)
    return best


def _table(head: list[str], rows: list[list[Any]]) -> str:
    """Columns with room between them; numbers to the right, words to the left."""
    texts = [head, *([x if isinstance(x, str) else _number(x) for x in row] for row in rows)]
    lines = [""] * len(texts)
    for k in range(len(head)):
        right = any(not isinstance(row[k], str) for row in rows)
        width = max(len(row[k]) for row in texts)
        lines = [f"{line}  {row[k].rjust(width) if right else row[k].ljust(width)}" for line, row in zip(lines, texts)]
    return "\n".join(line.strip() for line in lines)


def _number(x: float) -> str:
    return f"{x:.6g}"


def _count(text: str) -> int:
    """A number of things, at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r:.40}")
    return int(text)


def _kind(path: str, known: Sequence[str]) -> str:
    """The kind of file that the end of a name asks for."""
    kind = Path(path).suffix[1:].lower()
    if kind not in known:
        raise ValueError(f"{path!r} is no name for what is to be written: it should end in {', '.join('.' + x for x in known)}")
    return kind


@contextlib.contextmanager
def _telling(what: str) -> Iterator[None]:
    """An error of the file system, in a sentence that begins with `what`."""
    try:
        yield
    except (OSError, UnicodeError, csv.Error) as error:
        raise ValueError(f"{what}: {getattr(error, 'strerror', None) or error}") from None


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[Path]:
    """A file beside `path` to write to. It takes the place of `path` when all went well, and goes otherwise."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".micrograd-{os.getpid()}{target.suffix}")
    with _telling(f"cannot write {path}"):
        if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
            raise OSError("it is there already, and not a file that may be written")
        temporary.touch()
    try:
        yield temporary
        with _telling(f"cannot write {path}"):
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _with_file(options: argparse.Namespace, text: str, data: dict[str, Any]) -> Answer:
    """Add where the result was written to."""
    return (f"{text}\n\nwrote {options.output}", {**data, "output": options.output}) if options.output else (text, data)


# --------------------------------------------------------------------------------- command line
# the options of `draw` that a shell can give, and what they may be
PICTURE: dict[str, Any] = {
    "edges": ("local", "upstream", "product"), "passes": ("forward", "both"), "color": ("kind", "gradient"),
    "operations": ("nodes", "inside"), "layout": ("card", "row"), "rankdir": ("LR", "TB", "RL", "BT"),
    "theme": ("auto", "light", "dark", "print"), "caption": str, "font": str, "timeout": float, "max_nodes": _count}



class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help")


def _parser() -> _Parser:
    parser = _Parser(prog="micrograd", description="Expressions, their gradients, their pictures.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(function: Callable[[argparse.Namespace], Answer], *examples: str, expression: bool = True) -> Callable:
        added = commands.add_parser(
            function.__name__, help=function.__doc__, description=f"{str(function.__doc__).capitalize()}.",
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
            epilog="\n".join(["examples:", *(f"  python -m micrograd {function.__name__} {x}" for x in examples)]))
        added.set_defaults(run=function)
        added.add_argument("--json", action="store_true", help="print JSON")
        if expression:
            added.add_argument("expression", help='as in "u = x*w + b; tanh(u)"')
            added.add_argument("numbers", nargs="*", default=[], metavar="NAME=NUMBER", help="what each variable is")
        return added.add_argument

    option = command(draw, f"{NEURON} -o neuron.svg", '"u = w*x + b; u**2" w=3 x=2 b=1 -o u.png --edges product')
    option("-o", "--output", metavar="FILE", help="the picture: .svg, .png, .pdf, .dot or .mmd (Mermaid)")
    option("--formulas", action="store_true", help="the local derivatives in letters, too")
    option("--path", metavar="NAME", help="light up every way from here to the result")
    option("--highlight", metavar="NAME", action="append", default=[], help="light up this one; may be given several times")
    for name, kind in PICTURE.items():
        if isinstance(kind, tuple):
            option(f"--{name}", choices=kind)
        else:
            option(f"--{name.replace('_', '-')}", type=kind)
    option("--number-format", metavar="FORMAT", default="", help="how numbers are written, as .2f")
    option = command(explain, '"u = w*x + b; u**2" w=3 x=2 b=1', '"x*tanh(x)" x=1 --wrt x --format markdown')
    option("--wrt", metavar="NAME", help="only what concerns this name")
    option("--format", choices=("text", "markdown", "latex", "html"), default="text")
    option("--digits", type=_count, default=4, help="how many digits a number may have (4)")
    option("-o", "--output", metavar="FILE", help="write it to a file")
    option = command(step, f"{NEURON} -o neuron.html")
    option("-o", "--output", metavar="FILE", default="step.html", help="the page (step.html)")
    option = command(animate, f"{NEURON} -o neuron.svg")
    option("-o", "--output", metavar="FILE", default="animation.svg", help="the picture (animation.svg)")
    command(check, NEURON)
    option = command(train, "moons -o out", "points.csv --backend scalar --layers 8 8 --steps 200", expression=False)
    option("data", help="moons, circles, spirals, xor, or a .csv file: columns of numbers, then the class")
    option("--backend", choices=("numpy", "scalar"), default="numpy")
    option("--layers", type=_count, nargs="+", default=[16, 16], metavar="N", help="neurons in each hidden layer (16 16)")
    option("--optimizer", choices=("Adam", "AdamW", "RMSprop", "SGD"), default="Adam")
    option("--lr", type=float, default=0.05, help="learning rate (0.05)")
    option("--steps", type=_count, default=100, help="training steps (100)")
    option("--points", type=_count, default=100, help="how many points are made (100)")
    option("--seed", type=int, default=0)
    option("-o", "--output", metavar="FOLDER", help="for the model, the loss curve, the boundary and a stepper page")
    option = command(demo, "", "01", expression=False)
    option("name", nargs="?", help="a number or a name; left out, the lessons are listed")
    option("-o", "--output", metavar="FOLDER", default=".", help="where its pictures go (here)")
    command(bench, "", expression=False)
    command(version, "", expression=False)
    return parser


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; an expression may begin with a minus, and numbers may stand anywhere."""
    words = [f" {word}" if word[:1] == "-" and word[1:2] not in ("-", "o", "h", "") else word for word in words]
    options, rest = _parser().parse_known_args(words)
    if rest and not (hasattr(options, "numbers") and all("=" in word and word[0] != "-" for word in rest)):
        raise ValueError(f"{rest[0]!r} is not understood; see micrograd {options.command} --help")
    if rest:
        options.numbers = [*options.numbers, *rest]
    return options


def _plain(x: Any) -> Any:
    """Data that JSON can hold: inf and nan become words."""
    if isinstance(x, dict):
        return {str(key): _plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(value) for value in x]
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all went well, 2 after an error (one line on stderr), 130 after Ctrl-C.

    >>> main(["draw", "w*x", "w=2", "x=3"])
    w*x = 6
    <BLANKLINE>
    name  value  gradient
    w         2         3
    x         3         2
    0
    """
    with contextlib.suppress(AttributeError):           # where a terminal has no ² or →, a ? stands for it
        sys.stdout.reconfigure(errors="replace")        # type: ignore[union-attr]
    try:
        options = _arguments(sys.argv[1:] if words is None else words)
        text, data = options.run(options)
        print(json.dumps(_plain(data), ensure_ascii=False) if options.json else text, flush=True)
        return 0
    except BrokenPipeError:                             # the reader (`| head`) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        message, status = "interrupted; nothing half-written is left", 130
    except Exception as error:                          # the last stop: at a shell a line helps, a traceback does not
        known = isinstance(error, (ValueError, ImportError, RuntimeError, TypeError))
        message, status = str(error) if known else f"{type(error).__name__}: {error}", 2
    print(f"micrograd: {' '.join(message.split())}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
