"""Each wrong dropout is wrong in the way that is told of it, and agrees with the right one where it hides."""

import pytest
import torch

from oneblock.blocks import PreNorm
from oneblock.mutants import dropouts
from oneblock.mutants.plain import Plain

N, L, D = 2, 5, 21
PAIRS = [(dropouts.DropoutAlwaysOn, Plain), (dropouts.DropoutSitesMerged, Plain), (dropouts.DropoutOnTheSum, PreNorm)]


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def test_dropout_as_a_function_falls_in_eval_too(fixed, alike):
    wrong, right = (block.eval() for block in alike(dropouts.DropoutAlwaysOn, Plain, dropout=0.5))
    x = fixed(N, L, D)
    assert (wrong(x) - wrong(x)).abs().max() > 0.1
    assert torch.equal(right(x), right(x))


def kept_shares(block, x):
    """What one run in training leaves of the network's numbers, over those of eval."""
    due = block.eval().process(x)
    return block.train().process(x) / due


def test_merged_sites_drop_whole_outputs_and_no_hidden_number(fixed, alike):
    wrong, right = alike(dropouts.DropoutSitesMerged, Plain, dropout=0.5)
    shares = kept_shares(wrong, fixed(N, L, D))
    assert ((shares == 0) | ((shares - 2).abs() < 1e-12)).all()
    shares = kept_shares(right, fixed(N, L, D))
    assert ((shares != 0) & ((shares - 2).abs() > 1e-6)).any()


def test_dropout_on_the_sum_drops_the_residual_and_scales_up_the_rest(fixed, alike):
    wrong, right = (block.train() for block in alike(dropouts.DropoutOnTheSum, PreNorm, dropout=0.5))
    x = fixed(N, L, D)
    for block in (wrong, right):
        for last in (block.self_attn.out_proj, block.linear2):
            last.weight.data.zero_()
            last.bias.data.zero_()
    shares = wrong(x) / x
    assert set(shares.round(decimals=9).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(right(x), x)


@pytest.mark.parametrize("wrong, right", PAIRS)
def test_it_hides_where_the_rate_is_zero(fixed, alike, wrong, right):
    wrong, right = (block.train() for block in alike(wrong, right))
    torch.testing.assert_close(wrong(fixed(N, L, D)), right(fixed(N, L, D)), atol=1e-12, rtol=0)


@pytest.mark.parametrize("wrong, right", PAIRS[1:])
def test_it_hides_in_eval(fixed, alike, wrong, right):
    wrong, right = (block.eval() for block in alike(wrong, right, dropout=0.5))
    torch.testing.assert_close(wrong(fixed(N, L, D)), right(fixed(N, L, D)), atol=1e-12, rtol=0)
