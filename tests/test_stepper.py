"""The stepper page: one file that is complete without script, and in which labels are text and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from micrograd import Value, stepper
from micrograd.drawing.story import story
from tests.test_animation import HOSTILE, neuron


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    VOID = {"meta", "input", "br", "path", "rect", "circle"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.inside.setdefault(self.open[-1] if self.open else "", []).append(data)


def data_of(page: str) -> dict:
    """The story that the script reads."""
    return json.loads(re.search(r'<script type="application/json" id="story">(.*?)</script>', page)[1])


def training(steps: int):
    """Gradient descent on one sample; yields the loss of each step."""
    w, b = Value(0.5, label="w"), Value(0.1, label="b")
    for _ in range(steps):
        w.zero_grad(), b.zero_grad()
        loss = (w * 1.5 + b - 2.0) ** 2
        loss.label = "L"
        loss.backward()
        yield loss
        w.data -= 0.1 * w.grad
        b.data -= 0.1 * b.grad


def test_as_many_steps_as_operations_forward_and_backward():
    data = data_of(stepper(neuron()))
    assert len(data["steps"]) == 5 + 5
    assert [s["phase"] for s in data["steps"]] == ["forward"] * 5 + ["backward"] * 5


def test_page_is_well_formed_and_every_element_is_closed():
    page = Page(stepper(neuron(), title="One neuron"))
    assert page.open == [] and "".join(page.inside["title"]) == "One neuron"


def test_exactly_the_nodes_and_edges_of_the_graph():
    page, told = Page(stepper(neuron())), story(neuron())
    for kind, known in (("node", told.scene.nodes), ("edge", told.scene.edges)):
        drawn = [a["id"] for tag, a in page.tags if tag == "g" and kind in a.get("class", "").split()]
        assert drawn == [x.id for x in known]


def test_every_step_is_told_as_text_without_script():
    page, told = stepper(neuron()), story(neuron())
    text = "".join(Page(page).inside["li"])
    for step in told.steps:
        assert step.sentence in text and all(formula in text for formula in step.formulas)


def test_formula_and_sentence_of_each_step_reach_the_script():
    say = data_of(stepper(neuron()))["frames"][0]["say"]
    assert say[5]["formulas"] == ["do/dn = do/do · ∂o/∂n = 1.0 · 0.5 = 0.5"]
    assert say[4]["sentence"].startswith("o is computed: tanh(n) = tanh(0.8814) = 0.7071.")


def test_only_the_script_of_the_page_may_run():
    page = stepper(neuron())
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(scripts) == 1
    allowed = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policy = next(a["content"] for tag, a in Page(page).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert f"script-src 'sha256-{allowed}';" in policy and "default-src 'none'" in policy


def test_no_network_and_nothing_is_evaluated():
    page = stepper(neuron())
    assert set(re.findall(r"https?://[^\s\"<]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)=|url\(|@import|fetch\(|XMLHttp", page)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|\beval\(|Function\(|document\.write", page)


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_stay_text(label):
    x = Value(2.0, label=label)
    y = x * x
    y.label = label
    page = stepper(y, title=label)
    plain = stepper(Value(2.0, label="x") * 1)
    read = Page(page)
    assert read.open == []
    assert [tag for tag, _ in read.tags if tag == "script"] == [tag for tag, _ in Page(plain).tags if tag == "script"]
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert {tag for tag, _ in read.tags} <= {tag for tag, _ in Page(plain).tags}
    assert not set("<>&") & set(re.search(r'id="story">(.*?)</script>', page)[1])
    names = {node["name"] for node in data_of(page)["nodes"]}
    assert names == {label} or not label
    page.encode("utf-8")


def test_repeated_edges_and_sums():
    a = Value(2.0, label="a")
    frame = data_of(stepper(a + a))["frames"][0]
    assert frame["sums"] == {"e1-0": ["", "1.0"], "e1-1": ["1.0", "2.0"]}


def test_frames_are_read_as_training_yields_them():
    frames = data_of(stepper(None, frames=training(10)))["frames"]
    weights = [frame["numbers"][0][0] for frame in frames]
    assert len(frames) == 10 and weights[0] == 0.5 and len(set(weights)) == 10
    losses = [frame["numbers"][-1][0] for frame in frames]
    assert losses == sorted(losses, reverse=True)


def test_frames_may_be_stories_kept_on_the_way():
    kept = [story(loss) for loss in training(3)]
    assert data_of(stepper(None, frames=kept)) == data_of(stepper(None, frames=training(3)))


def test_frames_of_different_graphs_are_refused():
    x = Value(2.0)
    with pytest.raises(ValueError, match="frame 1 has another graph than frame 0"):
        stepper(None, frames=[x * 2, x + 2])


def test_no_frames_are_refused():
    with pytest.raises(ValueError, match="frames is empty"):
        stepper(None, frames=[])


def test_infinity_and_nan_are_no_number_of_json():
    x = Value(0.0, label="x")
    text = re.search(r'id="story">(.*?)</script>', stepper(1 / x + x * float("nan")))[1]
    frame = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))["frames"][0]
    assert [None, None] not in frame["numbers"][:1] and None in frame["numbers"][-1]


def test_same_graph_same_bytes_in_another_process(tmp_path):
    program = ("import sys; from tests.test_animation import neuron; from micrograd import stepper; "
               "sys.stdout.buffer.write(stepper(neuron()).encode())")
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True,
                           env=os.environ | {"PYTHONHASHSEED": "7"}).stdout
    stepper(neuron(), tmp_path / "page.html")
    assert stepper(neuron()).encode() == (tmp_path / "page.html").read_bytes() == other


def test_nothing_of_the_graph_is_changed():
    o = neuron()
    stepper(o)
    assert o.grad == 0.0 and all(x.grad == 0.0 for x in o.inputs)
    o.backward()
    assert o.grad == 1.0


def test_themes():
    assert "prefers-color-scheme:dark" in stepper(neuron())
    assert "--paper:#0f141b" in stepper(neuron(), theme="dark")
    with pytest.raises(ValueError, match="got 'neon'"):
        stepper(neuron(), theme="neon")
