import math

import pytest
import torch
from torch import nn

from oneblock.activations import ACTIVATIONS
from oneblock.errors import DtypeError
from oneblock.slopes import SLOPES

TORCH = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "silu": nn.SiLU()}
every_slope = pytest.mark.parametrize("name", SLOPES)


def places():
    """−8 … 8 without pattern, and no kink among them."""
    return torch.linspace(-8, 8, 997, dtype=torch.float64).add(0.0031)


def test_every_activation_has_its_slope():
    assert list(SLOPES) == list(ACTIVATIONS)


@every_slope
def test_a_slope_is_what_autograd_finds_for_torchs_activation(name):
    h = places().requires_grad_()
    TORCH[name](h).sum().backward()
    torch.testing.assert_close(SLOPES[name](h.detach()), h.grad, atol=1e-12, rtol=0)


@every_slope
def test_a_slope_is_the_limit_of_differences(name):
    h, step = places(), 1e-5
    due = (ACTIVATIONS[name](h + step) - ACTIVATIONS[name](h - step)) / (2 * step)
    torch.testing.assert_close(SLOPES[name](h), due, atol=1e-8, rtol=0)


@pytest.mark.parametrize("name, due", {"relu": 0.0, "gelu": 0.5, "gelu_tanh": 0.5, "silu": 0.5}.items())
def test_the_slope_at_zero(name, due):
    assert SLOPES[name](torch.zeros(3)).tolist() == [due] * 3


def test_the_slopes_at_minus_one():
    at = {name: slope(torch.tensor([-1.0], dtype=torch.float64)).item() for name, slope in SLOPES.items()}
    sigmoid, bell = 1 / (1 + math.e), math.exp(-0.5) / math.sqrt(2 * math.pi)
    assert at["relu"] == 0
    assert at["silu"] == pytest.approx(sigmoid * (1 - (1 - sigmoid)), abs=1e-15)
    assert at["gelu"] == pytest.approx(math.erfc(1 / math.sqrt(2)) / 2 - bell, abs=1e-15)


@every_slope
def test_far_out_a_slope_is_0_or_1(name):
    assert SLOPES[name](torch.tensor([-1000.0, 1000.0])).tolist() == [0.0, 1.0]


@every_slope
@pytest.mark.usefixtures("as_readers_run_it")
def test_whole_numbers_are_refused(name):
    with pytest.raises(DtypeError, match=r"^h must be floating \[\.\.\.\]; got int64 \[3\]; convert it with \.float"):
        SLOPES[name](torch.tensor([1, 2, 3]))
