"""A card's labels are its frame, and its texts change as numbers do."""

import pytest

from oneblock.errors import ArgumentError
from oneblock.widgets.card import Code, card_view
from oneblock.widgets.view import fill

ROWS = {"story": "Two {1} words.", "code": Code("- a\n+ b c"), "more": ""}


def test_two_cards_of_the_same_labels_have_one_frame():
    other = card_view({"story": "Other.", "code": Code(""), "more": "x y"})
    view = card_view(ROWS)
    assert view.frame == other.frame == {"kind": "card", "rows": [["story", False], ["code", True], ["more", False]]}
    assert view.numbers == ["Two\u00a0{1}\u00a0words.", "-\u00a0a\n+\u00a0b\u00a0c", ""] and other.numbers[2] == "x\u00a0y"


def test_its_table_has_ordinary_spaces_lines_that_stay_apart_and_no_empty_row():
    view = card_view(ROWS)
    assert [[fill(cell, view.numbers) for cell in row] for row in view.table] == [
        ["", ""], ["story", "Two (1) words."], ["code", "- a ⏎ + b c"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows, message",
    [
        ({}, r"^rows must be a label and a text each, one at least; got {}"),
        ({1: "text"}, r"^label must be a text; got 1"),
        ({"story": 2}, r"^rows\['story'\] must be a text; got 2"),
    ],
)
def test_what_is_no_card_is_refused(as_readers_run_it, rows, message):
    with pytest.raises(ArgumentError, match=message):
        card_view(rows)
