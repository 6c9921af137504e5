"""No check accuses a block that is right, whatever its first values."""

from itertools import product

import pytest
import torch
from torch import nn

from oneblock.blocks import PostNorm, PreNorm
from oneblock.checks import CHECKS, Adapter, diagnose, examine, subject_of
from oneblock.checks.finding import NOT_APPLICABLE, PASSED
from oneblock.mutants.plain import Plain

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

D, H, F = 24, 4, 40  # an even number of heads: torch's fast path takes no other
OPTIONS = list(product((torch.float32, torch.float64), ("relu", "gelu"), (True, False), (True, False)))


def official(norm_first):
    def make(activation, bias, batch_first):
        options = {"norm_first": norm_first, "bias": bias, "batch_first": batch_first}
        return nn.TransformerEncoderLayer(D, H, F, activation=activation, **options)

    return make


KINDS = {
    "PreNorm": lambda activation, bias, _: PreNorm(D, H, F, activation, dropout=0.1, bias=bias),
    "PostNorm": lambda activation, bias, _: PostNorm(D, H, F, activation, dropout=0.1, bias=bias),
    "torch's layer, norm first": official(True),
    "torch's layer, norm last": official(False),
}


@pytest.mark.parametrize("seed, kind", [(seed, list(KINDS)[seed % 4]) for seed in range(20)])
def test_a_block_that_is_right_passes_every_check(seed, kind):
    dtype, *options = OPTIONS[(seed + 3 * (seed // len(KINDS))) % len(OPTIONS)]
    torch.manual_seed(seed)
    report = diagnose(KINDS[kind](*options).to(dtype))
    due = {"reference_parity"} | ({"residual_ratio"} if kind in ("PostNorm", "torch's layer, norm last") else set())
    outcomes = {finding.check: finding.outcome for finding in report.findings}
    assert outcomes == {check: NOT_APPLICABLE if check in due else PASSED for check in outcomes}, report.text
    assert report.ok


class NoMask(nn.Module):
    """Pre-LN with parts under names of its own, and no mask; the second result is the attention's weights."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn = nn.MultiheadAttention(D, H, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(D, F), nn.SiLU(), nn.Linear(F, D))

    def forward(self, x, mask=None):
        row = self.ln_1(x)
        attended, weights = self.attn(row, row, row, key_padding_mask=mask)
        u = x + attended
        return u + self.mlp(self.ln_2(u)), weights


class Causal(NoMask):
    def forward(self, x):
        row = self.ln_1(x)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        u = x + self.attn(row, row, row, attn_mask=later, need_weights=False)[0]
        return u + self.mlp(self.ln_2(u))


def skipped(report):
    assert report.ok, report.text
    return {finding.check for finding in report.findings if finding.outcome == NOT_APPLICABLE} - {"reference_parity"}


def test_without_a_mask_the_check_of_padding_is_not_applicable():
    assert skipped(diagnose(NoMask(), D, Adapter())) == {"padding_leak"}


def test_a_block_that_takes_its_norms_numbers_and_never_calls_them_is_in_order():
    assert skipped(diagnose(Plain(D, H, F, dropout=0.1))) == set()


@pytest.mark.parametrize("meaning", ["padding", "additive"])
def test_a_block_of_other_names_passes_with_its_mask_of_either_kind(meaning):
    assert skipped(diagnose(NoMask(), D, Adapter(meaning, "mask"))) == set()


def test_a_causal_block_passes_where_that_is_claimed():
    assert skipped(diagnose(Causal(), D, causal=True)) == {"padding_leak", "permutation_equivariance"}


def test_frozen_parameters_and_half_a_dropout_are_no_mistakes():
    block = PreNorm(D, H, F, dropout=0.1).requires_grad_(False)
    block.dropout_z.p = 0.0
    report = diagnose(block, reference=PreNorm(D, H, F))
    assert report.ok and report["reference_parity"].outcome == PASSED


class CausalPreNorm(PreNorm):
    """With the parameters of torch's layer, which is then given the same mask."""

    def attend(self, x, valid_tokens):
        return self.dropout_attended(self.self_attn(x, valid_tokens, torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()))


@pytest.mark.parametrize("kind, note", [(PreNorm, "norm_first=True, relu"), (PostNorm, "norm_first=False, relu")])
def test_a_block_with_the_parameters_of_torchs_layer_is_compared_in_the_order_that_fits(kind, note):
    finding = examine(subject_of(type("MyBlock", (kind,), {})(D, H, F, "relu")), CHECKS["official_parity"])
    assert finding.outcome == PASSED and finding.note == f"nearest: {note}"


def test_a_causal_block_is_compared_with_torchs_causal_layer():
    report = diagnose(CausalPreNorm(D, H, F), causal=True)
    assert skipped(report) == {"permutation_equivariance"} and report["official_parity"].outcome == PASSED


class NormAfterEachBranch(NoMask):
    def forward(self, x):
        u = x + self.ln_1(self.attn(x, x, x, need_weights=False)[0])
        return u + self.ln_2(self.mlp(u))


def test_a_norm_after_each_branch_is_a_third_order_and_no_mistake():
    report = diagnose(NormAfterEachBranch(), D)
    assert skipped(report) == {"padding_leak", "residual_ratio", "official_parity"}
    assert report["sublayers_off"].note == "nearest: norm after each branch"
