"""The mixer against its equation in einsum; what a fixed length means for what comes in."""

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

from oneblock.dependency import reach
from oneblock.errors import ArgumentError, ShapeError
from oneblock.neighbours import MixerBlock
from oneblock.trace import record

N, L, D, F_L, F = 2, 5, 7, 3, 11


@pytest.fixture
def block(filled):
    return filled(MixerBlock(L, D, F_L, F))


def test_it_is_its_equation(fixed, run, block):
    x, over, across = fixed(N, L, D), block.over_positions, block.over_features
    row = layer_norm(x, [D], block.norm1.weight, block.norm1.bias)
    hidden = gelu(torch.einsum("sl,nld->nsd", over.linear1.weight, row) + over.linear1.bias[:, None])
    u = x + torch.einsum("ls,nsd->nld", over.linear2.weight, hidden) + over.linear2.bias[:, None]
    row = layer_norm(u, [D], block.norm2.weight, block.norm2.bias)
    hidden = gelu(torch.einsum("fd,nld->nlf", across.linear1.weight, row) + across.linear1.bias)
    due = u + torch.einsum("df,nlf->nld", across.linear2.weight, hidden) + across.linear2.bias
    torch.testing.assert_close(run(block, x), due, atol=1e-12, rtol=1e-12)


def test_every_position_reads_every_other_and_no_other_sequence(fixed, block):
    found = reach(block, fixed(N, L, D))
    assert found.positions.all() and found.crosses == ("features", "positions")


def test_over_the_positions_no_feature_meets_another(fixed, block):
    assert reach(block.mix, fixed(N, L, D)).crosses == ("positions",)


def test_the_order_of_the_positions_matters(fixed, block):
    x, order = fixed(N, L, D), torch.tensor([3, 1, 4, 0, 2])
    assert not torch.allclose(block(x[:, order]), block(x)[:, order])


def test_it_can_be_recorded(fixed, block):
    names = record(block, fixed(N, L, D)).names
    assert "positions.z" in names and names[-1] == "sum2.y"


@pytest.mark.usefixtures("as_readers_run_it")
def test_broken_contracts_are_named(fixed, block):
    due = r"^x must be floating \[N, L, D\] = \[2, 5, 7\]; got float64 \[2, 4, 7\]; its weights belong to positions.*takes no mask"
    with pytest.raises(ShapeError, match=due):
        block(fixed(N, L - 1, D))
    with pytest.raises(ArgumentError, match=r"^F_L must be a whole number ≥ 1; got 0"):
        MixerBlock(L, D, 0, F)
    with pytest.raises(ArgumentError, match=r"^L must be a whole number ≥ 1; got 0"):
        MixerBlock(0, D, F_L, F)
    with pytest.raises(ArgumentError, match=r"^x must be finite"):
        block(fixed(N, L, D) / 0)
