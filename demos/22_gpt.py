"""Lesson 22. Is a GPT really nothing but such small steps?

A GPT reads letters and says which letter may come next. Ours has some four thousand weights and learns first names. We
write it twice, in single numbers and in arrays, compile the second, and train all three from the same start.
(After microgpt by Andrej Karpathy, 2026. The names are in names.txt.)
"""

import time

import numpy as np
from chart import Chart, page
from course import HERE, quick, save, table

from micrograd import Tensor, Value, compile
from micrograd.optim import Adam

WIDTH, HEADS, LONGEST = 16, 4, 8
SIZE = WIDTH // HEADS
names = (HERE / "names.txt").read_text().split()
letters = "." + "".join(sorted(set("".join(names))))        # "." is where a name begins and ends
random = np.random.default_rng(0)
random.shuffle(names)
sizes = {"letter": (len(letters), WIDTH), "place": (LONGEST, WIDTH), "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH),
         "value": (WIDTH, WIDTH), "mix": (WIDTH, WIDTH), "wide": (WIDTH, 4 * WIDTH), "narrow": (4 * WIDTH, WIDTH),
         "next": (WIDTH, len(letters))}
start = {name: random.normal(0, 0.1, size) for name, size in sizes.items()}


# ------------------------------------------------------------------------- once: in single numbers
def linear(matrix, x):
    return [sum(w * v for w, v in zip(column, x)) for column in zip(*matrix)]


def normalised(x):
    scale = (sum(v * v for v in x) / len(x) + 1e-5) ** -0.5
    return [v * scale for v in x]


def softmax(scores):
    grown = [(score - max(s.data for s in scores)).exp() for score in scores]
    whole = sum(grown)
    return [g / whole for g in grown]


def loss_in_numbers(w, name):
    places = [letters.index(c) for c in f".{name}."]
    keys, values, losses = [], [], []
    for t, (now, after) in enumerate(zip(places, places[1:])):
        x = normalised([a + b for a, b in zip(w["letter"][now], w["place"][t])])
        seen = normalised(x)
        query = linear(w["query"], seen)
        keys.append(linear(w["key"], seen))
        values.append(linear(w["value"], seen))
        gathered = []
        for h in range(0, WIDTH, SIZE):                     # each head compares its own part of query and keys
            shares = softmax([sum(query[h + j] * key[h + j] for j in range(SIZE)) / SIZE ** 0.5 for key in keys])
            gathered += [sum(s * v[h + j] for s, v in zip(shares, values)) for j in range(SIZE)]
        x = [a + b for a, b in zip(x, linear(w["mix"], gathered))]
        hidden = [v.relu() for v in linear(w["wide"], normalised(x))]
        x = [a + b for a, b in zip(x, linear(w["narrow"], hidden))]
        losses.append(-softmax(linear(w["next"], x))[after].log())
    return sum(losses) / len(losses)


# -------------------------------------------------------------------- again: in arrays, many names
def normalise(x):
    return x * ((x * x).mean(-1, keepdim=True) + 1e-5) ** -0.5


def scores_in_arrays(w, X):
    """X (n, LONGEST, letters), one 1 a row -> scores of the next letter, of the same shape."""
    x = normalise(X @ w["letter"] + w["place"])
    seen = normalise(x)
    q, k, v = ((seen @ w[name]).reshape(-1, LONGEST, HEADS, SIZE).permute(0, 2, 1, 3) for name in ("query", "key", "value"))
    future = np.triu(np.full((LONGEST, LONGEST), -np.inf), 1)
    shares = (q @ k.swapaxes(-1, -2) / SIZE ** 0.5 + future).softmax(-1)
    x = x + (shares @ v).permute(0, 2, 1, 3).reshape(-1, LONGEST, WIDTH) @ w["mix"]
    x = x + (normalise(x) @ w["wide"]).relu() @ w["narrow"]
    return x @ w["next"]


def loss_in_arrays(w, X, Y):
    return -(Y * scores_in_arrays(w, X).log_softmax(-1)).sum()


def as_arrays(some):
    """Names as X and Y; Y holds the share of each letter in the loss, and 0 beyond the end of a name."""
    X, Y = np.zeros((2, len(some), LONGEST, len(letters)))
    for i, name in enumerate(some):
        for t, (now, after) in enumerate(zip(f".{name}", f"{name}.")):
            X[i, t, letters.index(now)] = 1.0
            Y[i, t, letters.index(after)] = 1.0 / (len(name) + 1) / len(some)
    return X, Y


# --------------------------------------------------------------------------------- the same, three ways
def train(weights, loss_and_gradients, steps):
    """(losses, seconds a step): one name a step, with Adam."""
    weights = list(weights)
    optimiser, losses, began = Adam(weights, lr=0.01), [], time.perf_counter()
    for step in range(steps):
        optimiser.zero_grad()
        losses.append(float(loss_and_gradients(names[step % len(names)])))
        for w in weights:
            w.grad = w.grad + 0.0                           # letters that do not occur: gradient 0, not none at all
        optimiser.step()
    return losses, (time.perf_counter() - began) / steps


def walked_back(loss):
    loss.backward()
    return loss.item()


def tensors():
    return {name: Tensor(data.copy()) for name, data in start.items()}


def program_for(w, count):
    X, Y = (Tensor(a) for a in as_arrays(names[:count]))    # any names: the graph is the same for all
    return compile(loss_in_arrays(w, X, Y), inputs=[X, Y], wrt=list(w.values()), target="numpy")


numbers = {name: [[Value(v) for v in row] for row in data.tolist()] for name, data in start.items()}
batched, compiled = tensors(), tensors()
program = program_for(compiled, 1)
runs = {
    "numbers (Value)": train([v for rows in numbers.values() for row in rows for v in row],
                             lambda name: walked_back(loss_in_numbers(numbers, name)), 2 if quick else 8),
    "arrays (Tensor)": train(batched.values(), lambda name: walked_back(loss_in_arrays(batched, *as_arrays([name]))), 40),
    "arrays, compiled": train(compiled.values(), lambda name: program(*as_arrays([name])), 40),
}
slow = runs["numbers (Value)"][1]
table(["the GPT in", "loss of step 1", "ms a step", "times as fast"],
      [[name, f"{losses[0]:.12f}", f"{took * 1e3:.2f}", f"{slow / took:.0f}"] for name, (losses, took) in runs.items()])
together = list(zip(*(losses for losses, _ in runs.values())))
worst = max(max(losses) - min(losses) for losses in together)
print(f"\nlargest difference in the {len(together)} steps that all three made: {worst:.0e}")

# ------------------------------------------------------------------------- and now in earnest
BATCH, STEPS = 32, 60 if quick else 1500
w = tensors()
program, optimiser, losses = program_for(w, BATCH), Adam(w.values(), lr=0.01, betas=(0.85, 0.99)), []
for step in range(STEPS):
    optimiser.param_groups[0]["lr"] = 0.01 * (1 - step / STEPS)
    optimiser.zero_grad()
    losses.append(float(program(*as_arrays(random.choice(names, BATCH)))))
    optimiser.step()


def invent(count, boldness=0.6):
    """New names, letter by letter: each time the scores become shares, and one letter is drawn."""
    words = [""] * count
    for t in range(LONGEST - 1):
        X, _ = as_arrays([word.ljust(LONGEST - 1, ".")[:LONGEST - 1] for word in words])
        shares = (scores_in_arrays(w, Tensor(X, requires_grad=False))[:, t] / boldness).softmax(-1).data
        words = [word if len(word) < t else (word + letters[random.choice(len(letters), p=p)]).rstrip(".")
                 for word, p in zip(words, shares)]
    return words


invented = invent(24)
new = [word for word in dict.fromkeys(invented) if word not in names]
print(f"\nafter {STEPS} steps of {BATCH} names: loss {sum(losses[:10]) / 10:.2f} -> {sum(losses[-50:]) / 50:.2f}")
print(f"{len(new)} of 24 invented names are not in the list: {', '.join(new)}")

first = Chart("one name a step: three ways, one curve", x="step", y="loss")
for (name, (values, _)), dash in zip(list(runs.items())[1:], (0, 1)):
    first.line(range(1, 41), values, name, dash=dash, width=(5, 2)[dash])
first.dots(range(1, len(together) + 1), runs["numbers (Value)"][0], "numbers (Value)", size=5)
smooth = [sum(losses[max(0, k - 25):k + 1]) / len(losses[max(0, k - 25):k + 1]) for k in range(len(losses))]
long = Chart(f"{BATCH} names a step", x="step", y="loss (mean of 25 steps)")
long.line(range(1, STEPS + 1, max(1, STEPS // 200)), smooth[::max(1, STEPS // 200)])
long.line([1, STEPS], [np.log(len(letters))] * 2, f"guessing: ln {len(letters)}", colour="#5b6472", dash=1, width=1.2)
for k, word in enumerate(new[:10]):
    long.text(STEPS * (0.45 + 0.28 * (k % 2)), 3.0 - 0.12 * (k // 2), word)
save("22_gpt.svg", page(first, long))

print(f"""
Notice
- Three ways, the same loss to {worst:.0e}. All else that is said about large models is scale.
- Arrays are {slow / runs["arrays (Tensor)"][1]:.0f} times as fast as single numbers; compiled,
  {slow / runs["arrays, compiled"][1]:.0f} times. The mathematics is the same; the number of nodes is not.
- It was never told what a vowel is. Its names alternate all the same.""")
