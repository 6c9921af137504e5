"""The matrix: each mistake of the catalogue, and the right one that it stems from, before the same checks.

::

    row = examined("unscaled")
    row.caught_by                    # ("official_parity", "reference_parity")
    row.cells["official_parity"]     # what it says of the wrong one, seed by seed, and of the right one
    told(row)                        # the same in words, for a card

Blocks and classifiers are drawn in float64, where rounding hides least, with a dropout rate that shows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from oneblock.checks import (
    CHECKS,
    COMPARISON_CHECKS,
    LOSS_CHECKS,
    MODEL_CHECKS,
    PREDICTION_CHECKS,
    STEP_CHECKS,
    Comparison,
    Finding,
    Loss,
    Prediction,
    Step,
    examine,
    model_of,
    subject_of,
)
from oneblock.checks.finding import CRASHED, FAILED, NOT_APPLICABLE, PASSED
from oneblock.mutants import procedures
from oneblock.mutants.catalogue import BLOCK, MISTAKES, PROCEDURE, SIZES, Mistake, mistake_words
from oneblock.stacks import drawn_in_float64
from oneblock.words import words

D, H, F, RATE = 12, 3, 20, 0.25
SEEDS = 3
ASKED = {
    procedures.predictions: (Prediction, PREDICTION_CHECKS),
    procedures.loss_of_tokens: (Loss, LOSS_CHECKS),
    procedures.loss: (Loss, LOSS_CHECKS),
    procedures.step: (Step, STEP_CHECKS),
    procedures.at_own_rates: (Comparison, COMPARISON_CHECKS),
}
"""How each right procedure, and what went wrong with it, is asked."""
TOLD_THE_ANSWER = ("reference_parity", "logits_reference")
"""Checks that are given the right one: they see that the two differ, whatever the reason."""
DIGITS = 2


@dataclass(frozen=True)
class Cell:
    """What one check says of a mistake, a finding for each seed, and of the right one.

    What did not fire at the first seed was not tried at the others.
    """

    wrong: tuple[Finding, ...]
    right: tuple[Finding, ...]

    @property
    def applies(self) -> bool:
        """Whether the check can look at the wrong one at all."""
        return self.wrong[0].outcome != NOT_APPLICABLE

    @property
    def fired(self) -> int:
        """At how many seeds the wrong one was told from a right one."""
        return sum(map(fires, self.wrong))

    @property
    def catches(self) -> bool:
        """Whether it fired at every seed."""
        return self.fired == len(self.wrong)

    @property
    def flags_the_right_one(self) -> bool:
        """Whether it fired where nothing is wrong."""
        return any(map(fires, self.right))


    @property
    def effect(self) -> tuple[str, float] | None:
        """The largest number that the first seed gave, rounded so that all machines agree, and the run that gave it."""
        rounded = {name: float(f"{value:.{DIGITS}g}") for name, value in self.wrong[0].measured.items()}
        return max(rounded.items(), key=lambda item: item[1], default=None)


@dataclass(frozen=True)
class Row:
    """A mistake before all checks of its kind."""

    name: str
    cells: Mapping[str, Cell]

    @property
    def mistake(self) -> Mistake:
        """Its entry in the catalogue."""
        return MISTAKES[self.name]

    @property
    def caught_by(self) -> tuple[str, ...]:
        """The checks that fire at every seed."""
        return tuple(check for check, cell in self.cells.items() if cell.catches)

    @property
    def seen_by(self) -> tuple[str, ...]:
        """Those of them that were not told the answer."""
        return tuple(check for check in self.caught_by if check not in TOLD_THE_ANSWER)

    @property
    def unstable(self) -> tuple[str, ...]:
        """The checks that fire at some seeds only."""
        return tuple(check for check, cell in self.cells.items() if cell.fired and not cell.catches)


def fires(finding: Finding) -> bool:
    """Whether it is an alarm: the check failed, or crashed."""
    return finding.outcome in (FAILED, CRASHED)


def matrix(seeds: int = SEEDS) -> dict[str, Row]:
    """The rows of all mistakes, by name."""
    return {name: examined(name, seeds) for name in MISTAKES}


def examined(name: str, seeds: int = SEEDS) -> Row:
    """One mistake, and its right one, drawn from as many seeds, before every check of their kind."""
    mistake = MISTAKES[name]
    wrong = {check: [finding] for check, finding in _findings(mistake, mistake.wrong, 0).items()}
    fired = [check for check, (finding,) in wrong.items() if fires(finding)]
    for seed in range(1, seeds):
        for check, finding in _findings(mistake, mistake.wrong, seed, fired).items():
            wrong[check].append(finding)
    right = [_of_right(name_of_right(name), seed) for seed in range(seeds)]
    return Row(name, {check: Cell(tuple(found), tuple(one[check] for one in right)) for check, found in wrong.items()})


def name_of_right(name: str) -> str:
    """The first mistake with the same right one and the same claims: they share what the checks say of it."""
    one = MISTAKES[name]
    return next(key for key, other in MISTAKES.items() if (other.right, other.claims) == (one.right, one.claims))


@cache
def _of_right(name: str, seed: int) -> dict[str, Finding]:
    return _findings(MISTAKES[name], MISTAKES[name].right, seed)


def _findings(mistake: Mistake, one: Callable, seed: int, checks: Iterable[str] | None = None) -> dict[str, Finding]:
    """What the checks, or some of them, say of the wrong or the right one."""
    subject, known = _asked(mistake, one, seed)
    return {check: examine(subject, known[check]) for check in (known if checks is None else checks)}


def _asked(mistake: Mistake, one: Callable, seed: int) -> tuple[object, dict[str, Callable]]:
    """The subject, and the table of the checks for its kind."""
    if mistake.kind == PROCEDURE:
        kind, known = ASKED[mistake.right]
        return kind(one), known
    build = mistake.build if one is mistake.wrong else mistake.build_right
    with drawn_in_float64(seed):
        module, reference = build(D, H, F, dropout=RATE), mistake.build_right(D, H, F, dropout=RATE)
    if mistake.kind == BLOCK:
        return subject_of(module, D, reference=reference, **mistake.claims), CHECKS
    return model_of(module, SIZES["V"], reference=reference, **mistake.claims), MODEL_CHECKS


def told(row: Row, checks: Iterable[str] | None = None, language: str = "en") -> dict[str, str]:
    """A row in words, by label: the story, the lines, the fix, and what each check says of the wrong one.

    What does not apply is an empty text. ``checks`` are those with a label; by default all that looked.
    """
    said, mistake, found = words(language)["clinic"], mistake_words(row.name, language), row.cells
    labels = {check: said["fires"].format(_title(check, language)) for check in checks or found}
    source = row.mistake.source.removeprefix("https://github.com/").replace("/issues/", " #")
    return {
        said["story"]: mistake["story"],
        said["lines"]: "\n".join(row.mistake.lines()),
        said["fix"]: mistake["fix"],
        said["hides"]: mistake.get("hides_when", ""),
        said["seen"]: source,
        **{label: _alarm(found[check], language) if check in found else "" for check, label in labels.items()},
        said["outside"]: said["twins"].get(row.name, ""),
        said["passed"]: _titles(found, PASSED, language),
        said["blind"]: _titles(found, NOT_APPLICABLE, language),
    }


def _alarm(cell: Cell, language: str) -> str:
    """What a check that fired measured, and what it holds of a right one."""
    if not cell.fired:
        return ""
    said, first = words(language)["clinic"], cell.wrong[0]
    if first.outcome == CRASHED:
        text = said["raised"].format(first.note.replace("\t", "").rstrip("."), first.said("proves", language))
    else:
        name, value = cell.effect
        text = said["alarm"].format(f"{value:.{DIGITS}g}", name, f"{first.threshold:.{DIGITS}g}", first.said("proves", language))
    return text if cell.catches else said["sometimes"].format(cell.fired, len(cell.wrong), text)


def _titles(cells: Mapping[str, Cell], outcome: str, language: str) -> str:
    return "; ".join(_title(check, language) for check, cell in cells.items() if cell.wrong[0].outcome == outcome)


def _title(check: str, language: str) -> str:
    return words(language)["checks"][check]["title"]
