"""Tables, curves and heat maps as views."""

from collections.abc import Sequence

import torch
from torch import Tensor

from oneblock.errors import ArgumentError, DtypeError, ShapeError, check_number
from oneblock.widgets.numbers import nested
from oneblock.widgets.view import Numbers, View, check_text, plain, plain_names

CURVES = 6
"""How many curves the dashes of the script tell apart."""
NO_BREAK = "\u00a0"


class Varying(str):
    """A text that may differ from one setting of an explorer to the next, as numbers do. A page does not break it."""


def table_view(columns: Sequence[str], rows: Sequence[Sequence[object]], digits: int = 6) -> View:
    """A table: a row is a label and then texts, numbers or tensors; a text that changes is a :class:`Varying`."""
    numbers, lines, head = Numbers(digits), [], plain_names("columns", columns)
    for r, row in enumerate(rows):
        if len(row) != len(head):
            raise ArgumentError("rows", f"of {len(head)} cells each, as columns has", list(row))
        lines.append([_cell(cell, numbers, f"rows[{r}][{c}]") for c, cell in enumerate(row)])
    frame = {"kind": "table", "columns": head, "rows": lines}
    return View(frame, numbers.texts, [head, *lines])


def _cell(cell: object, numbers: Numbers, place: str) -> str:
    if isinstance(cell, Varying):
        return f"{{{numbers.add_texts(place, [cell.replace(' ', NO_BREAK)])}}}"
    if isinstance(cell, str):
        return plain(cell)
    try:
        is_complex = isinstance(cell, Tensor) and cell.is_complex()
        tensor = cell if is_complex else torch.as_tensor(cell, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentError(place, "a text, a real number or a tensor", cell) from None
    tensor = tensor.reshape(()) if tensor.numel() == 1 else tensor
    at = numbers.add(tensor, place)
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
        x: ``[points]``, two or more, finite and increasing.
        series: each curve's name and its heights ``[points]``; at most six, which is how many dashes there are.
            What is not finite is left out.
        label: the name of the horizontal axis.
        at: a place on the horizontal axis that the reader chose.
        heights: each curve's height there, computed and not read off the curve.
        log: whether heights are drawn on a logarithmic axis; those not above 0 are then left out.
        digits: significant digits of ``heights``; the curves themselves carry four.

    Raises:
        ArgumentError: there is nothing to draw, or ``at`` lies off the axis.
    """
    _check_axis(x)
    check_text("label", label)
    names, label = plain_names("series", series), plain(label)
    if len(names) > CURVES:
        raise ArgumentError("series", f"at most {CURVES} curves, told apart by their dashes", f"{len(names)} curves")
    for name, curve in series.items():
        _check_curve(f"series[{name!r}]", curve, x, log)
    if at is not None and set(heights or ()) != set(series):
        raise ArgumentError("heights", f"given for each of {', '.join(series)}", heights)
    if at is not None:
        _check_place(at, x)
    curves = torch.stack([x, *series.values()]).double()
    drawn, marked = Numbers(4), Numbers(digits)
    drawn.add(curves)
    rows = [[f"{{{c * len(x) + k}}}" for c in range(len(curves))] for k in range(len(x))]
    frame = {"kind": "curves", "label": label, "series": names, "points": len(x), "log": log}
    if at is not None:
        marked.add(torch.tensor([at, *(heights[name] for name in series)], dtype=torch.float64))
        frame["mark"] = len(drawn.texts)
        rows = [[f"{{{frame['mark'] + c}}}" for c in range(len(curves))], *rows]
    return View(frame, drawn.texts + marked.texts, [[label, *names], *rows])


def _check_axis(x: Tensor) -> None:
    if x.ndim != 1 or len(x) < 2:
        raise ShapeError("x", "[points] with two points or more", x)
    if x.is_complex() or not x.isfinite().all() or not (x.diff() > 0).all():
        raise ArgumentError("x", "of finite numbers, each above the one before", x.tolist(), "sort it, each place once")


def _check_curve(argument: str, curve: Tensor, x: Tensor, log: bool) -> None:
    if curve.shape != x.shape:
        raise ShapeError(argument, f"[points] = {list(x.shape)}, as x", curve)
    if curve.is_complex():
        raise DtypeError(argument, "of real numbers", curve)
    if not (curve.isfinite() & (curve > 0 if log else True)).any():
        raise ArgumentError(argument, f"finite{' and above 0' if log else ''} at one point or more", curve.tolist())


def _check_place(at: float, x: Tensor) -> None:
    low, high = x[0].item(), x[-1].item()
    noise = 1e-6 * (high - low)  # the ends may be rounded otherwise than the reader's number
    check_number("at", at, f"a number on the axis, from {low:g} to {high:g}", lambda a: low - noise <= a <= high + noise)


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
    check_text("corner", corner)
    names, corner = plain_names("matrices", matrices), plain(corner)
    rows, columns = plain_names("rows", rows), plain_names("columns", columns)
    for name, matrix in matrices.items():
        if list(matrix.shape) != [len(rows), len(columns)]:
            raise ShapeError(f"matrices[{name!r}]", f"[rows, columns] = {[len(rows), len(columns)]}", matrix)
    numbers = Numbers(digits)
    starts = [numbers.add(matrix, f"matrices[{name!r}]") for name, matrix in matrices.items()]
    frame = {"kind": "heat", "names": names, "rows": rows, "columns": columns, "corner": corner}
    lines = [
        [name, row, *(f"{{{start + r * len(columns) + c}}}" for c in range(len(columns)))]
        for name, start in zip(names, starts, strict=True)
        for r, row in enumerate(rows)
    ]
    return View(frame, numbers.texts, [["", corner, *columns], *lines])
