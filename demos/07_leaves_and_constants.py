"""Lesson 7. Which numbers get a gradient, and how do I tell the library not to remember?

What you wrap is a variable; a plain number is a constant; `detach()` makes a constant of a result; and inside of
`no_grad()` nothing is recorded at all. We look at each, and measure what remembering costs in memory.
"""

import tracemalloc

from course import save, table

from micrograd import Value, draw, no_grad

x = Value(3.0, label="x")                               # a leaf: made by us, wants a gradient
k = Value(2.0, label="k", requires_grad=False)          # a leaf, but a constant
h = k * x                                               # computed: not a leaf
h.label = "h"
frozen = h.detach()                                     # the number of h, without its past
frozen.label = "h.detach()"
y = h * frozen + 5                                      # 5: a plain number, a constant as well
y.label = "y"
y.backward()
with no_grad():
    unseen = x * x                                      # a number, and no way back

table(["node", "data", "leaf?", "wants gradient?", "grad"],
      [[name, node.data, "yes" if node.is_leaf else "no", "yes" if node.requires_grad else "no", node.grad]
       for name, node in [("x", x), ("k", k), ("h = k*x", h), ("h.detach()", frozen), ("y = h*h.detach() + 5", y),
                          ("x*x under no_grad", unseen)]])
print(f"\ny is 4x² + 5 in value, so calculus says dy/dx = 8x = {8 * x.data:.0f}; but through detach() no gradient flows:")
print(f"x.grad = k * frozen = {x.grad:.0f}, half of it.")


# What remembering costs: the bytes that live while the result is held.
def memory(run):
    tracemalloc.start()
    result = run()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size, result.data


def chain(steps=10_000):
    v = x
    for _ in range(steps):
        v = v * 0.999 + 0.001
    return v


def silent_chain():
    with no_grad():
        return chain()


recorded, value = memory(chain)
silent, same = memory(silent_chain)
table(["20,000 operations", "result", "memory held", "bytes per operation"],
      [["recorded", value, f"{recorded / 1e6:.2f} MB", f"{recorded / 20_000:.0f}"],
       ["under no_grad", same, f"{silent / 1e6:.2f} MB", f"{silent / 20_000:.0f}"]])

save("07_leaves_and_constants.svg", draw(y, edges="local", caption="grey: constants; h.detach() has no past"))

print("""
Notice
- In the picture h.detach() has no arrow into it: for the backward pass it is a number like 5.
- The same value can have different gradients: what counts is the way that was recorded.
- Measuring a network on test data needs no gradients: use no_grad(), and the memory for the graph is never taken.""")
