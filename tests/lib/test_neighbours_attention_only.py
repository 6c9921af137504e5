"""Attention and its sum, against torch's layer with a silent feed-forward network."""

import pytest
import torch
from torch import nn

from oneblock.errors import ArgumentError, ShapeError
from oneblock.neighbours import AttentionOnly
from oneblock.trace import record

N, L, D, H = 2, 5, 21, 3
VALID = torch.tensor([[True, True, True, False, False], [True] * L])


@pytest.fixture
def block(filled):
    return filled(AttentionOnly(D, H))


@pytest.mark.parametrize("padded", [False, True])
def test_it_is_torchs_layer_whose_ffn_adds_nothing(fixed, run, block, padded):
    layer = nn.TransformerEncoderLayer(D, H, 11, 0.0, "gelu", batch_first=True, norm_first=True, dtype=torch.float64)
    layer.load_state_dict(block.state_dict(), strict=False)
    layer.linear2.weight.data.zero_(), layer.linear2.bias.data.zero_()
    real = VALID if padded else VALID | True
    mine, due = fixed(N, L, D).requires_grad_(), fixed(N, L, D).requires_grad_()
    y = run(block, mine, VALID if padded else None)[real]
    z = layer(due, src_key_padding_mask=~VALID if padded else None)[real]
    torch.testing.assert_close(y, z, atol=1e-12, rtol=1e-12)
    upstream = fixed(*y.shape, seed=9)
    torch.testing.assert_close(*(torch.autograd.grad(v, x, upstream)[0] for v, x in ((y, mine), (z, due))), atol=1e-12, rtol=1e-12)


def test_a_trace_has_one_norm_and_one_sum(fixed, block):
    names = record(block, fixed(N, L, D)).names
    assert [name for name in names if "." in name and name.endswith((".ln", ".y"))] == ["norm1.ln", "sum1.y"]


def test_it_has_no_other_parameters_than_those_of_its_two_parts(block):
    assert sum(p.numel() for p in block.parameters()) == 4 * D * D + 4 * D + 2 * D


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_comes_in_is_checked_as_in_the_block(fixed, block):
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\] = \[N, L, 21\]; got .*; add a batch axis"):
        block(fixed(L, D))
    with pytest.raises(ArgumentError, match=r"^x must be finite; got"):
        block(fixed(N, L, D) / 0)
    with pytest.raises(ArgumentError, match=r"^D must be a whole number ≥ 1; got 0"):
        AttentionOnly(0, 1)
