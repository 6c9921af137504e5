"""Tables, curves and heat maps as views."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oneblock.errors import ArgumentError, ShapeError
from oneblock.widgets.numbers import nested
from oneblock.widgets.view import REFERENCE, Numbers, View


def table_view(columns: Sequence[str], rows: Sequence[Sequence[object]], digits: int = 6) -> View:
    """A table: a row is a label and then texts, numbers or tensors."""
    numbers, lines = Numbers(digits), []
    for row in rows:
        if len(row) != len(columns):
            raise ArgumentError("rows", f"of {len(columns)} cells each, as columns has", list(row))
        lines.append([_cell(cell, numbers) for cell in row])
    frame = {"kind": "table", "columns": list(columns), "rows": lines}
    return View(frame, numbers.texts, [list(columns), *lines])


def _cell(cell: object, numbers: Numbers) -> str:
    if isinstance(cell, str):
        return REFERENCE.sub(r"(\1)", cell)  # a text may not look like a reference
    tensor = torch.as_tensor(cell, dtype=torch.float64)
    tensor = tensor.reshape(()) if tensor.numel() == 1 else tensor
    at = numbers.add(tensor)
    return nested([f"{{{at + k}}}" for k in range(tensor.numel())], tuple(tensor.shape))


def curves_view(
    x: Tensor,
    series: dict[str, Tensor],
    *,
    label: str = "x",
    at: float | None = None,
    heights: dict[str, float] | None = None,
    log: bool = False,
    digits: int = 6,
) -> View:
    """Curves over one axis, with a marked place on it.

    Args:
        x: ``[points]``, increasing.
        series: each curve's name and its heights ``[points]``.
        label: the name of the horizontal axis.
        at: a place on the horizontal axis that the reader chose.
        heights: each curve's height there, computed and not read off the curve.
        log: whether heights are drawn on a logarithmic axis; those not above 0 are then left out.
        digits: significant digits of ``heights``; the curves themselves carry four.
    """
    for name, curve in series.items():
        if curve.shape != x.shape:
            raise ShapeError(f"series[{name!r}]", f"[points] = {list(x.shape)}, as x", curve)
    if at is not None and set(heights or ()) != set(series):
        raise ArgumentError("heights", f"given for each of {', '.join(series)}", heights)
    curves = torch.stack([x, *series.values()]).double()
    drawn, marked = Numbers(4), Numbers(digits)
    drawn.add(curves)
    rows = [[f"{{{c * len(x) + k}}}" for c in range(len(curves))] for k in range(len(x))]
    frame = {"kind": "curves", "label": label, "series": list(series), "points": len(x), "log": log}
    if at is not None:
        marked.add(torch.tensor([at, *(heights[name] for name in series)], dtype=torch.float64))
        frame["mark"] = len(drawn.texts)
        rows = [[f"{{{frame['mark'] + c}}}" for c in range(len(curves))], *rows]
    return View(frame, drawn.texts + marked.texts, [[label, *series], *rows])


def heat_view(
    matrices: dict[str, Tensor], *, rows: Sequence[str], columns: Sequence[str], corner: str = "", digits: int = 3
) -> View:
    """Matrices side by side, each number on a ground as strong as the number is large.

    Args:
        matrices: each matrix's name and its numbers ``[rows, columns]``. One scale serves all.
        rows, columns: the names along the two axes.
        corner: what the rows and columns are.
        digits: significant digits.
    """
    for name, matrix in matrices.items():
        if list(matrix.shape) != [len(rows), len(columns)]:
            raise ShapeError(f"matrices[{name!r}]", f"[rows, columns] = {[len(rows), len(columns)]}", matrix)
    numbers = Numbers(digits)
    starts = [numbers.add(matrix) for matrix in matrices.values()]
    frame = {"kind": "heat", "names": list(matrices), "rows": list(rows), "columns": list(columns), "corner": corner}
    lines = [
        [name, row, *(f"{{{start + r * len(columns) + c}}}" for c in range(len(columns)))]
        for name, start in zip(matrices, starts, strict=True)
        for r, row in enumerate(rows)
    ]
    return View(frame, numbers.texts, [["", corner, *columns], *lines])
