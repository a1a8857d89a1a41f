"""nn/scalar.py: a neuron records one node for its weighted sum, and shows products and sums."""

from __future__ import annotations

import random

import pytest

import micrograd
from micrograd import Value, engine
from micrograd.nn import Neuron


def spelled_out(neuron, x):
    act = neuron.b
    for w, given in zip(neuron.w, x):
        act = act + w * given
    return act.tanh()


def walked(root, of):
    """Symbol and data of every node, inputs first, as a program that knows micrograd's `_prev` finds them."""
    found, seen = [], set()

    def walk(node):
        if node not in seen:
            seen.add(node)
            for child in of(node):
                walk(child)
            found.append((node._op, node.data))

    walk(root)
    return found


@pytest.mark.parametrize("of", [lambda n: n._prev, lambda n: n.inputs, lambda n: n.operands()])
def test_whoever_reads_a_neuron_sees_every_product(of):
    neuron, x = Neuron(3, activation="tanh"), [Value(0.5), Value(-1.0), Value(2.0)]
    y, plain = neuron(x), spelled_out(neuron, x)
    count = len(engine.sort(y, engine.Nothing())[0])
    for node in (*neuron.parameters(), *x, *engine.sort(y, None)[0]):
        node.grad = engine.unset
    if of(y) and of.__code__.co_names == ("operands",):
        engine.topological_order(y)
    assert count == 2 and walked(y, of) == walked(plain, of) and y.inputs[0].inputs[1].op is micrograd.ops.mul
    assert len(engine.topological_order(neuron(x))[0]) == 7
    dots = [micrograd.draw_dot(root).source for root in (neuron(x), plain)]
    assert dots[0] == dots[1] and str(micrograd.explain(neuron(x))) == str(micrograd.explain(plain))


def test_gradients_of_a_neuron_are_those_of_its_formula_to_the_last_bit_before_and_after_a_look():
    random.seed(5)
    neuron, x = Neuron(4, activation="tanh"), [Value(random.uniform(-2, 2)) for _ in range(4)]
    leaves = (*neuron.parameters(), *x)

    def gradients(y, **options):
        for p in leaves:
            p.zero_grad()
        y.backward(**options)
        return [p.grad for p in leaves]

    expected = gradients(spelled_out(neuron, x))
    looked = neuron(x)
    assert gradients(looked) == expected
    assert [n.grad for n in looked.inputs[0].inputs] == [looked.inputs[0].grad] * 2     # a sum hands on what it gets
    assert gradients(looked) == expected and [g.data for g in gradients(neuron(x), create_graph=True)] == expected
    assert micrograd.grad(neuron(x), leaves) == tuple(expected)
    pushed = micrograd.jvp(lambda *x: neuron(list(x)), [v.data for v in x], [1.0, 0.0, 0.0, 0.0])
    assert [t.data for t in pushed] == [looked.data, pytest.approx(expected[5], rel=1e-14)]
    with pytest.raises(RuntimeError, match="freed"):
        freed = neuron(x)
        freed.backward(retain_graph=False)
        freed.backward()


def test_one_node_of_a_neuron_pushed_by_hand_reaches_its_product_first():
    neuron, x = Neuron(1, nonlin=False), [Value(3.0)]
    y = neuron(x)
    y.grad = 2.0
    y._backward()
    assert neuron.b.grad == 2.0 and neuron.w[0].grad == 0.0
    product = next(n for n in y._prev if n._op == "*")
    product._backward()
    assert neuron.w[0].grad == 6.0 and x[0].grad == 2.0 * neuron.w[0].data
    y = neuron(x)
    y._backward = lambda: None
    assert {n._op for n in y._prev} == {"", "*"} and y._op == "+"


def test_numbers_constants_and_batches_take_the_plain_way_through_a_neuron():
    neuron = Neuron(2, nonlin=False)
    for x in ([1.0, 2.0], [Value(1.0), 2.0], [Value(1.0, requires_grad=False), Value(2.0)]):
        y, plain = neuron(x), neuron.b + neuron.w[0] * x[0] + neuron.w[1] * x[1]
        assert y.data == plain.data and walked(y, lambda n: n.inputs) == walked(plain, lambda n: n.inputs)
    with micrograd.no_grad():
        assert not neuron([Value(1.0), Value(2.0)]).requires_grad
