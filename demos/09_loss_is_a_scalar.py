"""Lesson 9. Why must the loss be ONE number, and what is the `gradient` argument for?

With several outputs there are several derivatives for each input: a whole table, the Jacobian. One walk back gives one
weighted sum of its rows; the weights are the `gradient` argument. For one number the weight is 1, and nobody notices.
"""

from chart import Chart, page
from course import save, table

from micrograd import Tensor, jacobian


def f(x):
    """Three inputs, three outputs: softmax."""
    return x.softmax(-1)


point = [1.0, 2.0, 0.5]
x = Tensor(point)

# Without a hint it is refused, and the message tells what is missing.
try:
    f(x).backward()
except RuntimeError as error:
    message = str(error)
print(f"f(x).backward(): RuntimeError: {message}")


# With a hint: gradient=[1, 0, 0] asks for the first row, and so on.
def pulled(weights):
    x.zero_grad()
    f(x).backward(Tensor(weights, requires_grad=False))
    return x.grad.tolist()


rows = [pulled(weights) for weights in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])]
table(["gradient=", "d/dx₁", "d/dx₂", "d/dx₃"], [[f"row {i + 1}", *row] for i, row in enumerate(rows)])

# Any weights: the weighted sum of the rows, still by one walk.
weights = [0.2, -1.0, 3.0]
mixed = pulled(weights)
by_rows = [sum(w * row[j] for w, row in zip(weights, rows)) for j in range(3)]
print(f"\ngradient={weights}: {[round(v, 4) for v in mixed]}, from the rows: {[round(v, 4) for v in by_rows]}")

# A loss is such a weighted sum: (weights * f(x)).sum() has the same gradient.
x.zero_grad()
(f(x) * Tensor(weights, requires_grad=False)).sum().backward()
as_loss = x.grad.tolist()
whole = jacobian(f, Tensor(point)).tolist()
names = ["x₁", "x₂", "x₃"]
save("09_loss_is_a_scalar.svg", page(
    Chart("the Jacobian of softmax: a row for each output").cells(whole, names, ["y₁", "y₂", "y₃"], ".3f"),
    Chart("one walk back: weights · Jacobian").cells([weights, mixed], names, ["weights", "x.grad"], ".3f")))

print(f"""
Notice
- Three outputs took three walks. A network with 50,000 outputs would need 50,000; for one loss it is one.
- The gradient argument is what arrives from above: were f followed by a loss, this is dLoss/df.
- As a loss, sum(weights · f), the gradient is the same: {[round(v, 4) for v in as_loss]}.
- The rows of softmax add up to 0 ({sum(rows[0]):.0e}): its outputs always sum to 1, so what one wins others lose.""")
