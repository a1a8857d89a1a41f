"""Lesson 24. Can the backward pass be read as a program?

A graph is a recipe. Write its steps down, forward and then backward, and you have straight-line code: backpropagation
without a graph, in a language of your choice. It can be read in class, and it runs much faster than the walk.
"""

import math

from course import quick, save, seconds, table

from micrograd import Value, compile, draw
from micrograd.nn import MLP

# One neuron, and how wrong it is.
x, w, b, wanted = Value(2.0, label="x"), Value(-0.5, label="w"), Value(0.3, label="b"), Value(1.0, label="wanted")
loss = ((w * x + b).tanh() - wanted) ** 2
loss.label = "loss"
program = compile(loss, inputs=[x, wanted], wrt=[w, b])
print("The program as it is read:\n")
print(program.source)
print("The program as it is run: what is computed twice is kept, what is not needed is left out.\n")
print(program.optimized_source)

# It does what backward() does: value and gradients.
loss.backward()
save("24_compile.svg", draw(loss, edges="local", caption="the graph that the program writes out"))
walked = [loss.data, w.grad, b.grad]
w.zero_grad()
b.zero_grad()
value = program(x.data, wanted.data)
ran = [value, w.grad, b.grad]
table(["", "loss", "w.grad", "b.grad"], [["backward()", *walked], ["the program", *ran]])

# It can be called again with other inputs and weights: the steps stay the same. So: training without a graph.
losses = [program.step(0.1, 2.0, 0.5) for _ in range(50)]
print(f"\n50 steps of program.step: loss {losses[0]:.3f} -> {losses[-1]:.1e}")

# A network, in three languages.
model = MLP(2, [4, 1] if quick else [16, 16, 1], activation="tanh")
for i, p in enumerate(model.parameters()):
    p.data = math.sin(1.0 + i)
point = [Value(0.5, label="x1"), Value(-1.0, label="x2")]


def walk():
    (model(point) ** 2).backward()


network = model(point) ** 2
plain = seconds(walk)
rows, gradients = [["graph and walk", f"{plain * 1e6:,.0f}", "1.0", ""]], {}
for target in ("python", "c"):
    try:
        compiled = compile(network, inputs=point, wrt=model.parameters(), target=target)
        compiled(0.5, -1.0)
    except RuntimeError as missing:                         # no C compiler on this machine
        print(missing)
        continue
    took = seconds(lambda: compiled.run(0.5, -1.0))         # noqa: B023 - called at once
    model.zero_grad()
    compiled(0.5, -1.0)
    gradients[target] = [p.grad for p in model.parameters()]
    lines = len(compiled.optimized_source.splitlines())
    rows.append([f"compiled: {target}", f"{took * 1e6:,.0f}", f"{plain / took:.1f}", f"{lines:,}"])
table([f"a network of {len(model.parameters())} weights", "µs for value and gradients", "times as fast", "lines"], rows)
model.zero_grad()
walk()
truth = [p.grad for p in model.parameters()]
worst = max(abs(g - t) for found in gradients.values() for g, t in zip(found, truth))
print(f"\nlargest difference of any gradient: {worst:.0e}")

print(f"""
Notice
- The program has two halves: values from top to bottom, then gradients from the last line back to the first.
- Each line of the second half is a local derivative times what arrives: lesson 3, written by the machine.
- Gradients agree to {worst:.0e}. What was saved is everything that is not arithmetic.""")
