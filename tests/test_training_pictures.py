"""Pictures of training: what is drawn is what was measured, and a file is the same bytes each time."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from micrograd import nn
from micrograd.drawing.training import decision_boundary, gradient_norms, loss_curve

X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]])
y = np.array([0, 1, 0, 1])


def test_loss_curve_holds_the_losses():
    figure = loss_curve([3.0, 2.0, 1.0])
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [1, 2, 3] and line.get_ydata().tolist() == [3.0, 2.0, 1.0]
    assert figure.axes[0].get_yscale() == "linear"


def test_loss_over_powers_of_ten_is_on_a_log_scale():
    assert loss_curve([100.0, 1.0]).axes[0].get_yscale() == "log"
    assert loss_curve([100.0, -1.0]).axes[0].get_yscale() == "linear"


def test_heat_map_shows_the_logarithm_and_leaves_zero_empty():
    figure = gradient_norms([{"a": 10.0, "b": 0.0}, {"a": 100.0, "b": 0.001}])
    cells = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(cells.filled(math.nan), [[1, 2], [math.nan, -3]])
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["a", "b"]


def test_heat_map_of_a_monitored_run():
    random.seed(0)
    model = nn.MLP(2, [3, 1])
    monitor = nn.Monitor(model)
    loss = model([1.0, 2.0]) ** 2
    loss.backward()
    monitor.record(loss)
    figure = gradient_norms(monitor.norms)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["layers.0", "layers.1"]


def test_nothing_recorded_is_an_error_with_advice():
    with pytest.raises(ValueError, match=r"nn\.Monitor"):
        gradient_norms([])


def test_boundary_lies_where_the_score_is_zero():
    figure = decision_boundary(lambda points: points[:, 0] - 0.25, X, y, points=41)
    line = next(c for c in figure.axes[0].collections if getattr(c, "levels", [1])[0] == 0)
    np.testing.assert_allclose(np.concatenate([p.vertices[:, 0] for p in line.get_paths()]), 0.25, atol=1e-9)


def test_boundary_of_a_model_without_one():
    decision_boundary(lambda points: np.ones(len(points)), X, y)
    decision_boundary(lambda points: np.zeros(len(points)), X, y)


def test_scalar_model_is_called_with_columns():
    random.seed(1)
    model = nn.MLP(2, [3, 1])
    from micrograd.drawing.training import _scores
    scores = _scores(model, X)
    assert scores.shape == (4, 1)
    np.testing.assert_allclose(scores[:, 0], [model(list(point)).data for point in X])
    assert decision_boundary(model, X, y, points=5).axes


def test_several_scores_are_several_regions():
    figure = decision_boundary(lambda points: np.stack([points[:, 0], -points[:, 0], points[:, 1]], 1), X, [0, 1, 2, 1])
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["0", "1", "2"]


@pytest.mark.parametrize("draw", [
    lambda file: loss_curve([3.0, 1.0], file), lambda file: gradient_norms([{"a": 1.0}], file, theme="dark"),
    lambda file: decision_boundary(lambda points: points[:, 0], X, y, file, points=9)])
def test_same_bytes_each_time(draw, tmp_path):
    draw(tmp_path / "one.svg"), draw(tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    draw(tmp_path / "one.png"), draw(tmp_path / "two.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
