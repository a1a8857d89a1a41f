"""The gallery makes every picture that it shows, from one command, and each is sound."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from demos import gallery

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gallery")
    gallery.main(folder)
    return folder


def test_every_picture_parses(folder):
    pictures = sorted(folder.glob("*.svg"))
    assert len(pictures) == 15 + 3                      # three charts have a dark sister
    for file in pictures:
        assert ElementTree.parse(file).getroot().tag == f"{SVG}svg"
    HTMLParser().feed((folder / "training.html").read_text(encoding="utf-8"))


def test_page_shows_all_that_was_made(folder):
    page = (folder / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r'\]\(([\w.]+)\)|(?:src|srcset)="([\w.]+)"', page))
    assert {a or b for a, b in shown} == {file.name for file in folder.iterdir()} - {"README.md"}


def test_what_is_committed_is_what_is_made(folder):
    kept = gallery.Path(gallery.__file__).with_suffix("")
    assert {file.name for file in kept.iterdir()} == {file.name for file in folder.iterdir()}
    assert (kept / "README.md").read_bytes() == (folder / "README.md").read_bytes()


def test_graphs_follow_the_reader_into_the_dark(folder):
    for name, _, _ in gallery.PICTURES:
        if name not in ("loss.svg", "gradient_norms.svg", "boundary.svg"):
            assert "prefers-color-scheme" in (folder / name).read_text(encoding="utf-8")


def test_numbers_that_the_captions_name(folder):
    texts = [t.text for t in ElementTree.parse(folder / "accumulation.svg").iter(f"{SVG}text")]
    assert {"1.0", "1.0 + 4.0", "5.0 + 4.0", "9.0"} <= set(texts)
    path = (folder / "path.svg").read_text(encoding="utf-8")
    assert "24.0" in path
