"""The scripts' pure functions, in a browser."""

import math

import pytest
import torch

from oneblock.norms import layer_norm
from oneblock.trace import record
from oneblock.widgets import Choice, Sliders
from oneblock.widgets.controls import key_of, places
from oneblock.widgets.steps import steps_view
from oneblock.widgets.view import fill


@pytest.fixture
def js(scripts):
    """``js("fill", template, numbers)`` calls an exported function."""
    return lambda name, *arguments: scripts.evaluate("([name, arguments]) => ob[name](...arguments)", [name, list(arguments)])


NUMBERS = ["2", "-3", "0", "1e-5", "-inf", *["9"] * 5, "-10"]
TEMPLATES = [
    "{0} + {1}", "{1} + {0}", "{1}·{1}", "{0} − {1}", "√{1}, ({1})², [{1}, {10}]", "{0} / {1} × {1} ⊙  {4}", "{10}{2}", "-{1}",
    "x{1}", "φ({1}) = {3}", "", "no number", "{x} {0", "·{1}", " {1}", "{0}\n+\n{1}", "+\u00a0{1}",
]  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_both_languages_put_numbers_into_a_text_alike(js, template):
    assert js("fill", template, NUMBERS) == fill(template, NUMBERS)


def test_both_languages_fill_a_whole_trace_alike(scripts):
    view = steps_view(record(layer_norm, torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64)))
    texts = [text for step in view.frame["steps"] for text in [step["sentence"], *step["worked"]]]
    filled = scripts.evaluate("([texts, numbers]) => texts.map((text) => ob.fill(text, numbers))", [texts, view.numbers])
    assert filled == [fill(text, view.numbers) for text in texts] and len(texts) > 15


def test_a_phrase_takes_its_arguments(scripts):
    assert scripts.evaluate("ob.phrase('{0} / {1} · {2} {0}', 3, 8, 'σ²')") == "3 / 8 · σ² 3"


def test_a_difference_is_put_into_the_start(js):
    assert js("apply", ["1", "2", "3"], "0=-1.5 2=1e-5") == ["-1.5", "2", "1e-5"]
    assert js("apply", ["1", "2"], "") == ["1", "2"]


def test_a_difference_leaves_the_start_as_it_was(scripts):
    assert scripts.evaluate("(() => { const start = ['1']; ob.apply(start, '0=2'); return start })()") == ["1"]


@pytest.mark.parametrize(
    "typed, value",
    [("-1.5", -1.5), ("−1.5", -1.5), ("2/3", 2 / 3), ("-2/3", -2 / 3), ("−2 / 3", -2 / 3), ("0,5", 0.5), ("-0,5", -0.5), (" 7 ", 7), (".5", 0.5), ("1e-3", 1e-3), ("+2", 2), ("0", 0), ("0/5", 0)],
)  # fmt: skip
def test_a_number_is_read_as_people_type_it(js, typed, value):
    assert js("parseNumber", typed) == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize("typed", ["", " ", "abc", "1/0", "0/0", "1/", "/2", "1/2/3", "1,2,3", "--1", "1 2", "Infinity", "NaN", "1.2.3", "½x"])
def test_what_is_no_number_is_none(js, typed):
    assert math.isnan(js("parseNumber", typed))


QUESTION = {"answer": "9", "misreadings": [{"value": "12", "says": "n - 1"}, {"value": "9", "says": "never"}, {"value": "36", "says": "sum"}, {"value": "9.004", "says": "near"}]}


@pytest.mark.parametrize(
    "guess, verdict",
    [(9, True), (9.001, True), (8.996, True), (9.0045, ["near"]), (12, ["n - 1"]), (12.01, ["n - 1"]), (36, ["sum"]), (10, []), (-9, []), (1e9, [])],
)
def test_a_guess_is_right_or_a_misreading_or_neither(js, guess, verdict):
    due = {"right": True} if verdict is True else {"right": False, "says": verdict}
    assert js("judge", QUESTION, guess) == due


def test_two_decimals_are_enough_to_be_right(js):
    assert js("judge", {"answer": "0.666667", "misreadings": []}, 0.67) == {"right": True}
    assert js("judge", {"answer": "0.666667", "misreadings": []}, 0.66) == {"right": False, "says": []}
    assert js("judge", {"answer": "123457", "misreadings": []}, 123400) == {"right": True}


@pytest.mark.parametrize("nowhere", ["nan", "inf", "-inf"])
def test_a_misreading_without_a_number_hides_no_other(js, nowhere):
    misreadings = [{"value": text, "says": text} for text in ("5", nowhere, "3", nowhere, "4")]
    assert js("judge", {"answer": "1", "misreadings": misreadings}, 3) == {"right": False, "says": ["3"]}
    assert js("judge", {"answer": "1", "misreadings": misreadings}, 1) == {"right": True}


def test_two_misreadings_that_give_one_number_are_both_named(js):
    misreadings = [{"value": "2", "says": "n - 1"}, {"value": "2", "says": "sum"}, {"value": "4", "says": "other"}]
    assert js("judge", {"answer": "1", "misreadings": misreadings}, 2) == {"right": False, "says": ["n - 1", "sum"]}


@pytest.mark.parametrize("symbol, name", [("h", "h₁₂"), ("LN", "LN₁₂"), ("d²", "d²[12]"), ("SiLU(g)", "SiLU(g)[12]")])
def test_an_element_is_named_by_a_subscript_where_that_reads_well(js, symbol, name):
    assert js("element", symbol, 12) == name


@pytest.mark.parametrize("k, place", [(0, [0, 0, 0]), (1, [0, 0, 1]), (7, [0, 1, 2]), (29, [1, 2, 4])])
def test_a_place_among_many_is_told_axis_by_axis(js, k, place):
    assert js("placeOf", k, [2, 3, 5]) == place


def test_the_element_asked_for_tells_the_most_misreadings_apart(js):
    tensors = {"a": {"at": 0, "shape": [3], "symbol": "a"}}
    #          right a        no activation   absolute value
    numbers = ["0", "2", "0", "0", "2", "-1", "0", "2", "1"]
    question = js("questionOf", {"of": "a", "wrong": [[3, "no"], [6, "abs"]]}, tensors, numbers)
    assert question == {"cell": 2, "label": "a₃", "answer": "0", "misreadings": [{"value": "-1", "says": "no"}, {"value": "1", "says": "abs"}]}


def test_a_single_number_is_asked_for_without_a_place(js):
    question = js("questionOf", {"of": "mean", "wrong": [[1, "sum"]]}, {"mean": {"at": 0, "shape": [1], "symbol": "μ"}}, ["4", "16"])
    assert (question["label"], question["answer"]) == ("μ", "4")


@pytest.mark.parametrize(
    "interval, due",
    [
        ((-4, 4), [-4, -2, 0, 2, 4]), ((0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]), ((-0.17, 4), [0, 1, 2, 3, 4]),
        ((1e-6, 5e-6), [1e-6, 2e-6, 3e-6, 4e-6, 5e-6]), ((-2000, 9000), [0, 5000]), ((3, 3), []), ((0, 0), []),
    ],
)  # fmt: skip
def test_an_axis_is_cut_at_round_numbers(js, interval, due):
    assert js("ticks", *interval) == pytest.approx(due)


@pytest.mark.parametrize(
    "low, high, due",
    [
        (-10, 0.4, [1e-10, 1e-5, 1]), (-1.2, 1.1, [0.1, 1, 10]),
        (-0.35, 0.78, [0.5, 1, 2, 5]), (0.1, 0.25, []), (0, 0, [1]),
    ],
)  # fmt: skip
def test_a_logarithmic_axis_has_powers_of_ten_and_where_those_are_few_what_lies_between(js, low, high, due):
    assert js("heightTicks", low, high, True) == pytest.approx(due)


CONTROLS = [*Sliders([0, 1], [0, 0.5, 1]).entries("x"), *Choice(["relu", "silu"]).entries("phi"), *Sliders(1 / 3, [0, 1 / 3, 2 / 3]).entries("eps")]


def test_both_languages_name_every_setting_alike(scripts):
    found = list(places(CONTROLS, False))
    keys = scripts.evaluate(
        "([found, controls]) => found.map((place) => ob.keyOf(place.map((k, i) => ob.valueAt(controls[i], k)), controls))", [found, CONTROLS]
    )
    assert keys == [key_of(place, CONTROLS) for place in found] and len(keys) == 54


def test_a_value_between_the_declared_ones_has_no_place(js):
    assert js("placesOf", [0.25, 1, "relu", 0], CONTROLS) == [-1, 2, 0, 0]
    assert js("keyOf", [0.25, 1, "relu", 0], CONTROLS) is None
    assert js("keyOf", [0, 1, "tanh", 0], CONTROLS) is None


def test_a_figure_starts_where_its_controls_start(js):
    assert js("startOf", CONTROLS) == [0, 1, "relu", 0.333333333333]


def test_moving_one_slider_sets_the_others_back_but_no_choice(js):
    assert js("onlyMoved", [0.5, 0.5, "silu", 0], 0, CONTROLS) == [0.5, 1, "silu", 0.333333333333]
    assert js("onlyMoved", [0.5, 0.5, "silu", 0], 3, CONTROLS) == [0, 1, "silu", 0]


UNEVEN = [-2, -0.5, 1e-5, 0.333333333333, 10, 1000]


@pytest.mark.parametrize("place", range(6))
def test_a_whole_place_is_the_declared_value_itself(js, place):
    assert js("between", UNEVEN, place) == UNEVEN[place]
    assert js("stopOf", UNEVEN, UNEVEN[place]) == place


@pytest.mark.parametrize("place", [0.05, 0.5, 0.95, 1.25, 2.75, 3.1, 4.9, 4.99])
def test_place_and_value_lead_to_each_other(js, place):
    value = js("between", UNEVEN, place)
    assert UNEVEN[math.floor(place)] < value < UNEVEN[math.ceil(place)]
    assert js("stopOf", UNEVEN, value) == pytest.approx(place, abs=1e-4)


def test_a_text_child_is_never_markup(scripts):
    text = "<img src=x onerror=alert(1)>"
    assert scripts.evaluate("(text) => { const p = ob.h('p', {}, text); return [p.textContent, p.children.length] }", text) == [text, 0]


GRID = """(tensor) => {
    const figure = ob.tensorGrid(tensor, ["not", "bad", "7", "8", "9", "10"], { ui: {} });
    return [...figure.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent));
}"""


@pytest.mark.parametrize(
    ("tensor", "rows"),
    [
        ({"axes": ["C"], "shape": [2], "labels": {"C": 0}}, [["not", "7"], ["bad", "8"]]),
        ({"axes": ["C"], "shape": [2]}, [["C →"], ["7", "8"]]),
        ({"axes": ["L", "D"], "shape": [2, 2], "labels": {"L": 0}}, [["L ↓", "D →"], ["not", "7", "8"], ["bad", "9", "10"]]),
        ({"axes": ["L", "D"], "shape": [2, 2]}, [["L ↓", "D →"], ["1", "7", "8"], ["2", "9", "10"]]),
    ],
)
def test_named_places_are_rows_with_their_names(scripts, tensor, rows):
    assert scripts.evaluate(GRID, {"symbol": "x", "at": 2, **tensor}) == rows
