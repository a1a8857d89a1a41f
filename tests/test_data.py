"""Worlds to learn in: shapes, classes, seeds, batches."""

import numpy as np
import pytest

from micrograd import data

WORLDS = [data.moons, data.circles, data.spirals, data.blobs, data.xor]


@pytest.mark.parametrize("make", WORLDS)
@pytest.mark.parametrize("n", [100, 7])
def test_points_are_as_many_as_asked_and_shared_evenly(make, n):
    X, y = make(n)
    counts = np.bincount(y)
    assert X.shape == (n, 2) and y.shape == (n,) and X.dtype == np.float64 and y.dtype.kind == "i"
    assert counts.max() - counts.min() <= 1 and len(counts) == (3 if make is data.blobs else 2)


@pytest.mark.parametrize("make", WORLDS)
def test_a_seed_repeats_and_another_differs(make):
    (X, y), (again, same), (other, _) = make(20, seed=1), make(20, seed=1), make(20, seed=2)
    assert np.array_equal(X, again) and np.array_equal(y, same) and not np.array_equal(X, other)
    assert len(set(y[:10])) > 1                     # shuffled


def test_without_noise_points_lie_where_they_should():
    X, y = data.circles(50, noise=0.0, factor=0.3)
    np.testing.assert_allclose(np.hypot(*X.T), np.where(y == 0, 1.0, 0.3), atol=1e-12)
    X, y = data.moons(50, noise=0.0)
    np.testing.assert_allclose(np.hypot(*(X - np.where(y[:, None] == 0, [0.0, 0.0], [1.0, 0.5])).T), 1.0, atol=1e-12)
    assert (X[y == 0, 1] >= 0).all() and (X[y == 1, 1] <= 0.5).all()
    X, y = data.xor(20, noise=0.0)
    assert ((X[:, 0] * X[:, 1] > 0) == (y == 0)).all()
    assert {tuple(row) for row in X} == {(a, b) for a in (-1, 1) for b in (-1, 1)}
    X, y = data.spirals(30, noise=0.0, classes=3)
    assert len(set(y)) == 3 and np.hypot(*X.T).max() == pytest.approx(1.0)
    X, y = data.blobs(40, noise=0.0, centers=4)
    assert len(np.unique(X, axis=0)) == 4 and abs(X).max() <= 10


def test_batches_meet_every_row_once_with_its_class():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    parts = list(data.batches(X, y, 4, seed=0))
    assert [len(a) for a, _ in parts] == [4, 4, 2]
    assert sorted(np.concatenate([b for _, b in parts]).tolist()) == list(range(10))
    assert all((a[:, 0] == 2 * b).all() for a, b in parts)
    assert [b.tolist() for _, b in parts] == [b.tolist() for _, b in data.batches(X, y, 4, seed=0)]
    assert [b.tolist() for _, b in data.batches(X, y, 5, shuffle=False)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_rows_are_held_out_once_and_for_all():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    a, b, c, d = data.train_test_split(X, y, 0.2, seed=3)
    assert (len(a), len(b)) == (8, 2) and sorted([*c, *d]) == list(range(10)) and (b[:, 0] == 2 * d).all()
    assert len(data.train_test_split(X, y, 3)[1]) == 3


@pytest.mark.parametrize("wrong", [
    lambda: data.moons(1), lambda: data.blobs(2), lambda: data.batches([1], [1, 2], 1), lambda: data.batches([1], [1], 0),
    lambda: data.train_test_split(np.arange(3), np.arange(3), 0.01), lambda: data.train_test_split(np.arange(3), np.arange(2)),
    lambda: data.train_test_split(np.arange(3), np.arange(3), 3)])
def test_impossible_wishes_are_refused(wrong):
    with pytest.raises(ValueError):
        wrong()
