import math

import pytest
import torch

from oneblock.widgets.numbers import format_number, format_tensor, nested


@pytest.mark.parametrize(
    "value, text",
    [
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.0, "0"),
        (-0.0, "0"),
        (1 / 3, "0.333333"),
        (2 / 3, "0.666667"),
        (-1 / 3, "-0.333333"),
        (1e-5, "1e-5"),
        (-2.5e-7, "-2.5e-7"),
        (123456.7, "123457"),
        (1234567.0, "1.23457e6"),
        (1e300, "1e300"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (5e-324, "4.94066e-324"),
    ],
)
def test_a_number_is_shown_in_its_shortest_form_at_six_digits(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize("digits, text", [(1, "0.7"), (3, "0.667"), (12, "0.666666666667")])
def test_the_digits_can_be_chosen(digits, text):
    assert format_number(2 / 3, digits) == text


def test_a_number_rounds_back_to_itself(fixed):
    for value in (fixed(97) * 10 ** fixed(97, seed=1)).tolist():
        assert float(format_number(value)) == pytest.approx(value, rel=5e-6)
        assert float(format_number(value, 17)) == value


def test_a_tensor_is_written_row_by_row():
    assert format_tensor(torch.tensor([[1.0, -0.5], [2.0, 1e-5]])) == ["1", "-0.5", "2", "1e-5"]


def test_rounding_noise_is_shown_as_zero():
    assert format_tensor(torch.tensor([1e-15, -3e-15, 1.0], dtype=torch.float64)) == ["0", "0", "1"]
    assert format_tensor(torch.tensor([1e-6, 1e9], dtype=torch.float64)) == ["0", "1e9"]


def test_small_numbers_that_are_no_noise_stay():
    assert format_tensor(torch.tensor([1e-13, 1.0], dtype=torch.float64)) == ["1e-13", "1"]
    assert format_tensor(torch.tensor([1e-5])) == ["1e-5"]


def test_infinite_neighbours_hide_nothing():
    texts = format_tensor(torch.tensor([math.inf, math.nan, 0.5, -math.inf], dtype=torch.float64))
    assert texts == ["inf", "nan", "0.5", "-inf"]


def test_float32_shows_no_digits_of_its_storage():
    assert format_tensor(torch.tensor([0.1, 1.3, -0.7])) == ["0.1", "1.3", "-0.7"]


@pytest.mark.parametrize(
    "shape, text", [((), "a"), ((6,), "[a, b, c, d, e, f]"), ((2, 3), "[[a, b, c], [d, e, f]]"), ((3, 1, 2), "[[[a, b]], [[c, d]], [[e, f]]]")]
)
def test_numbers_are_bracketed_as_their_tensor_is(shape, text):
    assert nested(list("abcdef"), shape) == text
