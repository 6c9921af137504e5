import math

import pytest
import torch
from torch import nn

from oneblock.activations import ACTIVATIONS, activation_named, gelu, gelu_tanh, relu, silu
from oneblock.errors import ArgumentError, DtypeError
from oneblock.trace import record

TORCH = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "silu": nn.SiLU()}
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}
every_activation = pytest.mark.parametrize("name", ACTIVATIONS)


def grid(dtype, reach=12):
    """−reach … reach in steps that hit 0, the kink, and nothing else of note."""
    return torch.arange(-100 * reach, 100 * reach + 1, 4, dtype=dtype).div(100).requires_grad_()


@every_activation
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_value_and_gradient_are_those_of_torch(name, dtype):
    # Further out in float32, torch's own slope of the tanh form is 1e-6 from its float64 one.
    reach = 4 if dtype == torch.float32 else 12
    ours, theirs = grid(dtype, reach), grid(dtype, reach)
    value, due = ACTIVATIONS[name](ours), TORCH[name](theirs)
    weights = torch.linspace(-1, 1, value.numel(), dtype=dtype).view_as(value)
    (value * weights).sum().backward()
    (due * weights).sum().backward()
    close = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(value, due, **close)
    torch.testing.assert_close(ours.grad, theirs.grad, **close)


@every_activation
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_within_one_rounding_of_torch(name, dtype):
    x = grid(torch.float32).detach().to(dtype)
    value = ACTIVATIONS[name](x)
    assert value.dtype == dtype
    torch.testing.assert_close(value, TORCH[name](x), atol=1e-6, rtol=torch.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["gelu", "silu"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_torchs_bit_for_bit_where_nothing_cancels(name, dtype):
    """Below −2 torch's own vectorised GELU differs from CPU to CPU."""
    x = torch.arange(-512, 1025).div(256).to(dtype)
    assert torch.equal(ACTIVATIONS[name](x), TORCH[name](x))


@every_activation
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_large_numbers_neither_overflow_nor_give_nan(name, dtype):
    x = torch.tensor([-1000.0, 1000.0], dtype=dtype, requires_grad=True)
    value = ACTIVATIONS[name](x)
    value.sum().backward()
    assert value.tolist() == [0.0, 1000.0]
    assert x.grad.tolist() == [0.0, 1.0]


@every_activation
def test_infinity_stays_and_nan_stays(name):
    # Not compared with torch: its float32 GELU gives NaN at infinity on some CPUs, its float64 one does not.
    assert ACTIVATIONS[name](torch.tensor(math.inf)).item() == math.inf
    assert ACTIVATIONS[name](torch.tensor(math.nan)).isnan()


@every_activation
def test_minus_infinity_is_zero_for_relu_and_nan_for_the_products(name):
    value = ACTIVATIONS[name](torch.tensor([-math.inf], dtype=torch.float64))
    assert value.item() == 0 if name == "relu" else value.isnan()
    torch.testing.assert_close(value, TORCH[name](torch.tensor([-math.inf], dtype=torch.float64)), equal_nan=True)


def test_silu_of_one_and_three():
    assert silu(torch.tensor([1.0, 3.0])).tolist() == pytest.approx([0.731059, 2.857722], abs=5e-7)


def test_silu_is_x_over_one_plus_exp_minus_x():
    x = [-3.0, -1.278, -0.5, 0.0, 0.5, 2.0]
    due = [number / (1 + math.exp(-number)) for number in x]
    assert silu(torch.tensor(x, dtype=torch.float64)).tolist() == pytest.approx(due, abs=1e-15)


def test_gelu_is_x_times_the_share_of_a_normal_distribution_below_x():
    x = torch.tensor([-2.0, -0.7, 0.3, 1.5], dtype=torch.float64)
    due = x * torch.distributions.Normal(0, 1).cdf(x)
    torch.testing.assert_close(gelu(x), due, atol=1e-15, rtol=0)


def test_the_tanh_form_stays_within_half_a_thousandth_of_gelu_and_is_not_gelu():
    x = torch.linspace(-6, 6, 1201, dtype=torch.float64)
    gap = (gelu(x) - gelu_tanh(x)).abs().max().item()
    assert 4e-4 < gap < 5e-4


def test_relu_deletes_negatives_and_the_others_do_not():
    x = torch.tensor([-1.0])
    assert relu(x).item() == 0
    assert all(ACTIVATIONS[name](x).item() < -0.1 for name in ("gelu", "gelu_tanh", "silu"))


def test_relu_has_slope_zero_at_its_kink():
    x = torch.tensor([0.0], requires_grad=True)
    relu(x).sum().backward()
    assert x.grad.item() == 0


@every_activation
def test_the_input_is_left_as_it_was(name):
    x = torch.tensor([-1.0, 2.0])
    ACTIVATIONS[name](x)
    assert x.tolist() == [-1.0, 2.0]


@every_activation
def test_every_activation_works_under_torch_func(name):
    x = torch.tensor([[-1.5, 0.25, 3.0], [0.5, -0.125, 2.0]], dtype=torch.float64)
    slopes = torch.vmap(torch.func.jacrev(ACTIVATIONS[name]))(x)
    due = torch.vmap(torch.func.jacrev(TORCH[name]))(x)
    torch.testing.assert_close(slopes, due, atol=1e-12, rtol=0)


@every_activation
@pytest.mark.usefixtures("as_readers_run_it")
def test_whole_numbers_are_refused(name):
    with pytest.raises(DtypeError, match=r"^x must be floating \[\.\.\.\]; got int64 \[3\]; convert it with \.float"):
        ACTIVATIONS[name](torch.tensor([1, 2, 3]))


@every_activation
def test_a_name_leads_to_its_formula_in_a_recording_and_to_torchs_kernel_otherwise(name, fixed):
    assert record(activation_named, name).result is ACTIVATIONS[name]
    assert torch.func.vmap(lambda x: x * (activation_named(name) is ACTIVATIONS[name]))(torch.ones(2)).all()
    assert torch.equal(activation_named(name)(fixed(7)), TORCH[name](fixed(7)))


def test_a_callable_is_the_activation_itself():
    assert activation_named(torch.tanh) is torch.tanh


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("name", ["gleu", "ReLU", None, 3])
def test_an_unknown_name_is_answered_with_those_there_are(name):
    with pytest.raises(ArgumentError, match=r"^activation must be one of relu, gelu, gelu_tanh, silu, or a callable; got "):
        activation_named(name)


@pytest.mark.parametrize("activation", [["gelu"], {}, 3])
@pytest.mark.usefixtures("as_readers_run_it")
def test_what_is_neither_a_name_nor_a_callable_is_refused(activation):
    with pytest.raises(ArgumentError, match=r"^activation must be one of relu, gelu, gelu_tanh, silu, or a callable; got"):
        activation_named(activation)
