import math

import pytest
import torch

from oneblock.errors import ArgumentError, ShapeError
from oneblock.widgets.controls import Choice, Sliders, Text, check_setting, count_places, key_of, places, span

GRID = [0, 0.5, 1]


def test_each_element_gets_a_slider_named_after_its_tensor_and_place():
    entries = Sliders([[0, 1, 0.5], [1, 1, 0]], GRID).entries("W1")
    assert [entry["label"] for entry in entries] == ["W₁[1,1]", "W₁[1,2]", "W₁[1,3]", "W₁[2,1]", "W₁[2,2]", "W₁[2,3]"]
    assert [entry["start"] for entry in entries] == [0, 2, 1, 2, 2, 0]
    assert {entry["group"] for entry in entries} == {"W₁"} and entries[0]["values"] == ["0", "0.5", "1"]


def test_a_number_gets_one_slider():
    assert Sliders(0.5, GRID).entries("eps") == [{"kind": "slider", "group": "ε", "label": "ε", "values": ["0", "0.5", "1"], "start": 1}]


def test_an_argument_without_a_symbol_is_named_as_it_is():
    assert Sliders(1, GRID).entries("beta_2")[0]["label"] == "beta_2"
    assert Choice(["a", "b"]).entries("the_activation")[0]["label"] == "the activation"


def test_sliders_hand_over_a_tensor_of_their_shape():
    setting = iter([1, 2, 3, 4, 5, 6, 7])
    taken = Sliders([[0, 0, 0], [0, 0, 0]], GRID).argument(setting)
    assert torch.equal(taken, torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.float64))
    assert Sliders(0, GRID).argument(setting) == 7.0  # and leave the rest


@pytest.mark.parametrize("values", [[], [1], [1, 1], [2, 1], [0, math.inf], [0, math.nan], [math.nan, 0]])
def test_values_that_do_not_increase_are_refused(values):
    with pytest.raises(ArgumentError, match=r"^values must be at least two finite numbers, increasing; got \["):
        Sliders(1, values)


@pytest.mark.parametrize("start", [0.25, [0, 2], [[1, -1]]])
def test_a_start_off_the_grid_is_refused(start):
    with pytest.raises(ArgumentError, match=r"^start must be made of elements of values \[0\.0, 0\.5, 1\.0\]; got (0\.25|2\.0|-1\.0)"):
        Sliders(start, GRID)


def test_a_span_has_no_rounding_error():
    assert span(-2, 2, 0.5) == [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2]
    assert span(0, 1, 0.1) == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]


@pytest.mark.parametrize("limits", [(1, 0, 0.1), (0, 0, 0.1), (0, 1, 0), (0, 1, -1), (0, math.inf, 1), (math.nan, 1, 1)])
def test_a_span_that_goes_nowhere_is_refused(limits):
    with pytest.raises(ArgumentError, match=r"^span must be low < high and step > 0; got \("):
        span(*limits)


@pytest.mark.parametrize("step", [0.3, 0.35, 2])
def test_a_span_whose_step_misses_its_end_is_refused(step):
    with pytest.raises(ArgumentError, match=r"^span must be a whole number of steps from low to high; got \(0, 1, "):
        span(0, 1, step)


@pytest.mark.parametrize("options", [[], ["a"], ["a", "a"], ["a", "b", "a"]])
def test_a_choice_needs_two_different_names(options):
    with pytest.raises(ArgumentError, match=r"^options must be at least two different names; got \["):
        Choice(options)


ENTRIES = [*Sliders([0, 1], GRID).entries("x"), *Choice(["relu", "silu"]).entries("phi"), *Sliders(0.5, GRID).entries("eps")]


def test_a_full_grid_has_every_combination():
    assert len(set(places(ENTRIES, False))) == count_places(ENTRIES, False) == 3 * 3 * 2 * 3


def test_one_at_a_time_moves_one_slider_under_every_choice():
    found = list(places(ENTRIES, True))
    assert len(set(found)) == len(found) == count_places(ENTRIES, True) == 2 * (1 + 2 + 2 + 2)
    start = [entry["start"] for entry in ENTRIES]
    moved = [[k for k in range(4) if place[k] != start[k] and ENTRIES[k]["kind"] == "slider"] for place in found]
    assert sorted(moved) == sorted(2 * ([[]] + 2 * [[0], [1], [3]]))


def test_a_place_is_known_by_what_differs_from_the_start():
    keys = [key_of(place, ENTRIES) for place in places(ENTRIES, False)]
    assert len(set(keys)) == len(keys)
    assert key_of([0, 2, 0, 1], ENTRIES) == "" and key_of([2, 2, 1, 0], ENTRIES) == "0=2 2=1 3=0"


def test_a_setting_in_range_is_accepted():
    check_setting(ENTRIES, [0, 1.0, "silu", 0.123456])


@pytest.mark.parametrize(
    "setting, message",
    [
        ([0, 1, "silu"], r"^setting must be of 4 values; got \[0, 1, 'silu'\]"),
        ([1.01, 1, "silu", 0], r"^x\[1\] must be from 0 to 1; got 1\.01"),
        ([0, -0.1, "silu", 0], r"^x\[2\] must be from 0 to 1; got -0\.1"),
        ([0, math.nan, "silu", 0], r"^x\[2\] must be from 0 to 1; got nan"),
        ([0, "1", "silu", 0], r"^x\[2\] must be a number; got '1'"),
        ([0, True, "silu", 0], r"^x\[2\] must be a number; got True"),
        ([0, None, "silu", 0], r"^x\[2\] must be a number; got None"),
        ([0, 1, "tanh", 0], r"^phi must be one of relu, silu; got 'tanh'"),
        ([0, 1, 1, 0], r"^phi must be one of relu, silu; got 1"),
    ],
)
def test_a_setting_that_does_not_exist_is_refused(setting, message):
    with pytest.raises(ArgumentError, match=message):
        check_setting(ENTRIES, setting)


def test_values_that_would_look_equal_are_refused():
    assert Sliders(1, [1, 1 + 1e-11]).entries("a")[0]["values"] == ["1", "1.00000000001"]
    with pytest.raises(ArgumentError, match=r"^values must be different in their first 12 digits; got \[1, 1\.0000000000001\]"):
        Sliders(1, [1, 1 + 1e-13])


def test_values_and_options_may_come_from_a_generator():
    sliders = Sliders(1, (k / 2 for k in range(4)))
    assert [sliders.entries("a")[0]["values"] for _ in range(2)] == [["0", "0.5", "1", "1.5"]] * 2
    choice = Choice(name for name in ("one", "two"))
    assert [choice.entries("a")[0]["values"] for _ in range(2)] == [["one", "two"]] * 2


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("values", [None, "123", 3, [0, None], [0, "one"], [0, [1]]])
def test_values_that_are_no_numbers_are_refused(values):
    with pytest.raises(ArgumentError, match=r"^values must be at least two finite numbers, increasing; got "):
        Sliders(0, values)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("start", [None, "0", [0, "1"], [[0], [0, 1]], 1j])
def test_a_start_that_is_no_number_is_refused(start):
    with pytest.raises(ArgumentError, match=r"^start must be a number, or nested lists of numbers; got "):
        Sliders(start, GRID)


@pytest.mark.parametrize("start", [[], [[], []]])
def test_a_start_without_elements_is_refused(start):
    with pytest.raises(ShapeError, match=r"^start must be of at least one number; got float64 \["):
        Sliders(start, GRID)


def test_a_span_of_tiny_steps_keeps_them_apart():
    assert span(0, 3e-13, 1e-13) == [0, 1e-13, 2e-13, 3e-13]
    assert span(1000, 1000.3, 0.1) == [1000, 1000.1, 1000.2, 1000.3]


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("options", ["abc", None, 3])
def test_options_are_a_list(options):
    with pytest.raises(ArgumentError, match=r"^options must be a list of names; got "):
        Choice(options)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("options", [[1, 2], ["a", None]])
def test_options_are_texts(options):
    with pytest.raises(ArgumentError, match=r"^options must be texts; got .*; write numbers as texts: \[str\(n\) for n in numbers\]"):
        Choice(options)


@pytest.mark.parametrize("setting", [None, "abcd", 7, {}])
def test_a_setting_is_a_list(setting):
    with pytest.raises(ArgumentError, match=r"^setting must be of 4 values; got "):
        check_setting(ENTRIES, setting)


TYPED = [*Text(["not bad", "bad", "so so"]).entries("some_text"), *Sliders([0, 1], GRID).entries("x")]


def test_a_text_offers_its_examples_and_takes_any_other():
    assert TYPED[0] == {"kind": "text", "group": "some text", "label": "some text", "values": ["not bad", "bad", "so so"], "start": 0}
    for text in ("bad", "something else", ""):
        check_setting(TYPED, [text, 0, 1])
        assert Text(["a", "b"]).argument(iter([text])) == text


def test_texts_combine_with_every_slider():
    assert count_places(TYPED, True) == len(set(places(TYPED, True))) == 3 * (1 + 2 + 2)
    assert count_places(TYPED, False) == len(set(places(TYPED, False))) == 3 * 3 * 3


@pytest.mark.parametrize("value", [3, None, ["bad"], True])
def test_a_text_is_a_text(value):
    with pytest.raises(ArgumentError, match=r"^some text must be a text; got "):
        check_setting(TYPED, [value, 0, 1])


@pytest.mark.parametrize("options", [[], ["a"], ["a", "a"]])
def test_a_text_needs_two_examples(options):
    with pytest.raises(ArgumentError, match=r"^options must be at least two different names; got \["):
        Text(options)
