"""A table of numbers that stands still, and the two forms in which every figure's numbers are also given."""

from collections.abc import Sequence
from html import escape

from oneblock.widgets.view import fill, table_view

Rows = Sequence[Sequence[str]]


class Table:
    """Rows of texts, numbers and tensors, rounded once and shown alike on a page, in a terminal and in a test.

    Args:
        columns: the head.
        rows: cells as :func:`oneblock.widgets.view.table_view` takes them.
        title: what the table shows.
        digits: significant digits of every number.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str, digits: int = 6) -> None:
        view = table_view(columns, rows, digits)
        self.title = title
        self.rows = [[fill(cell, view.numbers) for cell in row] for row in view.table]

    def _repr_html_(self) -> str:
        return f'<div class="ob-figure">\n{html_table(self.title, self.rows)}\n</div>'

    def __repr__(self) -> str:
        return text_table(self.title, self.rows)


def html_table(title: str, rows: Rows) -> str:
    """A table with a caption; the first row is the head. Texts stay texts."""

    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join(row(cells, "td") for cells in rows[1:])
    caption, head = f"<caption>{escape(title)}</caption>", f"<thead>{row(rows[0], 'th')}</thead>"
    return f"<table>\n{caption}\n{head}\n<tbody>\n{body}\n</tbody>\n</table>"


def text_table(title: str, rows: Rows) -> str:
    """The same as aligned text."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([title, *lines])
