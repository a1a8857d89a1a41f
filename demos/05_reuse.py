"""Lesson 5. What if a number is used twice, and in which order must we walk back?

Each use is a path by which a number moves the result, and paths add up. So a node may hand its gradient on only when
all its uses have reported; the topological order sees to that. We also walk in a wrong order, to see what breaks.
"""

from course import save, table

from micrograd import Value, draw
from micrograd.engine import topological_order

# a + a: one number, two edges. The derivative is 2, one for each use.
a = Value(3.0, label="a")
twice = a + a
twice.backward()
print(f"a + a at a = {a.data}: gradient {a.grad}")

# A longer case: u is used by v and, directly, by the result.
x = Value(1.5, label="x")
u = x * x
v = u * u
y = u * v                       # x ** 6
u.label, v.label, y.label = "u", "v", "y"


def walk(order):
    """Reverse mode in five lines, in the given order: right only if every node comes after all that use it."""
    grad = {id(node): 0.0 for node in (x, u, v, y)}
    grad[id(y)] = 1.0
    for node in order:
        for i, piece in node.flow.contributions(grad[id(node)], [p.data for p in node.inputs], node.data):
            grad[id(node.inputs[i])] += piece
    return grad[id(x)]


operations, leaves = topological_order(y)
right_order = [*reversed(operations)]
wrong_order = [y, u, v]         # u hands on before v has reported to it
right, wrong = walk(right_order), walk(wrong_order)
y.backward()
table(["way", "dy/dx"], [["calculus: 6 x⁵", 6 * x.data ** 5],
                         ["each node after all its uses: " + ", ".join(n.label for n in right_order), right],
                         ["too early: " + ", ".join(n.label for n in wrong_order), wrong],
                         ["backward()", x.grad]])

save("05_reuse.svg", draw(y, edges="local", path=(x, y), caption="u = x·x,  v = u·u,  y = u·v"))

print(f"""
Notice
- a + a is drawn with two arrows from one card; gradients of both arrive at it and are added.
- In the wrong order u handed on {wrong / right:.0%} of the truth: the part that came through v arrived too late, in silence.
- Every path from x to y gives a product; their sum is the derivative (below the picture).""")
