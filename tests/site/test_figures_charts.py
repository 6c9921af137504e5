"""What curves and heat maps draw, beside the numbers they print."""

import math

import pytest

from .figure_pages import opener
from .figure_samples import card_explorer, curves_explorer, heat_explorer, log_explorer
from .figures import Shown

DRAWN = """(svg) => {
    const all = (selector) => [...svg.querySelectorAll(selector)];
    const points = (path) => path.getAttribute("d").slice(1).split("L").map((pair) => pair.split(" ").map(Number));
    return {
        width: svg.viewBox.baseVal.width,
        mark: +svg.querySelector(".ob-mark").getAttribute("x1"),
        dots: all(".ob-dot").map((dot) => [+dot.getAttribute("cx"), +dot.getAttribute("cy"), dot.getAttribute("class")]),
        curves: all(":scope > .ob-curve").map(points),
        dashes: all(":scope > .ob-curve").map((curve) => curve.getAttribute("stroke-dasharray")),
        names: all(".ob-name").map((name) => [name.textContent, name.getBBox().x + name.getBBox().width, +name.getAttribute("y")]),
        ticks: all("text[text-anchor=end]").map((text) => text.textContent),
    };
}"""


@pytest.fixture(scope="module")
def page_of_charts(browser):
    opened = opener(browser)
    yield next(opened)(curves_explorer(), heat_explorer(), log_explorer(), card_explorer())
    next(opened, None)


@pytest.fixture
def chart(page_of_charts):
    page_of_charts.reload()
    return lambda title: Shown(page_of_charts, title)


def drawn(figure):
    return figure.root.locator("svg").evaluate(DRAWN)


def test_curves_are_drawn_where_their_numbers_are(chart):
    picture = drawn(chart("curves"))
    assert [len(curve) for curve in picture["curves"]] == [41] * 4
    relu = picture["curves"][0]
    assert relu[0][1] == relu[20][1] and relu[0][0] < relu[20][0] < relu[40][0]
    steps = [before[1] - after[1] for before, after in zip(relu[20:], relu[21:])]  # upwards from the kink, in even steps
    assert min(steps) > 0 and max(steps) - min(steps) < 0.1


@pytest.mark.parametrize("key, point", [("Home", 0), ("End", 40)])
def test_the_mark_and_its_dots_stand_on_the_curves(chart, key, point):
    figure = chart("curves")
    figure.slider("x").press(key)
    picture = drawn(figure)
    due = [[curve[point][0], pytest.approx(curve[point][1], abs=0.1), f"ob-dot ob-c{k}"] for k, curve in enumerate(picture["curves"])]
    assert picture["dots"] == due and picture["mark"] == picture["curves"][0][point][0]


def test_each_curve_has_dashes_and_a_name_of_its_own_within_the_picture(chart):
    picture = drawn(chart("curves"))
    assert len(set(picture["dashes"])) == 4
    assert sorted(name for name, _, _ in picture["names"]) == ["gelu", "gelu_tanh", "relu", "silu"]
    assert all(right <= picture["width"] for _, right, _ in picture["names"])
    lines = sorted(y for _, _, y in picture["names"])
    assert all(below - above >= 14 for above, below in zip(lines, lines[1:])) and lines[-1] <= 300


def test_on_a_logarithmic_axis_powers_of_ten_are_even_steps(chart):
    picture = drawn(chart("log"))
    line, gap = picture["curves"]
    steps = [before[1] - after[1] for before, after in zip(line, line[1:])]
    assert len(line) == 7 and max(steps) - min(steps) < 0.1 and min(steps) > 0
    assert picture["ticks"] == ["1e−6", "1e−4", "0.01", "1"]
    assert len(gap) == 3  # what is not above 0 is left out
    assert [kind for _, _, kind in picture["dots"]] == ["ob-dot ob-c0"]


def ground(figure):
    return figure.root.locator(".ob-heat td").evaluate_all(
        "(cells) => cells.map((cell) => [cell.textContent, cell.className, parseFloat(cell.style.getPropertyValue('--ob-heat'))])"
    )


@pytest.mark.parametrize("key, scale", [(None, 1), ("End", 1000), ("Home", -1)])
def test_a_heat_map_prints_each_number_on_a_ground_of_its_strength(chart, key, scale):
    figure = chart("heat")
    if key:
        figure.slider("scale").press(key)
    due = [sign * value * scale for sign in (1, -1) for value in [1, -2, 0, 0.5, math.nan, 4]]
    for (text, kind, strength), value in zip(ground(figure), due, strict=True):
        assert float(text) == pytest.approx(value, nan_ok=True)
        assert strength == pytest.approx(0 if math.isnan(value) else 70 * abs(value / scale) / 4, abs=0.51)
        assert kind == ("" if value == 0 or math.isnan(value) else "ob-minus" if value < 0 else "ob-plus")


CARD = "(card) => [...card.children].map((part) => [part.tagName, part.textContent, part.querySelector('pre') !== null])"


def test_a_card_says_what_is_to_be_said_of_the_thing_that_was_picked(chart):
    figure = chart("card")
    lines = "- return q @ k.mT / sqrt(E)"
    shown = figure.root.locator(".ob-card")
    assert shown.evaluate(CARD) == [
        ["DT", "What happened", False],
        ["DD", "The scores are not divided by √E, and with wider heads they grow.", False],
        ["DT", "Lines", False],
        ["DD", f"{lines}\n+ return q @ k.mT", True],
    ]
    figure.root.locator("select").select_option("other")
    assert [text for _, text, _ in shown.evaluate(CARD)] == [
        "What happened", "Nothing else <b>is</b> wrong.", "Lines", lines, "It hides", "With {0} heads."
    ]  # fmt: skip
    assert figure.root.locator("sup").count() == 0


def test_a_card_needs_no_more_room_than_a_phone_has(chart):
    chart("card").page.set_viewport_size({"width": 390, "height": 800})
    wide = chart("card").root.locator(".ob-stage").evaluate("(stage) => [stage.scrollWidth, stage.clientWidth]")
    chart("card").page.set_viewport_size({"width": 1280, "height": 800})
    assert wide[0] == wide[1]
