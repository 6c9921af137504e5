"""Where norms surprise: constant rows, ε, infinities, half precision."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.norms import LayerNorm, RMSNorm, gemma_rms_norm, layer_norm, llama_rms_norm, rms_norm
from oneblock.trace import record



def test_a_constant_row_gives_beta_and_a_slope_of_size_one_over_root_epsilon(fixed):
    x = torch.full((5,), 3.0, dtype=torch.float64, requires_grad=True)
    beta = fixed(5)
    assert torch.equal(layer_norm(x, fixed(5, seed=1), beta), beta)
    slope = torch.func.jacrev(layer_norm)(x)[0, 0].item()
    assert slope == pytest.approx((1 - 1 / 5) / math.sqrt(1e-5))


def test_one_feature_always_gives_beta(fixed):
    assert torch.equal(layer_norm(fixed(3, 1), torch.tensor([2.0]), torch.tensor([0.25])), torch.full((3, 1), 0.25).double())


@pytest.mark.parametrize("x", [[5.0, 5.0, 5.0], [0.0, 0.0, 0.0]])
def test_a_constant_row_without_epsilon_is_nan_as_in_torch(x):
    x = torch.tensor(x)
    assert layer_norm(x, eps=0).isnan().all() and functional.layer_norm(x, (3,), eps=0).isnan().all()


def test_a_zero_row_under_rms_norm_is_zero_and_without_epsilon_nan_as_in_torch():
    x = torch.zeros(3)
    assert rms_norm(x).tolist() == [0, 0, 0]
    assert rms_norm(x, eps=0).isnan().all() and functional.rms_norm(x, (3,), eps=0).isnan().all()


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_infinity_and_nan_in_a_row_come_out_as_in_torch_and_stay_in_that_row(odd):
    x = torch.tensor([[1.0, odd, 2.0], [1.0, 3.0, 8.0]])
    for ours, theirs in [(layer_norm, functional.layer_norm), (rms_norm, functional.rms_norm)]:
        torch.testing.assert_close(ours(x), theirs(x, (3,)), equal_nan=True)
        assert ours(x)[1].isfinite().all()


def test_an_empty_batch_gives_an_empty_batch():
    assert layer_norm(torch.zeros(0, 3, 5)).shape == rms_norm(torch.zeros(0, 3, 5)).shape == (0, 3, 5)


def test_the_input_is_left_as_it_was(fixed):
    x = fixed(3, 5)
    before = x.clone()
    layer_norm(x, fixed(5), fixed(5))
    rms_norm(x, fixed(5))
    assert torch.equal(x, before)


# Half precision.


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0, 20_000.0])
def test_half_precision_is_computed_in_float32_and_rounded_once_as_in_torch(fixed, dtype, scale):
    x = (scale * fixed(3, 7, dtype=torch.float32)).to(dtype)
    gamma, beta = fixed(7, seed=1, dtype=dtype), fixed(7, seed=2, dtype=dtype)
    one_rounding = {"atol": 1e-6, "rtol": torch.finfo(dtype).eps}
    ours, due = layer_norm(x, gamma, beta), functional.layer_norm(x, (7,), gamma, beta)
    assert ours.dtype == dtype and ours.isfinite().all()
    torch.testing.assert_close(ours, due, **one_rounding)
    torch.testing.assert_close(rms_norm(x, gamma), functional.rms_norm(x, (7,), gamma), **one_rounding)


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("ours, theirs", [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_half_precision_may_meet_parameters_in_float32_as_in_torch(fixed, run, ours, theirs, dtype):
    module, due, x = ours(7), theirs(7), fixed(3, 7, dtype=dtype)
    for seed, parameter in enumerate(module.parameters(), start=1):
        parameter.data = fixed(7, seed=seed, dtype=torch.float32)
    due.load_state_dict(module.state_dict())
    assert run(module, x).dtype == dtype
    torch.testing.assert_close(run(module, x), due(x), atol=1e-6, rtol=torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rms_norms_epsilon_is_that_of_the_dtype_it_computes_in(dtype):
    trace = record(rms_norm, torch.tensor([1e-9, 2e-9], dtype=dtype))
    due = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    assert trace["eps"].item() == due
    x = torch.tensor([1e-3, 2e-3], dtype=dtype)
    torch.testing.assert_close(rms_norm(x), functional.rms_norm(x, (2,)), atol=1e-12, rtol=torch.finfo(dtype).eps)


def test_float32_overflows_where_the_square_does_as_in_torch():
    x = torch.tensor([1e20, 2e20])
    assert rms_norm(x).tolist() == functional.rms_norm(x, (2,)).tolist() == [0, 0]


def test_llamas_order_of_casts_differs_in_half_precision_only(fixed):
    x, weight = fixed(61, 7), fixed(7, seed=1)
    torch.testing.assert_close(llama_rms_norm(x, weight), rms_norm(x, weight, 1e-6), atol=1e-15, rtol=0)
    x, weight = x.bfloat16(), weight.bfloat16()
    assert torch.equal(llama_rms_norm(x, weight), weight * functional.rms_norm(x.float(), (7,), eps=1e-6).bfloat16())
    assert not torch.equal(llama_rms_norm(x, weight), rms_norm(x, weight, 1e-6))


def test_gemmas_weight_is_its_distance_from_one_and_is_added_in_float32(fixed):
    x, weight = fixed(61, 7), fixed(7, seed=1)
    torch.testing.assert_close(gemma_rms_norm(x, torch.zeros(7)), rms_norm(x, eps=1e-6), atol=1e-15, rtol=0)
    due = functional.rms_norm(x, (7,), 1 + weight, 1e-6)
    torch.testing.assert_close(gemma_rms_norm(x, weight), due, atol=1e-12, rtol=0)
    x, weight = x.bfloat16(), weight.bfloat16()
    due = functional.rms_norm(x.float(), (7,), 1 + weight.float(), 1e-6).bfloat16()
    torch.testing.assert_close(gemma_rms_norm(x, weight), due, atol=0, rtol=torch.finfo(torch.bfloat16).eps)
    assert not torch.equal(gemma_rms_norm(x, weight), rms_norm(x, 1 + weight, 1e-6))


def test_where_a_square_overflows_the_formula_gives_beta_and_the_kernel_nan():
    x, module = torch.tensor([1e20, 1.0, 2.0], dtype=torch.float32), LayerNorm(3)
    assert torch.equal(layer_norm(x), torch.zeros(3, dtype=torch.float32)) and module(x).isnan().all()
