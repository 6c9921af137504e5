"""What a figure shows, as plain data: one frame, and a flat list of number texts.

The frame says what is shown and refers to numbers by their place, ``{7}``. Two settings of an
explorer share the frame and differ in the numbers, so a page carries the frame once.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from oneblock.errors import ArgumentError, DtypeError, ShapeError, check_size
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


def plain(text: str) -> str:
    """A text that does not look like a reference to a number: ``{0}`` becomes ``(0)``."""
    return REFERENCE.sub(r"(\1)", text)


def check_text(argument: str, value: object) -> None:
    """Refuses all but a string."""
    if not isinstance(value, str):
        raise ArgumentError(argument, "a text", value)


def plain_names(argument: str, names: Iterable[str]) -> list[str]:
    """Names of rows, columns or curves; refuses a single text, which would fall into its letters."""
    if isinstance(names, str) or not (names := list(names)):
        raise ArgumentError(argument, "a list of one or more texts", names)
    for k, name in enumerate(names):
        check_text(f"{argument}[{k}]", name)
    return [plain(name) for name in names]


class Numbers:
    """Collects tensors' numbers and remembers where each begins."""

    def __init__(self, digits: int) -> None:
        check_size("digits", digits)
        self.digits = digits
        self.texts: list[str] = []

    def add_texts(self, argument: str, names: Iterable[str]) -> int:
        """Names that change as numbers do; refuses one with a space, which would make two of it."""
        names = plain_names(argument, names)
        if any(" " in name for name in names):
            raise ArgumentError(argument, "texts without a space", names, "use the space that does not break, U+00A0")
        self.texts += names
        return len(self.texts) - len(names)

    def add(self, tensor: Tensor, argument: str = "numbers") -> int:
        """Refuses, by the name ``argument``, a tensor without numbers or with complex ones."""
        if tensor.is_complex():
            raise DtypeError(argument, "of real numbers", tensor, "show its .real and .imag, or its .abs()")
        if tensor.numel() == 0:
            raise ShapeError(argument, "of at least one number", tensor, "look where it was cut to nothing")
        self.texts += format_tensor(tensor, self.digits)
        return len(self.texts) - tensor.numel()
