import pytest

from oneblock.widgets.view import fill


@pytest.mark.parametrize(
    "template, text",
    [
        ("{0} + {1}", "2 + (-3)"),
        ("{1} + {0}", "-3 + 2"),
        ("{1}·{1}", "-3·(-3)"),
        ("{0} − {1}", "2 − (-3)"),
        ("√{1}, ({1})², [{1}]", "√(-3), (-3)², [-3]"),
        ("{0} / {1} × {1} ⊙ {1}", "2 / (-3) × (-3) ⊙ (-3)"),
        ("{10}{2}", "100"),
        ("nothing", "nothing"),
    ],
)
def test_a_negative_number_gets_parentheses_behind_an_operator(template, text):
    assert fill(template, ["2", "-3", "0", *["9"] * 7, "10"]) == text
