"""Every neighbour under all checks: which pass, which have nothing to look at, and what a narrow reach shows."""

from itertools import cycle

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
    WindowedBlock,
)

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

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
    "decoder": (lambda: DecoderBlock(D, H, F, dropout=0.1), {"causal": True, "call": with_memory, "takes_mask": True}, {ORDER}),
    "windowed": (lambda: WindowedBlock(D, H, F, 13, dropout=0.1), {}, set()),
    "gated": (lambda: GatedBlock(D, H, F), {}, set()),
    "convolution": (lambda: ConvolutionBlock(D, F, 13), {"positions": True}, {ORDER}),
    "mixer": (lambda: MixerBlock(L, D, 5, F), {"L": L, "positions": True}, {ORDER, "padding_leak"}),
    "mixture": (lambda: MixtureBlock(D, H, F, 4), {}, set()),
}


def skipped(report):
    assert report.ok, report.text
    return {finding.check for finding in report.findings if finding.outcome == NOT_APPLICABLE}


@pytest.mark.parametrize("name, dtype", list(zip(BLOCKS, cycle([torch.float32, torch.float64]))))
def test_a_neighbour_passes_every_check_that_it_can_be_asked(name, dtype):
    make, claims, due = BLOCKS[name]
    torch.manual_seed(0)
    assert skipped(diagnose(make().to(dtype), D=D, **claims)) - OF_PARTS == {REFERENCE} | due


def failed(block, **options):
    return {finding.check for finding in diagnose(block, D=D, **options).findings if finding.outcome == FAILED}


def test_a_narrow_window_is_told_from_attention_to_all():
    torch.manual_seed(0)
    block = WindowedBlock(D, H, F, 2)
    asked = [CHECKS[name] for name in ("causality", "permutation_equivariance", "batch_independence")]
    assert failed(block, call=lambda block, x, valid_tokens: block(x), checks=asked) == {"causality", ORDER}


def test_a_causal_block_that_does_not_say_so_is_found_out():
    torch.manual_seed(0)
    assert failed(CausalBlock(D, H, F), checks=[CHECKS["causality"]]) == {"causality"}


def test_one_active_expert_leaves_the_router_without_a_gradient():
    torch.manual_seed(0)
    assert failed(MixtureBlock(D, H, F, 4, active=1)) == {"gradient_reach"}
