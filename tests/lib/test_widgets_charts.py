import math
from fractions import Fraction

import pytest
import torch

from oneblock.activations import ACTIVATIONS
from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.widgets.charts import Varying, curves_view, heat_view, table_view
from oneblock.widgets.view import fill


def test_a_table_takes_texts_numbers_and_tensors():
    view = table_view(["a", "b"], [["x", 1.5], [torch.tensor([1.0, -2.0]), torch.tensor([[3.0]])], [2, "{7} and {x}"]])
    rows = [[fill(cell, view.numbers) for cell in row] for row in view.table]
    assert rows == [["a", "b"], ["x", "1.5"], ["[1, -2]", "3"], ["2", "(7) and {x}"]]


def test_a_varying_text_is_no_part_of_the_frame_and_stays_whole():
    view, other = (table_view(["a", "b"], [["x", Varying(text)], ["y", 2]]) for text in ("not {0} found", "found"))
    assert view.frame == other.frame and view.numbers == ["not\u00a0(0)\u00a0found", "2"] and other.numbers == ["found", "2"]


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
        curves_view(torch.arange(5.0), {"relu": torch.zeros(4)})


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


X = torch.arange(3.0)
LINE = {"line": X}


@pytest.mark.parametrize("x", [torch.tensor(1.0), torch.zeros(2, 3), torch.zeros(1), torch.zeros(0)])
def test_an_axis_has_two_points_or_more(x):
    with pytest.raises(ShapeError, match=r"^x must be \[points\] with two points or more; got float32 \["):
        curves_view(x, {"line": x})


@pytest.mark.parametrize("x", [[0.0, 2.0, 1.0], [0.0, 1.0, 1.0], [0.0, math.nan, 2.0], [0.0, 1.0, math.inf]])
def test_an_axis_increases(x):
    with pytest.raises(ArgumentError, match=r"^x must be of finite numbers, each above the one before; got \[0\.0, .*; sort it"):
        curves_view(torch.tensor(x), LINE)


def test_six_curves_can_be_told_apart_and_not_seven():
    assert len(curves_view(X, {f"c{k}": X for k in range(6)}).frame["series"]) == 6
    with pytest.raises(ArgumentError, match=r"^series must be at most 6 curves, told apart by their dashes; got '7 curves'"):
        curves_view(X, {f"c{k}": X for k in range(7)})
    with pytest.raises(ArgumentError, match=r"^series must be a list of one or more texts; got \[\]"):
        curves_view(X, {})


@pytest.mark.parametrize("at", [-0.01, 2.01, math.nan])
def test_a_mark_lies_on_the_axis(at):
    with pytest.raises(ArgumentError, match=r"^at must be a number on the axis, from 0 to 2; got (-0\.01|2\.01|nan)"):
        curves_view(X, LINE, at=at, heights={"line": 0.0})


@pytest.mark.parametrize("at", [0, 2.0])
def test_the_ends_of_the_axis_can_be_marked(at):
    assert curves_view(X, LINE, at=at, heights={"line": 0.0}).numbers[-2:] == [f"{at:g}", "0"]


def test_a_curve_may_have_gaps_but_not_only_gaps():
    assert curves_view(X, {"gaps": torch.tensor([math.nan, 1.0, math.inf])}).numbers[3:] == ["nan", "1", "inf"]
    with pytest.raises(ArgumentError, match=r"^series\['gone'\] must be finite at one point or more; got \[nan, inf, nan\]"):
        curves_view(X, {"line": X, "gone": torch.tensor([math.nan, math.inf, math.nan])})


def test_a_logarithmic_axis_needs_something_above_zero():
    assert curves_view(X, LINE, log=True).frame["log"]
    with pytest.raises(ArgumentError, match=r"^series\['down'\] must be finite and above 0 at one point or more; got \["):
        curves_view(X, {"down": -X}, log=True)


@pytest.mark.parametrize("empty", ["matrices", "rows", "columns"])
def test_a_heat_map_is_not_empty(empty):
    given = {"matrices": {"A": torch.zeros(2, 3)}, "rows": ["r1", "r2"], "columns": ["c1", "c2", "c3"]}
    given[empty] = {} if empty == "matrices" else []
    with pytest.raises(ArgumentError, match=rf"^{empty} must be a list of one or more texts; got \[\]"):
        heat_view(**given)


VIEWS = {
    "table": lambda name: table_view([name, "b"], [[1, 2]]),
    "curves": lambda name: curves_view(X, {name: X}, label=name),
    "heat": lambda name: heat_view({name: X[:, None]}, rows=["r1", name, "r3"], columns=[name], corner=name),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_name_is_not_taken_for_a_number(view):
    shown = view("{0}")
    named, plainly = (str([[fill(cell, v.numbers) for cell in row] for row in v.table]) for v in (shown, view("NAME")))
    assert named == plainly.replace("NAME", "(0)")
    assert {**view("NAME").frame, **shown.frame} == shown.frame
    assert "{0}" not in str({key: value for key, value in shown.frame.items() if key != "rows" or shown.frame["kind"] == "heat"})


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("view, argument", [("table", r"columns\[0\]"), ("curves", "label"), ("heat", "corner")])
def test_a_name_is_a_text(view, argument):
    with pytest.raises(ArgumentError, match=rf"^{argument} must be a text; got 7"):
        VIEWS[view](7)


def test_a_text_is_not_taken_apart_into_heads():
    with pytest.raises(ArgumentError, match=r"^columns must be a list of one or more texts; got 'ab'"):
        table_view("ab", [[1, 2]])


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_a_cell_without_numbers_is_refused_by_its_place(shape):
    with pytest.raises(ShapeError, match=r"^rows\[1\]\[0\] must be of at least one number; got float64 \["):
        table_view(["a"], [[1], [torch.zeros(shape)]])


def test_complex_numbers_are_refused():
    with pytest.raises(DtypeError, match=r"^rows\[0\]\[0\] must be of real numbers; got complex64 \[2\]; show its \.real and \.imag"):
        table_view(["a"], [[torch.tensor([1j, 2.0])]])
    with pytest.raises(DtypeError, match=r"^matrices\['A'\] must be of real numbers; got complex64 \[1, 1\]"):
        heat_view({"A": torch.ones(1, 1) * 1j}, rows=["r"], columns=["c"])
    with pytest.raises(DtypeError, match=r"^series\['c'\] must be of real numbers; got complex64 \[3\]"):
        curves_view(X, {"c": X * 1j})


@pytest.mark.parametrize("cell", [None, {}, 2j, [[1], [2, 3]]])
def test_a_cell_that_is_no_number_is_refused(cell):
    with pytest.raises(ArgumentError, match=r"^rows\[0\]\[0\] must be a text, a real number or a tensor; got "):
        table_view(["a"], [[cell]])


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("digits", [0, -1, 2.5, "3", True])
def test_digits_are_a_whole_number(digits):
    with pytest.raises(ArgumentError, match=r"^digits must be a whole number ≥ 1; got "):
        table_view(["a"], [[1]], digits)


def test_a_fraction_is_a_number():
    assert table_view(["a"], [[Fraction(3, 4)]]).numbers == ["0.75"]
