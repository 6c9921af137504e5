"""A question with a few answers to choose from; which one is right, a cell computes."""

from html import escape
from math import isclose
from numbers import Real
from string import ascii_lowercase

from torch import Tensor

from oneblock.errors import ArgumentError
from oneblock.widgets.numbers import format_number, format_tensor, nested
from oneblock.words import words

Value = str | Real | list | Tensor


class Quiz:
    """A question; each choice opens, by mouse or by keys and without any script, and says why it is right or wrong.

    ::

        moved = (dependency(attention, X)[..., 0, 1, 2] != 0).sum()
        Quiz("How many cells move?",
             (4, "Those are the features of one position."),
             (12, "All positions and features of one sequence."),
             (24, "The other sequence never moves."),
             answer=moved.item())

    As text, on GitHub or in a terminal, the choices stand without their answers.

    Args:
        question: what is asked, as text.
        choices: pairs of a value and a sentence that says why it is right or wrong. A value is a text, a number, or
            numbers as a list or tensor; the reader sees numbers with 6 significant digits.
        answer: the value that is right, as a cell computed it, and not as somebody typed it.

    Raises:
        ArgumentError: there is only one choice, a choice is no such pair, or not just one of them is the answer.
    """

    def __init__(self, question: str, *choices: tuple[Value, str], answer: Value, language: str = "en") -> None:
        if not isinstance(question, str) or not question:
            raise ArgumentError("question", "a text", question)
        if len(choices) < 2 or len(choices) > len(ascii_lowercase):
            raise ArgumentError("choices", "two or more", f"{len(choices)} of them")
        for k, choice in enumerate(choices):
            _check_choice(f"choices[{k}]", choice)
        self.question, self.ui = question, words(language)["exercises"]
        self.choices = [(shown(value), says, same(value, answer)) for value, says in choices]
        right = [text for text, _, is_right in self.choices if is_right]
        if len(right) != 1:
            hint = f"the answer is {shown(answer)}; compare each value with it"
            raise ArgumentError("choices", "with one value equal to the answer", right, hint)

    def _repr_html_(self) -> str:
        choices = "\n".join(map(self._choice, self.choices))
        question = f"<p>{escape(self.question)}</p>"
        label = escape(self.ui["question"])
        return f'<div class="ob-figure ob-quiz" role="group" aria-label="{label}">\n{question}\n{choices}\n</div>'

    def _choice(self, choice: tuple[str, str, bool]) -> str:
        text, says, is_right = choice
        mark, verdict = ("✓", self.ui["right"]) if is_right else ("✗", self.ui["wrong"])
        answer = f"<p>{mark} <strong>{escape(verdict)}</strong> {escape(says)}</p>"
        return f"<details><summary>{escape(text)}</summary>{answer}</details>"

    def __repr__(self) -> str:
        lines = [f"  {letter}) {text}" for letter, (text, _, _) in zip(ascii_lowercase, self.choices, strict=False)]
        return "\n".join([self.question, *lines])


def same(value: Value, answer: Value) -> bool:
    """Whether a choice is the answer: the same text, or the same numbers but for rounding."""
    value, answer = (one.tolist() if isinstance(one, Tensor) else one for one in (value, answer))
    if isinstance(value, list) and isinstance(answer, list):
        return len(value) == len(answer) and all(map(same, value, answer))
    if isinstance(value, Real) and isinstance(answer, Real):
        return isclose(value, answer, rel_tol=1e-9, abs_tol=1e-12)
    return type(value) is type(answer) and value == answer


def shown(value: Value) -> str:
    """A value as the reader sees it: ``6,291,456``, ``0.333333``, ``[1, -1.5]``, or the text itself."""
    if isinstance(value, Tensor):
        return nested(format_tensor(value), tuple(value.shape))
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, int):
        return f"{value:,}"
    return format_number(float(value)) if isinstance(value, Real) else str(value)


def _check_choice(argument: str, choice: object) -> None:
    is_pair = isinstance(choice, tuple) and len(choice) == 2
    if not is_pair or not isinstance(choice[1], str) or not choice[1]:
        raise ArgumentError(argument, "a value and a sentence that says why it is right or wrong", choice)
    if isinstance(choice[0], bool) or not isinstance(choice[0], (str, Real, list, Tensor)):
        raise ArgumentError(argument, "a text, a number, a list or a tensor first", choice, "write yes or no as texts")
