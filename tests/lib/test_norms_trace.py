"""The named steps of the norms, which readers see."""

from itertools import product

import pytest
import torch

from oneblock.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from oneblock.trace import record

LAYER_NORM_STEPS = {
    "mean": ("Σ x / D", "(Σd⟨{x[d]}⟩) / #D"),
    "centred": ("x − μ", "{x[d]} - {mean}"),
    "squares": ("d²", "({centred[d]})²"),
    "variance": ("Σ d² / D", "(Σd⟨{squares[d]}⟩) / #D"),
    "std": ("√(σ² + ε)", "√({variance} + {eps})"),
    "normed": ("d / s", "{centred[d]} / {std}"),
    "ln": ("γ ⊙ x̂ + β", "{gamma[d]}·{normed[d]} + {beta[d]}"),
}
RMS_NORM_STEPS = {
    "x_squares": ("x²", "({x[d]})²"),
    "mean_square": ("Σ x² / D", "(Σd⟨{x_squares[d]}⟩) / #D"),
    "rms": ("√(m + ε)", "√({mean_square} + {eps})"),
    "rms_normed": ("x / rms", "{x[d]} / {rms}"),
    "rmsnorm": ("γ ⊙ x̂", "{gamma[d]}·{rms_normed[d]}"),
}


@pytest.fixture
def layer_norm_trace(fixed):
    return record(layer_norm, fixed(2, 3, 5), fixed(5, seed=1), fixed(5, seed=2), eps=0.125)


@pytest.fixture
def rms_norm_trace(fixed):
    return record(rms_norm, fixed(2, 3, 5), fixed(5, seed=1), eps=0.125)


def as_written(trace):
    return {step.name: (step.formula, step.worked) for step in trace.steps}


def test_the_steps_of_both_norms_their_order_and_their_formulas(layer_norm_trace, rms_norm_trace):
    assert as_written(layer_norm_trace) == LAYER_NORM_STEPS
    assert layer_norm_trace.names == tuple(LAYER_NORM_STEPS)
    assert as_written(rms_norm_trace) == RMS_NORM_STEPS
    assert rms_norm_trace.names == tuple(RMS_NORM_STEPS)


@pytest.mark.parametrize("which", ["layer_norm_trace", "rms_norm_trace"])
@pytest.mark.parametrize("position", list(product(range(2), range(3))))
def test_each_worked_formula_comes_to_the_number_in_the_tensor(request, worked_out, which, position):
    trace = request.getfixturevalue(which).at(*position)
    for step in trace.steps:
        from_formula, in_tensor = worked_out(trace, step)
        assert from_formula == pytest.approx(in_tensor, rel=1e-12, abs=1e-14), step.name


@pytest.mark.parametrize("affine, due", [("γ", "γ ⊙ x̂"), ("β", "x̂ + β"), ("", "x̂")])
def test_the_last_step_is_ln_and_writes_only_the_parameters_there_are(fixed, worked_out, affine, due):
    gamma, beta = (fixed(5, seed=1) if "γ" in affine else None), (fixed(5, seed=2) if "β" in affine else None)
    trace = record(layer_norm, fixed(5), gamma, beta, eps=0.125)
    assert trace.names == tuple(LAYER_NORM_STEPS) and trace.steps[-1].formula == due
    from_formula, in_tensor = worked_out(trace, trace.steps[-1])
    assert from_formula == pytest.approx(in_tensor, rel=1e-12)


def test_without_gamma_the_last_step_of_rms_norm_is_still_rmsnorm(fixed):
    trace = record(rms_norm, fixed(5))
    assert trace.names == tuple(RMS_NORM_STEPS)
    assert trace.step("rmsnorm").formula == "x̂" and trace.step("rmsnorm").worked == "{rms_normed[d]}"


def test_the_result_is_read_on_as_ln_and_not_as_one_of_its_steps(fixed):
    trace = record(lambda x: rms_norm(layer_norm(x, eps=0.125), eps=0.125), fixed(5))
    assert trace.step("x_squares").reads == {"x": "ln"} and trace.step("x_squares").formula == "LN²"


def test_over_other_axes_no_element_is_spelled_out(fixed):
    trace = record(layer_norm, fixed(2, 3, 7), axes=(1, 2))
    assert trace.names == tuple(LAYER_NORM_STEPS) and not any(step.worked for step in trace.steps)
    assert trace.step("mean").formula == "Σ x / n"


def test_the_modules_trace_is_that_of_their_function(fixed):
    assert as_written(record(LayerNorm(5).double(), fixed(2, 3, 5))) == LAYER_NORM_STEPS
    assert as_written(record(RMSNorm(5).double(), fixed(2, 3, 5))) == RMS_NORM_STEPS


def test_recording_changes_no_number(fixed, layer_norm_trace):
    due = layer_norm(fixed(2, 3, 5), fixed(5, seed=1), fixed(5, seed=2), eps=0.125)
    assert torch.equal(layer_norm_trace.result, due) and torch.equal(layer_norm_trace["ln"], due)
