"""Each part of torch's layer is read off the module that plays it, however it keeps its numbers."""

import pytest
import torch
from torch import nn
from torch.nn.functional import layer_norm

from oneblock.attention import MultiHeadAttention
from oneblock.checks import Adapter, Subject
from oneblock.checks.found import Found
from oneblock.checks.roles import roles

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

D, H, F = 6, 3, 7


class Bare(nn.Module):
    """A LayerNorm whose ε stands in its ``forward`` and whose γ is kept as its distance from 1, or not at all."""

    def __init__(self, *vectors):
        super().__init__()
        for name in vectors:
            setattr(self, name, nn.Parameter(torch.randn(D)))

    def forward(self, x):
        y = layer_norm(x, x.shape[-1:], eps=1e-6)
        y = y * self.gain if hasattr(self, "gain") else y
        return y + self.shift if hasattr(self, "shift") else y


class Turned(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width_in, width_out))

    def forward(self, x):
        return x @ self.weight


class Mean(nn.Linear):
    """Not what its weight says."""

    def forward(self, x):
        return super().forward(x) / 2


FOUND = Found(("n", "m"), (), ("qkv",), ("o",), ("up",), ("down",))


def block(**parts):
    """A bag of parts; how they are joined does not matter here."""
    usual = {"n": nn.LayerNorm(D, eps=1e-4), "m": nn.LayerNorm(D), "qkv": nn.Linear(D, 3 * D), "o": nn.Linear(D, D)}
    return nn.ModuleDict({**usual, "up": nn.Linear(D, F), "down": nn.Linear(F, D), **parts}).double()


def roles_of(found=FOUND, **parts):
    made = block(**parts)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made, roles(Subject(made, D, Adapter()), found)


def test_each_part_has_its_own_numbers():
    made, parts = roles_of()
    due = [made[name].weight for name in ("qkv", "o", "up", "down", "n", "m")]
    assert all(map(torch.equal, due, [part.weight for part in (parts.qkv, parts.out, parts.first, parts.last, *parts.norms)]))
    assert torch.equal(parts.out.bias, made["o"].bias) and torch.allclose(parts.norms[1].bias, made["m"].bias)
    assert [norm.eps for norm in parts.norms] == [1e-4, 1e-5] and (parts.projections, parts.H) == (("qkv",), None)


def test_a_bias_that_is_not_there_is_zero():
    _, parts = roles_of(o=nn.Linear(D, D, bias=False), n=nn.LayerNorm(D, bias=False))
    assert not parts.out.bias.any() and parts.out.bias.shape == (D,) and not parts.norms[0].bias.any()


def test_three_maps_lie_below_each_other():
    found = Found(("n", "m"), (), ("a", "b", "c"), ("o",), ("up",), ("down",))
    made = nn.ModuleDict({name: part for name, part in block().items() if name != "qkv"} | {name: nn.Linear(D, D) for name in "abc"}).double()
    parts = roles(Subject(made, D, Adapter()), found)
    assert torch.equal(parts.qkv.weight, torch.cat([made[name].weight for name in "abc"])) and parts.projections == ("a", "b", "c")


@pytest.mark.parametrize("attention", [nn.MultiheadAttention(D, H), MultiHeadAttention(D, H, bias=False)])
def test_an_attention_of_torchs_tells_its_heads(attention):
    found = Found(("n", "m"), ("at",), ("at",), ("at.out_proj",), ("up",), ("down",))
    made = nn.ModuleDict({name: part for name, part in block().items() if name not in ("qkv", "o")} | {"at": attention}).double()
    parts = roles(Subject(made, D, Adapter()), found)
    assert parts.H == H and torch.equal(parts.qkv.weight, attention.in_proj_weight) and parts.qkv.bias.shape == (3 * D,)


@pytest.mark.parametrize("vectors", [(), ("gain",), ("gain", "shift")])
def test_a_norm_of_other_names_is_read_by_what_it_does(vectors):
    made, parts = roles_of(n=Bare(*vectors))
    norm = parts.norms[0]
    assert norm.eps == 1e-6
    assert torch.equal(norm.weight, made["n"].gain if vectors else torch.ones(D, dtype=torch.float64))
    assert torch.equal(norm.bias, made["n"].shift if len(vectors) > 1 else torch.zeros(D, dtype=torch.float64))


def test_a_matrix_kept_the_other_way_round_is_turned():
    made, parts = roles_of(o=Turned(D, D), up=Turned(D, F))
    assert torch.equal(parts.out.weight, made["o"].weight.T) and torch.equal(parts.first.weight, made["up"].weight.T)


@pytest.mark.parametrize(
    "parts",
    [
        {"n": nn.RMSNorm(D)},
        {"o": Mean(D, D)},
        {"qkv": nn.Linear(D, 3 * D - 1)},
        {"o": nn.Linear(D - 1, D)},
        {"down": nn.Linear(F - 1, D)},
        {"n": nn.BatchNorm1d(D, affine=True, track_running_stats=False)},
        {"besides": nn.Linear(1, 1)},
        {"o": nn.Sequential(nn.Linear(D, D))},
    ],
)
def test_a_part_of_another_kind_or_shape_or_one_more_has_no_role(parts):
    assert roles_of(**parts)[1] is None


@pytest.mark.parametrize("missing", ["norms", "attention_inside", "attention_last", "ffn_first", "ffn_last"])
def test_without_one_of_the_parts_there_are_none(missing):
    assert roles_of(Found(**{**vars(FOUND), missing: ()}))[1] is None
