"""What a figure shows, as plain data: one frame, and a flat list of number texts.

The frame says what is shown and refers to numbers by their place, ``{7}``. Two settings of an
explorer share the frame and differ in the numbers, so a page carries the frame once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from oneblock.widgets.numbers import format_tensor

REFERENCE = re.compile(r"\{(\d+)\}")


@dataclass(frozen=True)
class View:
    """What a figure shows: ``frame`` (structure and text) and ``numbers`` (texts without spaces)."""

    frame: dict
    numbers: list[str]
    table: list[list[str]] = field(repr=False)
    """The same, as rows of text with ``{k}`` for a number; the first row is the head."""


def fill(template: str, numbers: Sequence[str]) -> str:
    """Puts numbers in the places of ``{k}``; a negative one behind an operator gets parentheses."""

    def number(match: re.Match) -> str:
        text, before = numbers[int(match[1])], template[: match.start()].rstrip()
        return f"({text})" if text.startswith("-") and before[-1:] in tuple("·+−×/√⊙") else text

    return REFERENCE.sub(number, template)


class Numbers:
    """Collects tensors' numbers and remembers where each begins."""

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.texts: list[str] = []

    def add(self, tensor: Tensor) -> int:
        self.texts += format_tensor(tensor, self.digits)
        return len(self.texts) - tensor.numel()
