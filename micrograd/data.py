"""Small worlds to learn in: points of two or more kinds in the plane, made on the spot, the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def _finish(kinds: Sequence[np.ndarray], noise: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of each kind, shaken and shuffled, and their classes."""
    X = np.concatenate(list(kinds))
    y = np.repeat(np.arange(len(kinds)), [len(points) for points in kinds])
    order = random.permutation(len(X))
    return X[order] + random.normal(0.0, noise, X.shape), y[order]


def _halves(n: int, parts: int = 2) -> list[int]:
    """n as a sum of nearly equal parts."""
    if n < parts:
        raise ValueError(f"n is at least {parts}, one point of each kind; got {n}")
    return [(n + k) // parts for k in range(parts)]


def moons(n: int = 100, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles, one reaching into the other: X (n, 2) and classes y (n,).

    >>> X, y = moons(100)
    >>> X.shape, y.tolist().count(0)
    ((100, 2), 50)
    """
    a, b = (np.linspace(0, math.pi, size) for size in _halves(n))
    upper, lower = (np.cos(a), np.sin(a)), (1 - np.cos(b), 0.5 - np.sin(b))
    return _finish([np.stack(upper, 1), np.stack(lower, 1)], noise, np.random.default_rng(seed))


def circles(n: int = 100, noise: float = 0.05, factor: float = 0.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A circle around a smaller one."""
    angles = [np.linspace(0, 2 * math.pi, size, endpoint=False) for size in _halves(n)]
    kinds = [r * np.stack([np.cos(a), np.sin(a)], 1) for r, a in zip((1.0, factor), angles)]
    return _finish(kinds, noise, np.random.default_rng(seed))


def spirals(n: int = 100, noise: float = 0.02, classes: int = 2, turns: float = 1.0,
            seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Arms that wind around each other."""
    kinds = []
    for k, size in enumerate(_halves(n, classes)):
        r = np.linspace(0.05, 1, size)
        angle = 2 * math.pi * (turns * r + k / classes)
        kinds.append(np.stack([r * np.cos(angle), r * np.sin(angle)], 1))
    return _finish(kinds, noise, np.random.default_rng(seed))


def blobs(n: int = 100, noise: float = 1.0, centers: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Clouds around centers that lie anywhere between -10 and 10."""
    random = np.random.default_rng(seed)
    places = random.uniform(-10, 10, (centers, 2))
    return _finish([np.tile(place, (size, 1)) for place, size in zip(places, _halves(n, centers))], noise, random)


def xor(n: int = 100, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a square; opposite corners are of one kind, so no straight line parts them."""
    corners = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    kinds = [np.resize(corners[2 * k:2 * k + 2], (size, 2)) for k, size in enumerate(_halves(n))]
    return _finish(kinds, noise, np.random.default_rng(seed))


def batches(X: Any, y: Any, size: int, shuffle: bool = True, seed: int | None = None) -> Iterator[tuple[Any, Any]]:
    """(X, y) in pieces of `size` rows, the last perhaps smaller; `seed` fixes the order.

    >>> [len(part) for part, _ in batches(np.arange(5), np.arange(5), 2)]
    [2, 2, 1]
    """
    if len(X) != len(y):
        raise ValueError(f"X and y belong together row by row, got {len(X)} and {len(y)} rows")
    if size < 1:
        raise ValueError(f"a batch has at least 1 row, got size {size}")
    order = np.random.default_rng(seed).permutation(len(X)) if shuffle else np.arange(len(X))
    return ((X[order[i:i + size]], y[order[i:i + size]]) for i in range(0, len(X), size))


def train_test_split(X: Any, y: Any, test_size: float = 0.2, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """X_train, X_test, y_train, y_test: rows at random, `test_size` of them (a share below 1, or a number) held out."""
    held = round(len(X) * test_size) if test_size < 1 else int(test_size)
    if len(X) != len(y) or not 0 < held < len(X):
        raise ValueError(f"{held} of {len(X)} rows cannot be held out (X and y have {len(X)} and {len(y)} rows)")
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[held:]], X[order[:held]], y[order[held:]], y[order[:held]]
