"""Every lesson runs as it stands, and the numbers that it shows are right."""

import functools
import json
import math
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
DEMOS = ROOT / "demos"
sys.path.insert(0, str(DEMOS))
LESSONS = {int(path.name[:2]): path for path in sorted(DEMOS.glob("[0-9][0-9]_*.py"))}
CURVES, GRAPHS = (4, 15, 17), (1, 3, 5, 7, 8, 24)         # pictures that need no more than Python's own arithmetic


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """lesson(n): the names that lesson n leaves behind, run once in its quick form, pictures in a temporary folder."""
    import course
    before = course.out, course.quick
    course.out, course.quick = tmp_path_factory.mktemp("pictures"), True

    @functools.cache
    def run(number):
        return runpy.run_path(str(LESSONS[number]))

    yield run
    course.out, course.quick = before


def test_there_are_24_lessons_in_teaching_order():
    assert list(LESSONS) == list(range(1, 25))


@pytest.mark.parametrize("number", LESSONS)
def test_lesson_runs_and_ends_with_what_to_notice(lesson, number, capsys):
    lesson(number)
    said = capsys.readouterr().out
    assert "\nNotice\n- " in said
    picture = __import__("course").out / f"{LESSONS[number].stem}.svg"
    assert ET.parse(picture).getroot().tag.endswith("svg") and picture.stat().st_size < 150_000


@pytest.mark.parametrize("number", LESSONS)
def test_lesson_opens_with_its_question(number):
    text = LESSONS[number].read_text(encoding="utf-8")
    assert re.match(rf'"""Lesson {number}\. [^\n]*\?\n', text)


@pytest.mark.parametrize("number", LESSONS)
def test_picture_is_committed(number):
    assert (DEMOS / f"{LESSONS[number].stem}.svg").stat().st_size < 150_000


@pytest.mark.parametrize("number", CURVES)
def test_running_a_lesson_again_gives_the_committed_curves(lesson, number):
    lesson(number)
    name = f"{LESSONS[number].stem}.svg"
    assert (__import__("course").out / name).read_bytes() == (DEMOS / name).read_bytes()


def writing(path):
    """All that can be read in a picture. Where it stands is the layout program's choice, and differs with its version."""
    return sorted(filter(None, ("".join(text.itertext()).strip() for text in ET.parse(path).iter() if
                                text.tag.endswith("}text"))))


@pytest.mark.parametrize("number", GRAPHS)
def test_running_a_lesson_again_gives_the_numbers_of_the_committed_graph(lesson, number):
    lesson(number)
    name = f"{LESSONS[number].stem}.svg"
    assert writing(__import__("course").out / name) == writing(DEMOS / name)


def test_both_ways_to_start_a_lesson_draw_the_same_bytes(tmp_path):
    for i, command in enumerate((["demos/01_expression.py"], ["-m", "demos.01_expression"])):
        done = subprocess.run([sys.executable, *command, "-o", str(tmp_path / str(i))], cwd=ROOT, capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "0/01_expression.svg").read_bytes() == (tmp_path / "1/01_expression.svg").read_bytes()


def test_list_of_lessons(capsys, monkeypatch):
    from demos import __main__ as program
    monkeypatch.setattr(sys, "argv", ["demos"])
    program.main()
    assert capsys.readouterr().out.count("?") == 24


def test_page_shows_every_picture_of_the_lessons_it_ran(tmp_path, capsys, monkeypatch):
    import course

    from demos import __main__ as program
    monkeypatch.setattr(course, "out", course.out)
    monkeypatch.setattr(course, "quick", course.quick)
    monkeypatch.setattr(sys, "argv", ["demos", "1", "5", "-o", str(tmp_path), "--quick"])
    program.main()
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'img src="([^"]+)"', page) == ["01_expression.svg", "05_reuse.svg"]
    assert all((tmp_path / name).exists() for name in ("01_expression.svg", "05_reuse.svg"))


def test_unknown_lesson_is_refused_in_one_line(monkeypatch, capsys):
    from demos import __main__ as program
    monkeypatch.setattr(sys, "argv", ["demos", "99"])
    with pytest.raises(SystemExit) as stop:
        program.main()
    assert stop.value.code == 2 and "no lesson '99'" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------- exercises
@pytest.mark.parametrize("number", range(1, 25))
def test_exercise_has_a_task_and_a_right_solution(number):
    import check
    import exercises
    import solutions
    name = f"exercise_{number:02}"
    assert getattr(exercises, name).__doc__ and check.verdict(exercises, number) == "not done yet"
    assert check.verdict(solutions, number) == ""


@pytest.mark.parametrize("number", range(1, 25))
def test_check_refuses_a_wrong_answer(number):
    from types import SimpleNamespace

    import check
    for wrong in (lambda *given, **named: None, lambda *given, **named: 0.123):
        assert check.verdict(SimpleNamespace(**{f"exercise_{number:02}": wrong}), number) not in ("", "not done yet")


@pytest.mark.parametrize("number", LESSONS)
def test_notebook_is_the_lesson_run(number):
    """Each line of code of the script is in the notebook, in order; nothing failed; a picture is kept."""
    notebook = json.loads((DEMOS / "notebooks" / f"{LESSONS[number].stem}.ipynb").read_text(encoding="utf-8"))
    lines = iter([line for cell in notebook["cells"] for line in "".join(cell["source"]).splitlines()])
    body = LESSONS[number].read_text(encoding="utf-8").split('"""', 2)[2]
    wanted = [line for line in body.splitlines() if line.strip() and not line.startswith("#")]
    assert [line for line in wanted if line not in lines] == []
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert not any(output["output_type"] == "error" for output in outputs)
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)


def test_plan_has_a_row_for_each_lesson():
    plan = (DEMOS / "README.md").read_text(encoding="utf-8")
    for number, path in LESSONS.items():
        assert re.search(rf"^\| {number} \| \[[^]]+\]\({path.name}\)", plan, re.MULTILINE), path.name


# --------------------------------------------------------------------------- the numbers on the blackboard
def test_01_neuron(lesson):
    names = lesson(1)
    assert names["o"].data == pytest.approx(0.7071067811865476, rel=1e-12)
    assert [names[k].grad for k in ("x1", "w1", "x2", "w2", "b")] == pytest.approx([-1.5, 1.0, 0.5, 0.0, 0.5], abs=1e-12)


def test_02_nudging_agrees_and_costs_n_runs(lesson):
    names = lesson(2)
    assert names["worst"] < 1e-4 and [row[1] for row in names["rows"]] == [11, 31, 101]


def test_03_by_hand(lesson):
    assert lesson(3)["by_hand"] == {"L": 1, "d": -2, "f": 4, "e": -2, "c": -2, "a": 6, "b": -4}


def test_04_neuron_learns_or(lesson):
    names = lesson(4)
    assert names["losses"][-1] < 0.2
    assert all((names["neuron"](x).data > 0) == (wanted > 0) for x, wanted in names["rows"])


def test_05_order_matters(lesson):
    names = lesson(5)
    assert names["a"].grad == 2.0
    assert names["right"] == names["x"].grad == pytest.approx(6 * 1.5 ** 5)
    assert names["wrong"] == pytest.approx(names["right"] / 3)


def test_06_forgetting_zero_grad(lesson):
    names = lesson(6)
    assert names["with_it"][:2] == pytest.approx([0.1, 0.19]) and names["without"][:2] == pytest.approx([0.1, 0.29])
    assert max(names["without"]) > 1.9 and names["with_it"][-1] == pytest.approx(1, abs=0.01)
    assert "zero_grad" in names["finding"]


def test_07_constants_get_nothing(lesson):
    names = lesson(7)
    assert (names["x"].grad, names["k"].grad, names["frozen"].grad) == (12.0, 0.0, 0.0)
    assert not names["unseen"].requires_grad
    assert names["recorded"] > 15 * names["silent"] and names["value"] == names["same"]


def test_08_graph_kept_or_freed(lesson):
    names = lesson(8)
    assert [row[1:] for row in names["rows"]] == [[12.0, 2.0], [24.0, 2.0], [36.0, 2.0]]
    assert "retain_graph=True" in names["message"] and names["t"].grad[0] != 0
    assert names["inner"].grad is None and names["kept"].grad == 3.0
    assert (names["before"], names["after"]) == (True, False)


def test_09_gradient_argument_mixes_the_rows(lesson):
    names = lesson(9)
    assert names["mixed"] == pytest.approx(names["by_rows"]) and names["mixed"] == pytest.approx(names["as_loss"])
    assert np.allclose(names["rows"], names["whole"]) and "gradient" in names["message"]


def test_10_best_steps(lesson):
    best = lesson(10)["best"]
    assert 1e-9 < best["float64", "forward"][1] < 1e-6 and 1e-7 < best["float64", "central"][1] < 1e-3
    assert best["float64", "central"][0] < 1e-9 < best["float32", "central"][0]
    assert "mismatch" in lesson(10)["caught"] and lesson(10)["right"] is True


def test_11_moons_learn(lesson):
    names = lesson(11)
    assert names["losses"][0] == pytest.approx(0.9053641324057837) and names["losses"][-1] < 0.4
    assert len(names["model"].parameters()) == 337


def test_12_three_ways_one_curve(lesson):
    names = lesson(12)
    assert names["worst"] < 1e-12
    nodes = [nodes for _, _, nodes in names["runs"].values()]
    assert nodes[0] > 5 * nodes[1] > 25 * nodes[2]


def test_13_parts_by_size_are_the_big_batch(lesson):
    errors = lesson(13)["errors"]
    assert errors["parts, each by its size"] < 1e-14
    assert errors["parts, each by 1/3"] > 0.05 and errors["parts, not divided"] > 0.5


def test_14_vanishing_and_exploding(lesson):
    names = lesson(14)
    assert names["triples"] == 3 ** 20 and names["sigmoids"] < 1e-12
    assert names["starved"] < 1e-6 < 1e-4 < names["cured"] and 0.1 < names["healthy"] < 10


def test_15_clipping_by_norm_keeps_the_direction(lesson):
    names = lesson(15)
    assert names["arrows"]["by norm to 1"] == pytest.approx((4 / 17 ** 0.5, 1 / 17 ** 0.5), rel=1e-5)
    assert names["arrows"]["by value to 1"] == (1.0, 1.0)
    assert not math.isfinite(names["wild"][-1]) and names["w_tame"] == pytest.approx(names["right"], abs=1e-3)


def test_16_learning_rates(lesson):
    names = lesson(16)
    final = names["final"]
    assert 0.1 < names["best"] < 10
    assert final[names["rates"][0]] > 3 * final[names["best"]] and final[names["rates"][-1]] > math.log(2)


def test_17_momentum_beats_descent(lesson):
    needed = lesson(17)["needed"]
    assert needed["momentum 0.8"] < needed["gradient descent"] / 2 and None not in needed.values()


def test_18_checkpoints_trade_memory_for_time(lesson):
    names = lesson(18)
    assert names["same"] and names["plain"][1] == 64
    assert all(run[1] == 128 for run in names["runs"].values())
    assert names["runs"][8][0] < names["plain"][0] / 2


def test_19_forward_and_reverse_agree(lesson):
    assert lesson(19)["worst"] < 1e-12


def test_20_newton_and_hessian(lesson):
    names = lesson(20)
    assert names["bottom"] == pytest.approx(math.cos(names["bottom"]), abs=1e-15)
    assert names["H"].shape == (13, 13) and names["asymmetry"] < 1e-12 and names["curvatures"][0] < 0


def test_21_attention_learns_where_to_look(lesson):
    names = lesson(21)
    assert names["difference"] < 1e-14 and all(row[0] > 0.95 for row in names["after"])
    assert all(sum(row) == pytest.approx(1) for row in names["after"])


def test_22_gpt_three_ways(lesson):
    names = lesson(22)
    first = [losses[0] for losses, _ in names["runs"].values()]
    assert max(first) - min(first) < 1e-9 and names["worst"] < 1e-9
    assert abs(first[0] - math.log(27)) < 1
    seconds = {name: took for name, (_, took) in names["runs"].items()}
    assert seconds["numbers (Value)"] > 30 * min(seconds.values())
    assert sum(names["losses"][-10:]) < 0.9 * sum(names["losses"][:10])
    assert all(set(word) <= set(names["letters"]) for word in names["invented"])


def test_23_digits_are_mended_step_by_step(lesson):
    names = lesson(23)
    shares = [right for _, right, _ in names["runs"].values()]
    assert shares[-1] > 0.5 > shares[0] and "saturated sigmoid" in names["runs"]["as built"][2]


def test_24_program_gives_what_backward_gives(lesson):
    names = lesson(24)
    assert names["walked"] == pytest.approx(names["ran"], rel=1e-15) and names["worst"] < 1e-12
    assert "# backward" in names["program"].source
