"""Lesson 8. May I call `backward()` twice, and where did my inner gradient go?

A Value keeps its graph: for looking. A Tensor lets go of it after one walk, as PyTorch does: for training, where memory
counts. Both can be told otherwise, with `retain_graph` and `retain_grad`.
"""

import weakref

from course import save, table

from micrograd import Tensor, Value, draw

# A Value: the graph stays, and leaves add up over the calls. An inner node shows the last pass alone.
x = Value(3.0, label="x")
u = x * x
y = u * 2
u.label, y.label = "u", "y"
rows = []
for call in (1, 2, 3):
    y.backward()
    rows.append([f"call {call}", x.grad, u.grad])
table(["Value", "x.grad (leaf: sum)", "u.grad (inner: last pass)"], rows)

# A Tensor: used up after the first call, and the message says what to do.
t = Tensor([3.0], label="t")
s = (t * t).sum()
s.backward()
try:
    s.backward()
except RuntimeError as error:
    message = str(error)
print(f"\nTensor, second call: RuntimeError: {message}")

# Asked to keep it, a Tensor behaves like a Value.
t.zero_grad()
s = (t * t).sum()
s.backward(retain_graph=True)
s.backward()
print(f"with retain_graph=True, two calls: t.grad = {t.grad}")

# Inner gradients of Tensors are dropped, unless asked for.
inner, kept = t * 1.0, t * 2.0
kept.retain_grad()
(inner * kept).sum().backward()
print(f"inner.grad = {inner.grad}, after retain_grad() kept.grad = {kept.grad}")

# "Let go" is meant literally: once the walk is done, nothing holds the inner arrays any more.
big = Tensor([1.0] * 1000)
middle = big.exp()
alive = weakref.ref(middle)
loss = middle.sum()
del middle
before = alive() is not None
loss.backward()
after = alive() is not None
print(f"inner node alive before backward: {before}; after: {after}, although the loss is still held")

save("08_graph_kept_or_freed.svg", draw(y, edges="local", caption="after three calls of y.backward()"))

print(f"""
Notice
- Three calls give x.grad = {x.grad:.0f}, three times {x.grad / 3:.0f}. That is accumulation, not an error (lesson 6).
- In the picture x shows the sum of three passes and u the last pass alone: inner nodes start afresh each time, else
  the second pass would push the first one's gradient down again.
- Two losses that share a part of the graph: add them and walk once. That is faster than keeping the graph.""")
