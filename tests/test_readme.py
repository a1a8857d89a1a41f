"""The front page is true: every snippet in it runs, prints what it says, and every command and link exists.

Conventions of README.md:

- ```python blocks run from top to bottom, as one program in an empty folder. `print(...)  # text` must print the text.
- In ```pycon and ```console blocks the lines below `>>> ` and `$ ` are the output; `...` stands for anything.
- Of commands, `python -m micrograd` runs here, `python demos/...` and other scripts must exist, and the extras that
  `pip install` names must be in setup.cfg.
"""

from __future__ import annotations

import configparser
import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8") if (ROOT / "README.md").exists() else ""
BLOCKS = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def blocks(*kinds: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind in kinds]


def run(arguments: list[str], folder: Path, text: str | None = None) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "MPLBACKEND": "Agg",
                   "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(arguments, cwd=folder, env=environment, input=text, capture_output=True, text=True,
                          encoding="utf-8", timeout=120)


def agree(found: str, expected: str) -> bool:
    """Whether an output is the one shown, where `...` stands for anything."""
    pattern = ".*".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, found.strip(), re.DOTALL) is not None


def commands() -> list[tuple[str, str]]:
    """(command, output shown below it) of every console block."""
    found: list[tuple[str, str]] = []
    for text in blocks("console", "sh", "bash", "shell"):
        parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
        assert not parts[0].strip(), f"a command starts with '$ ': {parts[0]!r}"
        for part in parts[1:]:
            line, _, output = part.replace("\\\n", " ").partition("\n")
            *before, last = (command.strip() for command in line.split("  #")[0].split("&&"))
            found += [*((command, "") for command in before), (last, output)]
    return found


def test_there_is_a_front_page_with_code():
    assert blocks("python") and commands()


def test_the_snippets_run_as_one_program_and_print_what_they_say(tmp_path):
    program, expected = [], []
    for text in blocks("python"):
        program.append(text)
        for line in text.splitlines():
            said = re.match(r"\s*print\(.*\)\s+#\s*(?:prints:?\s*|->\s*|=>\s*)?(.+)", line)
            if said:
                expected.append(said[1].strip())
    script = tmp_path / "snippets.py"
    script.write_text("\n".join(program), encoding="utf-8")
    done = run([sys.executable, "-W", "error", str(script)], tmp_path)
    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.splitlines())
    for line in expected:
        assert any(agree(found, line) for found in printed), f"{line!r} is not printed, or not in this order"


def test_dialogues_answer_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for number, text in enumerate(blocks("pycon")):
        test = doctest.DocTestParser().get_doctest(text, names, f"dialogue {number}", "README.md", 0)
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
        assert result.failed == 0
        names.update(test.globs)


def extras() -> set[str]:
    configuration = configparser.ConfigParser()
    configuration.read(ROOT / "setup.cfg", encoding="utf-8")
    return set(configuration["options.extras_require"])


@pytest.mark.parametrize("command, output", commands(), ids=[c for c, _ in commands()])
def test_commands_do_what_the_page_says(command, output, tmp_path):
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "micrograd"]:
        done = run([sys.executable, *words[1:]], tmp_path)
        assert done.returncode == 0, done.stderr
        assert not output.strip() or agree(done.stdout, output), done.stdout
    elif "pip" in words[:3]:
        assert "install" in words
        named = re.findall(r"\[([\w,-]+)\]", command)
        assert {extra for group in named for extra in group.split(",")} <= extras()
    elif words[0] == "python" and words[1] == "-m":
        assert words[2] in ("pytest", "venv", "build")
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file(), f"{words[1]} does not exist"
    else:
        assert words[0] in ("git", "cd", "jupyter"), f"no rule for {command!r}: the page may only show what is checked"


def anchors() -> set[str]:
    """What a `#link` inside of the page may point to, spelled as GitHub does."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_and_pictures_exist():
    targets = re.findall(r"\]\(([^)\s]+)\)", README) + re.findall(r"(?:src|href|srcset)=\"([^\"\s]+)\"", README)
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in anchors(), target
        elif not re.match(r"[a-z]+:", target):
            assert (ROOT / target.split("#")[0]).exists(), f"{target} does not exist"
