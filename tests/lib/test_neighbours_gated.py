"""The gated block, against its equation in einsum and torch's attention; what it reads and what it costs."""

import torch
from torch import nn
from torch.nn.functional import layer_norm

from oneblock.blocks import PreNorm
from oneblock.dependency import reach
from oneblock.ffn import matched_width
from oneblock.neighbours import GatedBlock
from oneblock.trace import record

N, L, D, H, F = 2, 5, 21, 3, 11


def test_it_is_its_equation(fixed, run, filled):
    block, x = filled(GatedBlock(D, H, F)), fixed(N, L, D)
    attention = nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64)
    attention.load_state_dict(block.self_attn.state_dict())
    row = layer_norm(x, [D], block.norm1.weight, block.norm1.bias)
    u = x + attention(row, row, row)[0]
    row = layer_norm(u, [D], block.norm2.weight, block.norm2.bias)
    gate, up, down = (layer.weight for layer in (block.network.gate_proj, block.network.up_proj, block.network.down_proj))
    g, content = torch.einsum("fd,nld->nlf", gate, row), torch.einsum("fd,nld->nlf", up, row)
    due = u + torch.einsum("df,nlf->nld", down, g / (1 + (-g).exp()) * content)
    torch.testing.assert_close(run(block, x), due, atol=1e-12, rtol=1e-12)


def test_it_reads_whom_the_plain_block_reads(fixed, filled):
    x, valid_tokens = fixed(N, 3, 6), torch.tensor([[True, True, False], [True] * 3])
    gated, plain = (reach(filled(block), x, valid_tokens) for block in (GatedBlock(6, 2, 5), PreNorm(6, 2, 5)))
    assert torch.equal(gated.positions, plain.positions) and gated.crosses == plain.crosses


def test_at_two_thirds_of_the_width_it_learns_as_many_numbers_but_for_biases():
    F = 96
    gated, plain = GatedBlock(24, 2, matched_width(F)), PreNorm(24, 2, F)
    count = [sum(p.numel() for p in block.parameters()) for block in (gated, plain)]
    assert count[1] - count[0] == F + 24


def test_a_trace_shows_the_gate(fixed, filled):
    assert {"gate", "up", "gated", "sum1.y", "sum2.y"} <= set(record(filled(GatedBlock(D, H, F)), fixed(N, L, D)).names)
