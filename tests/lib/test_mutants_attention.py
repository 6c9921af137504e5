"""Each wrong attention is wrong in the way that is told of it, and agrees with the right one where it hides."""

from math import sqrt

import pytest
import torch

from oneblock.mutants import attention
from oneblock.mutants.plain import Plain

N, L, D, H, E = 2, 5, 21, 3, 7
VALID = torch.tensor([[True, True, True, False, False], [True, True, True, True, False]])


def test_softmax_over_queries_makes_the_columns_sum_to_one(fixed, alike):
    wrong, _ = alike(attention.SoftmaxOverQueries, Plain)
    weights = wrong.weights(4 * fixed(N, H, L, L), None)
    torch.testing.assert_close(weights.sum(-2), torch.ones(N, H, L, dtype=torch.float64), atol=1e-12, rtol=0)
    assert (weights.sum(-1) - 1).abs().max() > 0.1


def test_softmax_over_queries_lets_every_row_read_padding_alike(fixed, alike):
    wrong, _ = alike(attention.SoftmaxOverQueries, Plain)
    weights = wrong.weights(fixed(N, H, L, L), VALID)
    assert ((weights[0, ..., 3:] - 1 / L).abs() < 1e-12).all()


def test_softmax_over_queries_hides_where_all_scores_are_equal(fixed, alike):
    wrong, right = alike(attention.SoftmaxOverQueries, Plain)
    for block in (wrong, right):
        block.self_attn.in_proj_weight.data[:D] = 0
        block.self_attn.in_proj_bias.data[:D] = 0
    torch.testing.assert_close(wrong(fixed(N, L, D)), right(fixed(N, L, D)), atol=1e-12, rtol=0)


def test_softmax_over_heads_too_leaves_all_heads_one_share(fixed, alike):
    wrong, _ = alike(attention.SoftmaxOverHeadsToo, Plain)
    weights = wrong.weights(fixed(N, H, L, L), VALID)
    torch.testing.assert_close(weights.sum((1, 3)), torch.ones(N, L, dtype=torch.float64), atol=1e-12, rtol=0)
    assert (weights[0, ..., 3:] == 0).all() and (weights[0, ..., :3] > 0).all()


@pytest.mark.parametrize("wrong, factor", [(attention.Unscaled, sqrt(E)), (attention.ScaledByWidth, 1 / sqrt(H))])
def test_a_wrong_scale_is_another_length_of_the_queries(fixed, alike, wrong, factor):
    wrong, right = alike(wrong, Plain)
    x = fixed(N, L, D)
    assert (wrong(x, VALID) - right(x, VALID)).abs().max() > 0.01
    right.self_attn.in_proj_weight.data[:D] *= factor
    right.self_attn.in_proj_bias.data[:D] *= factor
    torch.testing.assert_close(wrong(x, VALID), right(x, VALID), atol=1e-12, rtol=0)


def test_heads_by_view_cut_the_text_where_each_row_should_be_cut(fixed, alike):
    wrong, _ = alike(attention.HeadsByView, Plain)
    part = fixed(N, L, D)
    for n in range(N):
        for h, piece in enumerate(part[n].flatten().chunk(H)):
            assert torch.equal(wrong.split(part)[n, h].flatten(), piece)


def test_joined_by_view_a_row_holds_one_head_at_several_positions(fixed, alike):
    wrong, _ = alike(attention.JoinedByView, Plain)
    mixed = fixed(N, H, L, E)
    joined = wrong.join(mixed)
    assert torch.equal(joined[:, 0], mixed[:, 0, :H].flatten(1))
    assert torch.equal(joined[:, -1], mixed[:, -1, -H:].flatten(1))


ONE_HEAD = (attention.SoftmaxOverHeadsToo, attention.ScaledByWidth, attention.HeadsByView, attention.JoinedByView)


@pytest.mark.parametrize("wrong, H", [*((wrong, 1) for wrong in ONE_HEAD), (attention.Unscaled, D)])
def test_a_mistake_about_heads_hides_where_there_is_one_or_a_head_is_one_number_wide(fixed, alike, wrong, H):
    wrong, right = alike(wrong, Plain, H=H)
    torch.testing.assert_close(wrong(fixed(N, L, D), VALID), right(fixed(N, L, D), VALID), atol=1e-12, rtol=0)


def test_batch_second_a_position_reads_its_own_place_in_the_other_texts(fixed, alike):
    wrong, _ = alike(attention.BatchSecond, Plain)
    x, other = fixed(N, L, D), fixed(N, L, D)
    other[1, 2] = fixed(D, seed=1)
    moved = (wrong(x) - wrong(other)).abs().amax(-1) > 1e-6
    assert moved.nonzero().tolist() == [[0, 2], [1, 2]]


def test_batch_second_hides_where_the_batch_is_one_row(fixed, alike):
    wrong, right = alike(attention.BatchSecond, Plain)
    torch.testing.assert_close(wrong(fixed(1, 1, D)), right(fixed(1, 1, D)), atol=1e-12, rtol=0)


def test_without_an_output_projection_its_weight_neither_acts_nor_learns(fixed, alike):
    wrong, _ = alike(attention.NoOutputProjection, Plain)
    x = fixed(N, L, D)
    before = wrong(x, VALID)
    before.sum().backward()
    assert wrong.self_attn.out_proj.weight.grad is None
    wrong.self_attn.out_proj.weight.data.mul_(3)
    assert torch.equal(wrong(x, VALID), before)


def test_without_an_output_projection_it_hides_where_that_is_the_identity(fixed, alike):
    wrong, right = alike(attention.NoOutputProjection, Plain)
    right.self_attn.out_proj.weight.data = torch.eye(D, dtype=torch.float64)
    right.self_attn.out_proj.bias.data.zero_()
    torch.testing.assert_close(wrong(fixed(N, L, D), VALID), right(fixed(N, L, D), VALID), atol=1e-12, rtol=0)
