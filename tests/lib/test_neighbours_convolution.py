"""The convolution against its sum, spelt out; a padded text against the text alone."""

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

from oneblock.dependency import reach
from oneblock.errors import ArgumentError, ShapeError
from oneblock.neighbours import ConvolutionBlock
from oneblock.neighbours.convolution import Convolution
from oneblock.neighbours.windowed import windowed
from oneblock.trace import record

N, L, D, F, WIDTH = 2, 7, 13, 11, 5


@pytest.fixture
def block(filled):
    return filled(ConvolutionBlock(D, F, WIDTH))


def spelt_out(convolution, x):
    """``Σ_o w_{r,o} x_{i+o,r} + b_r``, one position and one offset after the other."""
    w, b, half = convolution.conv.weight, convolution.conv.bias, WIDTH // 2
    y = b.expand_as(x).clone()
    for i in range(x.shape[1]):
        for o in range(-half, half + 1):
            if 0 <= i + o < x.shape[1]:
                y[:, i] += w[:, 0, o + half] * x[:, i + o]
    return y


def test_it_is_its_equation(fixed, run, block):
    x = fixed(N, L, D)
    u = x + spelt_out(block.convolution, layer_norm(x, [D], block.norm1.weight, block.norm1.bias))
    row, first, second = layer_norm(u, [D], block.norm2.weight, block.norm2.bias), block.network.linear1, block.network.linear2
    due = u + gelu(row @ first.weight.T + first.bias) @ second.weight.T + second.bias
    torch.testing.assert_close(run(block, x), due, atol=1e-12, rtol=1e-12)


def test_a_position_reads_its_window_and_only_within_its_feature(fixed, filled, block):
    assert torch.equal(reach(block, fixed(N, L, D)).positions, windowed(L, WIDTH // 2))
    assert reach(filled(Convolution(D, WIDTH)), fixed(N, L, D)).crosses == ("positions",)


def test_a_padded_text_gets_what_the_text_gets_alone(fixed, block):
    x, short = fixed(N, L, D), 4
    valid_tokens = torch.arange(L) < torch.tensor([[short], [L]])
    y = block(x, valid_tokens)
    torch.testing.assert_close(y[:1, :short], block(x[:1, :short]), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(y[1:], block(x[1:]), atol=1e-12, rtol=1e-12)
    assert not torch.allclose(block(x)[:1, :short], y[:1, :short])  # the mask does something


def test_the_ends_are_told_apart_from_the_middle(fixed, block):
    same = fixed(1, 1, D).expand(1, L, D)
    y = block(same)[0]
    torch.testing.assert_close(y[2], y[4], atol=1e-12, rtol=1e-12)
    assert not torch.allclose(y[0], y[2])


def test_it_can_be_recorded(fixed, block):
    assert record(block, fixed(N, L, D)).names[-1] == "sum2.y"


@pytest.mark.usefixtures("as_readers_run_it")
def test_broken_contracts_are_named(fixed, block):
    with pytest.raises(ArgumentError, match=r"^width must be an odd number; got 4; a window has its own position"):
        ConvolutionBlock(D, F, 4)
    with pytest.raises(ArgumentError, match=r"^width must be a whole number ≥ 1; got 0"):
        Convolution(D, 0)
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\] = \[N, L, 13\]; got float64 \[2, 7, 5\]"):
        block(fixed(N, L, 5))
    with pytest.raises(ShapeError, match=r"^valid_tokens must be bool \[N, L\] = \[2, 7\]"):
        block(fixed(N, L, D), torch.ones(N, 3, dtype=torch.bool))
