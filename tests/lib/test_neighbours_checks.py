"""Every neighbour under all checks: which pass, which have nothing to look at, and what a narrow reach shows."""

import pytest
import torch

from oneblock.checks import CHECKS, diagnose
from oneblock.checks.finding import FAILED, NOT_APPLICABLE
from oneblock.neighbours import (
    AttentionOnly,
    CausalBlock,
    ConvolutionBlock,
    DecoderBlock,
    GatedBlock,
    MixerBlock,
    MixtureBlock,
    MixtureOfExperts,
    WindowedBlock,
)

D, H, F, L = 12, 2, 20, 7
REFERENCE, ORDER = "reference_parity", "permutation_equivariance"
# They first look for the parts of a block of two branches; which parts they find in others is tested with them.
OF_PARTS = {"sublayers_off", "residual_ratio", "official_parity", "dropout_sites", "token_independence"}


def with_memory(block, x, valid_tokens):
    draw = torch.Generator().manual_seed(7)
    return block(x, torch.randn(1, 5, D, generator=draw).to(x).expand(len(x), -1, -1), valid_tokens)


# block, what is claimed of it, what has nothing to look at; a wide window and a wide convolution reach every position
BLOCKS = {
    "attention only": (lambda: AttentionOnly(D, H), {}, set()),
    "causal": (lambda: CausalBlock(D, H, F, dropout=0.1), {"causal": True}, {ORDER}),
    "windowed": (lambda: WindowedBlock(D, H, F, 13, dropout=0.1), {}, set()),
    "gated": (lambda: GatedBlock(D, H, F), {}, set()),
    "convolution": (lambda: ConvolutionBlock(D, F, 13), {"positions": True}, {ORDER}),
    "mixer": (lambda: MixerBlock(L, D, 5, F), {"L": L, "positions": True}, {ORDER, "padding_leak"}),
    "mixture": (lambda: MixtureBlock(D, H, F, 4), {}, set()),
}


def skipped(report):
    assert report.ok, report.text
    return {finding.check for finding in report.findings if finding.outcome == NOT_APPLICABLE}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", BLOCKS)
def test_a_neighbour_passes_every_check_that_it_can_be_asked(name, dtype):
    make, claims, due = BLOCKS[name]
    torch.manual_seed(0)
    assert skipped(diagnose(make().to(dtype), D=D, **claims)) - OF_PARTS == {REFERENCE} | due


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_decoder_with_its_memory_passes_every_check_that_knows_no_number_of_branches(dtype):
    torch.manual_seed(0)
    block = DecoderBlock(D, H, F, dropout=0.1).to(dtype)
    checks = [check for name, check in CHECKS.items() if name not in OF_PARTS]
    assert skipped(diagnose(block, D, with_memory, checks, causal=True, takes_mask=True)) == {REFERENCE, ORDER}


def failed(block, **claims):
    return {finding.check for finding in diagnose(block, D=D, **claims).findings if finding.outcome == FAILED}


def test_a_narrow_window_is_told_from_attention_to_all():
    torch.manual_seed(0)
    block = WindowedBlock(D, H, F, 2)
    found = failed(block, call=lambda block, x, valid_tokens: block(x))
    assert found - OF_PARTS == {"causality", "permutation_equivariance"}


def test_a_causal_block_that_does_not_say_so_is_found_out():
    torch.manual_seed(0)
    assert "causality" in failed(CausalBlock(D, H, F))


def test_one_active_expert_leaves_the_router_without_a_gradient():
    torch.manual_seed(0)
    block = MixtureBlock(D, H, F, 4, active=1)
    assert failed(block) == {"gradient_reach"}
    assert isinstance(block.network, MixtureOfExperts)
