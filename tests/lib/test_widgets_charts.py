import math

import pytest
import torch

from oneblock.activations import ACTIVATIONS
from oneblock.errors import ArgumentError, ShapeError
from oneblock.widgets.charts import curves_view, heat_view, table_view
from oneblock.widgets.view import fill


def test_a_table_takes_texts_numbers_and_tensors():
    view = table_view(["a", "b"], [["x", 1.5], [torch.tensor([1.0, -2.0]), torch.tensor([[3.0]])], [2, "{7} and {x}"]])
    rows = [[fill(cell, view.numbers) for cell in row] for row in view.table]
    assert rows == [["a", "b"], ["x", "1.5"], ["[1, -2]", "3"], ["2", "(7) and {x}"]]


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ArgumentError, match=r"^rows must be of 2 cells each, as columns has; got \['x'\]"):
        table_view(["a", "b"], [["x"]])


def test_curves_carry_their_heights_and_a_computed_mark():
    x = torch.linspace(-2, 2, 5, dtype=torch.float64)
    heights = {name: ACTIVATIONS[name](torch.tensor(0.3, dtype=torch.float64)).item() for name in ("relu", "silu")}
    view = curves_view(x, {name: ACTIVATIONS[name](x) for name in heights}, at=0.3, heights=heights)
    assert view.numbers[:15] == ["-2", "-1", "0", "1", "2", "0", "0", "0", "1", "2", "-0.2384", "-0.2689", "0", "0.7311", "1.762"]
    assert view.numbers[view.frame["mark"] :] == ["0.3", "0.3", f"{0.3 / (1 + math.exp(-0.3)):.6g}"]
    rows = [[fill(cell, view.numbers) for cell in row] for row in view.table]
    assert rows[:3] == [["x", "relu", "silu"], view.numbers[-3:], ["-2", "0", "-0.2384"]] and len(rows) == 7


def test_a_curve_of_another_length_is_refused():
    with pytest.raises(ShapeError, match=r"^series\['relu'\] must be \[points\] = \[5\], as x; got float32 \[4\]"):
        curves_view(torch.zeros(5), {"relu": torch.zeros(4)})


@pytest.mark.parametrize("heights", [None, {"silu": 1.0}])
def test_a_mark_needs_a_height_for_each_curve(heights):
    with pytest.raises(ArgumentError, match=r"^heights must be given for each of relu"):
        curves_view(torch.arange(5.0), {"relu": torch.zeros(5)}, at=1.0, heights=heights)


def test_a_heat_map_carries_each_matrix_row_by_row(fixed):
    matrices = {"A": fixed(2, 3), "B": fixed(2, 3, seed=1)}
    view = heat_view(matrices, rows=["r1", "r2"], columns=["c1", "c2", "c3"], corner="out", digits=15)
    rows = [[fill(cell, view.numbers) for cell in row] for row in view.table]
    assert [row[:2] for row in rows] == [["", "out"], ["A", "r1"], ["A", "r2"], ["B", "r1"], ["B", "r2"]]
    assert rows[0][2:] == ["c1", "c2", "c3"]
    shown = torch.tensor([[float(text) for text in row[2:]] for row in rows[1:]], dtype=torch.float64)
    torch.testing.assert_close(shown, torch.cat(list(matrices.values())), rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(3, 2), (2, 2), (6,), (1, 2, 3)])
def test_a_matrix_that_does_not_fit_its_names_is_refused(shape):
    with pytest.raises(ShapeError, match=r"^matrices\['A'\] must be \[rows, columns\] = \[2, 3\]; got float32 \["):
        heat_view({"A": torch.zeros(shape)}, rows=["r1", "r2"], columns=["c1", "c2", "c3"])
