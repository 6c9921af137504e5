"""Compares a reader's function with the library's, case by case, and says what is due."""

from collections.abc import Callable
from copy import deepcopy
from html import escape
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor

from oneblock.errors import ArgumentError
from oneblock.exercises.catalogue import EXERCISES
from oneblock.exercises.exercise import Exercise
from oneblock.widgets.numbers import format_number
from oneblock.words import words

DIGITS, EVERY_DIGIT = 6, 17
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
"""Relative to the largest number that is due, or to 1."""

MARKS = {"passed": "✓", "failed": "✗", "open": "○"}


class Verdict(NamedTuple):
    """What is to be said of a function: ``outcome`` is passed, failed or open; open is one that returns nothing yet."""

    outcome: str
    text: str

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    def _repr_html_(self) -> str:
        return f'<div class="ob-figure ob-verdict"><p>{escape(repr(self))}</p></div>'

    def __repr__(self) -> str:
        return f"{MARKS[self.outcome]} {self.text}"


def check(name: str, function: Callable, language: str = "en") -> Verdict:
    """Runs ``function`` on the cases of an exercise and says that it passes, or in which case first it does not.

    ::

        def my_silu(x):
            return x * torch.sigmoid(x)

        check("silu", my_silu)

    Compared are shape, dtype, each number (to 1e-9 of the largest, in float32 to 1e-5), and that nothing was written
    into what was given. A wrong result that a known mistake gives is told as that mistake.

    Args:
        name: a key of ``EXERCISES``.
        function: takes what the exercise gives, in its order.

    Raises:
        ArgumentError: there is no such exercise, or ``function`` cannot be called.
    """
    if name not in EXERCISES:
        raise ArgumentError("name", f"one of {', '.join(EXERCISES)}", name)
    if not callable(function):
        raise ArgumentError("function", "a function", function, "give its name, without calling it")
    exercise, texts, right = EXERCISES[name], words(language), []
    ui, cases = texts["exercises"], exercise.cases()
    for case, given in cases.items():
        run = _run(exercise, function, given, ui)
        if run.got is None:
            return Verdict("open", ui["open"].format(name, _listed(exercise, given)))
        if run.problem:
            told = _told(_guilty(exercise, run, given, right), texts)
            return Verdict("failed", ui["failed"].format(name, case, f"{run.problem} {told}".strip()))
        right.append(given)
    return Verdict("passed", ui["passed"].format(name, "; ".join(cases)))


class _Run(NamedTuple):
    """What a function returned or raised, what was due, and what is wrong with it."""

    got: object
    due: Tensor
    problem: str | None


def _run(exercise: Exercise, function: Callable, given: tuple, ui: dict) -> _Run:
    due, handed = _due(exercise, given), deepcopy(given)
    try:
        got = exercise.run(function, *handed)
    except Exception as error:  # whatever the reader's lines raise is told
        return _Run(error, due, ui["raised"].format(f"{type(error).__name__}: {error}".splitlines()[0]))
    if got is None:
        return _Run(None, due, None)
    return _Run(got, due, _difference(got, due, ui) or _written_into(exercise, given, handed, ui))


def _due(exercise: Exercise, given: tuple) -> Tensor:
    return torch.as_tensor(exercise.due(*deepcopy(given))).detach()


def _guilty(exercise: Exercise, run: _Run, given: tuple, right: list[tuple]) -> list[str]:
    """The mistakes that give this wrong result, and give what is due in the cases that were right."""
    result = _as_tensor(run.got, run.due)
    if result is None or _alike(result, run.due):
        return []

    def makes(wrong: Callable, given: tuple, value: Tensor) -> bool:
        return _alike(torch.as_tensor(exercise.run(wrong, *deepcopy(given))).detach(), value)

    candidates = [mistake for mistake, wrong in exercise.wrong.items() if makes(wrong, given, result)]
    return [mistake for mistake in candidates if all(makes(exercise.wrong[mistake], one, _due(exercise, one)) for one in right)]


def _told(mistakes: list[str], texts: dict) -> str:
    """Their sentences."""
    own, shared = texts["exercises"]["mistakes"], texts["misreadings"]
    return f" {texts['ui']['or']} ".join(own.get(mistake) or shared[mistake] for mistake in mistakes)


def _difference(got: object, due: Tensor, ui: dict) -> str | None:
    """Where and by how much a result differs from what is due."""
    result = _as_tensor(got, due)
    if result is None:
        return ui["no_tensor"].format(_described(due, ui), type(got).__name__)
    if result.shape != due.shape:
        return ui["other_shape"].format(list(due.shape), list(result.shape))
    if result.dtype != due.dtype and due.ndim:
        return ui["other_dtype"].format(*(str(one.dtype).removeprefix("torch.") for one in (due, result)))
    wrong = ~_close(result, due)
    if not wrong.any():
        return None
    place = wrong.nonzero()[0].tolist()
    pair = _apart(*(one[tuple(place)].item() for one in (result, due)))
    return ui["other_number"].format(place, *pair) if place else ui["other_value"].format(*pair)


def _apart(*pair: float) -> list[str]:
    """Two different numbers, with as many digits as it takes to see that they differ."""
    for digits in range(DIGITS, EVERY_DIGIT + 1):
        texts = [format_number(one, digits) for one in pair]
        if len(set(texts)) == len(pair):
            break
    return texts


def _as_tensor(got: object, due: Tensor) -> Tensor | None:
    if isinstance(got, Tensor):
        return got.detach()
    is_number = isinstance(got, Real) and not isinstance(got, bool)
    return torch.as_tensor(float(got), dtype=due.dtype) if is_number and not due.ndim else None


def _close(result: Tensor, due: Tensor) -> Tensor:
    largest = max(1.0, due.abs().max().item())
    return (result.double() - due.double()).abs() <= TOLERANCE.get(due.dtype, 1e-5) * largest


def _written_into(exercise: Exercise, given: tuple, handed: tuple, ui: dict) -> str | None:
    for argument, before, after in zip(exercise.arguments.split(), given, handed, strict=True):
        if isinstance(before, Tensor) and not torch.equal(before.nan_to_num(), after.nan_to_num()):
            return ui["written_into"].format(argument)
    return None


def _alike(one: Tensor, other: Tensor) -> bool:
    """The same numbers, with NaN in the same places."""
    return one.shape == other.shape and torch.allclose(one.double(), other.double(), 1e-5, 1e-7, equal_nan=True)


def _listed(exercise: Exercise, given: tuple) -> str:
    pairs = zip(exercise.arguments.split(), given, strict=True)
    return ", ".join(f"{argument} {list(one.shape)}" if isinstance(one, Tensor) else argument for argument, one in pairs)


def _described(due: Tensor, ui: dict) -> str:
    return f"{list(due.shape)}" if due.ndim else ui["number"]
