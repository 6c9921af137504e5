"""Blocks that are right, each written in another way and under names that tell nothing: their parts are found, no check accuses them."""

from math import sqrt

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.checks import Adapter, Subject, diagnose
from oneblock.checks.finding import NOT_APPLICABLE, PASSED
from oneblock.checks.parts import find

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

D, H, F = 24, 3, 40


def mixed(q, k, v, mask=None):
    """Attention of ``[N, H, L, E]``, written out."""
    scores = q @ k.mT / sqrt(q.shape[-1])
    scores = scores if mask is None else scores.masked_fill(~mask[:, None, None], -torch.inf)
    return scores.softmax(-1) @ v


class Fused(nn.Module):
    """Pre-LN; one map to 3D, cut by ``view`` and ``permute``; everything in the block itself."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.qkv, self.o = nn.LayerNorm(D), nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.f = nn.Sequential(nn.Linear(D, F), nn.GELU(), nn.Linear(F, D))

    def cut(self, x):
        N, L, _ = x.shape
        return self.qkv(x).view(N, L, 3, H, D // H).permute(2, 0, 3, 1, 4)

    def read(self, x, mask):
        return self.o(mixed(*self.cut(x), mask).transpose(1, 2).reshape(x.shape))

    def forward(self, x, mask=None):
        u = x + self.read(self.a(x), mask)
        return u + self.f(self.b(u))


class HeadByHead(Fused):
    """k, v and q of one head after the other, without biases in the attention."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)

    def cut(self, x):
        k, v, q = self.qkv(x).unflatten(-1, (H, 3, D // H)).permute(3, 0, 2, 1, 4)
        return q, k, v


class Reader(nn.Module):
    """An attention of another name, three maps D → D, the last one made first."""

    def __init__(self):
        super().__init__()
        self.back, self.one, self.two, self.three = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, mask):
        q, k, v = (part(x).unflatten(-1, (H, -1)).transpose(1, 2) for part in (self.two, self.three, self.one))
        return self.back(mixed(q, k, v, mask).transpose(1, 2).flatten(2))


class LayerScaler(nn.Module):
    """A LayerNorm of other names."""

    def __init__(self):
        super().__init__()
        self.g, self.shift = nn.Parameter(torch.ones(D)), nn.Parameter(torch.zeros(D))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * self.g + self.shift


class Last(nn.Module):
    """Post-LN, a norm of its own making, and a width inside that is D."""

    def __init__(self):
        super().__init__()
        self.look, self.p, self.q = Reader(), LayerScaler(), LayerScaler()
        self.up, self.down = nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x, mask=None):
        u = self.p(x + functional.dropout(self.look(x, mask), 0.1, self.training))
        return self.q(u + self.down(functional.relu(self.up(u))))


class LastWithoutBiases(Last):
    """Either map of the FFN off, the other one has nothing to do."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, D, bias=False), nn.Linear(D, D, bias=False)


class Gated(nn.Module):
    """Pre-LN with RMSNorm and SwiGLU, without biases."""

    def __init__(self):
        super().__init__()
        self.s, self.t, self.look = nn.RMSNorm(D), nn.RMSNorm(D), Reader()
        self.w1, self.w2, self.w3 = (nn.Linear(*sizes, bias=False) for sizes in ((D, F), (F, D), (D, F)))

    def forward(self, x, mask=None):
        u = x + self.look(self.s(x), mask)
        row = self.t(u)
        return u + self.w2(functional.silu(self.w1(row)) * self.w3(row))


class Parallel(Fused):
    """Both branches read the one normed row, as in GPT-J."""

    def __init__(self):
        super().__init__()
        del self.b

    def forward(self, x, mask=None):
        row = self.a(x)
        return x + self.read(row, mask) + self.f(row)


class ParallelOfTwoNorms(Fused):
    """Each branch with a norm of its own, as in GPT-NeoX: the parameters of torch's layer, and another structure."""

    def forward(self, x, mask=None):
        return x + self.read(self.a(x), mask) + self.f(self.b(x))


class NetworkFirst(Fused):
    """The FFN before the attention."""

    def forward(self, x, mask=None):
        u = x + self.f(self.b(x))
        return u + self.read(self.a(u), mask)


class Deep(Fused):
    """An FFN of three maps, one of them from F to F."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(D, F), nn.Tanh(), nn.Linear(F, F), nn.Tanh(), nn.Linear(F, D))


class Macaron(Fused):
    """Half an FFN before the attention, half of one behind."""

    def __init__(self):
        super().__init__()
        self.c, self.h = nn.LayerNorm(D), nn.Sequential(nn.Linear(D, F), nn.SiLU(), nn.Linear(F, D))

    def forward(self, x, mask=None):
        return super().forward(x + 0.5 * self.h(self.c(x)), mask)


class Scaled(Fused):
    """Each branch times a small vector of its own."""

    def __init__(self):
        super().__init__()
        self.m, self.n = nn.Parameter(torch.full((D,), 1e-5)), nn.Parameter(torch.full((D,), 1e-5))

    def forward(self, x, mask=None):
        u = x + self.m * self.read(self.a(x), mask)
        return u + self.n * self.f(self.b(u))


class WaveNetwork(nn.Module):
    """φ is a function that nobody knows."""

    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(D, F), nn.Linear(F, D)

    def forward(self, x):
        h = self.w1(x)
        return self.w2(h.sin() + h.cos())


class Wave(nn.Module):
    def forward(self, h):
        return h.sin() + h.cos()


class OwnFunction(Fused):
    """φ is unknown, too, but a module that can be called."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(D, F), Wave(), nn.Linear(F, D))


class Odd(Fused):

    def __init__(self):
        super().__init__()
        self.f = WaveNetwork()


class Transposed(nn.Module):
    """A linear map that stores its matrix the other way round, as GPT-2's does."""

    def __init__(self, width_in, width_out):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(width_in, width_out) / 5), nn.Parameter(torch.zeros(width_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Turned(Fused):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = Transposed(D, 3 * D), Transposed(D, D)
        self.f = nn.Sequential(Transposed(D, F), nn.GELU(), Transposed(F, D))


class ReadsItsNorms(Fused):
    """Post-LN; γ and β are handed to a function, and the norms are never called."""

    def normed(self, norm, x):
        return functional.layer_norm(x, (D,), norm.weight, norm.bias)

    def forward(self, x, mask=None):
        u = self.normed(self.a, x + self.read(x, mask))
        return self.normed(self.b, u + self.f(u))


class TwoBehind(Fused):
    """Two maps end the attention: one of them alone cannot be said to."""

    def __init__(self):
        super().__init__()
        self.o = nn.Sequential(nn.Linear(D, D), nn.Linear(D, D))


class AttentionOnly(Fused):
    def __init__(self):
        super().__init__()
        del self.f, self.b

    def forward(self, x, mask=None):
        return x + self.read(self.a(x), mask)


class NoResidualBehind(Fused):
    """The FFN's last map off, nothing is left: no row depends on another token then, either."""

    def forward(self, x, mask=None):
        return self.f(self.b(x + self.read(self.a(x), mask)))


class TorchsAttention(NoResidualBehind):
    """Its maps are not called, and cannot be seen; its type is known."""

    def __init__(self):
        super().__init__()
        self.look = nn.MultiheadAttention(D, H, batch_first=True)

    def read(self, x, mask):
        return self.look(x, x, x, key_padding_mask=None if mask is None else ~mask)[0]


class OneMapBehind(TorchsAttention):
    """A single map behind all: it begins and ends its work alone."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(D, D)


class NoMapsAtAll(NoResidualBehind):
    """The attention is made of bare parameters."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Parameter(torch.randn(3 * D, D) / 5), nn.Parameter(torch.randn(D, D) / 5)

    def cut(self, x):
        return functional.linear(x, self.qkv).unflatten(-1, (3, H, D // H)).permute(2, 0, 3, 1, 4)

    def read(self, x, mask):
        return functional.linear(mixed(*self.cut(x), mask).transpose(1, 2).flatten(2), self.o)

    def __setattr__(self, name, value):
        if isinstance(value, nn.Parameter):
            self._modules.pop(name, None)
        super().__setattr__(name, value)


FOUND = {
    # norms, inside the attention, last of it, first and last of the FFN
    Fused: ("a b", "qkv", "o", "f.0", "f.2"),
    HeadByHead: ("a b", "qkv", "o", "f.0", "f.2"),
    Last: ("p q", "look.two look.three look.one", "look.back", "up down", "down"),
    LastWithoutBiases: ("p q", "look.two look.three look.one", "look.back", "up down", "down"),
    Gated: ("s t", "look.two look.three look.one", "look.back", "w1 w3", "w2"),
    Parallel: ("a", "qkv", "o", "f.0", "f.2"),
    ParallelOfTwoNorms: ("a b", "qkv", "o", "f.0", "f.2"),
    NetworkFirst: ("a b", "qkv", "o", "f.0", "f.2"),
    Deep: ("a b", "qkv", "o", "f.0", "f.4"),
    Macaron: ("a b c", "qkv", "o", "f.0 h.0", "f.2 h.2"),
    Scaled: ("a b", "qkv", "o", "f.0", "f.2"),
    Turned: ("a b", "qkv", "o", "f.0", "f.2"),
    OwnFunction: ("a b", "qkv", "o", "f.0", "f.2"),
    ReadsItsNorms: ("a b", "qkv", "o", "f.0", "f.2"),
    Odd: ("a b", "qkv", "o", "f.w1", "f.w2"),
}
COMPARED = {
    Fused: "norm_first=True, gelu, 3 heads, q k v one after the other",
    HeadByHead: "norm_first=True, gelu, 3 heads, k v q head by head",
    Last: "norm_first=False, relu, 3 heads, q, k, v = look.two, look.three, look.one",
    LastWithoutBiases: "norm_first=False, relu, 3 heads, q, k, v = look.two, look.three, look.one",
    Turned: "norm_first=True, gelu, 3 heads, q k v one after the other",
    ReadsItsNorms: "norm_first=False, gelu, 3 heads, q k v one after the other",
    OwnFunction: "norm_first=True, Wave, 3 heads, q k v one after the other",
}


@pytest.mark.parametrize("kind", FOUND)
def test_parts_are_found_by_what_they_do(kind):
    torch.manual_seed(0)
    found = find(Subject(kind(), D, Adapter("real", "mask"), takes_mask=True))
    came = [found.norms, found.attention_inside, found.attention_last, found.ffn_first, found.ffn_last]
    assert [" ".join(names) for names in came] == list(FOUND[kind]) and not found.attentions


@pytest.mark.parametrize(
    "kind, attention_last, ffn_last",
    [
        (TwoBehind, "", None),
        (AttentionOnly, "o", ""),
        (NoResidualBehind, "o", "f.2"),
        (TorchsAttention, "look.out_proj", "f.2"),
        (OneMapBehind, "look.out_proj", "f"),
        (NoMapsAtAll, "", None),
    ],
)
def test_nothing_is_found_where_two_answers_are_possible_or_none_is_to_be_seen(kind, attention_last, ffn_last):
    torch.manual_seed(0)
    found = find(Subject(kind(), D, Adapter("real", "mask"), takes_mask=True))
    assert " ".join(found.attention_last) == attention_last
    assert ffn_last is None or " ".join(found.ffn_last) == ffn_last


class Row(nn.Module):
    """One row, whatever comes in: it does not see a factor, but it is no norm."""

    def __init__(self):
        super().__init__()
        self.row = nn.Parameter(torch.randn(D))

    def forward(self, x):
        return self.row.expand_as(x)


class Unit(nn.Module):
    """A norm without a name, of any width."""

    def forward(self, x):
        return x / x.norm(dim=-1, keepdim=True)


class Others(Fused):
    """Norms of the hidden width and of a head are none of the block's."""

    def __init__(self):
        super().__init__()
        self.r, self.s, self.t = Row(), Unit(), Unit()
        self.f = nn.Sequential(nn.Linear(D, F), Unit(), nn.Linear(F, D))

    def cut(self, x):
        q, k, v = super().cut(x)
        return self.s(q), k, v

    def forward(self, x, mask=None):
        return self.t(super().forward(x, mask)) + self.r(x)


def test_a_norm_gives_the_same_for_a_multiple_and_not_for_the_opposite():
    assert find(Subject(Others(), D, Adapter("real", "mask"), takes_mask=True)).norms == ("a", "b", "t")


@pytest.mark.parametrize("seed, kind", [(seed, kind) for seed in range(20) for kind in list(FOUND)[seed % 7 :: 7]])
def test_a_block_that_is_right_is_not_accused_whatever_its_names(seed, kind):
    torch.manual_seed(seed)
    report = diagnose(kind().to((torch.float32, torch.float64)[seed % 2]), D, Adapter("real", "mask"))
    assert report.ok, report.text
    assert {report[check].outcome for check in ("token_independence", "sublayers_off", "norm_axes")} == {PASSED}


@pytest.mark.parametrize("kind", FOUND)
def test_a_block_with_the_parameters_of_torchs_layer_is_compared_and_no_other(kind):
    torch.manual_seed(1)
    finding = diagnose(kind(), D, Adapter("real", "mask"))["official_parity"]
    assert finding.outcome == (PASSED if kind in COMPARED else NOT_APPLICABLE)
    assert finding.note == (f"nearest: {COMPARED[kind]}" if kind in COMPARED else "")
