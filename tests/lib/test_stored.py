import json
from typing import NamedTuple

import pytest

from oneblock.stored import load, pick, store


class Run(NamedTuple):
    name: str
    steps: int
    losses: list[list[float]]


RUNS = [Run("β", 1234567, [[0.123456, 98765.4], [-1.23456e-7, 0.0]]), Run("γ", 2, [[float("nan"), float("inf")]])]


def test_what_is_loaded_is_what_was_stored_to_three_significant_digits(tmp_path):
    store(tmp_path / "runs.json", "a script", RUNS)
    one, other = load(tmp_path / "runs.json", Run)
    assert one == Run("β", 1234567, [[0.123, 98800.0], [-1.23e-7, 0.0]])
    assert other == Run("γ", 2, [[None, None]])


def test_a_file_says_what_made_it_and_has_one_record_a_line(tmp_path):
    store(tmp_path / "runs.json", "a script", RUNS)
    text = (tmp_path / "runs.json").read_text("utf-8")
    assert json.loads(text)["made by"] == "a script" and json.loads(text)["significant digits"] == 3
    assert len(text.splitlines()) == len(RUNS) + 2 and "NaN" not in text


@pytest.mark.parametrize(
    ("wanted", "found"),
    [({}, [0, 1, 2]), ({"name": "a"}, [0, 2]), ({"name": "a", "steps": 2}, [2]), ({"steps": 9}, [])],
)
def test_pick_keeps_the_records_whose_fields_are_all_as_wanted(wanted, found):
    runs = [Run("a", 1, []), Run("b", 2, []), Run("a", 2, [])]
    assert pick(runs, **wanted) == [runs[i] for i in found]


def test_picking_by_a_field_that_does_not_exist_fails():
    with pytest.raises(AttributeError, match="depth"):
        pick(RUNS, depth=1)
