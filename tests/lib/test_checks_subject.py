"""A block of any convention is called as it wants to be."""

import pytest
import torch
from torch import nn

from oneblock.blocks import PreNorm
from oneblock.checks import Adapter, Subject, subject_of
from oneblock.checks.parts import find
from oneblock.checks.subject import adapter_for, names_of
from oneblock.errors import ArgumentError, ShapeError

N, L, D = 2, 3, 5
VALID = torch.tensor([[True, True, False], [True, True, True]])
PADDING = ~VALID
MINUS = -torch.inf


class Listens(nn.Module):
    """Keeps what it is given."""

    def __init__(self, result=lambda x: x):
        super().__init__()
        self.result, self.heard = result, None

    def forward(self, x, mask=None, **named):
        self.heard = (x, mask if mask is not None else next(iter(named.values()), None), tuple(named))
        return self.result(x)


@pytest.mark.parametrize(
    "meaning, due",
    [("real", VALID.tolist()), ("padding", PADDING.tolist()), ("additive", [[0, 0, MINUS], [0, 0, 0]])],
)
def test_a_mask_arrives_with_its_meaning(fixed, meaning, due):
    block = Listens()
    Adapter(meaning)(block, fixed(N, L, D), VALID)
    assert block.heard[1].tolist() == due


def test_a_mask_arrives_under_its_name_and_with_its_axes(fixed):
    block = Listens()
    Adapter("real", "keep", "N 1 L L")(block, fixed(N, L, D), VALID)
    assert block.heard[2] == ("keep",) and block.heard[1].shape == (N, 1, L, L)
    assert torch.equal(block.heard[1][:, 0, 1], VALID)
    Adapter("additive", axes="N 1 1 L")(block, fixed(N, L, D), VALID)
    assert block.heard[1].shape == (N, 1, 1, L) and block.heard[1].dtype == torch.float64


def test_a_block_that_takes_no_mask_gets_none(fixed):
    block = Listens()
    Adapter()(block, fixed(N, L, D), VALID)
    Subject(block, D, Adapter("real"), takes_mask=False)(fixed(N, L, D), VALID)
    assert block.heard[1] is None


def test_batch_second_is_turned_round_both_ways(fixed):
    block, x = Listens(), fixed(N, L, D)
    y = Adapter(batch_first=False)(block, x, None)
    assert block.heard[0].shape == (L, N, D) and torch.equal(y, x)


@pytest.mark.parametrize("result", [lambda x: (x, None), lambda x: [x, x + 1]])
def test_of_several_results_the_first_is_taken(fixed, result):
    x = fixed(N, L, D)
    assert torch.equal(Adapter()(Listens(result), x, None), x)


def test_a_subject_hands_over_a_copy(fixed):
    x = fixed(N, L, D)
    Subject(Listens(lambda x: x.zero_()), D, Adapter())(x)
    assert x.any()


@pytest.mark.parametrize("batch_first", [True, False])
def test_torchs_layer_is_known(batch_first):
    layer = nn.TransformerEncoderLayer(6, 2, 7, batch_first=batch_first)
    subject = subject_of(layer)
    assert subject.call == Adapter("padding", "src_key_padding_mask", batch_first=batch_first)
    assert (subject.D, subject.heads, subject.takes_mask) == (6, 2, True)


def test_the_librarys_blocks_are_known():
    subject = subject_of(PreNorm(6, 2, 7).double())
    assert subject.call == Adapter("real", "valid_tokens") and subject.D == 6
    assert subject.like.dtype == torch.float64


def test_a_ready_subject_is_taken_as_it_is():
    subject = Subject(Listens(), D, Adapter())
    assert subject_of(subject) is subject


def test_without_a_mask_in_its_signature_there_is_none():
    assert adapter_for(nn.Linear(5, 5)).mask is None


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_mask_that_may_mean_either_is_asked_for():
    with pytest.raises(ArgumentError, match=r"^call must be an Adapter that says what the block's mask means; got \['mask'\]; Adapter\('real', name\)"):
        subject_of(Listens(), D)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: subject_of(nn.Linear(5, 5)), r"^D must be the width of a row; got None; nothing in the block tells it: give D=…"),
        (lambda: subject_of(PreNorm, 6), r"^block must be a torch module; got <class .*; call the factory, and give what it returns"),
        (lambda: Adapter("ignore"), r"^mask must be None or one of real, padding, additive; got 'ignore'"),
        (lambda: Adapter("real", axes="L N"), r"^axes must be one of N L; N 1 1 L; N 1 L L; got 'L N'"),
    ],
)
def test_what_cannot_be_told_is_asked_for(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_block_that_returns_no_tensor_is_told_so(fixed):
    with pytest.raises(ShapeError, match=r"^block must be a module that returns a tensor \[2, 3, 5\]; got 'dict'"):
        Subject(Listens(lambda x: {"rows": x}), D, Adapter())(fixed(N, L, D))


class Plain(nn.Module):
    """Two maps, and an activation without parameters."""

    def __init__(self):
        super().__init__()
        self.o, self.f = nn.Linear(D, D), nn.Sequential(nn.Linear(D, 7), nn.GELU(), nn.Linear(7, D))

    def forward(self, x):
        return x + self.o(x) + self.f(x)


@pytest.mark.parametrize("given, due", [((), ()), ("o", ("o",)), (["o", "f.2"], ("o", "f.2"))])
def test_one_name_or_several_are_taken(given, due):
    assert names_of(given) == due
    assert find(subject_of(Plain(), D, attention_out=given)).attention_last == due


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize(
    "claims, message",
    [
        ({"attention_out": "out"}, r"^attention_out must be names of maps with parameters; got \['out'\]; there are: o, f, f\.0, f\.2$"),
        ({"ffn_out": ("f.2", "f.1")}, r"^ffn_out must be names of maps with parameters; got \['f\.1'\]; there are: o, f, f\.0, f\.2$"),
        ({"norms": ("f.1", "")}, r"^norms must be names of submodules; got \[''\]; there are: o, f, f\.0, f\.1, f\.2$"),
    ],
)
def test_a_part_that_is_not_there_is_refused_and_told_what_is(claims, message):
    with pytest.raises(ArgumentError, match=message):
        subject_of(Plain(), D, **claims)
