"""Hostile input: labels that would like to be markup, tables that are none, files that somebody bent."""

from __future__ import annotations

import argparse
import html.parser
import io
import json
import math
import os
import pickle
import re
import time
import tracemalloc
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import hypothesis.strategies as st
import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from test_stepper import Page

import micrograd
from micrograd import Tensor, Value, nn
from micrograd.__main__ import _points, main
from micrograd.drawing.picture import to_dot

# ------------------------------------------------------------------------------------ labels
PIECES = [
    '"', '\\"', "\\", "\\N", "<", ">", "&", "{", "}", "|", "'", "-->", "]]>", "<![CDATA[", "</script>",
    "<script>alert(1)", "&amp;", "&#x26;", "\n", "\r", "\t", "\0", "\x1b[31m", "\ud800", "\ufffe", "\u202e", "\x85",
    "\u2028", '"]', "]:::lit", "click n0 href", "javascript:alert(1)", "%%{init: {}}%%", "<svg onload=alert(1)>",
    "<img src=x onerror=1>", "#35;", ";", "end", "subgraph", "digraph {", "/*", "//", "<!--", "`", "$", "_", "^", "é",
    "😀", "漢", "%s", "{0}", "</style>", " ", "a", "x1"]
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=6).map("".join)


def graph(labels, symbol):
    """A small graph that bears the labels, with an operation by hand whose symbol is another."""
    leaves = [Value(0.5 + i, label=label) for i, label in enumerate(labels)]
    y = leaves[0] * leaves[1] + leaves[0]
    y.label = labels[2]
    z = Value(y.data, (y,), symbol)

    def back():
        y.grad += z.grad

    z._backward = back
    z.backward()
    return z


GRAPHS = st.builds(graph, st.lists(HOSTILE, min_size=3, max_size=3), HOSTILE)
STRING = r'"(?:[^"\\]|\\.)*"'
ATTRIBUTES = rf'\[(?:[\w-]+=(?:{STRING}|[\w.#-]+)\s*)*\]'
DOT_LINE = re.compile(
    rf"\s*(?:digraph \{{|\}}|(?:graph|node|edge|\w+(?::\w+)*(?: -> \w+(?::\w+)*)?) ?(?:{ATTRIBUTES})?)\s*", re.S)
MERMAID_TEXT = r'"[^"<>]*(?:<br>[^"<>]*)*"'
MERMAID_LINE = re.compile(
    rf"flowchart LR|\w+\[{MERMAID_TEXT}\]:::\w+|\w+\(\({MERMAID_TEXT}\)\)|\w+ -->(?:\|{MERMAID_TEXT}\|)? \w+"
    r"|classDef \w+ fill:#\w+,stroke:#\w+,color:#\w+")


@given(GRAPHS, HOSTILE)
@examples(1)
def test_dot_and_mermaid_text_keep_their_form_whatever_labels_say(root, caption):
    text = to_dot(root, caption=caption)
    lines = re.sub(STRING, lambda found: found[0].replace("\n", " "), text).splitlines()
    assert all(DOT_LINE.fullmatch(line) for line in lines if line.strip()), [
        line for line in lines if line.strip() and not DOT_LINE.fullmatch(line)]
    bare = re.sub(STRING, "", text)
    assert bare.count("{") == bare.count("}") == 1 and bare.count("->") == 7 + (root.op.symbol != "")
    lines = micrograd.to_mermaid(root).splitlines()
    assert all(MERMAID_LINE.fullmatch(line.strip()) for line in lines), [
        line for line in lines if not MERMAID_LINE.fullmatch(line.strip())]
    (text + micrograd.to_mermaid(root)).encode()


def harmless(svg, tags):
    """Well-formed XML of the tags of a picture, without scripts, links and handlers."""
    tree = ElementTree.fromstring(svg)
    assert {e.tag.rpartition("}")[2] for e in tree.iter()} <= tags
    for e in tree.iter():
        assert not any(name.startswith("on") or "href" in name or name.endswith("src") for name in e.attrib)
    return tree


@given(GRAPHS, HOSTILE)
@examples(0.5)
def test_pictures_and_films_are_well_formed_and_hold_no_script(root, caption):
    tags = {"svg", "g", "title", "text", "path", "polygon", "polyline", "ellipse", "style", "defs", "linearGradient", "stop"}
    tree = harmless(micrograd.draw(root, caption=caption).pipe("svg"), tags)
    assert sum("value" in g.get("class", "").split() for g in tree.iter() if g.tag.endswith("}g")) == 5
    harmless(micrograd.animate(root), {"svg", "style", "g", "rect", "path", "text"})


@given(GRAPHS, HOSTILE)
@examples(0.5)
def test_pages_and_stories_run_nothing_but_their_own_script(root, title):
    page = micrograd.stepper(root, title=title)
    read, plain = Page(page), Page(micrograd.stepper(graph("abc", "f")))
    assert read.open == [] and [t for t, _ in read.tags if t == "script"] == [t for t, _ in plain.tags if t == "script"]
    assert {tag for tag, _ in read.tags} <= {tag for tag, _ in plain.tags}
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    json.loads(re.search(r'<script type="application/json" id="story">(.*?)</script>', page, re.S)[1])
    tags = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append((tag, *attributes))
    parser.feed(micrograd.explain(root, format="html"))
    assert set(tags) <= {("h3",), ("p",), ("ul",), ("li",), ("code",), ("li", ("style", "margin-left: 2em"))}
    root = root.inputs[0]                                   # symbols are the program's own; labels may come from anywhere
    for format in ("text", "markdown", "latex"):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", micrograd.explain(root, format=format))


@given(HOSTILE, HOSTILE, HOSTILE)
@examples(0.5)
def test_sources_are_programs_whatever_labels_say(a, b, c):
    x, w = Value(0.5, label=a), Value(1.5, label=b)
    y = x * w + w
    y.label = c
    for target in ("python", "pytorch", "jax", "numpy"):
        __builtins__["compile"](micrograd.source(y, target), "script", "exec")
    assert micrograd.compile(y).run() == (y.data, (1.5, 1.5))


# ------------------------------------------------------------------------------- tables (CSV)
CELLS = st.sampled_from([
    "1", "-2.5", "1e3", "nan", "inf", "1e999", "", " ", "a", "b", '"', '"a,b"', '"x\ny"', "\0", "é", "１", "1_0",
    "0x1", "=1+1", "'", "\ufeff", "9" * 400, "\r", ";", "\t", "True"])
TABLES = st.lists(st.lists(CELLS, max_size=4).map(",".join), max_size=6).map("\n".join).map(lambda text: text.encode("utf-8"))


def points(path):
    return _points(argparse.Namespace(data=str(path), points=10, seed=0))


@given(TABLES | st.binary(max_size=60) | st.tuples(TABLES, st.binary(max_size=4), st.integers(0, 60)).map(
    lambda parts: parts[0][:parts[2]] + parts[1] + parts[0][parts[2]:]))
@examples(3)
def test_any_table_is_points_or_an_error_that_names_the_file(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_bytes(content)
    try:
        X, y, classes = points(path)
    except ValueError as error:
        assert "fuzz.csv" in str(error)
    else:
        assert X.ndim == 2 and X.shape[1] >= 1 and len(X) == len(y) and np.isfinite(X).all()
        assert set(y) == {0.0, 1.0} and len(classes) == 2


def test_a_huge_cell_and_a_binary_file_are_one_line_at_the_shell(tmp_path, capsys):
    path = tmp_path / "d.csv"
    for content in (b"1," + b"2" * 200_000 + b",a\n", b"\xff\xfe" * 1000, b"\0" * 1000, b"1,a\n" * 3 + b"2,b"):
        path.write_bytes(content)
        status = main(["train", str(path), "--steps", "1"])
        errors = capsys.readouterr().err
        assert status == (2 if errors else 0) and errors.count("\n") <= 1
    assert os.listdir(tmp_path) == ["d.csv"]


# ------------------------------------------------------------------------------------ model files
def whole(ending):
    """The bytes of a small saved model."""
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"micrograd-fuzz-{os.getpid()}{ending}"
    try:
        nn.save(nn.Linear(3, 2, dtype=np.float32), path)
        return path.read_bytes()
    finally:
        path.unlink()


def compressed():
    """The same as NumPy packs it."""
    file = io.BytesIO()
    np.savez_compressed(file, weight=np.ones((2, 3), np.float32), bias=np.zeros(2, np.float32))
    return file.getvalue()


FILES = [(".safetensors", whole(".safetensors")), (".npz", whole(".npz")), (".npz", compressed())]
BITS = st.tuples(st.just("flip"), st.integers(0, 10_000), st.integers(0, 7))
CUTS = st.tuples(st.just("cut"), st.integers(0, 10_000), st.integers(0, 40))
PASTED = st.tuples(st.just("paste"), st.integers(0, 10_000), st.binary(max_size=8) | st.sampled_from([
    b"\xff" * 8, b"\0" * 8, b'"shape":[9999999999,9999999999]', b"(9999999999, 9999)", b"PK\x05\x06", b"|O", b"<f8",
    b"[" * 50]))


def bent(content, changes):
    for kind, at, what in changes:
        at %= max(1, len(content))
        if kind == "flip":
            content = content[:at] + bytes([content[at] ^ 1 << what]) + content[at + 1:] if content else content
        elif kind == "cut":
            content = content[:at] + content[at + what:]
        else:
            content = content[:at] + what + content[at + len(what):]
    return content


def refused_or_right(path, model):
    """Load a file that may be bent: arrays of numbers, or an error that is documented and changes nothing."""
    before = {name: data.copy() for name, data in model.state_dict().items()}
    tracemalloc.start()
    start = time.process_time()
    try:
        state = nn.load(path, model)
    except (ValueError, RuntimeError) as error:
        assert "no readable" in str(error) or "nothing was loaded" in str(error)
        for name, data in model.state_dict().items():
            np.testing.assert_array_equal(data, before[name])
    else:
        assert all(isinstance(data, np.ndarray) and not data.dtype.hasobject for data in state.values())
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 10_000_000 and time.process_time() - start < 5


@given(st.sampled_from(FILES), st.lists(BITS | CUTS | PASTED, min_size=1, max_size=4))
@examples(6)
def test_a_bent_file_is_refused_or_holds_numbers(tmp_path_factory, file, changes):
    folder = tmp_path_factory.getbasetemp() / "bent"
    folder.mkdir(exist_ok=True)
    path = folder / f"model{file[0]}"
    path.write_bytes(bent(file[1], changes))
    try:
        refused_or_right(path, nn.Linear(3, 2, dtype=np.float32))
        assert [p.name for p in folder.iterdir()] == [path.name]
    finally:
        path.unlink()


def npy(shape, data=b"", dtype="<f8"):
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def zipped(**parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        for name, data in parts.items():
            content.writestr(name, data)
    return file.getvalue()


class Trap:
    """A pickle that would leave a trace if it were run."""

    def __reduce__(self):
        return os.mkdir, ("trapped",)


TRAPS = {
    "a bomb": lambda: zipped(**{"weight.npy": npy((2 ** 27,), bytes(2 ** 27))}),
    "an absurd shape": lambda: zipped(**{"weight.npy": npy((10 ** 12,))}),
    "a shape beyond all integers": lambda: zipped(**{"weight.npy": npy((0, 10 ** 30))}),
    "a negative shape": lambda: zipped(**{"weight.npy": npy((-3, -2), bytes(48))}),
    "a shape of a thousand axes": lambda: zipped(**{"weight.npy": npy((1,) * 1000, bytes(8))}),
    "a pickle inside": lambda: zipped(**{"weight.npy": npy((1,), pickle.dumps(Trap()), "|O")}),
    "a pickle": lambda: pickle.dumps(Trap()),
    "text inside": lambda: zipped(**{"weight.npy": "hello"}), "a name that climbs": lambda: zipped(**{"../../evil": "x"}),
    "a header of code": lambda: zipped(**{"weight.npy": npy("__import__('os').mkdir('trapped')")}),
    "a header without end": lambda: zipped(**{"weight.npy": b"\x93NUMPY\x01\x00\xff\xff" + b"[" * 70_000}),
    "an unknown version": lambda: zipped(**{"weight.npy": b"\x93NUMPY\x09\x09" + bytes(100)}),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_in_an_npz_is_refused_without_memory_and_without_running_it(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("model.npz").write_bytes(TRAPS[name]())
    refused_or_right("model.npz", nn.Linear(3, 2))
    with pytest.raises(ValueError, match="no readable"):
        nn.load("model.npz")
    assert os.listdir() == ["model.npz"] and not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize("shape", [[1] * 100, [1000] * 200_000, [0] + [2 ** 40] * 3, [10 ** 4000], "88", {"0": 1}, None])
def test_a_safetensors_header_of_absurd_shapes_takes_no_time(tmp_path, shape):
    text = json.dumps({"weight": {"dtype": "F64", "shape": shape, "data_offsets": [0, 8]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    start = time.process_time()
    with pytest.raises(ValueError, match="no readable"):
        nn.load(path)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_any_name_and_shape_comes_back(tmp_path_factory, ending):
    names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8) | st.sampled_from(
        ["file", "args", "allow_pickle", "self", "__metadata", "a.b", "weight.npy", "../up"])
    shapes = st.lists(st.integers(0, 3), max_size=4)

    @given(st.dictionaries(names, st.tuples(shapes, st.sampled_from(["<f8", "<f4", "<i8", "?", ">f8", "<f2"])), max_size=4))
    @examples(0.5)
    def run(wanted):
        path = tmp_path_factory.getbasetemp() / f"state{ending}"
        state = {name: np.arange(math.prod(shape)).reshape(shape).astype(dtype) for name, (shape, dtype) in wanted.items()}
        nn.save(state, path)
        found = nn.load(path)
        assert {name: (x.shape, x.tolist()) for name, x in found.items()} == {
            name: (x.shape, x.tolist()) for name, x in state.items()}

    run()


# ------------------------------------------------------------------------- what else comes from outside
THINGS = st.none() | st.booleans() | st.text(max_size=2) | st.floats() | st.integers() | st.binary(max_size=2)


@given(st.recursive(THINGS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
                    max_leaves=6))
@examples(2)
def test_whatever_is_wrapped_is_numbers_or_a_type_error(thing):
    for cls in (Value, Tensor):
        try:
            node = cls(thing)
        except (TypeError, OverflowError) as error:
            assert str(error)
        else:
            assert type(node.data) is float if cls is Value else node.data.dtype.kind == "f"
