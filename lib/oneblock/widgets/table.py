"""A table of numbers that stands still, and the two forms in which every figure's numbers are also given."""

import re
from collections.abc import Sequence
from html import escape

from oneblock.widgets.charts import table_view
from oneblock.widgets.view import check_text, fill

Rows = Sequence[Sequence[str]]
NUMERIC = re.compile(r"[\[\d-]")


class Table:
    """Rows of texts, numbers and tensors, rounded once and shown alike on a page, in a terminal and in a test.

    Args:
        columns: the head.
        rows: cells as :func:`oneblock.widgets.charts.table_view` takes them.
        title: what the table shows.
        digits: significant digits of every number.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str, digits: int = 6) -> None:
        check_text("title", title)
        view = table_view(columns, rows, digits)
        self.title = title
        self.rows = [[fill(cell, view.numbers) for cell in row] for row in view.table]

    def _repr_html_(self) -> str:
        return f'<div class="ob-figure">\n{html_table(self.title, self.rows)}\n</div>'

    def __repr__(self) -> str:
        return text_table(self.title, self.rows)


def html_table(title: str, rows: Rows) -> str:
    """A table with a caption; the first row is the head. Texts stay texts."""

    def cell(text: str) -> str:
        kind = ' class="ob-n"' if NUMERIC.match(text) else ""  # a number is not broken at its minus
        return f"<td{kind}>{escape(text)}</td>"

    head = "".join(f"<th>{escape(text)}</th>" if text else "<td></td>" for text in rows[0])  # no head is empty
    body = "\n".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows[1:])
    caption = f"<caption>{escape(title)}</caption>"
    return f"<table>\n{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def text_table(title: str, rows: Rows) -> str:
    """The same as aligned text."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([title, *lines])
