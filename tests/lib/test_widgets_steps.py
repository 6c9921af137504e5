import math
import re

import pytest
import torch

from oneblock.blocks import PreNorm
from oneblock.errors import ArgumentError
from oneblock.ffn import ffn, swiglu
from oneblock.norms import layer_norm, rms_norm
from oneblock.residual import residual
from oneblock.trace import record, scope
from oneblock.widgets.steps import steps_view
from oneblock.widgets.view import fill

DIGITS = 15  # what is shown is then as exact as what was computed


@pytest.fixture(params=["ffn", "swiglu", "layer_norm", "rms_norm", "two scopes"])
def trace(request, fixed):
    x, square = fixed(5), fixed(5, 5, seed=1)

    def two_scopes():
        with scope("first"):
            y = residual(x, fixed(5, seed=2))
        with scope("second"):
            return residual(y, fixed(5, seed=3))

    runs = {
        "ffn": lambda: residual(x, ffn(x, fixed(7, 5), fixed(7), fixed(5, 7), fixed(5), "gelu")),
        "swiglu": lambda: swiglu(x, fixed(7, 5), fixed(7, 5, seed=1), fixed(5, 7)),
        "layer_norm": lambda: layer_norm(x, square[0], square[1]),
        "rms_norm": lambda: rms_norm(x, square[0]),
        "two scopes": two_scopes,
    }
    return record(runs[request.param])


def shown(view, name):
    entry = view.frame["tensors"][name]
    size = math.prod(entry["shape"])
    numbers = [float(text) for text in view.numbers[entry["at"] : entry["at"] + size]]
    return torch.tensor(numbers, dtype=torch.float64).reshape(entry["shape"])


def test_every_tensor_is_shown_with_its_axes_and_numbers(trace):
    view = steps_view(trace)
    assert list(view.frame["tensors"]) == list(trace.tensors)
    for name, tensor in trace.tensors.items():
        assert tuple(view.frame["tensors"][name]["axes"]) == trace.axes(name)
        torch.testing.assert_close(shown(view, name), tensor.double(), rtol=5e-6, atol=1e-12)


def test_a_figure_starts_with_what_is_given_and_then_takes_every_step(trace):
    first, *steps = steps_view(trace).frame["steps"]
    assert set(first["shows"]) == set(trace.tensors) - set(trace.names)
    assert [step["makes"] for step in steps] == list(trace.names)
    assert [step["shows"] for step in steps] == [list(step.reads.values()) for step in trace.steps]


def test_what_changed_is_measured_against_a_tensor_of_the_same_kind(trace):
    tensors = steps_view(trace).frame["tensors"]
    for step in steps_view(trace).frame["steps"][1:]:
        alike = [n for n in step["shows"] if all(tensors[n][k] == tensors[step["makes"]][k] for k in ("axes", "shape"))]
        assert step.get("before") == (alike[0] if alike else None)


def test_every_worked_line_comes_to_the_number_behind_its_last_equals_sign(trace):
    view = steps_view(trace, DIGITS)
    lines = [fill(line, view.numbers) for step in view.frame["steps"] for line in step["worked"]]
    assert len(lines) >= len(trace.steps)
    for line in lines:
        assert value_of(line.split(" = ")[-2]) == pytest.approx(float(line.split(" = ")[-1]), abs=1e-12), line


def value_of(text):
    """Reads a line as a reader does; φ is the activation of the trace above."""
    for sign, python in {"−": "-", "·": "*", "²": "**2", "√": "sqrt", "φ": "phi"}.items():
        text = text.replace(sign, python)
    assert "+ -" not in text and "*-" not in text and "/ -" not in text, "a negative number without parentheses"
    known = {"sqrt": math.sqrt, "sigmoid": lambda v: 1 / (1 + math.exp(-v)), "phi": lambda v: v * (1 + math.erf(v / 2**0.5)) / 2}
    return eval(text, {"__builtins__": {}}, known)


def test_there_is_a_worked_line_for_each_element():
    trace = record(residual, torch.tensor([1.0, 2.0]), torch.tensor([0.3, -0.1]))
    view = steps_view(trace)
    lines = [fill(line, view.numbers) for line in view.frame["steps"][1]["worked"]]
    assert lines == ["y₁ = 1 + 0.3 = 1.3", "y₂ = 2 + (-0.1) = 1.9"]


def test_a_batch_is_not_worked_out_element_by_element(fixed):
    view = steps_view(record(residual, fixed(3, 5), fixed(3, 5, seed=1)))
    assert view.frame["steps"][1]["worked"] == [] and view.frame["questions"] == {}


def test_a_sentence_holds_the_numbers_of_its_step():
    view = steps_view(record(layer_norm, torch.tensor([-1.0, 5.0, 5.0, 7.0]), eps=0.0))
    sentences = [fill(step["sentence"], view.numbers) for step in view.frame["steps"]]
    assert sentences[1] == "The balance point of the 4 features is 4."
    assert sentences[2] == "How far each feature lies from the mean: [-5, 1, 1, 3]. These always sum to zero."


def test_the_table_says_what_the_figure_shows(trace):
    view = steps_view(trace)
    head, *rows = [[fill(cell, view.numbers) for cell in row] for row in view.table]
    given, steps = rows[: -len(trace.steps)], rows[-len(trace.steps) :]
    assert {len(row) for row in rows} == {len(head)}
    assert len(given) == len(view.frame["steps"][0]["shows"])
    for row, name in zip(given + steps, view.frame["steps"][0]["shows"] + list(trace.names), strict=True):
        numbers = torch.tensor([float(text) for text in re.findall(r"[^\s,\[\]]+", row[3])], dtype=torch.float64)
        assert torch.equal(numbers, shown(view, name).flatten())
    assert [row[2] for row in steps] == [step["formula"] for step in view.frame["steps"][1:]]


def test_questions_know_the_wrong_numbers_of_their_step():
    view = steps_view(record(layer_norm, torch.tensor([-1.0, 5.0, 5.0, 7.0]), eps=0.0))
    question = view.frame["questions"]["4"]
    assert question["of"] == "variance"
    assert {says.split(".")[0]: view.numbers[at] for at, says in question["wrong"]} == {
        "That divides by D − 1": "12",
        "That is the sum; a mean divides it by the number of features": "36",
        "That is already the root; this step still has the square": "3",
    }


def test_of_many_givens_a_figure_starts_with_those_that_several_steps_read(fixed):
    trace = record(PreNorm(4, 1, 7).double(), fixed(2, 3, 4)).pick(n=0, l=1, h=0)
    view = steps_view(trace)
    given = [name for name in trace.tensors if name not in trace.names]
    assert len(given) == 19 and view.frame["steps"][0]["shows"] == ["x"]
    shown = {name for step in view.frame["steps"] for name in step["shows"]}
    assert set(given) <= shown and [row[0] for row in view.table].count("1 What is given") == len(given)


def test_the_name_of_a_scope_is_not_taken_for_a_number():
    def scoped():
        with scope("{0}"):
            return residual(torch.tensor([5.0, 7.0]), torch.tensor([1.0, 1.0]))

    view = steps_view(record(scoped))
    assert "{0}" not in str([entry["symbol"] for entry in view.frame["tensors"].values()])
    assert [fill(row[1], view.numbers) for row in view.table[1:]] == ["x ((0)) [D]", "Δ ((0)) [D]", "y ((0)) [D]"]
    assert "(0)" in fill(view.table[-1][2], view.numbers)


@pytest.fixture
def rows(fixed):
    """The trace of a LayerNorm over L = 3 positions of D = 5 features."""
    return record(layer_norm, fixed(3, 5))


def test_an_axis_can_have_named_places_and_the_names_are_among_the_numbers(rows):
    view = steps_view(rows, labels={"L": ["not", "very", "bad"], "D": list("abcde")})
    x = view.frame["tensors"]["x"]
    for axis, names in {"L": ["not", "very", "bad"], "D": list("abcde")}.items():
        at = x["labels"][axis]
        assert view.numbers[at : at + len(names)] == names
    assert set(view.frame["tensors"]["mean"]["labels"]) == {"L"}  # it has no axis D
    assert [fill(cell, view.numbers) for cell in view.table[1]] == ["", "L", "", "[not, very, bad]", "", ""]
    torch.testing.assert_close(shown(view, "ln"), rows["ln"], rtol=5e-6, atol=1e-12)


def test_other_names_leave_the_frame_as_it_is(rows):
    one, other = (steps_view(rows, labels={"L": names}) for names in (["a", "b", "c"], ["d", "e\u00a0(f)", "{0}"]))
    assert one.frame == other.frame and len(one.numbers) == len(other.numbers) and one.numbers[3:] == other.numbers[3:]
    assert other.numbers[:3] == ["d", "e\u00a0(f)", "(0)"]


def test_without_names_there_are_none(rows):
    assert all("labels" not in entry for entry in steps_view(rows).frame["tensors"].values())


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"L": ["a", "b"]}, r"^labels\['L'\] must be 3 names, one for each place; got \['a', 'b'\]"),
        ({"H": ["a", "b"]}, r"^labels\['H'\] must be the names of an axis of the trace; got \['a', 'b'\]"),
        ({"L": ["a", "b c", "d"]}, r"^labels\['L'\] must be texts without a space; got .*U\+00A0"),
        ({"L": "abc"}, r"^labels\['L'\] must be a list of one or more texts; got 'abc'"),
        ({"L": ["a", 2, "d"]}, r"^labels\['L'\]\[1\] must be a text; got 2"),
    ],
)
@pytest.mark.usefixtures("as_readers_run_it")
def test_names_that_do_not_fit_an_axis_are_refused(rows, labels, message):
    with pytest.raises(ArgumentError, match=message):
        steps_view(rows, labels=labels)
