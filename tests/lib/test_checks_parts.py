"""Parts are found by type and name, in blocks of other people's spelling too, and nothing is made up."""

import pytest
import torch
from torch import nn

from oneblock.blocks import PreNorm
from oneblock.checks import Adapter, Subject
from oneblock.checks.bench import switch_off
from oneblock.checks.dropout_sites import HIDDEN, OUTPUT, WEIGHTS, drawn_at
from oneblock.checks.parts import find
from oneblock.checks.probes import set_rates

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

D, H, F = 12, 2, 20


class BertLike(nn.Module):
    """Separate q, k, v; the output projection and its norm stand inside the attention."""

    def __init__(self):
        super().__init__()
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: nn.Linear(D, D) for name in ("query", "key", "value")}),
                "output": nn.ModuleDict({"dense": nn.Linear(D, D), "LayerNorm": nn.LayerNorm(D)}),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(D, F)})
        self.output = nn.ModuleDict({"dense": nn.Linear(F, D), "LayerNorm": nn.LayerNorm(D)})


class GatedLike(nn.Module):
    """Norms of each head are none of the block's norms; a gated network opens with two maps."""

    def __init__(self):
        super().__init__()
        self.attn_norm, self.ffn_norm = nn.RMSNorm(D), nn.RMSNorm(D)
        self.attn = nn.ModuleDict({"proj": nn.Linear(D, D), "q_norm": nn.LayerNorm(D // H), "qkv": nn.Linear(D, 3 * D)})
        self.mlp = nn.ModuleDict({"gate": nn.Linear(D, F), "up": nn.Linear(D, F), "down": nn.Linear(F, D)})


class ScaledNorm(nn.Module):
    """A norm that keeps its γ beside another norm."""

    def __init__(self):
        super().__init__()
        self.inner, self.gamma = nn.LayerNorm(D, elementwise_affine=False), nn.Parameter(torch.ones(D))

    def forward(self, x):
        return self.gamma * self.inner(x)


class ListsLike(nn.Module):
    """Two attentions in a list are two; a norm inside a norm, or of another width than D, is none of the block's."""

    def __init__(self):
        super().__init__()
        self.attns = nn.ModuleList(nn.MultiheadAttention(D, H) for _ in range(2))
        self.mlp = nn.ModuleDict({"up": nn.Linear(D, 2 * D), "norm": nn.LayerNorm(2 * D), "down": nn.Linear(2 * D, D)})
        self.last = ScaledNorm()


@pytest.mark.parametrize(
    "block, norms, attentions, attention_last, ffn_first, ffn_last",
    [
        (PreNorm(D, H, F), "norm1 norm2", "self_attn", "self_attn.out_proj", "linear1", "linear2"),
        (nn.TransformerEncoderLayer(D, H, F), "norm1 norm2", "self_attn", "self_attn.out_proj", "linear1", "linear2"),
        (
            BertLike(),
            "attention.output.LayerNorm output.LayerNorm",
            "attention",
            "attention.output.dense",
            "intermediate.dense",
            "output.dense",
        ),
        (GatedLike(), "attn_norm ffn_norm", "attn", "attn.proj", "mlp.gate mlp.up", "mlp.down"),
        (ListsLike(), "last", "attns.0 attns.1", "attns.0.out_proj attns.1.out_proj", "mlp.up", "mlp.down"),
        (nn.Identity(), "", "", "", "", ""),
        (nn.Sequential(nn.Linear(D, F), nn.ReLU()), "", "", "", "0", ""),
    ],
)
def test_the_parts_of_a_block(block, norms, attentions, attention_last, ffn_first, ffn_last):
    found = find(Subject(block, D, Adapter()))
    assert found.norms == tuple(norms.split()) and found.attentions == tuple(attentions.split())
    assert found.attention_last == tuple(attention_last.split())
    assert (found.ffn_first, found.ffn_last) == (tuple(ffn_first.split()), tuple(ffn_last.split()))
    assert found.has_branches == bool(attention_last and ffn_last)


def test_a_map_that_is_switched_off_gives_zeros_bias_included():
    block = PreNorm(D, H, F)
    nn.init.ones_(block.linear2.bias)
    switch_off(block, ("linear2",))
    assert not block.linear2(torch.ones(F)).any() and block.linear1.weight.any()


@pytest.mark.parametrize("make", [lambda: PreNorm(D, H, F, dropout=0.1), lambda: nn.TransformerEncoderLayer(D, H, F, batch_first=True)])
def test_dropout_draws_at_four_places(make):
    assert drawn_at(Subject(make(), D, Adapter())) == {WEIGHTS: 1, OUTPUT: 2, HIDDEN: 1}


def test_every_rate_is_set_however_it_is_kept():
    layer = nn.TransformerEncoderLayer(D, H, F)
    set_rates(layer, 0.0)
    assert drawn_at(Subject(layer, D, Adapter(batch_first=False))) == {}
