"""The causal block against torch's layer with a causal mask, and one position at a time against all at once."""

import pytest
import torch
from torch import nn

from oneblock.dependency import reach
from oneblock.errors import ArgumentError, ShapeError
from oneblock.neighbours import CausalBlock
from oneblock.neighbours.causal import causal
from oneblock.neighbours.reading import keys_values
from oneblock.trace import record

N, L, D, H, F = 2, 5, 21, 3, 11
VALID = torch.tensor([[True, False, True, False, False], [True] * L])  # behind real rows only, a causal mask would do
LATER = torch.ones(L, L, dtype=torch.bool).triu(1)


def test_the_mask_lets_a_row_read_itself_and_what_came_before():
    due = nn.Transformer.generate_square_subsequent_mask(L)  # 0 where it may read, −∞ where not
    assert torch.equal(causal(L), due == 0)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 5e-5)], ids=["float64", "float32"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_torchs_layer_with_a_causal_mask(fixed, run, filled, bias, padded, dtype, tolerance):
    block = filled(CausalBlock(D, H, F, bias=bias)).to(dtype)
    layer = nn.TransformerEncoderLayer(D, H, F, 0.0, "gelu", batch_first=True, norm_first=True, bias=bias, dtype=dtype)
    layer.load_state_dict(block.state_dict())
    mine, due = (fixed(N, L, D, dtype=dtype).requires_grad_() for _ in range(2))
    real = VALID if padded else VALID | True
    y = run(block, mine, VALID if padded else None)[real]
    z = layer(due, src_mask=LATER, src_key_padding_mask=~VALID if padded else None)[real]
    upstream = fixed(*y.shape, seed=9, dtype=dtype)
    ours = [y, *torch.autograd.grad(y, [mine, *(p for _, p in sorted(block.named_parameters()))], upstream)]
    theirs = [z, *torch.autograd.grad(z, [due, *(p for _, p in sorted(layer.named_parameters()))], upstream)]
    for came, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(came, wanted, atol=tolerance, rtol=tolerance)


def test_no_position_reads_a_later_one(fixed, filled):
    assert torch.equal(reach(filled(CausalBlock(6, 2, 5)), fixed(N, L, 6)).positions, causal(L))


def test_one_position_at_a_time_it_gives_what_it_gives_for_all_at_once(fixed, filled):
    block, x, past = filled(CausalBlock(D, H, F)), fixed(N, L, D), None
    due = block(x)
    for t in range(L):
        y, past = block.next(x[:, t : t + 1], past)
        torch.testing.assert_close(y, due[:, t : t + 1], atol=1e-12, rtol=1e-12)
        assert past.k.shape == past.v.shape == (N, H, t + 1, D // H)
    torch.testing.assert_close(past.k, keys_values(block.self_attn, block.norm1(x)).k, atol=1e-12, rtol=1e-12)


def test_padding_behind_the_real_tokens_is_not_read_even_without_a_mask(fixed, filled):
    block, x = filled(CausalBlock(D, H, F)), fixed(N, L, D)
    valid_tokens = torch.arange(L) < torch.tensor([[3], [L]])
    torch.testing.assert_close(block(x)[valid_tokens], block(x, valid_tokens)[valid_tokens], atol=1e-12, rtol=1e-12)


def test_a_past_may_be_gone_on_from_twice(fixed, filled):
    block, x = filled(CausalBlock(D, H, F)), fixed(N, L, D)
    _, past = block.next(x[:, :1])
    first, second = (block.next(x[:, t : t + 1], past)[0] for t in (1, 2))
    torch.testing.assert_close(second, block(x[:, [0, 2]])[:, 1:], atol=1e-12, rtol=1e-12)
    assert not torch.allclose(first, second)


def test_a_trace_shows_the_mask(fixed, filled):
    trace = record(filled(CausalBlock(D, H, F)), fixed(N, L, D))
    assert torch.equal(trace["may_read"], causal(L)) and (trace["masked_scores"][..., LATER] == -torch.inf).all()


@pytest.mark.usefixtures("as_readers_run_it")
def test_broken_contracts_are_named(fixed, filled):
    block, x = filled(CausalBlock(D, H, F)), fixed(N, L, D)
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, 1, D\] = \[2, 1, 21\]; got .*; one position at a time"):
        block.next(x)
    _, past = block.next(x[:, :1])
    with pytest.raises(ShapeError, match=r"^past must be of 1 sequences, as x; got .*; start anew with past=None"):
        block.next(x[:1, :1], past)
    with pytest.raises(ArgumentError, match=r"^may_read must be .*; a position that may read nothing"):
        block(x, VALID.flip(1))
    with pytest.raises(ArgumentError, match=r"^L must be a whole number ≥ 1; got 0"):
        causal(0)
