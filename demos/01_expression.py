"""Lesson 1. What is a computation, seen from outside, and what does "gradient" mean in it?

We write down one neuron, tanh(x1*w1 + x2*w2 + b), with the numbers of Karpathy's lecture. The library remembers how
the result came about; `backward()` walks that memory once and tells for every number how the result would move with it.
"""

from course import save, table

from micrograd import Value, draw, tanh

# Five numbers. A label is for pictures only.
x1, w1 = Value(2.0, label="x1"), Value(-3.0, label="w1")
x2, w2 = Value(0.0, label="x2"), Value(1.0, label="w2")
b = Value(6.8813735870195432, label="b")

# An ordinary expression, in ordinary Python. Nothing is set up before and nothing is compiled.
n = x1 * w1 + x2 * w2 + b
n.label = "n"
o = n.tanh()
o.label = "o"

# One walk back, from the result to everything that it was made of.
o.backward()
table(["number", "data", "grad: do/d(number)"], [[v.label, v.data, v.grad] for v in (o, n, b, x1, w1, x2, w2)])

# Read a gradient as a prediction: move w1 by a little, and o moves by about w1.grad times as much.
step = 0.001
moved = tanh(x1.data * (w1.data + step) + x2.data * w2.data + b.data)       # of numbers, tanh gives a number
print(f"\nw1 + {step}: predicted change of o {w1.grad * step:+.6f}, real change {moved - o.data:+.6f}")

save("01_expression.svg", draw(o, edges="local", caption="one neuron: values forward, gradients backward"))

print(f"""
Notice
- w2.grad is {w2.grad:.1f}: its input x2 is {x2.data:.0f}, so at this moment w2 does not matter.
- x2.grad is {x2.grad:.1f} all the same: x2 would matter as soon as it moved.
- x1.grad = {x1.grad:.1f} = w1.data times what arrived at n ({n.grad:.1f}); each arrow carries the factor.""")
