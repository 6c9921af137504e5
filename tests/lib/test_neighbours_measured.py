"""What is counted of each module, against the closed forms; patterns against tables written out."""

import pytest
import torch
from torch import nn

from oneblock import costs
from oneblock.blocks import PreNorm
from oneblock.ffn import FFN
from oneblock.neighbours import (
    AttentionOnly,
    CausalBlock,
    ConvolutionBlock,
    DecoderBlock,
    GatedBlock,
    MixerBlock,
    MixtureBlock,
    WindowedBlock,
)
from oneblock.neighbours.measured import flops, needs_length, parameters, pattern, takes_mask

L, J, D, H, F, F_L, WIDTH, EXPERTS, ACTIVE = 11, 7, 15, 3, 13, 17, 5, 5, 2
ATTENTION, NETWORK, NORM = costs.attention_parameters(D), costs.ffn_parameters(D, F), costs.norm_parameters(D)
READ, WORK = costs.attention_flops(D, L), costs.ffn_flops(D, F, L)
CROSS = 4 * L * D * D + 4 * J * D * D + 4 * L * J * D
# block, its parameters, its FLOPs at L positions, whether it takes a mask, whether it needs this length
KNOWN = {
    "attention only": (AttentionOnly(D, H), ATTENTION + NORM, READ, True, False),
    "encoder": (PreNorm(D, H, F), ATTENTION + NETWORK + 2 * NORM, READ + WORK, True, False),
    "causal": (CausalBlock(D, H, F), ATTENTION + NETWORK + 2 * NORM, READ + WORK, True, False),
    "windowed": (WindowedBlock(D, H, F, 2), ATTENTION + NETWORK + 2 * NORM, READ + WORK, True, False),
    "gated": (GatedBlock(D, H, F), ATTENTION + costs.gated_ffn_parameters(D, F) + 2 * NORM, READ + costs.gated_ffn_flops(D, F, L), True, False),
    "convolution": (ConvolutionBlock(D, F, WIDTH), D * WIDTH + D + NETWORK + 2 * NORM, 2 * L * D * WIDTH + WORK, True, False),
    "mixer": (MixerBlock(L, D, F_L, F), 2 * L * F_L + L + F_L + NETWORK + 2 * NORM, 4 * D * L * F_L + WORK, False, True),
    "mixture": (
        MixtureBlock(D, H, F, EXPERTS, ACTIVE),
        ATTENTION + costs.moe_parameters(D, EXPERTS, NETWORK) + 2 * NORM,
        READ + costs.moe_flops(D, L, EXPERTS, WORK, ACTIVE),
        True,
        False,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_counted_is_the_closed_form(fixed, name):
    block, numbers, operations, mask, one_length = KNOWN[name]
    x = fixed(1, L, D, dtype=torch.float32)
    assert parameters(block) == numbers
    assert flops(lambda: block(x)) == operations
    assert takes_mask(block) == mask and needs_length(block, L, D) == one_length


def test_a_decoder_pays_for_the_memory_too(fixed):
    block = DecoderBlock(D, H, F)
    x, memory = fixed(1, L, D, dtype=torch.float32), fixed(1, J, D, dtype=torch.float32)
    assert parameters(block) == 2 * ATTENTION + NETWORK + 3 * NORM
    assert flops(lambda: block(x, memory)) == READ + CROSS + WORK


def test_a_step_with_a_past_pays_for_one_row(fixed):
    block, x = CausalBlock(D, H, F), fixed(1, L, D, dtype=torch.float32)
    _, past = block.next(x[:, :1])
    assert flops(lambda: block.next(x[:, 1:2], past)) == 8 * D * D + 4 * 2 * D + 4 * D * F


def test_a_table_is_named_by_who_reads_whom():
    whole = torch.ones(4, 4, dtype=torch.bool)
    tables = {"all": whole, "earlier": whole.tril(), "itself": torch.eye(4).bool(), "near": whole.tril(1).triu(-1), "other": whole.triu()}
    assert {name: pattern(table) for name, table in tables.items()} == {name: name for name in tables}


def test_what_is_asked_of_modules_holds_for_any():
    assert not takes_mask(FFN(D, F)) and not needs_length(nn.LayerNorm(D), L, D)
