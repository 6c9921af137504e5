from fractions import Fraction

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.errors import ArgumentError, DtypeError, ShapeError
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
from oneblock.norms import layer_norm

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


def rank(J):
    return torch.linalg.matrix_rank(J, rtol=1e-9).item()


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


# The norms: structure.


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
    closed, _ = BOTH[name]
    x, gamma = fixed(D), 2 + fixed(D, seed=1)
    lost = 1 if name == "LayerNorm" else 0
    assert [rank(closed(x, gamma, eps)) for eps in (0.0, 0.1)] == [D - lost - 1, D - lost]


@every_norm
def test_a_zero_in_gamma_costs_a_rank(fixed, name):
    closed, _ = BOTH[name]
    gamma = torch.tensor([2.0, 0, 1, -1, 0.5], dtype=torch.float64)
    assert rank(closed(fixed(5), gamma, 0.0)) == rank(closed(fixed(5), None, 0.0)) == (3 if name == "LayerNorm" else 4)
    assert rank(closed(fixed(5), gamma * torch.tensor([0.0, 1, 0, 1, 1]), 0.0)) == 2
    assert_zero(closed(fixed(5), gamma, 0.1)[1])


@every_norm
@every_eps
def test_symmetric_with_one_gamma_and_not_with_several(fixed, name, eps):
    closed, _ = BOTH[name]
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


# Softmax and the feed-forward network.


@pytest.mark.parametrize("L", [2, 3, 7])
def test_softmax(fixed, L):
    scores = 3 * fixed(L)
    J = softmax_jacobian(torch.softmax(scores, -1))
    assert_is_jacobian(J, lambda row: torch.softmax(row, -1), scores)
    assert_zero(J - J.T)
    assert_zero(J @ torch.ones(L, dtype=torch.float64))
    assert rank(J) == L - 1


def test_a_masked_position_takes_no_part(fixed):
    weights = torch.softmax(fixed(5).masked_fill(torch.tensor([False, True, False, True, False]), -torch.inf), -1)
    J = softmax_jacobian(weights)
    assert_zero(J[[1, 3]])
    assert_zero(J[:, [1, 3]])
    assert rank(J) == 2


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_the_feed_forward_network(fixed, ffn_weights, activation):
    W1, b1, W2, b2 = ffn_weights
    J = ffn_jacobian(fixed(3), W1, b1, W2, activation)
    assert_is_jacobian(J, lambda row: ffn(row, W1, b1, W2, b2, activation), fixed(3))


def test_a_narrow_network_has_a_jacobian_of_small_rank(fixed):
    J = ffn_jacobian(fixed(5), fixed(2, 5, seed=1), fixed(2, seed=2), fixed(5, 2, seed=3), "silu")
    assert rank(J) == 2


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


def test_with_several_rows_a_jacobian_has_the_axes_of_both(fixed):
    f, x = nn.Linear(5, 3).double(), fixed(2, 5)
    J = jacobian(f, x).detach()
    assert J.shape == (2, 3, 2, 5)
    assert_zero(J[0, :, 1])
    assert_zero(J[1, :, 1] - f.weight)


# What is refused.


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("closed", [layer_norm_jacobian, rms_norm_jacobian])
def test_a_norms_contract(fixed, closed):
    with pytest.raises(ShapeError, match=r"^x must be floating \[D\]; got float64 \[3, 5\]; .* torch\.vmap"):
        closed(fixed(3, 5))
    with pytest.raises(ShapeError, match=r"^gamma must be floating \[D\] = \[5\]; got float64 \[3\]"):
        closed(fixed(5), fixed(3))
    with pytest.raises(DtypeError, match=r"^x must be floating \[D\]; got \[1, 2\]"):
        closed([1, 2])
    with pytest.raises(ArgumentError, match=r"^eps must be a finite number ≥ 0; got -1"):
        closed(fixed(5), eps=-1)


@pytest.mark.usefixtures("as_readers_run_it")
def test_the_contracts_of_the_others(fixed):
    with pytest.raises(DtypeError, match=r"^x must be floating \[\.\.\.\]; got int64 \[3\]"):
        jacobian(torch.square, torch.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match=r"^weights must be floating \[L\]; got float64 \[3, 5\]"):
        softmax_jacobian(fixed(3, 5))
    with pytest.raises(ShapeError, match=r"^W1 must be floating \[F, D\] = \[F, 5\]; got float64 \[5, 3\]"):
        ffn_jacobian(fixed(5), fixed(5, 3), fixed(3), fixed(5, 3))
    with pytest.raises(ShapeError, match=r"^b1 must be floating \[F\] = \[3\]; got float64 \[5\]"):
        ffn_jacobian(fixed(5), fixed(3, 5), fixed(5), fixed(5, 3))
    with pytest.raises(ShapeError, match=r"^W2 must be floating \[D, F\] = \[5, 3\]; got float64 \[3, 5\]"):
        ffn_jacobian(fixed(5), fixed(3, 5), fixed(3), fixed(3, 5))
    with pytest.raises(ArgumentError, match=r"^activation must be one of relu, gelu, .*; got 'sigmoid'"):
        ffn_jacobian(fixed(5), fixed(3, 5), fixed(3), fixed(5, 3), "sigmoid")
    with pytest.raises(ShapeError, match=r"^x must be floating \[D\]; got float64 \[2, 5\]"):
        post_ln_factors(torch.tanh, fixed(2, 5))


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("combine, names", [(pre_ln_jacobian, ("J_S", "J_LN")), (post_ln_jacobian, ("J_LN", "J_S"))])
def test_two_factors_must_fit(fixed, combine, names):
    first, second = names
    with pytest.raises(ShapeError, match=rf"^{first} must be floating \[D, D\] = \[5, 5\]; got float64 \[3, 5\]"):
        combine(fixed(3, 5), fixed(5, 5))
    with pytest.raises(ShapeError, match=rf"^{second} must be floating \[D, D\] = \[3, 3\]; got float64 \[5, 5\]"):
        combine(fixed(3, 3), fixed(5, 5))
    with pytest.raises(ShapeError, match=rf"^{second} must be floating \[D, D\]; got float64 \[3\]"):
        combine(fixed(3, 3), fixed(3))
