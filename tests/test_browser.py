"""The stepper page and the animated SVG in a real browser, with real keys, clicks, colours and preferences."""

from __future__ import annotations

import os
import time

import pytest

from micrograd import Value, animate, stepper
from tests.browser import Browser, found
from tests.test_animation import HOSTILE, neuron
from tests.test_stepper import training

if found() is None and "MICROGRAD_BROWSER" not in os.environ:
    pytest.skip("no chromium on the PATH, and MICROGRAD_BROWSER names none", allow_module_level=True)

STEPS = 10                              # five operations forward, five backward


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        browser.resize(1280, 800)
        yield browser


@pytest.fixture(autouse=True)
def quiet(browser):
    """No test leaves a complaint on the console, or asks for more than its own file."""
    browser.errors.clear(), browser.requests.clear()
    browser.prefer(scheme="light", motion="no-preference")
    yield
    assert browser.errors == []
    assert all(url.startswith(("file:///", "about:")) and url.endswith((".html", ".svg", "blank"))
               for url in browser.requests)
    assert len(browser.requests) <= 2


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    file = tmp_path_factory.mktemp("stepper") / "neuron.html"
    stepper(neuron(), file, title="A neuron")
    return file


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    file = tmp_path_factory.mktemp("stepper") / "training.html"
    stepper(None, file, frames=training(10))
    return file


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    file = tmp_path_factory.mktemp("film") / "neuron.svg"
    animate(neuron(), file)
    return file


def at(browser: Browser) -> int:
    """The step that the page shows."""
    value, phase = browser.run("[document.getElementById('scrub').value, document.querySelector('.phase').textContent]")
    assert f"step {value} of {STEPS}" in phase
    return int(value)


def visible(browser: Browser, selector: str) -> float:
    """The opacity of an element once its transition is over."""
    return float(browser.run(f"""(() => {{ document.getAnimations().forEach(a => a.finish());
        return getComputedStyle(document.querySelector({selector!r})).opacity }})()"""))


def text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({selector!r}).textContent"))


# ------------------------------------------------------------------------------------ the stepper
def test_keys_step_forward_back_first_and_last(browser, page):
    browser.open(page)
    assert at(browser) == 0
    for key, place in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", STEPS), ("ArrowRight", STEPS),
                       ("Home", 0), ("ArrowLeft", 0)):
        browser.press(key)
        assert at(browser) == place


def test_there_is_one_step_for_each_operation_forward_and_backward(browser, page):
    browser.open(page)
    phases = []
    while not browser.run("document.getElementById('next').disabled"):
        browser.click("#next")
        phases.append(text(browser, ".phase b"))
    assert phases == ["forward"] * 5 + ["backward"] * 5 and at(browser) == STEPS


def test_buttons(browser, page):
    browser.open(page)
    for button, place in (("#next", 1), ("#next", 2), ("#back", 1), ("#last", STEPS), ("#first", 0)):
        browser.click(button)
        assert at(browser) == place
    assert browser.run("document.getElementById('back').disabled")


def test_space_plays_and_pauses(browser, page):
    browser.open(page)
    browser.run("document.getElementById('speed').value = '4'")
    browser.press(" ")
    assert browser.run("document.getElementById('play').getAttribute('aria-label')") == "Pause"
    deadline = time.monotonic() + 10
    while at(browser) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    browser.press(" ")
    stopped = at(browser)
    time.sleep(0.6)
    assert stopped >= 2 and at(browser) == stopped
    assert browser.run("document.getElementById('play').getAttribute('aria-label')") == "Play"


def test_play_stops_at_the_end_and_begins_again(browser, page):
    browser.open(page)
    browser.run("document.getElementById('speed').value = '4'")
    browser.press("End")
    browser.press("ArrowLeft")
    browser.click("#play")
    deadline = time.monotonic() + 10
    while at(browser) < STEPS and time.monotonic() < deadline:
        time.sleep(0.05)
    assert at(browser) == STEPS
    assert browser.run("document.getElementById('play').getAttribute('aria-label')") == "Play"
    browser.click("#play")
    assert at(browser) <= 1
    browser.press("ArrowRight")                         # a hand on the keys ends the play
    assert browser.run("document.getElementById('play').getAttribute('aria-label')") == "Play"


def test_scrubbing(browser, page):
    browser.open(page)
    browser.click("#scrub")                             # the middle of the slider
    assert at(browser) == STEPS // 2
    browser.press("ArrowRight")                         # with the slider in focus: one step, not two
    assert at(browser) == STEPS // 2 + 1


def test_values_and_gradients_appear_when_their_time_comes(browser, page):
    browser.open(page)
    assert visible(browser, "#n2 .data") == 0 and visible(browser, "#n0 .data") == 1
    browser.press("ArrowRight")
    assert visible(browser, "#n2 .data") == 1 and text(browser, "#n2 .data") == "-6.0"
    assert visible(browser, "#n2 .grad") == 0
    browser.press("End")
    assert visible(browser, "#n2 .grad") == 1 and text(browser, "#n0 .grad") == "-1.5"
    assert visible(browser, "#e2-0 .back_wire") == 1 and visible(browser, "#e2-0 text.slope") == 0
    browser.press("Home")
    assert visible(browser, "#n0 .grad") == 0 and visible(browser, "#e2-0 .back_wire") == 0


def test_sentence_and_formula_of_the_step_are_beside_the_graph(browser, page):
    browser.open(page)
    browser.press("End")
    assert text(browser, ".formulas li") == "do/dx1 = do/dx1w1 · ∂x1w1/∂x1 = 0.5 · (-3.0) = -1.5".replace("x1w1", "n2")
    assert "n2 has received all of its gradient" in text(browser, ".sentence")


def test_history_of_a_number_on_hover_and_on_focus(browser, page):
    browser.open(page)
    browser.press("End")
    browser.hover("#n0 .card")
    assert text(browser, ".inspector h2") == "x1"
    assert "step 10: gradient -1.5, from n2" in text(browser, ".inspector ul")
    browser.hover("h1")
    browser.run("document.getElementById('n1').focus()")
    assert text(browser, ".inspector h2") == "w1"


def test_everything_can_be_reached_with_the_tab_key(browser, page):
    browser.open(page)
    reached = set()
    for _ in range(30):
        browser.press("Tab")
        reached.add(browser.run("document.activeElement.id"))
    assert {"n0", "n9", "next", "play", "scrub", "speed"} <= reached


def test_roles_and_labels(browser, page):
    browser.open(page)
    assert browser.run("[...document.querySelectorAll('button, input, select')].every(e => e.ariaLabel || e.labels.length)")
    assert browser.run("document.querySelector('.told').getAttribute('aria-live')") == "polite"
    assert browser.run("document.getElementById('n2').getAttribute('aria-label')") == "n2: not computed yet"
    browser.press("End")
    assert browser.run("document.getElementById('n2').getAttribute('aria-label')") == "n2: data -6.0, gradient 0.5"


def test_first_and_last_step_look_different(browser, page):
    browser.open(page)
    first = browser.screenshot()
    browser.press("End")
    assert browser.screenshot() != first


def test_dark_and_light(browser, page):
    browser.open(page)
    light = browser.run("getComputedStyle(document.documentElement).backgroundColor")
    browser.prefer(scheme="dark", motion="no-preference")
    assert (light, browser.run("getComputedStyle(document.documentElement).backgroundColor")) == (
        "rgb(255, 255, 255)", "rgb(15, 20, 27)")
    assert browser.run("getComputedStyle(document.querySelector('.variable .card')).fill") == "rgb(20, 40, 63)"


def test_reduced_motion_moves_nothing(browser, page):
    browser.prefer(scheme="light", motion="reduce")
    browser.open(page)
    browser.press("ArrowRight")
    assert browser.run("document.getAnimations().length") == 0


def test_training_steps(browser, trained):
    browser.open(trained)
    browser.press("End")
    first = text(browser, "#n0 .data")
    browser.press("ArrowDown")
    assert text(browser, "#which") == "2 of 10" and text(browser, "#n0 .data") != first
    browser.press("ArrowUp")
    assert text(browser, "#which") == "1 of 10" and text(browser, "#n0 .data") == first
    browser.hover("#n0 .card")
    assert browser.run("document.querySelectorAll('.inspector .spark').length") == 2
    browser.run("document.getElementById('speed').value = '4'")
    browser.click("#train")
    deadline = time.monotonic() + 15
    while text(browser, "#which") != "10 of 10" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert text(browser, "#which") == "10 of 10" and text(browser, "#train") == "train"


def test_address_of_a_step(browser, page):
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=page.as_uri() + "#7")
    deadline = time.monotonic() + 10
    while browser.run("document.readyState + location.hash") != "complete#7" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert at(browser) == 7
    browser.requests.clear()


def test_fits_a_telephone(browser, page):
    browser.resize(390, 800)
    try:
        browser.open(page)
        assert browser.run("document.documentElement.scrollWidth") <= 390
    finally:
        browser.resize(1280, 800)


@pytest.mark.parametrize("label", [x for x in HOSTILE if "script" in x or "onload" in x or "{{" in x])
def test_hostile_labels_do_nothing(browser, label, tmp_path):
    x = Value(2.0, label=label)
    y = x * x
    y.label = label
    stepper(y, tmp_path / "hostile.html", title=label)
    browser.open(tmp_path / "hostile.html")
    browser.press("End")
    assert text(browser, "h1") == label and label in text(browser, ".sentence")
    assert browser.run("document.scripts.length") == 2
    animate(y, tmp_path / "hostile.svg")
    browser.open(tmp_path / "hostile.svg")
    assert browser.run("document.querySelectorAll('script').length") == 0


def test_policy_blocks_any_other_script(browser, page):
    browser.open(page)
    assert browser.run("""(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';
        document.body.append(s); return window.ran || 0 })()""") == 0
    browser.run("0")
    assert any("Content Security Policy" in error for error in browser.errors)
    browser.errors.clear()


# --------------------------------------------------------------------------------------- the film
def seek(browser: Browser, share: float) -> None:
    """Put the film at a share of its length."""
    browser.run(f"document.getAnimations().forEach(a => {{ a.pause(); a.currentTime = {share} * "
                "a.effect.getComputedTiming().duration }); new Promise(r => requestAnimationFrame(() => r()))")


def test_film_begins_with_inputs_and_ends_with_gradients(browser, film):
    browser.open(film)
    seek(browser, 0.0)
    first = browser.screenshot()
    opacity = "getComputedStyle(document.querySelector('#{} text.{}')).opacity"
    assert [browser.run(opacity.format("n0", x)) for x in ("data", "grad")] == ["1", "0"]
    assert browser.run(opacity.format("n2", "data")) == "0"
    seek(browser, 1.0)
    assert browser.screenshot() != first
    assert {browser.run(f"getComputedStyle(document.querySelector('#n{i} text.grad')).opacity") for i in range(10)} == {"1"}


def test_final_state_of_the_film_is_that_of_reduced_motion(browser, film):
    seen = "[...document.querySelectorAll('*')].map(e => getComputedStyle(e).opacity).join()"
    browser.open(film)
    seek(browser, 1.0)
    last = browser.run(seen)
    browser.prefer(scheme="light", motion="reduce")
    browser.open(film)
    assert browser.run("document.getAnimations().length") == 0
    assert browser.run(seen) == last


def test_film_ends_by_itself(browser, tmp_path):
    animate(neuron(), tmp_path / "quick.svg", seconds=0.05)
    browser.open(tmp_path / "quick.svg")
    browser.run("Promise.all(document.getAnimations().map(a => a.finished)).then(() => 1)")
    assert browser.run("getComputedStyle(document.querySelector('#n0 text.grad')).opacity") == "1"


def test_film_plays_inside_an_img(browser, film, tmp_path):
    animate(neuron(), tmp_path / "quick.svg", seconds=0.3)
    (tmp_path / "page.html").write_text('<body style="margin:0"><img src="quick.svg">', encoding="utf-8")
    browser.open(tmp_path / "page.html")
    first = browser.screenshot()
    deadline = time.monotonic() + 8
    while browser.screenshot() == first and time.monotonic() < deadline:
        time.sleep(0.2)
    assert browser.screenshot() != first


def test_film_in_the_dark(browser, film):
    browser.open(film)
    seek(browser, 1.0)
    light = browser.screenshot()
    browser.prefer(scheme="dark", motion="no-preference")
    assert browser.run("getComputedStyle(document.querySelector('.card')).fill") == "rgb(20, 40, 63)"
    assert browser.screenshot() != light
