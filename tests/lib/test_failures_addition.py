import pytest
import torch
from torch import nn

from oneblock.errors import ArgumentError
from oneblock.failures import addition
from oneblock.failures.addition import (
    LENGTHS,
    LONGEST,
    POSITIONS,
    SPAN,
    Adder,
    added,
    columns,
    exercises,
    placed,
    right,
    run_of_nines,
    trial,
)

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def drawn(seed=3):
    return torch.Generator().manual_seed(seed)


def number(digits):
    """Digits, the last one first, as a whole number."""
    return int("".join(str(digit) for digit in reversed(digits.tolist())))


@pytest.mark.parametrize("nines", [0.0, 0.5])
def test_the_sum_is_that_of_whole_numbers(nines):
    digits = columns(31, 7, nines, drawn())
    for pair, result in zip(digits, added(digits), strict=True):
        assert number(result) == (number(pair[:, 0]) + number(pair[:, 1])) % 10**7


def test_nines_are_as_many_as_asked_for():
    share = (columns(500, 11, 0.5, drawn()).sum(-1) == 9).double().mean()
    assert share == pytest.approx(0.55, abs=0.02)
    assert (columns(500, 11, 0.0, drawn()).sum(-1) == 9).double().mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("c", range(LONGEST))
def test_a_carry_runs_through_just_so_many_nines(c):
    digits = run_of_nines(53, c, drawn())
    sums = digits.sum(-1)
    assert (sums[:, 0] == 12).all() and (sums[:, 1 : c + 1] == 9).all() and (sums[:, c + 1 : c + 2] < 9).all()
    changed = digits.clone()
    changed[:, 0] = 0  # no carry is born
    assert ((added(digits) != added(changed)).sum(1) == min(c + 2, LONGEST)).all()


def test_places_count_on_from_the_first():
    digits = columns(2, 3, 0.0, drawn())
    assert torch.equal(placed(digits, torch.tensor([0, 5]))[..., 2], torch.tensor([[0, 1, 2], [5, 6, 7]]))
    assert torch.equal(placed(digits, torch.tensor([0, 5]))[..., :2], digits)


def test_exercises_are_of_all_trained_lengths_and_answered_rightly():
    batches = list(exercises(60, 0.5, False, seed=2))
    assert {inputs.shape[1] for inputs, _ in batches} == set(range(1, LONGEST + 1))
    assert all(torch.equal(added(inputs[..., :2]), classes) for inputs, classes in batches)
    assert max(inputs[..., 2].max().item() for inputs, _ in batches) == LONGEST - 1


def test_from_any_place_every_row_is_met():
    met = {place for inputs, _ in exercises(40, 0.0, True, seed=2) for place in inputs[..., 2].flatten().tolist()}
    assert met == set(range(addition.MOST))


def test_an_adder_adds_two_embeddings_and_a_position():
    adder = Adder(POSITIONS["learned"]())
    adder.deep, adder.head = nn.Identity(), nn.Identity()
    row = adder(torch.tensor([[[4, 7, 2]]]))[0, 0]
    due = adder.first.weight[4] + adder.second.weight[7] + adder.positions.table.weight[2]
    torch.testing.assert_close(row, due)


def test_right_counts_digits_and_whole_sums():
    class AllButTheLastColumn(nn.Module):
        def forward(self, given):
            result = added(given[..., :2])
            result[0, -1] = (result[0, -1] + 1) % 10
            return nn.functional.one_hot(result, 10)

    assert right(AllButTheLastColumn(), columns(5, 7, 0.0, drawn())) == (pytest.approx(34 / 35), pytest.approx(4 / 5))


def test_a_trial_learns_and_leaves_torchs_seed_alone():
    torch.manual_seed(4)
    before = torch.get_rng_state()
    one = trial("sinusoids", 0.0, seed=1, steps=2 * SPAN)
    assert torch.equal(torch.get_rng_state(), before)
    assert 2.0 < one.losses[0] < 2.4 and one.losses[1] < one.losses[0]
    assert len(one.digits) == len(one.sums) == len(LENGTHS) and len(one.runs) == LONGEST


def test_unknown_positions_and_bad_numbers_are_refused():
    with pytest.raises(ArgumentError, match="positions must be one of learned; learned, from any place; sinusoids; none; got"):
        trial("rotary", 0.0, 0)
    with pytest.raises(ArgumentError, match="N must be a whole number ≥ 1; got 0"):
        columns(0, 3, 0.0, drawn())
    with pytest.raises(ArgumentError, match="n must be a whole number ≥ 1; got 0"):
        columns(3, 0, 0.0, drawn())
    with pytest.raises(ArgumentError, match=r"nines must be a number in \[0, 1\); got 1.0"):
        columns(3, 3, 1.0, drawn())
