"""What one check found: the outcome, the numbers behind it, and the words that say what to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

import torch

from oneblock.words import words

PASSED, FAILED, NOT_APPLICABLE, CRASHED = "passed", "failed", "not applicable", "crashed"
OUTCOMES = (PASSED, FAILED, NOT_APPLICABLE, CRASHED)


@dataclass(frozen=True)
class Finding:
    """One check of one block.

    ``measured`` holds each number by the name of the run that gave it; the check is passed if all of them are at most
    ``threshold``. ``note`` names what was found, or is the last line of a traceback.
    """

    check: str
    outcome: str
    measured: Mapping[str, float] = field(default_factory=dict)
    threshold: float | None = None
    note: str = ""

    @property
    def worst(self) -> tuple[str, float] | None:
        """The run with the largest number; NaN counts as the largest."""
        return max(self.measured.items(), key=lambda item: _order(item[1]), default=None)

    def said(self, what: str, language: str = "en") -> str:
        """``title``, ``proves``, ``source`` of the threshold, ``causes``, ``needs`` or ``link``, in words."""
        return words(language)["checks"][self.check][what]

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON, which has no infinity: such a number becomes a text."""
        measured = {name: value if isfinite(value) else str(value) for name, value in self.measured.items()}
        own = {"check": self.check, "outcome": self.outcome, "measured": measured, "threshold": self.threshold}
        return own | {"note": self.note} | {what: self.said(what) for what in ("title", "proves", "source", "causes", "link")}


def judged(check: str, measured: Mapping[str, float], threshold: float, note: str = "") -> Finding:
    """Passed if every number is at most ``threshold``; a NaN never is."""
    holds = all(value <= threshold for value in measured.values())
    return Finding(check, PASSED if holds else FAILED, dict(measured), threshold, note)


def not_applicable(check: str, note: str = "") -> Finding:
    """The block lacks what this check looks at; that is no pass."""
    return Finding(check, NOT_APPLICABLE, note=note)


def crashed(check: str, error: Exception) -> Finding:
    """The check, or the block under it, raised: the last line of its traceback."""
    lines = str(error).strip().splitlines()
    return Finding(check, CRASHED, note=f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__)


def listed(names: Sequence[str], shown: int = 3) -> str:
    """The first names, and how many more there are."""
    more = [f"and {len(names) - shown} more"] if len(names) > shown else []
    return ", ".join([*names[:shown], *more])


def _order(value: float) -> float:
    return torch.inf if value != value else value
