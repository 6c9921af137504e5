"""The benchmark runs and compares like with like; how fast is for its readers to judge."""

import speed
import torch

from oneblock.blocks import PostNorm, PreNorm


def test_every_setting_gives_a_line_of_two_ratios():
    lines = list(speed.lines(speed.SIZES[:1], rounds=1))
    assert len(lines) == len(speed.ORDERS) * 3 * len(speed.PASSES) == 18
    for line in lines:
        time, memory = map(float, line.split()[-2:])
        assert 0 < time < 100 and 0.5 < memory < 2


def test_the_two_that_are_compared_compute_the_same():
    for kind in (PreNorm, PostNorm):
        ours, theirs = speed.pair(kind, 6, 3, 11, rate=0.0)
        x = torch.linspace(-2, 3, 2 * 5 * 6, dtype=torch.float32).view(2, 5, 6)
        torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=0)
