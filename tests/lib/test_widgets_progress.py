"""The bar counts what is done, and what is stored of it is its label alone."""

import sys

import pytest

from oneblock.errors import ArgumentError
from oneblock.widgets import progress


@pytest.fixture
def shown(monkeypatch):
    """The bars that were displayed."""
    bars = []
    monkeypatch.setattr(sys.modules["oneblock.widgets.progress"], "display", bars.append)
    return bars


def test_items_are_handed_on_and_counted_when_done(shown):
    counts = []
    for item in progress("Seed 0")(range(3, 6)):
        counts.append((item, shown[0].value, shown[0].max))
    assert counts == [(3, 0, 3), (4, 1, 3), (5, 2, 3)] and shown[0].value == 3 and len(shown) == 1


def test_what_is_stored_is_the_label_however_far_the_bar_is(shown):
    for _item in progress("Seed 0, 3 epochs")(range(3)):
        assert shown[0]._repr_mimebundle_()["text/plain"] == "Seed 0, 3 epochs"


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_label_is_a_text():
    with pytest.raises(ArgumentError, match=r"^label must be a text; got 3"):
        progress(3)
