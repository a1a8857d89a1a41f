"""Lesson 21. What is attention, written out in single numbers?

Each word asks a question (query), offers a label (key) and carries content (value). It compares its question with all
labels, turns the agreement into shares that sum to 1, and mixes the contents. No array is needed to see that.
"""

import random

import numpy as np
from chart import Chart, page
from course import save, table

from micrograd import Tensor, Value, draw
from micrograd.nn import CausalSelfAttention
from micrograd.optim import Adam

random.seed(1)
SIZE = 2                                                    # numbers in a query, a key, a value


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def softmax(scores):
    top = max(score.data for score in scores)
    grown = [(score - top).exp() for score in scores]
    return [g / sum(grown) for g in grown]


def attention(queries, keys, values):
    """For each position: shares of the positions up to it, and the mix of their values."""
    shares, mixed = [], []
    for t, query in enumerate(queries):
        weights = softmax([dot(query, keys[s]) / SIZE ** 0.5 for s in range(t + 1)])      # nothing from the future
        shares.append(weights)
        mixed.append([sum(w * values[s][j] for s, w in enumerate(weights)) for j in range(SIZE)])
    return shares, mixed


def numbers(count):
    return [[Value(random.gauss(0, 1)) for _ in range(SIZE)] for _ in range(count)]


# A task that only attention can do: answer with the value of the FIRST word, wherever you stand.
words = ["the", "cat", "sat", "down"]
queries, keys, values = numbers(4), numbers(4), numbers(4)
wanted = [v.data for v in values[0]]
trained = [number for row in queries + keys for number in row]          # questions and labels learn, contents stay
before = [[w.data for w in row] for row in attention(queries, keys, values)[0]]
optimiser, losses = Adam(trained, lr=0.1), []
for _ in range(80):
    shares, mixed = attention(queries, keys, values)
    loss = sum((m - w) ** 2 for row in mixed for m, w in zip(row, wanted))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.data)
after = [[w.data for w in row] for row in shares]
table(["word", *(f"looks at {w}" for w in words)],
      [[word, *(f"{v:.3f}" for v in row), *[""] * (3 - t)] for t, (word, row) in enumerate(zip(words, after))])
print(f"\nloss {losses[0]:.3f} -> {losses[-1]:.5f}")

# The same formula as the library's layer for batches: put our numbers in, and compare.
layer = CausalSelfAttention(SIZE, 1, bias=False)
layer.in_proj_weight.data[...] = np.concatenate([np.eye(SIZE)] * 3)     # queries = keys = values = x
layer.out_proj.weight.data[...] = np.eye(SIZE)
x = np.array([[v.data for v in row] for row in values])
ours = attention(values, values, values)[1]
theirs = layer(Tensor(x[None])).data[0]
difference = float(np.abs(np.array([[v.data for v in row] for row in ours]) - theirs).max())
print(f"scalars against nn.CausalSelfAttention on the same numbers: largest difference {difference:.0e}")


def squared(rows):
    return [[*row, *[0.0] * (4 - len(row))] for row in rows]


save("21_attention.svg", page(Chart("before: a row for each word that asks").cells(squared(before), words, words),
                              Chart("after learning to look at the first word").cells(squared(after), words, words)))

# One cell of the table as a graph: how much the second word looks at the first.
q, k0, k1 = Value(1.0, label="query"), Value(0.5, label="key of 'the'"), Value(-0.5, label="key of 'cat'")
share = softmax([q * k0, q * k1])[0]
share.label = "share of 'the'"
share.backward()
save("21_attention_graph.svg", draw(share, edges="local"))

print(f"""
Notice
- Each row sums to 1, and the upper right is empty: a word must not look at words that come later.
- No one told the words where to look. The gradient of the mix reached queries and keys through the shares.
- It is multiply, add, exp and divide; the layer for batches gives the same to {difference:.0e}.""")
