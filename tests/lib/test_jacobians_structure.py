"""What a Jacobian does to a direction: null spaces, ranks, symmetry, and where the explicit I stands alone."""

import pytest
import torch

from oneblock.ffn import ffn
from oneblock.jacobians import (
    ffn_jacobian,
    layer_norm_jacobian,
    post_ln_factors,
    post_ln_jacobian,
    pre_ln_factors,
    pre_ln_jacobian,
    rms_norm_jacobian,
    softmax_jacobian,
)
from oneblock.norms import layer_norm

BOTH = {"LayerNorm": layer_norm_jacobian, "RMSNorm": rms_norm_jacobian}
every_norm = pytest.mark.parametrize("name", BOTH)
every_eps = pytest.mark.parametrize("eps", [0.0, 1e-5, 0.1])
every_width = pytest.mark.parametrize("D", [3, 5, 13])


def rank(J):
    return torch.linalg.matrix_rank(J, rtol=1e-9).item()


def assert_zero(tensor):
    assert tensor.abs().max() < 1e-12


@every_eps
@every_width
def test_a_common_shift_is_invisible_to_layer_norm_and_visible_to_rms_norm(fixed, eps, D):
    x, gamma, ones = fixed(D), fixed(D, seed=1), torch.ones(D, dtype=torch.float64)
    assert_zero(layer_norm_jacobian(x, gamma, eps) @ ones)
    assert (rms_norm_jacobian(x, gamma, eps) @ ones).abs().max() > 0.1


@every_eps
@every_width
def test_along_the_centred_row_layer_norm_passes_epsilon_over_s_cubed(fixed, eps, D):
    x, gamma = fixed(D), fixed(D, seed=1)
    d, s = x - x.mean(), (x.var(correction=0) + eps).sqrt()
    assert_zero(layer_norm_jacobian(x, gamma, eps) @ d - gamma * d * eps / s**3)


@every_eps
@every_width
def test_along_the_row_rms_norm_passes_epsilon_over_rms_cubed(fixed, eps, D):
    x, gamma = fixed(D), fixed(D, seed=1)
    rms = (x.square().mean() + eps).sqrt()
    assert_zero(rms_norm_jacobian(x, gamma, eps) @ x - gamma * x * eps / rms**3)


@every_eps
def test_every_other_direction_is_divided_by_the_ruler(fixed, eps):
    x = fixed(5)
    s, rms = (x.var(correction=0) + eps).sqrt(), (x.square().mean() + eps).sqrt()
    bent = sorted([0, (eps / s**3).item()] + [(1 / s).item()] * 3)
    assert torch.linalg.eigvalsh(layer_norm_jacobian(x, eps=eps)).tolist() == pytest.approx(bent, abs=1e-12)
    bent = sorted([(eps / rms**3).item()] + [(1 / rms).item()] * 4)
    assert torch.linalg.eigvalsh(rms_norm_jacobian(x, eps=eps)).tolist() == pytest.approx(bent, abs=1e-12)


@every_norm
@every_width
def test_a_rank_is_lost_by_centring_and_one_more_without_epsilon(fixed, name, D):
    closed = BOTH[name]
    x, gamma = fixed(D), 2 + fixed(D, seed=1)
    lost = 1 if name == "LayerNorm" else 0
    assert [rank(closed(x, gamma, eps)) for eps in (0.0, 0.1)] == [D - lost - 1, D - lost]


@every_norm
def test_a_zero_in_gamma_costs_a_rank(fixed, name):
    closed = BOTH[name]
    gamma = torch.tensor([2.0, 0, 1, -1, 0.5], dtype=torch.float64)
    assert rank(closed(fixed(5), gamma, 0.0)) == rank(closed(fixed(5), None, 0.0)) == (3 if name == "LayerNorm" else 4)
    assert rank(closed(fixed(5), gamma * torch.tensor([0.0, 1, 0, 1, 1]), 0.0)) == 2
    assert_zero(closed(fixed(5), gamma, 0.1)[1])


@every_norm
@every_eps
def test_symmetric_with_one_gamma_and_not_with_several(fixed, name, eps):
    closed = BOTH[name]
    x = fixed(5)
    for gamma in (None, torch.full((5,), -2.5, dtype=torch.float64)):
        J = closed(x, gamma, eps)
        assert_zero(J - J.T)
    J = closed(x, fixed(5, seed=1), eps)
    assert (J - J.T).abs().max() > 0.1


def test_two_features_without_epsilon_have_no_derivative_at_all(fixed):
    assert_zero(layer_norm_jacobian(fixed(2), fixed(2, seed=1), 0.0))


def test_two_features_with_epsilon_keep_one_direction(fixed):
    x, eps = fixed(2), 0.1
    s = (x.var(correction=0) + eps).sqrt()
    due = eps / (2 * s**3) * torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    assert_zero(layer_norm_jacobian(x, eps=eps) - due)


@pytest.mark.parametrize("eps", [1e-2, 1e-5, 1e-8])
def test_a_constant_row_is_stretched_by_one_over_the_root_of_epsilon(eps):
    flat = torch.full((5,), 3.0, dtype=torch.float64)
    largest = torch.linalg.matrix_norm(layer_norm_jacobian(flat, eps=eps), 2).item()
    assert largest == pytest.approx(eps**-0.5, rel=1e-12)
    assert layer_norm_jacobian(flat, eps=0.0).isnan().all()


@pytest.mark.parametrize("L", [2, 3, 7])
def test_softmax_is_symmetric_and_blind_to_a_common_shift(fixed, L):
    J = softmax_jacobian(torch.softmax(3 * fixed(L), -1))
    assert_zero(J - J.T)
    assert_zero(J @ torch.ones(L, dtype=torch.float64))
    assert rank(J) == L - 1


def test_a_masked_position_takes_no_part(fixed):
    weights = torch.softmax(fixed(5).masked_fill(torch.tensor([False, True, False, True, False]), -torch.inf), -1)
    J = softmax_jacobian(weights)
    assert_zero(J[[1, 3]])
    assert_zero(J[:, [1, 3]])
    assert rank(J) == 2


def test_a_narrow_network_has_a_jacobian_of_small_rank(fixed):
    J = ffn_jacobian(fixed(5), fixed(2, 5, seed=1), fixed(2, seed=2), fixed(5, 2, seed=3), "silu")
    assert rank(J) == 2


def network(fixed, scale=2.0):
    """A sublayer 5 → 7 → 5 that is far from linear."""
    W1, b1, W2, b2 = (scale * fixed(*shape, seed=seed) for seed, shape in enumerate([(7, 5), (7,), (5, 7), (5,)], 1))
    return lambda x: ffn(x, W1, b1, W2, b2, "gelu")


def test_a_common_shift_crosses_pre_ln_untouched_and_never_leaves_post_ln(fixed):
    S, x, ones = network(fixed), fixed(5), torch.ones(5, dtype=torch.float64)
    assert_zero(pre_ln_jacobian(*pre_ln_factors(S, x, fixed(5, seed=8))) @ ones - ones)
    assert_zero(ones @ post_ln_jacobian(*post_ln_factors(S, x)))


@pytest.mark.parametrize("eps, lost", [(0.0, 2), (0.1, 1)])
def test_post_ln_always_loses_what_its_norm_loses(fixed, eps, lost):
    S, x = network(fixed), fixed(5)
    assert rank(post_ln_jacobian(*post_ln_factors(S, x, eps=eps))) == 5 - lost
    assert rank(pre_ln_jacobian(*pre_ln_factors(S, x, eps=eps))) == 5


def test_a_branch_that_takes_away_what_the_row_had_makes_pre_ln_singular():
    """``S(v) = −3v`` at a row of deviation 3: the sum is the mean, and only two directions of four are left."""
    x = torch.tensor([-1.0, 5, 5, 7], dtype=torch.float64)
    assert_zero(x - 3 * layer_norm(x, eps=0.0) - 4)
    J = pre_ln_jacobian(*pre_ln_factors(lambda v: -3 * v, x, eps=0.0))
    assert rank(J) == 2
    across = torch.tensor([0.0, 1, -1, 0], dtype=torch.float64)  # at right angles to 1 and to the centred row
    assert_zero(J @ across)
