import pytest
import torch

from oneblock.costs import block_parameters
from oneblock.errors import ArgumentError
from oneblock.failures.width import D, trial
from oneblock.polarity import WORDS

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def test_a_trial_counts_what_it_learns():
    one = trial(7, 2, seed=0, steps=1)
    assert one.parameters == len(WORDS) * D + block_parameters(D, 7) + 2 * D + 2


def test_untrained_every_answer_is_near_a_guess_and_trained_it_is_right():
    assert trial(8, 3, seed=0, steps=1).learned <= 0.75
    assert trial(8, 16, seed=0).new == 1


def test_a_trial_is_fixed_by_its_seed_and_leaves_torchs_alone():
    torch.manual_seed(4)
    before = torch.get_rng_state()
    assert trial(3, 2, seed=5, steps=7) == trial(3, 2, seed=5, steps=7)
    assert torch.equal(torch.get_rng_state(), before)


def test_no_width_is_refused():
    with pytest.raises(ArgumentError, match="F must be a whole number ≥ 1; got 0"):
        trial(0, 2, 0)
