"""A card: what is to be said of one thing, a label and a text a row; from thing to thing the texts differ."""

from collections.abc import Mapping

from oneblock.errors import ArgumentError
from oneblock.widgets.view import View, check_text, plain

NO_BREAK, LINE_END = "\u00a0", " ⏎ "


class Code(str):
    """Lines of code, which a card shows as such."""


def card_view(rows: Mapping[str, str]) -> View:
    """A text, or :class:`Code`, under each label. One that is empty is left out of the figure.

    The texts may differ from one setting of an explorer to the next, the labels may not; text or code is part of the label.

    Raises:
        ArgumentError: there is no row, or a label or a text is no text.
    """
    if not rows:
        raise ArgumentError("rows", "a label and a text each, one at least", rows)
    for label, text in rows.items():
        check_text("label", label)
        check_text(f"rows[{label!r}]", text)
    frame = {"kind": "card", "rows": [[plain(label), isinstance(text, Code)] for label, text in rows.items()]}
    table = [[plain(label), plain(text.replace("\n", LINE_END))] for label, text in rows.items() if text]
    return View(frame, [text.replace(" ", NO_BREAK) for text in rows.values()], [["", ""], *table])
