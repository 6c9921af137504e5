import re
from fractions import Fraction

import pytest
import torch

from oneblock.errors import ArgumentError
from oneblock.exercises import Quiz

SAYS = ("one position", "one sequence", "both sequences")


def cells(answer, *values):
    return Quiz("How many cells <move>?", *zip(values, SAYS, strict=False), answer=answer)


def verdicts(quiz):
    """Of each choice: its text, its mark and what it says."""
    pattern = r"<details><summary>(.*?)</summary><p>(.) <strong>(.*?)</strong> (.*?)</p></details>"
    return re.findall(pattern, quiz._repr_html_())


def test_the_computed_answer_decides_which_choice_is_right():
    for k, answer in enumerate((7, 35, 105)):
        marks = [(text, mark, verdict) for text, mark, verdict, _ in verdicts(cells(answer, 7, 35, 105))]
        due = [(text, "✓", "Right.") if at == k else (text, "✗", "No.") for at, text in enumerate(("7", "35", "105"))]
        assert marks == due


def test_each_choice_says_its_own_why():
    assert [says for *_, says in verdicts(cells(35, 7, 35, 105))] == list(SAYS)


def test_as_text_the_choices_stand_without_their_answers():
    assert repr(cells(35, 7, 35, 105)) == "How many cells <move>?\n  a) 7\n  b) 35\n  c) 105"


def test_texts_stay_texts():
    quiz = Quiz("Is a < b?", ("a < b", "since b − a > 0"), ("no", "look again"), answer="a < b")
    assert "Is a &lt; b?" in quiz._repr_html_() and verdicts(quiz)[0] == ("a &lt; b", "✓", "Right.", "since b − a &gt; 0")


@pytest.mark.parametrize(
    "value, answer, other, text",
    [
        (6291456, 6291456, 0, "6,291,456"), (0.3, 0.1 + 0.2, 0.31, "0.3"), (1 / 3, Fraction(1, 3), 0.3333, "0.333333"), (128, Fraction(128), 256, "128"),
        ([1, -1.5], torch.tensor([1, -1.5]), [1, 1.5], "[1, -1.5]"), (torch.tensor([[2.0], [3.0]]), [[2, 3 + 1e-12]], [[2, 3]], None),
        ("yes", "yes", "no", "yes"), (float("inf"), float("inf"), 0, "inf"),
    ],
)  # fmt: skip
def test_values_are_compared_but_for_rounding_and_shown_as_readers_write_them(value, answer, other, text):
    if text is None:  # two shapes
        with pytest.raises(ArgumentError, match="^choices must be with one value equal to the answer"):
            Quiz("q", (value, "a"), ("x", "b"), answer=answer)
    else:
        assert [one[:2] for one in verdicts(Quiz("q", (value, "a"), (other, "b"), answer=answer))][0] == (text, "✓")


@pytest.mark.parametrize("answer, right", [(11, r"\[\]"), (7, r"\['7', '7'\]"), ("35", r"\[\]"), (True, r"\[\]")])
def test_a_quiz_without_a_right_choice_or_with_two_is_refused(answer, right):
    with pytest.raises(ArgumentError, match=rf"^choices must be with one value equal to the answer; got {right}; the answer is "):
        cells(answer, 7, 35, 7)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    "choices, rule",
    [
        ([], r"choices must be two or more; got '0 of them'"),
        ([(7, "why")], r"choices must be two or more; got '1 of them'"),
        ([(7, "why"), 35], r"choices\[1\] must be a value and a sentence that says why it is right or wrong; got 35"),
        ([(7, "why"), (35,)], r"choices\[1\] must be a value and a sentence"),
        ([(7, ""), (35, "why")], r"choices\[0\] must be a value and a sentence"),
        ([(True, "why"), (35, "why")], r"choices\[0\] must be a text, a number, a list or a tensor first; got .*; write yes or no as texts"),
        ([(None, "why"), (35, "why")], r"choices\[0\] must be a text, a number, a list or a tensor first"),
    ],
)
def test_choices_that_are_none_are_refused_with_the_reason(choices, rule):
    with pytest.raises(ArgumentError, match=f"^{rule}"):
        Quiz("q", *choices, answer=7)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("question", ["", None, 7])
def test_a_question_is_a_text(question):
    with pytest.raises(ArgumentError, match=r"^question must be a text; got "):
        Quiz(question, (7, "a"), (35, "b"), answer=7)
