"""A block of foreign names is compared with torch's layer: what is wrong in it shows, and what is only different is left alone."""

from math import sqrt

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.checks import CHECKS, Adapter, examine, subject_of
from oneblock.checks.finding import FAILED, NOT_APPLICABLE, PASSED
from oneblock.checks.standard import KNOWN, standard_layers

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

D, H, F = 24, 3, 40
TOLD = Adapter("real", "mask")


class Mine(nn.Module):
    """A Pre-LN block; each mistake overrides a method of a line or two."""

    phi = staticmethod(functional.gelu)

    def __init__(self):
        super().__init__()
        self.a, self.b, self.qkv, self.o = nn.LayerNorm(D, eps=1e-6), nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, F), nn.Linear(F, D)

    def split(self, part):
        return part.unflatten(-1, (H, -1)).transpose(1, 2)

    def weights(self, q, k, mask):
        scores = q @ k.mT / sqrt(D // H)
        return (scores if mask is None else scores.masked_fill(~mask[:, None, None], -torch.inf)).softmax(-1)

    def join(self, heads):
        return heads.transpose(1, 2).flatten(2)

    def read(self, x, mask):
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        return self.o(self.join(self.weights(q, k, mask) @ v))

    def process(self, x):
        return self.down(self.phi(self.up(x)))

    def forward(self, x, mask=None):
        u = x + self.read(self.a(x), mask)
        return u + self.process(self.b(u))


class Unscaled(Mine):
    def weights(self, q, k, mask):
        return super().weights(q * sqrt(D // H), k, mask)


class ScaledByTheWholeWidth(Mine):
    def weights(self, q, k, mask):
        return super().weights(q / sqrt(H), k, mask)


class ScaledByTheSquare(Mine):
    """1/E."""

    def weights(self, q, k, mask):
        return super().weights(q / sqrt(D // H), k, mask)


class SoftmaxOverQueries(Mine):
    def weights(self, q, k, mask):
        return (q @ k.mT / sqrt(D // H)).softmax(-2)


class SoftmaxOverHeads(Mine):
    def weights(self, q, k, mask):
        return (q @ k.mT / sqrt(D // H)).softmax(1)


class HeadsByView(Mine):
    def split(self, part):
        return part.reshape(len(part), H, -1, D // H)


class JoinedByView(Mine):
    def join(self, heads):
        return heads.reshape(len(heads), -1, D)


class ResidualFromTheNormedRow(Mine):
    def forward(self, x, mask=None):
        u = x + self.read(self.a(x), mask)
        u = self.b(u)
        return u + self.process(u)


class FirstResidualFromTheNormedRow(Mine):
    def forward(self, x, mask=None):
        x = self.a(x)
        u = x + self.read(x, mask)
        return u + self.process(self.b(u))


class NoSecondResidual(Mine):
    def forward(self, x, mask=None):
        return self.process(self.b(x + self.read(self.a(x), mask)))


class NoActivation(Mine):
    phi = staticmethod(lambda h: h)


class MaskedAfterTheSoftmax(Mine):
    def weights(self, q, k, mask):
        weights = super().weights(q, k, None)
        return weights if mask is None else weights * mask[:, None, None]


class MaskForgotten(Mine):
    def weights(self, q, k, mask):
        return super().weights(q, k, None)


WRONG = Mine.__subclasses__()


def parity_of(block, call=TOLD, **claims):
    return examine(subject_of(block, D, call, **claims), CHECKS["official_parity"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_right_one_passes_without_a_word_of_its_heads(dtype):
    torch.manual_seed(0)
    finding = parity_of(Mine().to(dtype))
    assert (finding.outcome, finding.note) == (PASSED, "nearest: norm_first=True, gelu, 3 heads, q k v one after the other")


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_in_a_block_of_foreign_names_shows(kind):
    torch.manual_seed(0)
    finding = parity_of(kind())
    assert finding.outcome == FAILED and finding.worst[1] > 1e-2, finding


@pytest.mark.parametrize("kind", [FirstResidualFromTheNormedRow, ResidualFromTheNormedRow, NoSecondResidual])
def test_a_wrong_sum_in_a_block_of_foreign_names_shows_when_the_branches_are_off(kind):
    torch.manual_seed(0)
    assert examine(subject_of(kind(), D, TOLD), CHECKS["sublayers_off"]).outcome == FAILED


@pytest.mark.parametrize("name, phi", KNOWN.items())
def test_any_known_activation_is_found_out(name, phi):
    block = Mine()
    block.phi = phi
    finding = parity_of(block)
    assert finding.outcome == PASSED and f", {name}, " in finding.note


class Causal(Mine):
    def weights(self, q, k, mask):
        L = q.shape[-2]
        later = torch.ones(L, L, dtype=torch.bool).triu(1)
        return (q @ k.mT / sqrt(D // H)).masked_fill(later, -torch.inf).softmax(-1)


@pytest.mark.parametrize("is_causal, outcome", [(True, PASSED), (False, FAILED)])
def test_a_causal_block_is_compared_with_the_causal_layer_where_that_is_claimed(is_causal, outcome):
    assert parity_of(Causal(), Adapter(), causal=is_causal).outcome == outcome


def test_positions_that_are_claimed_are_left_alone():
    assert parity_of(Mine(), positions=True).outcome == NOT_APPLICABLE


class NotAllTorchs(Mine):
    """One part more, or another in its place."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


class Gate(Mine):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(D, F)

    def process(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class RelativeBias(Mine):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(H, 1, 1))

    def weights(self, q, k, mask):
        return (q @ k.mT / sqrt(D // H) + self.table).softmax(-1)


class NormedHeads(Mine):
    def __init__(self):
        super().__init__()
        self.norm_q = nn.LayerNorm(D // H)

    def weights(self, q, k, mask):
        return super().weights(self.norm_q(q), k, mask)


class SharedKeys(Mine):
    """One head of k and v for all heads of q."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, D + 2 * (D // H))

    def read(self, x, mask):
        q, k, v = self.qkv(x).split([D, D // H, D // H], -1)
        return self.o(self.join(self.weights(self.split(q), k[:, None], mask) @ v[:, None]))


class AlwaysDrops(Mine):
    def process(self, x):
        return functional.dropout(super().process(x), 0.1)


@pytest.mark.parametrize(
    "make",
    [
        Gate,
        RelativeBias,
        NormedHeads,
        SharedKeys,
        AlwaysDrops,
        lambda: NotAllTorchs(a=nn.RMSNorm(D)),
        lambda: NotAllTorchs(more=nn.Linear(D, D)),
        lambda: NotAllTorchs(scale=nn.Parameter(torch.ones(D))),
    ],
)
def test_a_block_of_other_parameters_or_of_chance_is_not_compared(make):
    finding = parity_of(make())
    assert (finding.outcome, finding.note) == (NOT_APPLICABLE, "")


def test_the_layers_are_torchs_in_both_orders_and_share_the_parameters():
    block = Mine()
    _, layers = standard_layers(subject_of(block, D, TOLD))
    assert [(layer.norm_first, layer.norm1.eps) for layer in layers.values()] == [(True, 1e-6), (True, 1e-5), (False, 1e-6), (False, 1e-5)]
    assert all(type(layer) is nn.TransformerEncoderLayer and layer.self_attn.num_heads == H for layer in layers.values())


class HandsOverItsMatrix(Mine):
    def process(self, x):
        return functional.linear(self.phi(self.up(x)), self.down.weight, self.down.bias)


class HandsOverAnother(Mine):
    def read(self, x, mask):
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, -1))
        return functional.linear(self.join(self.weights(q, k, mask) @ v), self.o.weight, self.o.bias)


@pytest.mark.parametrize("kind", [HandsOverItsMatrix, HandsOverAnother])
def test_a_map_that_is_not_called_cannot_be_looked_at_even_if_it_is_named(kind):
    assert parity_of(kind(), attention_out="o", ffn_out="down").outcome == NOT_APPLICABLE


class DropsInTraining(Mine):
    """At a rate that is written into ``forward``."""

    def process(self, x):
        return functional.dropout(super().process(x), 0.1, self.training)


def test_dropout_written_into_forward_is_looked_at_in_eval():
    rough, layers = standard_layers(subject_of(DropsInTraining(), D, TOLD))
    assert layers and not rough.block.training and standard_layers(subject_of(Mine(), D, TOLD))[0].block.training
    assert parity_of(DropsInTraining()).outcome == PASSED


class NormOverTheText(Mine):
    """Mean and variance of all rows of a text: no map alone keeps its tokens apart."""

    class Centre(nn.LayerNorm):
        def forward(self, x):
            return functional.layer_norm(x, x.shape[1:], eps=self.eps) * self.weight + self.bias

    def __init__(self):
        super().__init__()
        self.b = self.Centre(D)


def test_a_norm_that_mixes_tokens_is_found_out_by_what_it_does():
    subject = subject_of(NormOverTheText(), D, TOLD)
    assert examine(subject, CHECKS["norm_axes"]).outcome == FAILED
    assert examine(subject, CHECKS["token_independence"]).outcome == NOT_APPLICABLE
    named = subject_of(NormOverTheText(), D, TOLD, attention_out="o")
    assert {examine(named, CHECKS[check]).outcome for check in ("token_independence", "official_parity")} == {FAILED}
