"""What explain says: read by eye in golden/, and followed step by step by a test."""

import html.parser
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd
from micrograd import Value, explain, ops
from micrograd.explanation import Story

GOLDEN = Path(__file__).parent / "golden"


def square():
    """(w·x + b)² with x=2, w=3, b=1"""
    x, w, b = Value(2.0, label="x"), Value(3.0, label="w"), Value(1.0, label="b")
    u = w * x + b
    u.label = "u"
    return (u ** 2), {"x": x, "w": w, "b": b, "u": u}


def two_layers():
    """(W2·relu(W1·x) - 1)² with x=1, W1=2, W2=3"""
    x, first, second = Value(1.0, label="x"), Value(2.0, label="W1"), Value(3.0, label="W2")
    h = (first * x).relu()
    y = second * h
    h.label, y.label = "h", "y"
    return (y - 1) ** 2, {"x": x, "W1": first, "W2": second}


def neuron():
    x1, x2, w1, w2 = (Value(v, label=k) for k, v in {"x1": 2.0, "x2": 0.0, "w1": -3.0, "w2": 1.0}.items())
    b = Value(6.8813735870195432, label="b")
    return (x1 * w1 + x2 * w2 + b).tanh(), {}


def meeting():
    """x·tanh(x) + exp(x)/x: four ways lead to x."""
    x = Value(1.0, label="x")
    return x * x.tanh() + x.exp() / x, {"x": x}


def batch():
    numpy = pytest.importorskip("numpy")
    X = micrograd.Tensor(numpy.full((100, 2), 0.5), label="X", requires_grad=False)
    W, b, V = (micrograd.Tensor(numpy.full(shape, 0.1), label=label)
               for label, shape in (("W", (2, 16)), ("b", (16,)), ("V", (16, 1))))
    H = (X @ W + b).tanh()
    H.label = "H"
    return ((H @ V - 1) ** 2).mean(), {}


@pytest.mark.parametrize("graph, name, options", [
    (square, "square.txt", {}), (square, "square.md", {"format": "markdown"}), (square, "square.tex", {"format": "latex"}),
    (square, "square.html", {"format": "html"}), (square, "square_wrt_w.txt", {"wrt": "w"}),
    (two_layers, "two_layers.txt", {}), (two_layers, "two_layers_wrt_W1.txt", {"wrt": "W1"}), (neuron, "neuron.txt", {}),
    (meeting, "meeting.txt", {"wrt": "x"}), (batch, "batch.txt", {})])
def test_the_story_is_the_one_that_was_read_by_eye(graph, name, options):
    assert explain(graph()[0], **options) + "\n" == (GOLDEN / name).read_text(encoding="utf-8")


def test_the_worked_examples_have_their_numbers():
    told = explain(square()[0])
    assert "u = w·x + b = 3·2 + 1 = 7" in told
    assert "dL/dw = dL/du · x = 14 · 2 = 28" in told and "dL/db = dL/du · 1 = 14 · 1 = 14" in told
    told = explain(two_layers()[0])
    assert "dL/dW2 = dL/dy · h = 10 · 2 = 20" in told and "= 30" in told


# ----------------------------------------------------------------------- following the numbers
def expressions():
    """A random graph of x, y, z, as a function of them."""
    leaves = st.sampled_from(["x", "y", "z"]) | st.sampled_from([2.0, -0.5, 1.0])
    one = st.sampled_from(["tanh", "exp", "relu", "sigmoid", "softplus", "sin", "neg", "abs", "silu"])
    two = st.sampled_from(["add", "sub", "mul", "mul", "add", "maximum", "div"])
    return st.recursive(leaves, lambda inner: st.tuples(one, inner) | st.tuples(two, inner, inner), max_leaves=10)


def graph_of(tree, nodes):
    if not isinstance(tree, tuple):
        return nodes.get(tree, tree)
    return ops.TABLE[tree[0]](*(graph_of(part, nodes) for part in tree[1:]))


def number(text):
    return float(text.strip("()").replace("∞", "inf"))


def follow(told):
    """The gradients that somebody finds who trusts each line's numbers, and checks each line."""
    found = {"dL/dL": 1.0}
    for line in told.split("How fast")[1].split("\n\n")[0].splitlines():
        line = re.sub(r", since .*?(?=; | \(1st|$)", "", line)
        first = re.fullmatch(r" {6}(d\S+) = (d\S+) · .* = (\S+) · (\S+) = (\S+)( \(1st of \d+ contributions\))?", line)
        again = re.fullmatch(r" {6}(d\S+) gets its \w+ contribution: (d\S+) · .* = (\S+) · (\S+) = (\S+); "
                             r"(\S+) \+ (\S+) = (\S+)", line)
        assert first or again or not line.startswith("      "), line
        if not first and not again:
            continue
        to, come, arrived, rate, part = (first or again).groups()[:5]
        assert number(arrived) == pytest.approx(found[come], rel=1e-12)
        assert number(part) == pytest.approx(number(arrived) * number(rate), rel=1e-12)
        if again:
            before, added, total = map(number, again.groups()[5:])
            assert before == found[to] and added == number(part)
            assert total == pytest.approx(before + added, rel=1e-12, abs=1e-300)
            found[to] = total
        else:
            assert to not in found
            found[to] = number(part)
    return found


@settings(derandomize=True, deadline=None, max_examples=200)
@given(expressions(), st.floats(-2, 2), st.floats(-2, 2), st.floats(0.1, 2))
def test_following_the_numbers_reproduces_every_gradient(tree, x, y, z):
    nodes = {name: Value(data, label=name) for name, data in zip("xyz", (x, y, z), strict=True)}
    root = graph_of(tree, nodes)
    if not isinstance(root, Value) or root.is_leaf or not math.isfinite(root.data):
        return
    told = explain(root, digits=17)
    root.backward()
    if not all(math.isfinite(node.grad) for node in nodes.values()):
        return
    found = follow(told)
    for name, node in nodes.items():
        if f"dL/d{name}" in found or node.grad:
            assert found[f"dL/d{name}"] == pytest.approx(node.grad, rel=1e-9, abs=1e-12)
    for name, node in nodes.items():                    # and the paths add up to the same
        if node.grad:
            paths = told_paths(explain(root, wrt=name, digits=17))
            assert len(paths) == 10 or sum(paths) == pytest.approx(node.grad, rel=1e-9, abs=1e-12)


def told_paths(told):
    lines = told.split("Every path")[1].split("\n\n")[0].splitlines()
    return [number(line.rpartition(" = ")[2].rpartition(": ")[2]) for line in lines if "→" in line]


# -------------------------------------------------------------------------- names and refusals
def test_wrt_takes_a_node_or_its_label_and_leaves_out_the_rest():
    root, nodes = square()
    told = explain(root, wrt=nodes["w"])
    assert told == explain(root, wrt="w")
    assert "dL/dx" not in told and "w → u → L: 2 · 14 = 28" in told
    assert "dL/du = 14" in explain(root, wrt="u").splitlines()[-1]


def test_names_without_labels_and_with_the_same_label_stay_apart():
    told = explain(Value(2.0) * Value(3.0) * 4)
    assert "Given p1 = 2, p2 = 3." in told and "v1 = p1·p2" in told
    a, b = Value(2.0, label="a"), Value(3.0, label="a")
    assert "L = a·a′ = 2·3 = 6" in explain(a * b)
    x, taken = Value(2.0, label="L"), Value(5.0, label="v1")
    assert "L′ = v2·v1" in explain((x * x).exp() * taken).replace("v3", "v2")


HOSTILE = ["<script>alert(1)</script>", "a\nb\x1b[31m", "`x` & _y_ {z} \\ $ % #", "wörld 世界 🙂", "x'\"|"]


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_cannot_break_out_of_a_format(label):
    x = Value(2.0, label=label)
    root = x * x + x
    assert "\x1b" not in explain(root) and all(len(line) < 400 for line in explain(root).splitlines())
    tags = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append(tag)
    parser.feed(explain(root, format="html"))
    assert set(tags) == {"h3", "p", "ul", "li", "code"}
    latex = explain(root, format="latex")
    bare = re.sub(r"\\[{}$&#_%]", "", latex)
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
    assert "`" not in re.sub("`[^`]*`", "", explain(root, format="markdown"))


def test_a_custom_operation_explains_itself():
    @micrograd.op(lambda g, x, y: g * (3 * x * x))
    def cube(x):
        return x * x * x

    told = explain(cube(Value(2.0, label="x")))
    assert "L = cube(x) = cube(2) = 8" in told
    assert "dL/dx = dL/dL · 3·x·x = 1 · 12 = 12" in told


def test_an_operation_by_hand_has_numbers_and_nothing_is_changed():
    x = Value(2.0, label="x")
    out = Value(x.data ** 3, (x,), "cube", label="c")

    def backward():
        x.grad += 3 * x.data ** 2 * out.grad

    out._backward = backward
    root = out * 2 + x
    x.grad, out.grad = 5.0, 7.0
    told = explain(root)
    assert "c = cube(x) = cube(2) = 8" in told and "2 · 12 = 24; 1 + 24 = 25" in told
    assert (x.grad, out.grad) == (5.0, 7.0)


def test_constants_are_numbers_or_said_to_be_constants():
    x, c = Value(2.0, label="x"), Value(5.0, label="c", requires_grad=False)
    told = explain(x * c + Value(1.0, requires_grad=False))
    assert "c = 5 (constant)" in told and "x·c + 1 = 2·5 + 1 = 11" in told and "dL/dc" not in told


def test_kinks_say_why():
    assert "dL/dx = dL/dL · 0 = 1 · 0 = 0, since L = 0" in explain(Value(-2.0, label="x").relu())
    assert "does not move" in explain(Value(-2.0, label="x").relu())


def test_infinite_gradients_are_told_without_an_example():
    told = explain(Value(0.0, label="x").sqrt())
    assert "dL/dx = ∞" in told and "In words" not in told


@pytest.mark.parametrize("call, words", [
    (lambda: explain(Value(2.0) * 2, format="pdf"), "'text', 'markdown', 'latex', 'html'"),
    (lambda: explain(3.0), "takes a Value or a Tensor, got float"),
    (lambda: explain(Value(2.0)), "was not computed"),
    (lambda: explain(Value(2.0, requires_grad=False) * 2), "nothing that requires a gradient"),
    (lambda: explain(square()[0], wrt="q"), "there is: w, x, b, u"),
    (lambda: explain(square()[0], wrt=Value(1.0)), "not in the graph"),
    (lambda: explain(Value(1.0, label="x") * Value(2.0, label="c", requires_grad=False), wrt="c"), "is a constant")])
def test_errors_say_what_to_do(call, words):
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        call()


def test_a_freed_graph_says_so():
    root, _ = square()
    root.backward(retain_graph=False)
    with pytest.raises(ValueError, match="retain_graph=True"):
        explain(root)


def test_large_graphs_are_refused_with_advice_unless_one_variable_is_asked_for():
    x, y = Value(1.0, label="x"), Value(2.0, label="y")
    for _ in range(100):
        x = x * 1.01
    with pytest.raises(ValueError, match=r"101 operations.*wrt=.*max_operations"):
        explain(x * y)
    assert "dL/dy" in explain(x * y, wrt=y)
    assert "dL/dy" in explain(x * y, max_operations=200)


def test_many_paths_are_counted_to_ten():
    x = Value(1.0, label="x")
    y = x
    for _ in range(6):
        y = y * y
    told = explain(y, wrt=x)
    assert len(told_paths(told)) == 10 and "first ten" in told and told.endswith("dL/dx = 64")


def test_tensors_have_shapes_and_the_rule_in_matrix_form():
    told = explain(batch()[0])
    assert "dL/dW = Xᵀ · dL/dv1, (2, 100)·(100, 16) -> (2, 16)" in told
    assert "dL/dv3 = dL/dH · (1 - H²), entry by entry, shape (100, 16)" in told
    assert "dL/db = dL/dv2, added up over the copies, shape (16,)" in told
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        explain(micrograd.Tensor([1.0, 2.0]) * 2)


def test_a_story_can_be_read_by_a_program():
    story = Story(square()[0])
    assert [(story.piece(c.source).text, c.rate, c.part) for c in story.contributions] == [
        ("u", 14.0, 14.0), ("w", 2.0, 28.0), ("x", 3.0, 42.0), ("b", 1.0, 14.0)]


def test_a_choice_says_how_it_was_decided():
    x = Value(0.5, label="x")
    assert "L = where(true, v1, v2) = where(true, 1, 1.5) = 1" in explain(micrograd.where(x > 0, x * 2, x * 3))


def test_fused_neurons_are_spelled_out_and_wide_ones_are_not():
    from micrograd import nn
    neuron = nn.Neuron(2, fused=True)
    for p, data, label in zip(neuron.parameters(), (1.0, -2.0, 3.0), ("w1", "w2", "b"), strict=True):
        p.data, p.label = data, label
    told = explain(neuron([5.0, 2.0]))
    assert "L = relu(b + w1·5 + w2·2) = relu(3 + 1·5 + (-2·2)) = 4" in told
    assert "dL/dw1 = dL/dL · 5 = 1 · 5 = 5, since relu(b + w1·5 + w2·2) > 0" in told
    wide = explain(nn.Neuron(40, fused=True, nonlin=False)([1.0] * 40))
    assert "and 29 more." in " ".join(wide.split()) and "..." in wide and "dL/dp41 = 1 · 1 = 1" in wide


def test_tensors_of_any_operation_can_be_told():
    Tensor = micrograd.Tensor
    t, x = Tensor([[1.0, 2.0], [3.0, 4.0]], label="t"), Value(0.5, label="x")
    assert "sent back through softmax, shape (2, 2)" in explain(t.softmax(axis=-1)[0, 1].log())
    assert "dL/dx = 5" in explain((x * t).mean() * 2).splitlines()[-2]
    assert "brought back into the old form" in explain((t.reshape(4) * 2).sum())
    assert explain(t.sum()).endswith("dL/dt of shape (2, 2)")
    batched = micrograd.Tensor([[[1.0, 2.0, 3.0]] * 2] * 4, label="B")
    assert "dL/dW = Bᵀ · dL/dv1, (4, 3, 2)·(4, 2, 5) -> (4, 3, 5)" in explain(
        (batched @ micrograd.Tensor([[[1.0] * 5] * 3] * 4, label="W")).sum())
