"""Each wrong norm is wrong in the way that is told of it, and agrees with the right one where it hides."""

from math import sqrt

import pytest
import torch
from torch.nn.functional import layer_norm

from oneblock.blocks import PreNorm
from oneblock.mutants import norms
from oneblock.mutants.plain import Plain

N, L, D = 2, 5, 21


def test_one_norm_twice_is_the_right_block_with_the_second_norm_in_both_places(fixed, alike):
    x = fixed(N, L, D)
    wrong, right = alike(norms.OneNormTwice, PreNorm)
    count = sum(parameter.numel() for parameter in wrong.parameters())
    assert count == sum(parameter.numel() for parameter in right.parameters()) - 2 * D
    wrong.load_state_dict(right.state_dict())
    assert (wrong(x) - right(x)).abs().max() > 0.1
    right.norm1.load_state_dict(right.norm2.state_dict())
    torch.testing.assert_close(wrong(x), right(x), atol=1e-12, rtol=0)


def test_one_norm_twice_hides_while_the_norms_are_fresh(fixed, alike):
    wrong, right = alike(norms.OneNormTwice, PreNorm)
    for block in (wrong, right):
        for norm in (block.norm1, block.norm2):
            norm.weight.data.fill_(1.0)
            norm.bias.data.zero_()
    assert torch.equal(wrong(fixed(N, L, D)), right(fixed(N, L, D)))


def test_a_norm_over_tokens_is_that_of_the_text_turned_round_and_lets_padding_reach_real_rows(fixed, alike):
    wrong, right = alike(norms.NormOverTokens, Plain)
    x, valid_tokens = fixed(N, L, D), torch.tensor([[True, True, True, True, False]] * N)
    due = layer_norm(x.mT, (L,), eps=1e-5).mT
    torch.testing.assert_close(wrong.normed(x, 1e-5), due, atol=1e-12, rtol=0)
    other = torch.where(valid_tokens[..., None], x, fixed(N, L, D, seed=1))
    assert (wrong(x, valid_tokens) - wrong(other, valid_tokens))[valid_tokens].abs().max() > 0.01
    assert (right(x, valid_tokens) - right(other, valid_tokens))[valid_tokens].abs().max() < 1e-12


def test_a_norm_over_the_text_centres_the_text_and_not_its_rows(fixed, alike):
    wrong, _ = alike(norms.NormOverText, Plain)
    normed = wrong.normed(fixed(N, L, D), 0.0)
    assert normed.mean((1, 2)).abs().max() < 1e-12
    torch.testing.assert_close(normed.square().mean((1, 2)), torch.ones(N, dtype=torch.float64), atol=1e-12, rtol=0)
    assert normed.mean(-1).abs().max() > 0.1


def test_a_norm_over_the_batch_lets_a_text_change_its_neighbour(fixed, alike):
    wrong, _ = alike(norms.NormOverBatch, Plain)
    x = fixed(N, L, D)
    other = torch.cat([x[:1], 3 * x[1:]])
    assert (wrong(x)[0] - wrong(other)[0]).abs().max() > 0.1
    over_text, _ = alike(norms.NormOverText, Plain)
    assert (over_text(x)[0] - over_text(other)[0]).abs().max() < 1e-12


@pytest.mark.parametrize("norm, shape", [(norms.NormOverText, (N, 1, D)), (norms.NormOverBatch, (1, 1, D))])
def test_a_norm_over_too_much_hides_where_there_is_one_row(fixed, alike, norm, shape):
    wrong, right = alike(norm, Plain)
    torch.testing.assert_close(wrong(fixed(*shape)), right(fixed(*shape)), atol=1e-12, rtol=0)


def test_an_unbiased_variance_shrinks_every_number_alike(fixed, alike):
    wrong, right = alike(norms.UnbiasedVariance, Plain)
    x = fixed(N, L, D)
    torch.testing.assert_close(wrong.normed(x, 0.0), right.normed(x, 0.0) * sqrt(20 / 21), atol=1e-12, rtol=0)


def test_an_unbiased_variance_hides_behind_a_large_width(fixed, alike):
    wrong, right = alike(norms.UnbiasedVariance, Plain)
    for width, apart in ((7, 0.1), (1021, 1e-3)):
        x = fixed(N, L, width)
        short = 1 - (wrong.normed(x, 0.0) / right.normed(x, 0.0)).mean()
        assert 0.4 * apart < short < apart


def test_epsilon_outside_the_root_makes_small_rows_far_too_large(fixed, alike):
    wrong, right = alike(norms.EpsOutsideRoot, Plain)
    x = 1e-4 * fixed(N, L, D)
    ratio = wrong.normed(x, 1e-5) / right.normed(x, 1e-5)
    assert (ratio > 10).all()


def test_epsilon_outside_the_root_hides_where_the_deviation_is_about_one(fixed, alike):
    wrong, right = alike(norms.EpsOutsideRoot, Plain)
    torch.testing.assert_close(wrong(fixed(N, L, D)), right(fixed(N, L, D)), atol=1e-3, rtol=0)


def test_rms_for_layer_norm_leaves_the_mean_in(fixed, alike):
    wrong, _ = alike(norms.RMSForLayerNorm, Plain)
    x = fixed(N, L, D) + 1
    normed = wrong.normed(x, 0.0)
    torch.testing.assert_close(normed.square().mean(-1), torch.ones(N, L, dtype=torch.float64), atol=1e-12, rtol=0)
    assert (normed.mean(-1) > 0.5).all()


def test_rms_for_layer_norm_hides_where_each_row_has_the_mean_zero(fixed, alike):
    wrong, right = alike(norms.RMSForLayerNorm, Plain)
    x = fixed(N, L, D)
    x = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(wrong.first_norm(x), right.first_norm(x), atol=1e-12, rtol=0)
