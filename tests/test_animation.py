"""The story of both passes tells the true numbers and touches nothing; the film that plays it is sound SVG."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micrograd import Tensor, Value
from micrograd.drawing.animation import animate
from micrograd.drawing.stage import chip_texts, text_width
from micrograd.drawing.story import story

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ['say "hi"', "f{x}|g<1>", "<lambda> <map>", "∂L/∂w 😀", "٥.٠", "a\x17b", "D&D &lt;", "]]>", "--><!--", "<!--<script>",
           "</style><script>alert(1)</script>", "</svg><script>alert(1)</script>", '" onload="alert(1)', "\\", "\\N",
           "x\ny", "{{data}}", "$paper0", "\ud800", "漢字" * 30, "'", "%s", " "]


def neuron() -> Value:
    """The neuron of micrograd's lecture: o = tanh(x1·w1 + x2·w2 + b)."""
    x1, x2, w1, w2, b = (Value(x, label=name) for name, x in
                         (("x1", 2.0), ("x2", 0.0), ("w1", -3.0), ("w2", 1.0), ("b", 6.8813735870195432)))
    n = x1 * w1 + x2 * w2 + b
    o = n.tanh()
    n.label, o.label = "n", "o"
    return o


def parts(svg: str, kind: str) -> list[ElementTree.Element]:
    """The groups of an SVG that stand for a node or an edge."""
    return [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if kind in g.get("class", "").split()]


# ------------------------------------------------------------------------------------ the story
def test_forward_steps_then_as_many_backward():
    steps = story(neuron()).steps
    assert [s.phase for s in steps] == ["forward"] * 5 + ["backward"] * 5
    assert [s.node for s in steps[:5]] == [s.node for s in reversed(steps[5:])]


def test_formulas_of_the_neuron():
    formulas = [f for s in story(neuron()).steps for f in s.formulas]
    assert "o = tanh(n) = tanh(0.8814) = 0.7071" in formulas
    assert "do/dn = do/do · ∂o/∂n = 1.0 · 0.5 = 0.5" in formulas
    assert formulas[-2].endswith("= 0.5 · (-3.0) = -1.5") and formulas[-2].startswith("do/dx1 = ")


def test_sentence_names_local_derivatives_in_letters():
    assert story(neuron()).steps[4].sentence.endswith("Its local derivative is ∂o/∂n = 1 - o² = 0.5.")


def test_names_that_are_no_single_word_stand_in_parentheses():
    x, w = Value(2.0, label="x"), Value(3.0, label="w'")
    u = x * w
    u.label = "x·w"
    formulas = [f for s in story(u ** 2).steps for f in s.formulas]
    assert "dn4/d(x·w) = dn4/dn4 · ∂n4/∂(x·w) = 1.0 · 12.0 = 12.0" in formulas
    assert "n4 = (x·w)² = 6.0² = 36.0" in formulas
    assert "dn4/d(w') = dn4/d(x·w) · ∂(x·w)/∂(w') = 12.0 · 2.0 = 24.0" in formulas


def test_gradients_gather_where_paths_meet():
    a = Value(2.0, label="a")
    told = story(a * a + 3 * a)
    assert told.growth["n0"] == ["3.0", "3.0 + 2.0", "5.0", "5.0 + 2.0", "7.0"]


def test_the_same_sum_twice_is_two_contributions():
    a = Value(2.0, label="a")
    told = story(a + a)
    assert told.sums == {"e1-0": ("", "1.0"), "e1-1": ("1.0", "2.0")}


def test_story_is_of_one_pass_whatever_was_summed_before():
    x = Value(3.0, label="x")
    y = x * x
    fresh = story(y)
    y.backward(), y.backward()
    assert x.grad == 12.0
    again = story(y)
    assert again.sums == fresh.sums and again.scene.nodes[0].grad == 6.0


def test_story_changes_nothing():
    o = neuron()
    before = [(n, n.grad, n.data, n.flow) for n in story(o).scene.values if isinstance(n, Value)]
    animate(o)
    assert all(n.grad is grad and n.data == data and n.flow is flow for n, grad, data, flow in before)
    o.backward()
    plain = neuron()
    plain.backward()
    assert [x.grad for x in o.inputs] == [x.grad for x in plain.inputs]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["add", "mul", "sub", "tanh", "relu", "div", "exp", "square"]),
                          st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=12),
       st.lists(st.floats(-2, 2), min_size=2, max_size=3))
def test_numbers_of_the_story_are_those_of_backward(plan, point):
    nodes = [Value(x, label=f"x{i}") for i, x in enumerate(point)]
    for name, i, j in plan:
        a, b = nodes[i % len(nodes)], nodes[j % len(nodes)]
        nodes.append({"add": lambda: a + b, "mul": lambda: a * b, "sub": lambda: a - b, "tanh": a.tanh, "relu": a.relu,
                      "div": lambda: a / 2, "exp": lambda: a.tanh().exp(), "square": lambda: (a * 0.5) ** 2}[name]())
    root = nodes[-1]
    told = story(root)
    root.backward()
    for node, value in zip(told.scene.nodes, told.scene.values, strict=True):
        if isinstance(value, Value) and value.requires_grad:
            assert node.grad == pytest.approx(value.grad, rel=1e-12, abs=1e-12)
    gathered: dict[str, float] = {}
    for edge in (e for e in told.scene.edges if e.id in told.sums):     # what comes along edges adds up to the gradients
        gathered[edge.source] = gathered.get(edge.source, 0.0) + edge.local * edge.upstream
    for node in told.scene.nodes[:-1]:
        if node.grad is not None:
            assert gathered[node.id] == pytest.approx(node.grad, rel=1e-9, abs=1e-9)


def test_infinite_results_start_from_one_all_the_same():
    v = Value(1.0, label="v")
    formulas = [f for s in story(1 / (v - 1)).steps for f in s.formulas]
    assert formulas[-1] == "dn4/dv = dn4/dn2 · ∂n2/∂v = -∞ · 1.0 = -∞"
    assert not any("nan" in f for f in formulas)


def test_operations_by_hand_are_told_by_letting_them_run():
    a, b = Value(2.0, label="a"), Value(5.0, label="b")
    both = Value(a.data ** 3 * b.data, (a, b), "cube")
    both.label = "c"

    def backward():
        a.grad += 3 * a.data ** 2 * b.data * both.grad
        b.grad += a.data ** 3 * both.grad

    both._backward = backward
    y = both * 2 + a
    y.backward(), y.backward()
    before = [x.grad for x in (a, b, both)]
    told = story(y)
    assert [told.scene.nodes[i].grad for i in (0, 1)] == [121.0, 16.0] and before == [242.0, 32.0, 2.0]
    assert [x.grad for x in (a, b, both)] == before
    assert told.growth["n0"] == ["1.0", "1.0 + 120.0", "121.0"]
    assert "By the rule of cube: a receives 120.0" in told.steps[-1].sentence
    assert len(parts(animate(y), "node")) == len(told.scene.nodes)


def test_operation_by_hand_that_fails_leaves_all_as_it_was():
    a = Value(2.0, label="a")
    b = Value(4.0, (a,), "bad")

    def backward():
        a.grad += 1
        raise ArithmeticError("mine")

    b._backward = backward
    with pytest.raises(ArithmeticError, match="mine"):
        story(b)
    assert (a.grad, b.grad) == (0.0, 0.0)


def test_arrays_are_told_by_shape():
    X = Tensor(np.ones((5, 2)), label="X", requires_grad=False)
    W = Tensor(np.ones((2, 3)), label="W")
    loss = (X @ W).relu().sum()
    told = story(loss)
    assert told.steps[0].formulas == ("n2 = X @ W = (5, 3)",)
    W_node = next(n for n in told.scene.nodes if n.label == "W")
    loss.backward()
    np.testing.assert_array_equal(W_node.grad, W.grad)
    assert len(parts(animate(story_root()), "node")) == 4


def story_root() -> Tensor:
    X, W = Tensor(np.ones((5, 2)), requires_grad=False), Tensor(np.ones((2, 3)))
    return (X @ W).sum()


@pytest.mark.parametrize("root, message", [
    (Value(1.0), "nothing to step through"),
    (Value(1.0, requires_grad=False) * 2, "nothing to step through")])
def test_no_operation_no_story(root, message):
    with pytest.raises(ValueError, match=message):
        animate(root)


def test_freed_graph_is_refused_with_the_cure():
    x = Value(2.0)
    y = x * x
    y.backward(retain_graph=False)
    with pytest.raises(ValueError, match="retain_graph=True"):
        animate(y)


def test_large_graph_is_refused():
    y = x = Value(1.0)
    for _ in range(200):
        y = y + x
    with pytest.raises(ValueError, match="max_nodes=120"):
        animate(y)


def test_not_a_node_is_refused():
    with pytest.raises(TypeError, match="got float 3.0"):
        animate(3.0)


def test_unknown_theme_is_refused():
    with pytest.raises(ValueError, match="light, dark, print, auto; got 'neon'"):
        animate(neuron(), theme="neon")


def test_time_runs_forward():
    with pytest.raises(ValueError, match="seconds is a positive number; got -1"):
        animate(neuron(), seconds=-1)


# ------------------------------------------------------------------------------------- the film
def test_exactly_the_nodes_and_edges_of_the_graph():
    o = neuron()
    told, svg = story(o), animate(o)
    assert [g.get("id") for g in parts(svg, "node")] == [n.id for n in told.scene.nodes]
    assert [g.get("id") for g in parts(svg, "edge")] == [e.id for e in told.scene.edges]
    grads = [t.text for g in parts(svg, "node") for t in g.iter(f"{SVG}text") if t.get("class") == "grad"]
    assert grads == [n.grad_text for n in told.scene.nodes]


def test_final_state_is_what_stands_in_the_file():
    svg = animate(neuron())
    shown = [t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text") if "passing" not in t.get("class", "")]
    assert "0.5 · (-3.0) = -1.5" in shown and "-1.5" in shown and "0.7071" in shown
    assert shown[-1].startswith("o = 0.7071,  do/dx1 = -1.5")
    assert [t for t in shown if t.startswith(("Forward", "Backward", "×  "))] == []


def test_moves_without_script_and_without_the_network():
    svg = animate(neuron(), repeat=True)
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(svg).iter()}
    assert tags == {"svg", "style", "g", "rect", "path", "text"}
    assert "@keyframes" in svg and "animation-iteration-count:infinite" in svg
    assert re.findall(r"https?://[^\"]*|url\(|@import|href|\bon\w+=", svg) == ["http://www.w3.org/2000/svg"]


def test_every_animation_has_its_keyframes_and_every_keyframe_its_use():
    svg = animate(neuron())
    used, defined = set(re.findall(r"animation-name:([\w-]+)", svg)), re.findall(r"@keyframes ([\w-]+)", svg)
    assert used == set(defined) and len(defined) == len(used)


def test_keyframes_are_in_order_and_end_at_the_end():
    for inside in re.findall(r"@keyframes [\w-]+{(.*)}\n", animate(neuron())):
        places = [float(p) for p in re.findall(r"([\d.]+)%", inside)]
        assert places == sorted(places) and places[0] == 0 and places[-1] == 100


def test_reduced_motion_stops_everything():
    assert "@media(prefers-reduced-motion:reduce){.mg-stage [style]{animation:none!important}}" in animate(neuron())


def test_forward_comes_first_and_nodes_light_up_in_order():
    svg = animate(neuron(), seconds=1.0)
    times = {g.get("id"): float(re.search(r"light-\w+-(\d+)_", g.get("style"))[1])
             for g in parts(svg, "node") if g.get("style")}
    assert list(times.values()) == sorted(times.values()) and len(times) == 5
    grads = [float(x) for x in re.findall(r'class="grad" [^>]*animation-name:show-\w+-([\d]+)_', svg)]
    assert min(grads) > max(times.values())


def test_the_gradient_flows_back_one_edge_after_the_other():
    told, svg = story(neuron()), animate(neuron(), seconds=1.0)
    times = {g.get("id"): float(re.search(r"travel-\w+-([\d_]+)--1", ElementTree.tostring(g, "unicode"))[1].replace("_", "."))
             for g in parts(svg, "edge")}
    in_order = [times[edge] for edge in told.sums]
    assert all(later - sooner == pytest.approx(1.0) for sooner, later in itertools.pairwise(in_order))


def test_sums_are_seen_one_after_the_other_and_their_row_from_the_first_on():
    a = Value(4.0, label="a")
    card = parts(animate(a * a + a, seconds=1.0), "node")[0]
    kinds = {t.text: re.search(r"name:(\w+)-\w+-([\d_]+)-([\d_]+)", t.get("style", "name:show-x-0-0")).groups()
             for t in card.iter(f"{SVG}text")}
    grown = ["1.0", "1.0 + 4.0", "5.0", "5.0 + 4.0", "9.0"]
    assert [kinds[text][0] for text in grown] == ["between"] * 4 + ["show"]
    assert all(kinds[one][2] == kinds[other][1] for one, other in zip(grown, grown[1:], strict=False))
    assert kinds["grad"][:2] == ("show", kinds["1.0"][1])


def test_same_graph_same_bytes_in_another_process(tmp_path):
    program = ("import sys; sys.path.insert(0, 'tests'); from test_animation import neuron, animate; "
               "sys.stdout.buffer.write(animate(neuron()).encode())")
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True,
                           env=os.environ | {"PYTHONHASHSEED": "7"}).stdout
    animate(neuron(), tmp_path / "a.svg")
    assert animate(neuron()).encode() == (tmp_path / "a.svg").read_bytes() == other


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_stay_text(label):
    x = Value(2.0, label=label)
    y = x * x
    y.label = label
    tree = ElementTree.fromstring(animate(y))
    assert {e.tag.removeprefix(SVG) for e in tree.iter()} <= {"svg", "style", "g", "rect", "path", "text"}
    assert not any(name.startswith("on") for e in tree.iter() for name in e.attrib)
    assert len([g for g in tree.iter(f"{SVG}g") if "node" in g.get("class", "").split()]) == 2
    if label.isprintable() and len(label) < 40:
        assert label in [t.text for t in tree.iter(f"{SVG}text")]


def test_equal_labels_and_values_stay_separate():
    a, b = Value(1.0, label="a"), Value(1.0, label="a")
    assert len(parts(animate(a + b), "node")) == 3
    assert len(parts(animate(a + a), "node")) == 2 and len(parts(animate(a + a), "edge")) == 2


def test_two_films_on_one_page_share_no_id_and_no_keyframes():
    one, two = animate(neuron(), prefix="a-"), animate(neuron(), prefix="b-")
    for pattern in (r' id="([^"]+)"', r"@keyframes ([\w-]+)"):
        assert not set(re.findall(pattern, one)) & set(re.findall(pattern, two))


def test_themes():
    auto, light, dark = (animate(neuron(), theme=t) for t in ("auto", "light", "dark"))
    assert "prefers-color-scheme:dark" in auto and "prefers-color-scheme" not in light + dark
    assert "background:#ffffff" in light and "background:#0f141b" in dark


def test_number_format():
    svg = animate(neuron(), numbers=".2f")
    assert ">0.71<" in svg and "0.7071" not in svg


def test_chip_says_local_derivative_then_the_product():
    edge = next(e for e in story(neuron()).scene.edges if e.product_text == "-1.5")
    assert chip_texts(edge) == ("× (-3.0)", "0.5 · (-3.0) = -1.5")


def test_cards_do_not_overlap():
    boxes = []
    for g in parts(animate(neuron()), "node"):
        card = next(r for r in g.iter(f"{SVG}rect") if r.get("class") == "card")
        boxes.append([float(card.get(k)) for k in ("x", "y", "width", "height")])
    for (x, y, w, h), (X, Y, W, H) in itertools.combinations(boxes, 2):
        assert x + w <= X or X + W <= x or y + h <= Y or Y + H <= y


def test_wide_letters_get_room():
    assert text_width("漢字") > 1.5 * text_width("ab")
