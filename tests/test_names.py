"""Formulas that the rules write when they are run on names."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micrograd import ops
from micrograd.names import Latex, Name, Prose, formula

FUNCTIONS = {**ops.TABLE, "abs": abs, "inf": math.inf, "nan": math.nan}
POINTS = [(0.7, 1.3, -0.4), (-1.2, 0.6, 2.0), (2.0, 2.0, 1.0)]


class Calls(Name):
    """Composed operations as calls."""

    expand = False


class Everything(Name):
    """Nothing left out."""

    simplify = False


def inputs_of(op, point):
    values = list(point[:len(op.rules)])
    return [bool(values[0] > 0), *values[1:]] if op.name == "where" else values


def run(text, names, values):
    return eval(text, FUNCTIONS, dict(zip(names, values, strict=True)))     # written by us, a moment ago


@pytest.mark.parametrize("style", [Name, Calls, Everything])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("op", ops.TABLE.values(), ids=str)
def test_the_text_of_every_operation_is_python_that_computes_it(op, point, style):
    values = inputs_of(op, point)
    if op.name == "pow" and values[0] < 0 or op.name in ("log", "log1p", "sqrt") and values[0] < -0.9:
        return                                          # nan here, an error in plain Python
    letters = "abc"[:len(values)]
    pieces = [style(letter) for letter in letters]
    y = op(*values)
    text = style("").apply(op, *pieces).text
    assert run(text, letters, values) == pytest.approx(float(y), rel=1e-15)
    for i, rule in enumerate(op.rules):
        if rule is not None:
            text = formula(op, i, *pieces, y=style("y"))
            assert run(text, letters + "y", [*values, y]) == pytest.approx(op.partial(i, *values), rel=1e-13, abs=1e-300)


def trees():
    """(a function of pieces or numbers, nothing else)"""
    leaves = st.sampled_from(["a", "b", "c"]) | st.sampled_from([-2.0, 1.0, 0.5, 3.0])
    return st.recursive(leaves, lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "/", "neg"]), inner, inner),
                        max_leaves=12)


def built(tree, names):
    if not isinstance(tree, tuple):
        return names.get(tree, tree)
    kind, a, b = tree[0], built(tree[1], names), built(tree[2], names)
    operation = {"+": ops.add, "-": ops.sub, "*": ops.mul, "/": ops.div}.get(kind)
    return ops.neg(a) if operation is None else operation(a, b)


NUMBERS = {"a": 1.7, "b": -0.3, "c": 0.9}


@settings(derandomize=True, deadline=None, max_examples=300)
@given(trees())
def test_parentheses_keep_every_bit(tree):
    expected = built(tree, NUMBERS)
    for style in (Name, Everything):
        text = style.of(built(tree, {k: style(k) for k in NUMBERS})).text
        try:
            assert repr(float(eval(text, {"inf": math.inf, "nan": math.nan}, NUMBERS) + 0.0)) == repr(expected + 0.0), text
        except ZeroDivisionError:
            assert not math.isfinite(expected) or "/" in text


@settings(derandomize=True, deadline=None, max_examples=300)
@given(trees())
def test_prose_means_the_same_as_python(tree):
    expected = built(tree, NUMBERS)
    text = Prose.of(built(tree, {k: Prose(k) for k in NUMBERS})).text
    python = text.replace("·", "*").replace("²", "**2").replace("∞", "math.inf")
    try:
        value = float(eval(python, {"math": math, "nan": math.nan}, NUMBERS))
    except (ZeroDivisionError, OverflowError):
        return
    if math.isfinite(expected) and math.isfinite(value):
        assert value == pytest.approx(expected, rel=2e-3, abs=1e-9), (text, expected)


@pytest.mark.parametrize("op, i, inputs, text", [
    (ops.mul, 0, "ab", "b"), (ops.add, 1, "ab", "1"), (ops.sub, 1, "ab", "-1"), (ops.div, 0, "ab", "1/b"),
    (ops.div, 1, "ab", "-a/b²"), (ops.tanh, 0, "a", "1 - y²"), (ops.sigmoid, 0, "a", "y·(1 - y)"), (ops.exp, 0, "a", "y"),
    (ops.log, 0, "a", "1/a"), (ops.sqrt, 0, "a", "(1/y)·0.5"), (ops.cos, 0, "a", "-sin(a)"), (ops.abs, 0, "a", "sign(a)"),
    (ops.relu, 0, "a", "0 if y ≤ 0 else 1"), (ops.softplus, 0, "a", "sigmoid(a)")])
def test_derivatives_as_a_teacher_writes_them(op, i, inputs, text):
    assert formula(op, i, *map(Prose, inputs), y=Prose("y")) == text


def test_exponents_of_one_and_factors_of_one_are_not_written():
    x = Prose("x")
    assert formula(ops.pow, 0, x, 2.0) == "2·x"
    assert formula(ops.pow, 0, x, 3.0) == "3·x²"
    assert formula(ops.pow, 0, x, 1.0) == "1"
    assert formula(ops.pow, 0, x, 0.5) == "0.5·x^(-0.5)"
    assert formula(ops.pow, 0, x, -1.0) == "-x⁻²"


def test_known_numbers_decide_choices_and_say_why():
    def slope(op, i, *numbers):
        pieces = [Prose(name, known=number) for name, number in zip("ab", numbers, strict=False)]
        piece = Prose.of(op.rules[i](1.0, *pieces, Prose("y", known=op(*numbers))))
        return piece.text, piece.since

    assert slope(ops.relu, 0, 3.0) == ("1", ("y > 0",))
    assert slope(ops.relu, 0, -3.0) == ("0", ("y = 0",))
    assert slope(ops.maximum, 0, 1.0, 2.0) == ("0", ("a < b",))
    assert slope(ops.maximum, 1, 1.0, 2.0) == ("1", ("a < b",))
    assert slope(ops.maximum, 0, 2.0, 2.0) == ("0.5", ("a = b",))
    assert slope(ops.pow, 1, 2.0, 3.0) == ("y·log(a)", ("a > 0", "b > 0"))
    assert slope(ops.leaky_relu, 0, -2.0, 0.1) == ("b", ("a < 0",))


def test_pieces_are_never_changed_by_what_is_made_of_them():
    x = Prose("x", known=-1.0)
    chosen = ops.where(x > 0.0, 2.0, x)
    assert chosen.text == "x" and chosen.since == ("x < 0",)
    assert x.since == ()


@pytest.mark.parametrize("op", ops.TABLE.values(), ids=str)
def test_latex_is_balanced(op):
    pieces = [Latex(letter) for letter in "abc"[:len(op.rules)]]
    texts = [Latex("").apply(op, *pieces).text]
    texts += [formula(op, i, *pieces, y=Latex("y")) for i, rule in enumerate(op.rules) if rule]
    for text in texts:
        bare = re.sub(r"\\[{}]", "", text)
        assert bare.count("{") == bare.count("}")
        assert text.count(r"\left") == text.count(r"\right")
        assert "**" not in text and "*" not in text


def test_latex_names():
    assert Latex.label("w1") == "w_{1}" and Latex.label("x_2") == "x_{2}" and Latex.label("α") == "α"
    assert Latex.label("my loss") == r"\mathrm{my\ loss}" and Latex.label("a_b") == r"\mathrm{a\_b}"
    assert Latex.label("{$\\") == r"\mathrm{\{\$\backslash }"
    assert (Latex("x") / (Latex("y") + 1.0)).text == r"\frac{x}{y + 1}"
    assert Latex.number(1.5e-7) == r"1.5 \cdot 10^{-7}"


def test_an_unnamed_array_is_written_by_its_form():
    numpy = pytest.importorskip("numpy")
    assert (Prose("x") * numpy.ones((2, 3))).text == "x·[2×3]"
