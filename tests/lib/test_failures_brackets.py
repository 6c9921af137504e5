import pytest
import torch
from torch import nn

from oneblock.errors import ArgumentError
from oneblock.failures import brackets
from oneblock.failures.brackets import CLOSING, DEPTHS, SPAN, Reader, exercises, nestings, partners, right, texts, trial

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def drawn(seed=3):
    return torch.Generator().manual_seed(seed)


def written(opens):
    return "".join("(" if is_open else ")" for is_open in opens)


def test_the_nestings_of_three_pairs_are_the_five_there_are():
    found = {depth: sorted(map(written, nestings(depth, 6).tolist())) for depth in (1, 2, 3)}
    assert found == {1: ["()()()"], 2: ["(()())", "(())()", "()(())"], 3: ["((()))"]}


def test_eight_pairs_have_1430_nestings():
    # The Catalan number of 8; those of depth 3 or less are a Fibonacci number.
    counts = [len(nestings(depth)) for depth in range(1, 9)]
    assert sum(counts) == 1430 and sum(counts[:3]) == 610


def test_a_bracket_closes_what_removing_innermost_pairs_leaves():
    for opens, opened in zip(nestings(4), partners(nestings(4)), strict=True):
        left = [(place, is_open) for place, is_open in enumerate(opens.tolist())]
        while left:  # another route than a stack: take away pairs that stand side by side
            k = next(k for k in range(len(left)) if left[k][1] and not left[k + 1][1])
            assert opened[left[k][0]] == opened[left[k + 1][0]] == left[k][0]
            del left[k : k + 2]


def test_texts_hide_the_kind_of_closing_brackets_only():
    opened = partners(nestings(5))
    tokens, classes = texts(opened, 37, drawn())
    closing = tokens == CLOSING
    assert (closing.sum(1) == 8).all() and torch.equal(tokens[~closing], classes[~closing])
    assert set(classes.flatten().tolist()) == {0, 1}


def test_exercises_keep_to_the_depth_and_leave_half_of_the_nestings_out():
    met = {written(text) for tokens, _ in exercises(60, 3, seed=2) for text in (tokens != CLOSING).tolist()}
    withheld = {written(text) for depth in DEPTHS for text in nestings(depth)[1::2].tolist()}
    shown = {written(text) for depth in (2, 3) for text in nestings(depth)[::2].tolist()}
    assert met <= shown and not met & withheld and len(met) > 200


def test_right_counts_closing_brackets_and_whole_texts():
    tokens, classes = texts(partners(nestings(3)), 5, drawn())

    class AllButOne(nn.Module):
        def forward(self, given):
            result = torch.where(given == CLOSING, classes, 1 - classes)  # wrong at opening ones, which nobody asks for
            result[0, -1] = 1 - result[0, -1]
            return nn.functional.one_hot(result, 2)

    assert right(AllButOne(), tokens, classes) == (pytest.approx(39 / 40), pytest.approx(4 / 5))


def test_a_reader_tells_places_apart():
    reader = Reader()
    tokens = torch.tensor([[0, 1, 2, 2]])
    assert not torch.allclose(reader(tokens)[0, 2], reader(tokens)[0, 3])


def test_a_trial_learns_and_leaves_torchs_seed_alone():
    torch.manual_seed(4)
    before = torch.get_rng_state()
    one = trial(3, seed=1, steps=2 * SPAN)
    assert torch.equal(torch.get_rng_state(), before)
    assert one.losses[1] < one.losses[0] < 0.6
    assert len(one.closers) == len(one.texts) == len(brackets.DEPTHS)


def test_bad_numbers_are_refused():
    with pytest.raises(ArgumentError, match="deepest must be a depth from 2 to 7; got 8"):
        trial(8, 0)
    with pytest.raises(ArgumentError, match="depth must be a whole number ≥ 1; got 0"):
        nestings(0)
    with pytest.raises(ArgumentError, match="L must be a whole number ≥ 1; got 0"):
        nestings(2, 0)
    with pytest.raises(ArgumentError, match="N must be a whole number ≥ 1; got 0"):
        texts(partners(nestings(2)), 0, drawn())
