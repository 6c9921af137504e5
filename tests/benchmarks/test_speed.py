"""The benchmark runs and compares like with like; how fast is for its readers to judge."""

import pytest
import speed
import torch

from oneblock.blocks import PostNorm, PreNorm
from oneblock.fast_path import fused


def test_every_setting_gives_a_line_of_two_ratios():
    lines = list(speed.lines(speed.SIZES[:1], rounds=1))
    assert len(lines) == len(speed.ORDERS) * 3 * len(speed.PASSES) == 18
    for line in lines:
        time, memory = map(float, line.split()[-2:])
        assert 0 < time < 100 and 0.5 < memory < 2


@pytest.mark.parametrize("kind", [PreNorm, PostNorm])
@pytest.mark.parametrize("valid", [None, torch.arange(5) < torch.tensor([[2], [4]])], ids=["whole", "padded"])
def test_the_two_that_are_compared_compute_the_same(kind, valid):
    ours, theirs = speed.pair(kind, 6, 3, 11, rate=0.0)
    x, (mask, padding) = torch.linspace(-2, 3, 2 * 5 * 6, dtype=torch.float32).sin().view(2, 5, 6), speed.masks(valid)
    torch.testing.assert_close(ours(x, *mask), theirs(x, *padding), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [PreNorm, PostNorm])
def test_both_drop_at_the_same_rate_at_each_site(kind):
    ours, theirs = speed.pair(kind, 6, 3, 11, rate=0.25)
    x, results = torch.linspace(-2, 3, 5 * 6, dtype=torch.float32).view(1, 5, 6), []  # of more, torch draws in the order [L, N, D]
    for layer in (ours, theirs):
        torch.manual_seed(0)
        results.append(layer(x))
    torch.testing.assert_close(*results, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [PreNorm, PostNorm])
def test_torchs_layer_is_on_its_fast_path_where_it_is_said_to_be(kind):
    _, theirs = speed.pair(kind, 6, 2, 11, rate=0.25)
    x = torch.ones(2, 5, 6)
    for training, step in speed.PASSES.values():
        theirs.train(training)
        assert fused(lambda: step(theirs, x)) == ("nothing" if training else "layer")  # noqa: B023
