import pytest
import torch

from oneblock.errors import ArgumentError
from oneblock.failures.quadratic import WAYS, Cost, D, H, cost, doubling, kept_bytes, peak_bytes, rows

pytestmark = pytest.mark.usefixtures("as_readers_run_it")
WRITTEN_OUT, FUSED, FFN = WAYS


@pytest.mark.parametrize("L", [3, 17, 131])
def test_kept_are_the_numbers_of_the_closed_forms(L):
    assert kept_bytes(WRITTEN_OUT, L) == 4 * (H * L**2 + L * D)
    assert kept_bytes(FUSED, L) == 4 * (H * L + 2 * L * D)
    assert kept_bytes(FFN, L) == 4 * L * (D + 4 * D)


def test_both_ways_through_attention_give_the_same_numbers():
    x = rows(13)
    torch.testing.assert_close(WAYS[WRITTEN_OUT]()(x), WAYS[FUSED]()(x))


def test_written_out_the_peak_is_two_squares_and_fused_it_is_none():
    assert 2 * 4 * H * 257**2 <= peak_bytes(WRITTEN_OUT, 257) < 2.2 * 4 * H * 257**2
    assert peak_bytes(FUSED, 257) < 4 * H * 257**2 / 2


def test_time_over_the_length_is_told_apart_from_none():
    assert cost(FUSED, 512).seconds > 3 * cost(FUSED, 64).seconds > 0


def test_a_doubling_is_taken_between_neighbours_of_one_way():
    costs = [Cost("a", 4, 8, 1, 9.0), Cost("a", 2, 2, 1, 3.0), Cost("b", 2, 5, 1, 1.0), Cost("a", 1, 1, 1, 1.5)]
    assert doubling(costs, "a", "kept") == [2, 4] and doubling(costs, "a", "seconds") == [2, 3]
    assert doubling(costs, "b", "kept") == []


def test_unknown_ways_and_lengths_are_refused():
    with pytest.raises(ArgumentError, match="way must be one of scores written out; fused kernel; FFN, F = 4D; got 'linear'"):
        kept_bytes("linear", 3)
    with pytest.raises(ArgumentError, match="L must be a whole number ≥ 1; got 0"):
        peak_bytes(FUSED, 0)
