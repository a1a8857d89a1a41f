"""Lesson 3. How can a backward pass be done by hand, with nothing but the local derivative of each step?

Take L = (a*b + c) * f with a=2, b=-3, c=10, f=-2. We do the walk on paper first: at each step multiply what arrives
by the local derivative. Then the library does the same, and a page lets the class step through it.
"""

import course
from course import save, table

from micrograd import Value, draw, explain, stepper

# Forward, by hand.
a, b, c, f = 2.0, -3.0, 10.0, -2.0
e = a * b
d = e + c
L = d * f

# Backward, by hand: from the end to the front. g_x is dL/dx.
g_L = 1.0
g_d, g_f = g_L * f, g_L * d             # a product hands to each factor: the other factor
g_e, g_c = g_d * 1.0, g_d * 1.0         # a sum hands on what it gets, unchanged
g_a, g_b = g_e * b, g_e * a
by_hand = {"L": g_L, "d": g_d, "f": g_f, "e": g_e, "c": g_c, "a": g_a, "b": g_b}

# The same, recorded. Labels make the picture and the words readable.
A, B, C, F = Value(a, label="a"), Value(b, label="b"), Value(c, label="c"), Value(f, label="f")
E = A * B
D = E + C
loss = D * F
E.label, D.label, loss.label = "e", "d", "L"
loss.backward()
nodes = {node.label: node for node in (loss, D, F, E, C, A, B)}
table(["number", "data", "by hand", "backward()"],
      [[name, node.data, by_hand[name], node.grad] for name, node in nodes.items()])
assert all(by_hand[name] == node.grad for name, node in nodes.items())

print("\nThe same walk in words:\n")
print(explain(loss))

save("03_by_hand.svg", draw(loss, edges="local", formulas=True, passes="both"))
stepper(loss, course.out / "03_by_hand.html", title="L = (a*b + c) * f, step by step")
print("page:    03_by_hand.html   (arrow keys step forward and back)")

print(f"""
Notice
- Every step needs two things only: what arrives from above, and its own local derivative.
- f.grad is {F.grad:.0f}, the value of d: a product's derivative by one factor is the other factor.
- The forward pass must come first: the local derivatives are made of its numbers.""")
