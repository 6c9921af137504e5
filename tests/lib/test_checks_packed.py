"""Blocks as GPT-2 has them: what is no attention in spite of its name, and what is said where no layer is near."""

import pytest
import torch
from torch import nn

from oneblock.checks import CHECKS, diagnose, examine, subject_of
from oneblock.checks.finding import FAILED, PASSED

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

D, H = 12, 2


class Packed(nn.Module):
    """q, k and v in one map that stands in the block itself and has the attention in its name, as in GPT-2."""

    def __init__(self, n_embd, inner):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, inner), nn.GELU(), nn.Linear(inner, n_embd))

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (H, -1)).transpose(1, 2) for one in self.c_attn(self.ln_1(x)).chunk(3, -1))
        u = x + self.c_proj(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return u + self.mlp(self.ln_2(u))


class ResidualFromTheNormedRow(Packed):
    def forward(self, x):
        return super().forward(self.ln_1(x))


def test_a_map_to_q_k_and_v_is_no_attention_whatever_its_name():
    torch.manual_seed(0)
    report = diagnose(Packed(D, 20), D)
    assert report.ok, report.text
    assert {report[check].outcome for check in ("shapes", "sublayers_off", "token_independence", "official_parity")} == {PASSED}


def test_no_layout_is_named_where_none_is_near():
    torch.manual_seed(0)
    finding = examine(subject_of(ResidualFromTheNormedRow(D, 20), D, H=H), CHECKS["official_parity"])
    assert (finding.outcome, finding.note) == (FAILED, "none of the layouts tried is near")
