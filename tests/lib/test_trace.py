import pytest
import torch

from oneblock.errors import ArgumentError, ShapeError
from oneblock.ffn import ffn
from oneblock.norms import layer_norm
from oneblock.residual import residual
from oneblock.trace import given, local, record, scope, tap


@pytest.fixture
def weights(fixed):
    """F = 7 and D = 5."""
    shapes = {"W1": (7, 5), "b1": (7,), "W2": (5, 7), "b2": (5,)}
    return {name: fixed(*shape, seed=k) for k, (name, shape) in enumerate(shapes.items(), start=1)}


def branch(x, weights):
    return residual(x, ffn(x, **weights))


@pytest.fixture
def trace(fixed, weights):
    """A batch of N = 2 sequences of L = 3."""
    return record(branch, fixed(2, 3, 5), weights)


def test_steps_come_in_the_order_the_code_runs(trace):
    assert trace.names == ("h", "a", "z", "y")


def test_a_given_tensor_stands_where_it_is_first_read(trace):
    assert tuple(trace.tensors) == ("W1", "x", "b1", "h", "a", "W2", "b2", "z", "y")


def test_formulas_name_what_was_really_read(trace):
    formulas = [step.formula for step in trace.steps]
    assert formulas == ["W₁ x + b₁", "φ(h)", "W₂ a + b₂", "x + z"]  # residual() calls its z an increment


def test_reads_lead_from_the_formulas_names_to_the_tensors(trace):
    assert trace.step("h").reads == {"W1": "W1", "x": "x", "b1": "b1"}
    assert trace.step("y").reads == {"x": "x", "increment": "z"}


def test_a_worked_formula_refers_to_the_tensors_of_the_trace(trace):
    assert trace.step("y").worked == "{x[d]} + {z[d]}"


def test_every_value_is_what_the_mathematics_says(trace, fixed, weights):
    x = fixed(2, 3, 5)
    h = torch.einsum("nld,fd->nlf", x, weights["W1"]) + weights["b1"]
    a = h.clamp(min=0)
    z = torch.einsum("nlf,df->nld", a, weights["W2"]) + weights["b2"]
    for name, due in {"x": x, "h": h, "a": a, "z": z, "y": x + z}.items():
        torch.testing.assert_close(trace[name], due, rtol=0, atol=1e-12)
    torch.testing.assert_close(trace.result, x + z, rtol=0, atol=1e-12)


def test_only_the_very_same_tensor_is_linked(fixed, weights):
    x = fixed(3, 5)
    trace = record(lambda: residual(x, ffn(x, **weights).clone()))
    assert trace.step("y").reads["increment"] == "increment"
    assert torch.equal(trace["increment"], trace["z"])


def test_one_given_tensor_that_serves_twice_has_both_names(fixed):
    bias, square = fixed(5), fixed(5, 5, seed=1)
    trace = record(ffn, fixed(3, 5, seed=2), square, bias, square, bias)
    assert trace.step("h").reads == {"W1": "W1", "x": "x", "b1": "b1"}
    assert trace.step("z").reads == {"W2": "W2", "a": "a", "b2": "b2"}


def test_a_trace_keeps_its_numbers_when_the_tensors_change_later(fixed):
    x = fixed(3, 5)
    trace = record(residual, x, fixed(3, 5, seed=1))
    before = trace["x"].clone(), trace["y"].clone()
    x.zero_()
    trace.result.zero_()
    assert torch.equal(trace["x"], before[0]) and torch.equal(trace["y"], before[1])


def test_numbers_are_kept_as_well(fixed):
    trace = record(layer_norm, fixed(5), eps=1e-5)
    assert trace["eps"].item() == 1e-5 and trace.axes("eps") == ()


@pytest.mark.parametrize(
    "shape, axes", [((5,), ("D",)), ((3, 5), ("L", "D")), ((2, 3, 5), ("N", "L", "D"))], ids=["row", "sequence", "batch"]
)
def test_leading_axes_are_named_too(fixed, weights, shape, axes):
    trace = record(branch, fixed(*shape), weights)
    assert trace.axes("y") == axes
    assert trace.axes("h") == (*axes[:-1], "F")
    assert trace.axes("W1") == ("F", "D")


def test_a_kept_axis_is_named_1(fixed):
    assert record(layer_norm, fixed(2, 3, 5)).axes("mean") == ("N", "L", "1")


def test_at_picks_one_position_and_leaves_the_weights(trace, fixed, weights):
    row = trace.at(1, 2)
    alone = record(branch, fixed(2, 3, 5)[1, 2], weights)
    assert row.names == alone.names and row.axes("h") == ("F",)
    for name in alone.tensors:
        torch.testing.assert_close(row[name], alone[name], rtol=0, atol=1e-12)


def test_at_picks_a_position_of_a_sequence_without_a_batch(fixed, weights):
    row = record(branch, fixed(3, 5), weights).at(2)
    assert row.axes("x") == ("D",) and torch.equal(row["x"], fixed(3, 5)[2])
    assert torch.equal(row["W1"], weights["W1"])


def test_one_function_can_run_twice_in_two_scopes(fixed):
    x = fixed(5)

    def twice():
        with scope("first"):
            normed = layer_norm(x)
        with scope("second"):
            return layer_norm(normed)

    trace = record(twice)
    assert trace.names[0] == "first.mean" and trace.names[-1] == "second.ln"
    assert trace.step("second.mean").reads == {"x": "first.ln"}
    assert trace.step("second.mean").worked == "(Σd⟨{first.ln[d]}⟩) / #D"
    assert trace.step("second.mean").formula == "Σ LN (first) / D"


def test_scopes_nest_and_end(fixed):
    x = fixed(5)

    def nested():
        with scope("block"), scope("norm"):
            tap("mean", x.mean(-1, keepdim=True), "{x}", x=x)
        tap("y", x + x, "{x}", x=x)

    assert record(nested).names == ("block.norm.mean", "y")
    assert local("block.norm.mean") == "mean" and local("y") == "y"


def test_outside_a_recording_nothing_happens(fixed):
    x = fixed(5)
    assert tap("no such name", x, "{nothing}") is x
    with scope("anything"):
        assert tap("y", x, "") is x


def test_recording_changes_no_value(fixed, weights, trace):
    assert torch.equal(trace.result, branch(fixed(2, 3, 5), weights))


def test_gradients_flow_through_a_recording(fixed, weights):
    x = fixed(3, 5).requires_grad_()
    trace = record(branch, x, weights)
    (recorded,) = torch.autograd.grad(trace.result.square().sum(), x)
    (plain,) = torch.autograd.grad(branch(x, weights).square().sum(), x)
    assert torch.equal(recorded, plain)
    assert not any(tensor.requires_grad for tensor in trace.tensors.values())


def test_taps_do_not_disturb_torch_func(fixed, weights):
    x = fixed(3, 5)
    jacobian = torch.func.jacrev(branch)(x[0], weights)
    torch.testing.assert_close(jacobian, torch.func.jacfwd(branch)(x[0], weights), rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.vmap(branch, (0, None))(x, weights), branch(x, weights), rtol=0, atol=1e-12)


def test_an_unknown_name_says_where_to_declare_it(fixed):
    with pytest.raises(KeyError, match=r"tap name 'nonsense' is not in oneblock.notation.SYMBOLS; declare its symbol"):
        record(tap, "nonsense", fixed(5), "")


def test_the_same_name_twice_asks_for_a_scope(fixed):
    def twice():
        residual(fixed(5), fixed(5, seed=1))
        residual(fixed(5), fixed(5, seed=2))

    with pytest.raises(KeyError, match=r"two tensors are named 'x' in one trace; put one of them in a scope"):
        record(twice)


def test_a_recording_inside_a_recording_is_refused(fixed):
    with pytest.raises(RuntimeError, match=r"record\(\) is already recording; call it once, around the whole"):
        record(record, residual, fixed(5), fixed(5))


def test_more_leading_axes_than_n_and_l_are_refused(fixed):
    with pytest.raises(ShapeError, match=r"x must be \[\.\.\., D\] with at most \[N, L\] in front; got float64 \[2, 2, 3, 5\]"):
        record(residual, fixed(2, 2, 3, 5), fixed(2, 2, 3, 5))


def test_a_missing_tensor_is_answered_with_those_there_are(trace):
    with pytest.raises(KeyError, match=r"no tensor is named 'ln' in this trace; it has W1, x, b1, h, a, W2, b2, z, y"):
        trace["ln"]
    with pytest.raises(KeyError, match=r"no step is named 'x' in this trace; it has h, a, z, y"):
        trace.step("x")



def test_an_exception_ends_the_recording(fixed):
    def fails():
        with scope("broken"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        record(fails)
    assert tap("no such name", fixed(5), "") is not None  # nothing records here any more
    assert record(residual, fixed(5), fixed(5, seed=1)).names == ("y",)


def test_a_number_is_named_anew_in_each_scope(fixed):
    def twice():
        for name in ("first", "second"):
            with scope(name):
                layer_norm(fixed(5), eps=0.25)

    trace = record(twice)
    assert trace["first.eps"] == trace["second.eps"] == 0.25
    assert trace.step("second.std").formula == "√(σ² (second) + ε (second))"


def test_a_tensor_given_before_a_scope_keeps_its_name_in_it(fixed):
    x = fixed(5)

    def normed():
        assert given("x", x) is x
        with scope("norm"):
            return layer_norm(x)

    trace = record(normed)
    assert next(iter(trace.tensors)) == "x" and trace.step("norm.mean").formula == "Σ x / D"
    assert given("no such name", x) is x  # nothing records any more


def test_one_place_of_an_axis_can_be_picked(trace, fixed):
    sequence, feature = trace.pick(n=1), trace.pick(n=1, l=2, d=3)
    assert sequence.axes("x") == ("L", "D") and torch.equal(sequence["x"], fixed(2, 3, 5)[1])
    assert feature.axes("y") == () and feature["y"] == trace["y"][1, 2, 3]
    assert feature.axes("W1") == ("F",) and torch.equal(feature["W1"], trace["W1"][:, 3])


def test_a_position_outside_the_sequence_is_an_index_error_and_three_places_are_no_position(trace):
    with pytest.raises(IndexError):
        trace.at(0, 3)
    with pytest.raises(ArgumentError, match=r"^index must be \(n, l\), or \(l\) where .*; got \(1, 2, 3\); pick"):
        trace.at(1, 2, 3)


def test_places_can_be_picked_one_after_the_other(trace):
    at_once, in_turn = trace.pick(n=1, l=2), trace.pick(n=1).pick(l=2)
    assert in_turn.picked == at_once.picked == {"n", "l"}
    for name in trace.tensors:
        assert torch.equal(in_turn[name], at_once[name]) and in_turn.letters(name) == at_once.letters(name), name


def test_two_numbers_of_one_name_need_a_scope(fixed):
    def twice():
        tap("mean", fixed(1), "{eps}", eps=0.25)
        tap("std", fixed(1), "{eps}", eps=0.5)

    with pytest.raises(KeyError, match=r"two tensors are named 'eps' in one trace; put one of them in a scope"):
        record(twice)
