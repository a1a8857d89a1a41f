"""The main jobs without a line of Python: `python -m micrograd draw "tanh(x*w + b)" x=2 w=-3 b=6.9 -o neuron.svg`.

Each command is a function that takes the options and gives back what it has to say, as text and as data for
`--json`. It fetches from the library what it needs when it runs, and `main` turns every failure into one line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
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
        kind = _kind(options.output, ("svg", "png", "pdf", "dot", "gv", "mmd"))
        with _replacing(options.output) as file:
            if kind == "mmd":
                file.write_text(_public("to_mermaid")(root), encoding="utf-8")
            else:
                picture = _public("draw_dot")(root, rankdir=options.rankdir)
                file.write_bytes(picture.source.encode() if kind in ("dot", "gv") else picture.pipe(format=kind))
    return _with_file(options, text, data)


def check(options: argparse.Namespace) -> Answer:
    """the gradient by the chain rule beside the gradient by nudging each variable a little"""
    root, names = _graph(options)
    root.backward()
    rows, worst, given = [], True, variables(options.numbers)
    for name, number in given.items():
        step = 6e-6 * max(1.0, abs(number))
        up, down = (read(options.expression, given | {name: number + sign * step})[0].data for sign in (1, -1))
        rule, nudged = names[name].grad, (up - down) / (2 * step)
        agree = rule == nudged or abs(rule - nudged) <= 1e-5 + 1e-3 * abs(nudged)
        worst = worst and agree
        rows.append([name, number, rule, nudged, "yes" if agree else "NO: a kink or a jump?"])
    text = _table(["name", "value", "chain rule", "nudging", "agree"], rows)
    return text, {"agree": worst, "gradients": {row[0]: {"chain_rule": row[2], "nudging": row[3]} for row in rows}}


def version(options: argparse.Namespace) -> Answer:
    """the version"""
    return f"micrograd-studio {micrograd.__version__}", {"version": micrograd.__version__}


# ------------------------------------------------------------------------------ what they share
def _graph(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The expression of the command line as a graph."""
    return read(options.expression, variables(options.numbers))


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


def _table(head: list[str], rows: list[list[Any]]) -> str:
    """Columns with room between them; numbers to the right, words to the left."""
    texts = [head, *([x if isinstance(x, str) else _number(x) for x in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts)]
    right = [any(not isinstance(x, str) for x in column) for column in zip(*rows)]
    return "\n".join("  ".join(x.rjust(n) if r else x.ljust(n) for x, n, r in zip(row, widths, right)).rstrip()
                     for row in texts)


def _number(x: float) -> str:
    return f"{x:.6g}"


def _public(name: str) -> Callable:
    """A public function of the library, fetched when it is needed; what is not installed says so in one line."""
    try:
        return getattr(micrograd, name)
    except (ImportError, AttributeError) as error:
        raise ImportError(f"{name} is not available here: {error}") from None


def _kind(path: str, known: Sequence[str]) -> str:
    """The kind of file that the end of a name asks for."""
    kind = Path(path).suffix[1:].lower()
    if kind not in known:
        raise ValueError(f"cannot tell what to write into {path!r}: the name may end in {', '.join('.' + x for x in known)}")
    return kind


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[Path]:
    """A file beside `path` to write to. It takes the place of `path` when all went well, and goes otherwise."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".micrograd-{os.getpid()}{target.suffix}")
    try:
        if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
            raise OSError(0, "it is not a file that may be written")
        temporary.touch()
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _with_file(options: argparse.Namespace, text: str, data: dict[str, Any]) -> Answer:
    """Add which file was written."""
    return (f"{text}\n\nwrote {options.output}", {**data, "file": options.output}) if options.output else (text, data)


# --------------------------------------------------------------------------------- command line
class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help")


def _parser() -> _Parser:
    parser = _Parser(prog="micrograd", description="Expressions, their gradients, their pictures.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(function: Callable[[argparse.Namespace], Answer], *examples: str, expression: bool = True) -> _Parser:
        added = commands.add_parser(
            function.__name__, help=function.__doc__, description=f"{str(function.__doc__).capitalize()}.",
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
            epilog="\n".join(["examples:", *(f"  python -m micrograd {function.__name__} {x}" for x in examples)]))
        added.set_defaults(run=function)
        added.add_argument("--json", action="store_true", help="print JSON")
        if expression:
            added.add_argument("expression", help='as in "u = x*w + b; tanh(u)"')
            added.add_argument("numbers", nargs="*", default=[], metavar="NAME=NUMBER", help="the number of each variable")
        return added

    one = command(draw, f"{NEURON} -o neuron.svg", '"u = w*x + b; u**2" w=3 x=2 b=1')
    one.add_argument("-o", "--output", metavar="FILE", help="the picture: .svg, .png, .pdf, .dot or .mmd (Mermaid)")
    one.add_argument("--rankdir", choices=("LR", "TB", "RL", "BT"), default="LR", help="where the arrows go (LR)")
    command(check, NEURON)
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
    except Exception as error:                          # the last stop: a person at a shell reads a line, not a traceback
        message, status = str(error) or type(error).__name__, 2
    print(f"micrograd: {' '.join(message.split())}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
