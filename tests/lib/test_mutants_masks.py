"""Each wrong mask is wrong in the way that is told of it, and agrees with the right one where it hides."""

import pytest
import torch

from oneblock.mutants import masks
from oneblock.mutants.plain import Plain

N, L, D, H = 2, 5, 21, 3
VALID = torch.tensor([[True, True, True, False, False], [True, True, True, True, False]])
ALL = torch.ones(N, L, dtype=torch.bool)
ALL_MASKS = [masks.MaskOnQueries, masks.MaskTooWeak, masks.MaskAfterSoftmax, masks.MaskForgotten]


def test_an_inverted_mask_is_the_right_block_with_the_other_mask(fixed, alike):
    wrong, right = alike(masks.MaskInverted, Plain)
    x = fixed(N, L, D)
    assert (wrong(x, VALID) - right(x, VALID)).abs().max() > 0.1
    torch.testing.assert_close(wrong(x, VALID), right(x, ~VALID), atol=1e-12, rtol=0)


def test_an_inverted_mask_makes_a_text_without_padding_read_all_alike(fixed, alike):
    wrong, _ = alike(masks.MaskInverted, Plain)
    weights = wrong.weights(fixed(N, H, L, L), ALL)
    assert (weights - 1 / L).abs().max() < 1e-6


def test_an_inverted_mask_hides_where_no_mask_is_given(fixed, alike):
    wrong, right = alike(masks.MaskInverted, Plain)
    assert torch.equal(wrong(fixed(N, L, D)), right(fixed(N, L, D)))


def test_a_mask_on_the_queries_leaves_real_rows_as_without_a_mask(fixed, alike):
    wrong, right = alike(masks.MaskOnQueries, Plain)
    x = fixed(N, L, D)
    torch.testing.assert_close(wrong(x, VALID)[VALID], right(x)[VALID], atol=1e-12, rtol=0)
    assert (wrong(x, VALID) - right(x, VALID))[VALID].abs().max() > 0.01
    weights = wrong.weights(fixed(N, H, L, L), VALID)
    assert (weights[0, :, 3:] - 1 / L).abs().max() < 1e-6


def test_a_weak_mask_lets_padding_be_read_where_real_scores_are_lower_still(alike):
    wrong, _ = alike(masks.MaskTooWeak, Plain)
    scores = torch.zeros(N, H, L, L, dtype=torch.float64)
    scores[..., :3] = -10001.0
    weights = wrong.weights(scores, VALID)
    e = torch.e
    assert (weights[0, ..., 3:] - 1 / (2 + 3 / e)).abs().max() < 1e-12


def test_a_mask_after_the_softmax_leaves_out_what_padding_took(fixed, alike):
    wrong, right = alike(masks.MaskAfterSoftmax, Plain)
    scores = fixed(N, H, L, L)
    real = (right.weights(scores, None) * VALID[:, None, None]).sum(-1, keepdim=True)
    due = right.weights(scores, VALID) * real
    torch.testing.assert_close(wrong.weights(scores, VALID), due, atol=1e-12, rtol=0)
    assert (real < 0.95).all()


def test_a_forgotten_mask_is_no_mask(fixed, alike):
    wrong, right = alike(masks.MaskForgotten, Plain)
    x = fixed(N, L, D)
    assert torch.equal(wrong(x, VALID), right(x))
    assert (wrong(x, VALID) - right(x, VALID))[VALID].abs().max() > 0.01


@pytest.mark.parametrize("wrong", ALL_MASKS)
def test_it_hides_where_there_is_no_padding(fixed, alike, wrong):
    wrong, right = alike(wrong, Plain)
    torch.testing.assert_close(wrong(fixed(N, L, D), ALL), right(fixed(N, L, D), ALL), atol=1e-12, rtol=0)


def test_a_weak_mask_hides_where_scores_are_small(fixed, alike):
    wrong, right = alike(masks.MaskTooWeak, Plain)
    assert torch.equal(wrong(fixed(N, L, D), VALID), right(fixed(N, L, D), VALID))


def moved_rows(block, x, at, row):
    other = x.clone()
    other[:, at] = row
    return (block(x) - block(other)).abs().amax((0, 2)).gt(1e-6).nonzero().flatten().tolist()


def test_a_causal_mask_off_by_one_lets_a_row_read_the_next_one_and_no_later_one(fixed, alike):
    wrong, right = alike(masks.CausalOffByOne, masks.Causal)
    x, row = fixed(N, L, D), fixed(D, seed=1)
    assert moved_rows(wrong, x, 3, row) == [2, 3, 4]
    assert moved_rows(right, x, 3, row) == [3, 4]


def test_a_causal_mask_off_by_one_hides_where_a_text_is_one_row(fixed, alike):
    wrong, right = alike(masks.CausalOffByOne, masks.Causal)
    assert torch.equal(wrong(fixed(N, 1, D)), right(fixed(N, 1, D)))


def test_the_right_causal_block_keeps_to_a_mask_too(fixed, alike):
    _, right = alike(masks.CausalOffByOne, masks.Causal)
    x, padded = fixed(N, L, D), fixed(N, L, D)
    padded[~VALID] = fixed(D, seed=1)
    torch.testing.assert_close(right(x, VALID)[VALID], right(padded, VALID)[VALID], atol=1e-12, rtol=0)
