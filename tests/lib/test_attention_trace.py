"""The named steps of attention, which readers see."""

import pytest
import torch

from oneblock.attention import MultiHeadAttention, attention
from oneblock.trace import record
from oneblock.widgets import steps_view

VALID = torch.tensor([[True, True, True, False, False], [True] * 5])
FORMULAS = {
    "q": "W_Q x + b_Q",
    "k": "W_K x + b_K",
    "v": "W_V x + b_V",
    "scores": "q kᵀ / √E",
    "masked_scores": "scores where valid, else −∞",
    "weights": "softmax(masked)",
    "mixed": "α v",
    "joined": "mix of all heads",
    "attended": "W_O joined + b_O",
}
AXES = {
    "x": "N L D", "q": "N H L E", "k": "N H L E", "v": "N H L E", "scores": "N H L L", "masked_scores": "N H L L",
    "weights": "N H L L", "mixed": "N H L E", "joined": "N L D", "attended": "N L D",
    "valid_tokens": "N L", "W_Q": "H E D", "b_Q": "H E", "W_O": "D D", "b_O": "D",
}  # fmt: skip
AT_A_POSITION = {
    "x": "D", "q": "H E", "k": "H L E", "v": "H L E", "scores": "H L", "masked_scores": "H L",
    "weights": "H L", "mixed": "H E", "joined": "D", "attended": "D", "valid_tokens": "L", "W_Q": "H E D",
}  # fmt: skip


@pytest.fixture
def module(fixed):
    """D = 6 in H = 3 heads, no parameter at its start value."""
    module = MultiHeadAttention(6, 3).double()
    for seed, parameter in enumerate(module.parameters(), start=1):
        parameter.data = fixed(*parameter.shape, seed=seed)
    return module


@pytest.fixture
def trace(fixed, module):
    return record(module, fixed(2, 5, 6), VALID)


def axes_of(trace, names):
    return {name: " ".join(trace.axes(name)) for name in names}


def test_the_steps_their_order_and_their_formulas(trace):
    assert {step.name: step.formula for step in trace.steps} == FORMULAS and trace.names == tuple(FORMULAS)


def test_without_masks_and_biases_none_are_written(fixed):
    trace = record(MultiHeadAttention(6, 3, bias=False).double(), fixed(2, 5, 6))
    due = {name: formula.partition(" +")[0] for name, formula in FORMULAS.items() if name != "masked_scores"}
    assert {step.name: step.formula for step in trace.steps} == {**due, "weights": "softmax(scores)"}


def test_both_masks_are_named(fixed, module):
    trace = record(module, fixed(2, 5, 6), VALID, torch.ones(5, 5, dtype=torch.bool).tril())
    assert trace.step("masked_scores").formula == "scores where valid and may read, else −∞"
    assert trace.axes("may_read") == ("L", "L")


def test_dropout_is_a_step_where_there_is_any(fixed):
    module = MultiHeadAttention(6, 3, dropout=0.5).double()
    assert "weights_dropped" in record(module, fixed(2, 5, 6)).names
    assert "weights_dropped" not in record(module.eval(), fixed(2, 5, 6)).names


def test_the_unmasked_scores_stay_in_the_trace(trace):
    kept = VALID[:, None, None].expand_as(trace["scores"])
    assert trace["scores"].isfinite().all() and trace["masked_scores"][~kept].isneginf().all()
    assert torch.equal(trace["masked_scores"][kept], trace["scores"][kept])
    assert trace["weights"][~kept].eq(0).all() and trace["weights"][kept].gt(0).all()


def test_axes_are_named_with_and_without_a_batch(fixed, module, trace):
    assert axes_of(trace, AXES) == AXES
    alone = record(module, fixed(5, 6))
    due = {name: axes.removeprefix("N ") for name, axes in AXES.items() if name in alone.tensors}
    assert axes_of(alone, due) == due


def test_one_position_reads_the_keys_and_values_of_all(trace):
    row = trace.at(1, 4)
    assert axes_of(row, AT_A_POSITION) == AT_A_POSITION
    assert torch.equal(row["q"], trace["q"][1, :, 4]) and torch.equal(row["k"], trace["k"][1])
    assert torch.equal(row["weights"], trace["weights"][1, :, 4]) and torch.equal(row["valid_tokens"], VALID[1])


def test_at_picks_without_a_batch_too(fixed, module):
    trace = record(module, fixed(5, 6))
    row = trace.at(4)
    assert torch.equal(row["scores"], trace["scores"][:, 4]) and torch.equal(row["v"], trace["v"])


def test_each_worked_formula_comes_to_the_number_in_the_tensor(trace, worked_out):
    for n, i in [(0, 0), (0, 4), (1, 3)]:
        row = trace.at(n, i)
        spelt_out = [step for step in row.steps if step.worked]
        assert [step.name for step in spelt_out] == ["q", "scores", "weights", "mixed"]
        for step in spelt_out:
            from_formula, in_tensor = worked_out(row, step)
            assert from_formula == pytest.approx(in_tensor, rel=1e-12, abs=1e-14), step.name


def test_of_one_head_every_element_is_spelt_out(trace, worked_out):
    head = trace.pick(n=1, l=4, h=2)
    assert axes_of(head, ["q", "k", "weights", "W_Q"]) == {"q": "E", "k": "L E", "weights": "L", "W_Q": "E D"}
    for name in ("q", "scores", "weights", "mixed"):
        from_formula, in_tensor = worked_out(head, head.step(name))
        assert from_formula == pytest.approx(in_tensor, rel=1e-12, abs=1e-14), name
    lines = {step["makes"]: step["worked"] for step in steps_view(head).frame["steps"][1:]}
    assert len(lines["q"]) == 2 and len(lines["weights"]) == 5 and "exp(" in lines["weights"][0]


def test_the_figure_of_one_position_can_be_drawn(trace):
    view = steps_view(trace.at(0, 1))
    assert [step["makes"] for step in view.frame["steps"][1:]] == list(FORMULAS)
    assert view.frame["tensors"]["k"]["axes"] == ["H", "L", "E"]


def test_an_axis_that_no_tensor_has_cannot_be_picked(trace):
    with pytest.raises(KeyError, match=r"no tensor has the axes \['f'\]; there are \['d', 'e', 'h', 'j', 'l', 'n'\]"):
        trace.pick(f=0)


def test_recording_changes_no_number(fixed, module, trace):
    torch.testing.assert_close(trace.result, module(fixed(2, 5, 6), VALID), atol=1e-14, rtol=0)
    q, k, v = (trace[name] for name in "qkv")
    assert torch.equal(attention(q, k, v, VALID), trace["mixed"])
