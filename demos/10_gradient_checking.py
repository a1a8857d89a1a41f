"""Lesson 10. How small must the nudge be, when I check a gradient?

Too large, and the curve bends within the step. Too small, and the two values are equal up to rounding. Between lies a
best step, and it depends on the kind of number. We measure it, then let `gradcheck` catch a wrong derivative.
"""

import numpy as np
from chart import Chart
from course import save, table

from micrograd import Value, gradcheck

at = 0.7


def f(x):
    return np.exp(x) * np.tanh(x) / (1 + x * x)


x = Value(at)
(x.exp() * x.tanh() / (1 + x * x)).backward()
true = x.grad

steps = [10.0 ** (-k / 4) for k in range(2, 61)]


def errors(kind, central):
    """The relative error of a difference quotient, for each step, in the numbers of `kind`."""
    found = []
    for h in steps:
        here, h = kind(at), kind(h)
        slope = (f(here + h) - f(here - h)) / (2 * h) if central else (f(here + h) - f(here)) / h
        found.append(max(abs(float(slope) / true - 1), 1e-13))
    return found


curves = {(name, rule): errors(kind, rule == "central") for name, kind in (("float64", np.float64), ("float32", np.float32))
          for rule in ("forward", "central")}
best = {key: min(zip(found, steps)) for key, found in curves.items()}
table(["numbers", "difference", "best step", "error there"],
      [[*key, f"{step:.0e}", f"{error:.0e}"] for key, (error, step) in best.items()])

chart = Chart("error of a difference quotient", x="step ε", y="relative error", log="xy", corner="bottom left")
for i, ((name, rule), found) in enumerate(curves.items()):
    chart.line(steps, found, f"{name}, {rule}", dash=i // 2)
save("10_gradient_checking.svg", chart)


# A rule with a mistake: the derivative of x³ written as 2x².
def wrong_cube(x):
    y = Value(x.data ** 3, (x,), "cube")

    def backward():
        x.grad += 2 * x.data ** 2 * y.grad
    y._backward = backward
    return y


right = gradcheck(lambda x: x ** 3, (Value(at),))
try:
    gradcheck(wrong_cube, (Value(at),))
    caught = ""
except Exception as error:
    caught = str(error)
print(f"\ngradcheck of x ** 3: {right}\ngradcheck of a cube with the rule 2x²: {caught}")

print(f"""
Notice
- Each curve is a V: to the right the bend of f rules (slope 1 or 2), to the left rounding (slope -1).
- Central differences are far better for one run more: {best["float64", "central"][0]:.0e} against
  {best["float64", "forward"][0]:.0e}.
- In float32 the best one can see is {best["float32", "central"][0]:.0e}. So check gradients in float64, always.""")
