"""Inputs hide nothing, copies are rough, and a run that answers by chance is left out."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.blocks import PreNorm
from oneblock.checks import Adapter, Subject, subject_of
from oneblock.checks.probes import all_runs, apart, batch, rates, roughened, rows, steady_runs

D, H, F = 12, 2, 20


class Drops(nn.Module):
    """By a rate that no attribute holds; ``when`` says in which mode."""

    def __init__(self, always):
        super().__init__()
        self.always = always

    def forward(self, x):
        return functional.dropout(x, 0.5, self.always or self.training)


@pytest.mark.parametrize("size", [7, 12])
def test_the_three_axes_differ_and_one_text_is_full_and_the_others_not(size):
    given = batch(Subject(nn.Identity(), size, Adapter()))
    assert len({*given.x.shape}) == 3
    assert given.valid_tokens.sum(1).tolist() == [given.x.shape[1] - 2, given.x.shape[1], 2]


def test_rows_have_means_of_their_own_and_a_seed_gives_the_same():
    subject = Subject(nn.Identity(), D, Adapter())
    assert torch.equal(rows(subject), rows(subject)) and not torch.equal(rows(subject), rows(subject, seed=1))
    assert rows(subject).mean(-1).std() > 0.3


def test_a_rough_copy_has_no_gamma_of_1_and_no_bias_of_0_and_the_block_itself_stays():
    block = PreNorm(D, H, F)
    nn.init.zeros_(block.linear2.weight)
    rough = roughened(subject_of(block)).block
    for name, value in rough.named_parameters():
        fresh = block.get_parameter(name)
        assert torch.equal(value, fresh) if value.ndim > 1 and fresh.any() else not (value == fresh).any()
    assert not block.linear1.bias.equal(rough.linear1.bias) and not block.norm1.bias.any()


@pytest.mark.parametrize("block, steady", [(Drops(True), []), (Drops(False), ["eval", "eval, no_grad"]), (PreNorm(D, H, F, dropout=0.1), list)])
def test_a_run_that_answers_by_chance_is_left_out(block, steady):
    subject = subject_of(block, D)
    assert list(steady_runs(subject)) == (list(all_runs(subject)) if steady is list else steady)


def test_rates_are_found_in_dropout_and_in_attention():
    found = [(type(module).__name__, name) for module, name in rates(nn.TransformerEncoderLayer(D, H, F))]
    assert found == [("MultiheadAttention", "dropout"), *[("Dropout", "p")] * 3]


@pytest.mark.parametrize(
    "due, came, gap",
    [([2.0, -4.0], [2.0, -3.0], 0.25), ([1.0], [torch.nan], torch.inf), ([0.0], [0.0], 0), ([0.0], [1.0], torch.inf), ([1.0], [1.0, 1.0], torch.inf)],
)
def test_how_far_two_tensors_are_apart(due, came, gap):
    assert apart(torch.tensor(due), torch.tensor(came)) == gap
