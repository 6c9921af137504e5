from fractions import Fraction

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.ffn import ffn
from oneblock.jacobians import (
    ffn_jacobian,
    jacobian,
    layer_norm_jacobian,
    post_ln_factors,
    post_ln_jacobian,
    pre_ln_factors,
    pre_ln_jacobian,
    rms_norm_jacobian,
    softmax_jacobian,
)
from oneblock.norms import layer_norm, rms_norm

EPS = [0.0, 1e-5, 0.1]
WIDTHS = [3, 5, 13]
BOTH = {
    "LayerNorm": (layer_norm_jacobian, lambda x, g, eps: functional.layer_norm(x, x.shape[-1:], g, None, eps)),
    "RMSNorm": (rms_norm_jacobian, lambda x, g, eps: functional.rms_norm(x, x.shape[-1:], g, eps)),
}
every_norm = pytest.mark.parametrize("name", BOTH)
every_eps = pytest.mark.parametrize("eps", EPS)
every_width = pytest.mark.parametrize("D", WIDTHS)


def by_autograd(f, x):
    return torch.autograd.functional.jacobian(f, x)


def by_differences(f, x, step=1e-5):
    """Central differences, one input at a time: column ``j`` is how all outputs move with input ``j``."""
    unit = torch.eye(len(x), dtype=x.dtype) * step
    return torch.stack([(f(x + e) - f(x - e)) / (2 * step) for e in unit], dim=1)


def assert_is_jacobian(J, f, x):
    torch.testing.assert_close(J, by_autograd(f, x), atol=1e-10, rtol=0)
    torch.testing.assert_close(J, by_differences(f, x), atol=1e-7, rtol=0)


def assert_zero(tensor):
    assert tensor.abs().max() < 1e-12


# The norms: value.


@every_norm
@every_eps
@every_width
@pytest.mark.parametrize("affine", [True, False])
def test_a_norms_jacobian_is_that_of_torchs_norm(fixed, name, eps, D, affine):
    closed, norm = BOTH[name]
    x, gamma = fixed(D) + 0.3, fixed(D, seed=1) if affine else None
    assert_is_jacobian(closed(x, gamma, eps), lambda row: norm(row, gamma, eps), x)


@every_norm
def test_the_default_epsilon_is_torchs(fixed, name):
    closed, norm = BOTH[name]
    default = 1e-5 if name == "LayerNorm" else None
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        x = 1e-3 * fixed(5, dtype=dtype)
        due = by_autograd(lambda row: norm(row, None, default), x)
        assert (closed(x) - due).abs().max() < tolerance * due.abs().max()


@pytest.mark.parametrize("closed, norm", [(layer_norm_jacobian, layer_norm), (rms_norm_jacobian, rms_norm)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [1e-3, 1e3], ids=["small", "large"])
def test_in_half_precision_a_row_is_measured_as_the_norm_measures_it(fixed, closed, norm, dtype, size):
    x, gamma = (size * fixed(5)).to(dtype), fixed(5, seed=1).to(dtype)
    J, due = closed(x, gamma), by_autograd(lambda row: norm(row, gamma), x)
    assert J.dtype == dtype
    scale = due.abs().max().item()
    torch.testing.assert_close(J, due, atol=2 * torch.finfo(dtype).eps * scale, rtol=0)


@every_norm
def test_a_jacobian_of_a_batch_is_that_of_its_rows(fixed, name):
    closed, _ = BOTH[name]
    x = fixed(2, 3, 7)
    together = torch.vmap(torch.vmap(closed))(x)
    torch.testing.assert_close(together, torch.stack([torch.stack([closed(r) for r in n]) for n in x]))


def test_layer_norm_at_the_row_of_chapter_three_in_fractions():
    due = [["1/54", "-1/27", "-1/27", "1/18"], ["-1/27", "13/54", "-5/54", "-1/9"]]
    due += [["-1/27", "-5/54", "13/54", "-1/9"], ["1/18", "-1/9", "-1/9", "1/6"]]
    assert_zero(layer_norm_jacobian(torch.tensor([-1.0, 5, 5, 7]).double(), eps=0.0) - in_fractions(due))


def test_rms_norm_at_the_row_of_chapter_three_in_fractions():
    due = [["99/500", "1/100", "1/100", "7/500"], ["1/100", "3/20", "-1/20", "-7/100"]]
    due += [["1/100", "-1/20", "3/20", "-7/100"], ["7/500", "-7/100", "-7/100", "51/500"]]
    assert_zero(rms_norm_jacobian(torch.tensor([-1.0, 5, 5, 7]).double(), eps=0.0) - in_fractions(due))


def in_fractions(rows):
    return torch.tensor([[float(Fraction(number)) for number in row] for row in rows], dtype=torch.float64)


def test_by_gamma_the_derivative_is_the_normed_row_and_by_beta_one(fixed):
    x, gamma, beta = fixed(5), fixed(5, seed=1), fixed(5, seed=2)
    x_hat = (x - x.mean()) / (x.var(correction=0) + 0.1).sqrt()
    assert_zero(jacobian(lambda g: layer_norm(x, g, beta, 0.1), gamma) - torch.diag(x_hat))
    assert_zero(jacobian(lambda b: layer_norm(x, gamma, b, 0.1), beta) - torch.eye(5))


# Softmax and the feed-forward network.


@pytest.mark.parametrize("L", [2, 3, 7])
def test_softmax(fixed, L):
    scores = 3 * fixed(L)
    J = softmax_jacobian(torch.softmax(scores, -1))
    assert_is_jacobian(J, lambda row: torch.softmax(row, -1), scores)


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_the_feed_forward_network(fixed, ffn_weights, activation):
    W1, b1, W2, b2 = ffn_weights
    J = ffn_jacobian(fixed(3), W1, b1, W2, activation)
    assert_is_jacobian(J, lambda row: ffn(row, W1, b1, W2, b2, activation), fixed(3))


# The two orders.


def network(fixed, scale=2.0):
    """A sublayer 5 → 7 → 5 that is far from linear."""
    W1, b1, W2, b2 = (scale * fixed(*shape, seed=seed) for seed, shape in enumerate([(7, 5), (7,), (5, 7), (5,)], 1))
    return lambda x: ffn(x, W1, b1, W2, b2, "gelu")


@every_eps
@pytest.mark.parametrize("affine", [True, False])
def test_the_pre_ln_sublayer(fixed, eps, affine):
    S, x = network(fixed), fixed(5)
    gamma, beta = (fixed(5, seed=8), fixed(5, seed=9)) if affine else (None, None)
    J = pre_ln_jacobian(*pre_ln_factors(S, x, gamma, beta, eps))
    assert_is_jacobian(J, lambda row: row + S(functional.layer_norm(row, (5,), gamma, beta, eps)), x)


@every_eps
@pytest.mark.parametrize("affine", [True, False])
def test_the_post_ln_sublayer(fixed, eps, affine):
    S, x = network(fixed), fixed(5)
    gamma, beta = (fixed(5, seed=8), fixed(5, seed=9)) if affine else (None, None)
    J = post_ln_jacobian(*post_ln_factors(S, x, gamma, eps))
    assert_is_jacobian(J, lambda row: functional.layer_norm(row + S(row), (5,), gamma, beta, eps), x)


def test_a_module_may_be_the_sublayer(fixed):
    torch.manual_seed(0)
    S, x = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 5)).double(), fixed(5)
    due = by_autograd(lambda row: row + S(functional.layer_norm(row, (5,))), x)
    torch.testing.assert_close(pre_ln_jacobian(*pre_ln_factors(S, x)).detach(), due, atol=1e-10, rtol=0)


def test_with_several_rows_a_jacobian_has_the_axes_of_both(fixed):
    f, x = nn.Linear(5, 3).double(), fixed(2, 5)
    J = jacobian(f, x).detach()
    assert J.shape == (2, 3, 2, 5)
    assert_zero(J[0, :, 1])
    assert_zero(J[1, :, 1] - f.weight)
