"""The named steps of the feed-forward networks, which readers see."""

from itertools import product

import pytest
import torch
from torch.nn import functional

from oneblock.activations import ACTIVATIONS
from oneblock.ffn import ffn, swiglu
from oneblock.residual import residual
from oneblock.trace import record

# Oracles of one number, by torch's own functions.
PHI = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
}
FFN_STEPS = {
    "h": ("W₁ x + b₁", "Σd⟨{W1[f,d]}·{x[d]}⟩ + {b1[f]}"),
    "a": ("φ(h)", "φ({h[f]})"),
    "z": ("W₂ a + b₂", "Σf⟨{W2[d,f]}·{a[f]}⟩ + {b2[d]}"),
}
SWIGLU_STEPS = {
    "gate": ("W_gate x + b_gate", "Σd⟨{W_gate[f,d]}·{x[d]}⟩ + {b_gate[f]}"),
    "silu": ("SiLU(g)", "{gate[f]}·sigmoid({gate[f]})"),
    "up": ("W_up x + b_up", "Σd⟨{W_up[f,d]}·{x[d]}⟩ + {b_up[f]}"),
    "gated": ("SiLU(g) ⊙ u", "{silu[f]}·{up[f]}"),
    "z": ("W_down (SiLU(g) ⊙ u) + b_down", "Σf⟨{W_down[d,f]}·{gated[f]}⟩ + {b_down[d]}"),
}


def as_written(trace):
    return {step.name: (step.formula, step.worked) for step in trace.steps}


def test_the_steps_of_both_networks_their_order_and_their_formulas(fixed, ffn_weights, swiglu_weights):
    for function, parameters, due in [(ffn, ffn_weights, FFN_STEPS), (swiglu, swiglu_weights, SWIGLU_STEPS)]:
        trace = record(function, fixed(2, 7, 3), *parameters)
        assert as_written(trace) == due and trace.names == tuple(due)


def test_without_biases_the_steps_do_not_write_them(fixed, ffn_weights, swiglu_weights):
    W1, _, W2, _ = ffn_weights
    steps = as_written(record(ffn, fixed(3), W1, None, W2, None))
    assert steps["h"] == ("W₁ x", "Σd⟨{W1[f,d]}·{x[d]}⟩") and steps["z"][0] == "W₂ a"
    assert as_written(record(swiglu, fixed(3), *swiglu_weights[:3]))["z"][0] == "W_down (SiLU(g) ⊙ u)"


@pytest.mark.parametrize("phi", [torch.nn.ReLU(inplace=True), lambda h: h], ids=["in place", "the identity"])
def test_an_activation_that_hands_its_input_back_still_makes_a_step_that_is_read(fixed, ffn_weights, phi):
    x, (W1, b1, W2, b2) = fixed(2, 7, 3), ffn_weights
    trace = record(ffn, x, *ffn_weights, phi)
    assert as_written(trace) == FFN_STEPS and trace.step("z").reads["a"] == "a"
    torch.testing.assert_close(trace["h"], x @ W1.T + b1)
    torch.testing.assert_close(trace["z"], trace["a"] @ W2.T + b2)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("position", list(product(range(2), range(7))))
def test_each_worked_formula_of_ffn_comes_to_the_number_in_the_tensor(fixed, ffn_weights, worked_out, activation, position):
    trace = record(ffn, fixed(2, 7, 3), *ffn_weights, activation).at(*position)

    def phi(number):
        return PHI[activation](torch.tensor(number, dtype=torch.float64)).item()

    for step in trace.steps:
        from_formula, in_tensor = worked_out(trace, step, phi=phi)
        assert from_formula == pytest.approx(in_tensor, rel=1e-12, abs=1e-14), step.name


@pytest.mark.parametrize("position", list(product(range(2), range(7))))
@pytest.mark.parametrize("bias", [True, False])
def test_each_worked_formula_of_swiglu_comes_to_the_number_in_the_tensor(
    fixed, swiglu_weights, worked_out, position, bias
):
    trace = record(swiglu, fixed(2, 7, 3), *swiglu_weights[: 6 if bias else 3]).at(*position)
    for step in trace.steps:
        from_formula, in_tensor = worked_out(trace, step)
        assert from_formula == pytest.approx(in_tensor, rel=1e-12, abs=1e-14), step.name


def test_the_worked_residual_comes_to_the_number_in_the_tensor(fixed, ffn_weights, worked_out):
    trace = record(lambda x: residual(x, ffn(x, *ffn_weights)), fixed(3))
    assert trace.step("y").worked == "{x[d]} + {z[d]}"
    from_formula, in_tensor = worked_out(trace, trace.step("y"))
    assert from_formula == in_tensor
