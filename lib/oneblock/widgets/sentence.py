"""A sentence with a number in it that a reader drags, and others that follow."""

from collections.abc import Callable, Mapping
from html import escape
from numbers import Real
from string import Formatter

import torch
from torch import Tensor

from oneblock.errors import ArgumentError
from oneblock.widgets.controls import Sliders
from oneblock.widgets.explorer import Explorer
from oneblock.widgets.figure import PAYLOAD_LIMIT
from oneblock.widgets.numbers import nested
from oneblock.widgets.view import Numbers, View, check_text, fill, plain
from oneblock.words import words

NO_BREAK = "\u00a0"
KERNEL = ("computing", "by_kernel", "not_answering")
"""What is said of the kernel while a number is computed, and after."""


class Sentence(Explorer):
    """A sentence of the prose in which a number is dragged, or stepped by keys, and the other numbers follow.

    ::

        def shares(L):
            return {"even": 1 / L, "pairs": int(L * L)}

        Sentence("With {L} positions an even share is {even}, and {pairs} scores are computed.",
                 shares, L=Sliders(8, [1, 2, 4, 8, 16]))

    It works as an :class:`Explorer` does: without a kernel over the declared grid, with a kernel also between its values
    (between whole numbers, whole numbers). Without a script, in print and as text it is the sentence at the start.

    Args:
        template: the sentence; ``{name}`` is a control or something that ``function`` returns.
        function: from the controls' values to what follows, by name: numbers, tensors, or texts as they are.
            Whole numbers get separators, ``6,291,456``.
        digits: significant digits of every other number.
        limit: bytes of JSON that the grid may take.
        controls: for each argument of ``function``, :class:`Sliders` of one number.

    Raises:
        ArgumentError: a control is none of one number, or is not just once in the sentence; a name in the sentence is
            neither a control nor returned, or what is returned is not in it; and what an :class:`Explorer` raises.
    """

    kind = "sentence"

    def __init__(
        self,
        template: str,
        function: Callable[..., Mapping],
        *,
        digits: int = 6,
        limit: int = PAYLOAD_LIMIT,
        language: str = "en",
        **controls: Sliders,
    ) -> None:
        check_text("template", template)
        self._pieces = _pieces(template)
        self._places = {name: k for k, name in enumerate(controls)}
        fields = [field for _, field in self._pieces if field is not None]
        for name, control in controls.items():
            if not isinstance(control, Sliders) or control.tensor().ndim:
                raise ArgumentError(name, "Sliders of one number", control)
            if fields.count(name) != 1:
                raise ArgumentError("template", f"with {{{name}}} in it, once", template)
        super().__init__(function, title="", digits=digits, limit=limit, language=language, **controls)

    def _words(self, language: str) -> dict:
        """A page has many sentences; each carries the few words that it needs."""
        text = words(language)
        return {"ui": {name: text["ui"][name] for name in KERNEL}, "hint": text["sentence"]["hint"]}

    def _shown(self, result: object) -> View:
        due = {field for _, field in self._pieces if field is not None} - set(self._places)
        if not isinstance(result, Mapping) or set(result) != due:
            raise ArgumentError("function", f"to a dict of {', '.join(sorted(due))}", result)
        numbers, pieces = Numbers(self._options[0]), [""]
        for text, field in self._pieces:
            pieces[-1] += plain(text)
            if field in self._places:
                pieces += [self._places[field], ""]
            elif field is not None:
                pieces[-1] += _reference(numbers, field, result[field])
        pieces = [piece for piece in pieces if piece != ""]
        return View({"kind": "sentence", "pieces": pieces}, numbers.texts, [["".join(map(self._at_start, pieces))]])

    def _at_start(self, piece: str | int) -> str:
        """A piece of the sentence; of a control, which is told by its place, the value at the start."""
        if isinstance(piece, str):
            return piece
        name = list(self._controls)[piece]
        (entry,) = self._controls[name].entries(name)
        return entry["values"][entry["start"]]

    def to_html(self) -> str:
        """The sentence, and the payload that the page's script turns into one that moves."""
        return f'<div class="ob-sentence">\n<p>{escape(self.to_text())}</p>\n{self.payload()}\n</div>'

    def to_text(self) -> str:
        """The sentence at the start."""
        return fill(self._view.table[0][0], [text.replace(NO_BREAK, " ") for text in self._view.numbers])


def _pieces(template: str) -> list[tuple[str, str | None]]:
    """Texts, and the name that follows each; braces that were written twice are of one text."""
    pieces, before = [], ""
    for text, field, _, _ in Formatter().parse(template):
        before += text
        if field is not None:
            pieces.append((before, field))
            before = ""
    return [*pieces, (before, None)]


def _reference(numbers: Numbers, name: str, value: object) -> str:
    """Takes a value up into the numbers; returns where it stands there."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:,}"
    if isinstance(value, str):
        return f"{{{numbers.add_texts(name, [value.replace(' ', NO_BREAK)])}}}"
    try:
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(_as_float(value), dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentError(name, "a text, a real number or a tensor", value) from None
    at = numbers.add(tensor, name)
    return nested([f"{{{at + k}}}" for k in range(tensor.numel())], tuple(tensor.shape))


def _as_float(value: object) -> object:
    """A fraction as torch takes it."""
    return float(value) if isinstance(value, Real) else value
