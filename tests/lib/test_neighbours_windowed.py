"""A window is what is left of the sequence when all beyond it is cut off."""

import pytest
import torch

from oneblock.blocks import PreNorm
from oneblock.dependency import reach
from oneblock.errors import ArgumentError
from oneblock.neighbours import WindowedBlock
from oneblock.neighbours.windowed import windowed

N, L, D, H, F = 2, 7, 15, 3, 11


def test_the_mask_is_the_distance_of_two_positions():
    for width in (1, 2, 5):
        assert windowed(L, width).tolist() == [[abs(i - j) <= width for j in range(L)] for i in range(L)]


@pytest.mark.parametrize("width", [1, 2])
def test_a_position_gets_what_the_plain_block_gives_for_its_window_alone(fixed, run, alike, width):
    block, plain = alike(lambda **sizes: WindowedBlock(**sizes, reach=width), PreNorm, D, H, F)
    x = fixed(N, L, D)
    y = run(block, x)
    for i in range(L):
        low = max(0, i - width)
        cut = plain(x[:, low : i + width + 1])
        torch.testing.assert_close(y[:, i], cut[:, i - low], atol=1e-12, rtol=1e-12)


def test_blocks_behind_each_other_reach_as_far_as_their_windows_together(fixed, filled):
    blocks = torch.nn.Sequential(*(filled(WindowedBlock(6, 2, 5, reach=1)) for _ in range(3)))
    for K in (1, 2, 3):
        assert torch.equal(reach(blocks[:K], fixed(1, L, 6)).positions, windowed(L, K))


def test_padding_within_reach_is_not_read(fixed, filled):
    block, valid_tokens = filled(WindowedBlock(D, H, F, reach=2)), torch.arange(L) < torch.tensor([[5], [7]])
    x = fixed(N, L, D)
    other = torch.where(valid_tokens[..., None], x, fixed(N, L, D, seed=8))
    torch.testing.assert_close(block(x, valid_tokens)[valid_tokens], block(other, valid_tokens)[valid_tokens], atol=0, rtol=0)


@pytest.mark.usefixtures("as_readers_run_it")
def test_padding_beyond_reach_and_bad_sizes_are_refused(fixed, filled):
    block = filled(WindowedBlock(D, H, F, reach=2))
    with pytest.raises(ArgumentError, match=r"^may_read must be .* leaves each position something to read"):
        block(fixed(N, L, D), torch.arange(L) < torch.tensor([[2], [7]]))
    with pytest.raises(ArgumentError, match=r"^reach must be a whole number ≥ 1; got 0"):
        WindowedBlock(D, H, F, reach=0)
    with pytest.raises(ArgumentError, match=r"^reach must be a whole number ≥ 1; got 1.5"):
        windowed(L, 1.5)
    with pytest.raises(ArgumentError, match=r"^L must be a whole number ≥ 1; got 0"):
        windowed(0, 1)
