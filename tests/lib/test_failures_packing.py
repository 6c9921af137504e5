import pytest
import torch

from oneblock.blocks import PreNorm
from oneblock.errors import ArgumentError
from oneblock.failures.packing import (
    block_flops,
    by_length,
    counted_flops,
    needed_flops,
    packed,
    packed_block,
    packed_flops,
    padded,
    padded_flops,
    padding_share,
)

pytestmark = pytest.mark.usefixtures("as_readers_run_it")
D, H, F = 6, 3, 11
LENGTHS = [2, 7, 5]


@pytest.fixture
def block(filled):
    return filled(PreNorm(D, H, F))


@pytest.fixture
def texts(fixed):
    return [fixed(n, D, seed=n) for n in LENGTHS]


def test_the_share_of_padding_is_that_of_the_mask(texts):
    _, valid_tokens = padded(texts)
    assert padding_share(LENGTHS) == pytest.approx((~valid_tokens).double().mean().item())
    assert padding_share([5, 5]) == 0


def test_a_mask_saves_no_operation(block, texts):
    x, valid_tokens = padded(texts)
    counts = counted_flops(lambda: block(x, valid_tokens)), counted_flops(lambda: block(x))
    assert counts == (padded_flops(LENGTHS, D, F),) * 2


def test_a_packed_row_is_counted_as_one_long_text(block, texts):
    x, same_text = packed(texts)
    assert counted_flops(lambda: packed_block(block, x, same_text)) == packed_flops(LENGTHS, D, F) == block_flops(D, F, 14)


def test_needed_is_each_text_alone(block, texts):
    assert sum(counted_flops(lambda: block(text[None])) for text in texts) == needed_flops(LENGTHS, D, F)


def test_a_packed_block_gives_each_text_what_it_gives_it_alone(block, texts):
    rows = packed_block(block, *packed(texts))[0].split(LENGTHS)
    for row, text in zip(rows, texts, strict=True):
        torch.testing.assert_close(row, block(text[None])[0])


def test_without_the_mask_the_texts_read_each_other(block, texts):
    x, same_text = packed(texts)
    free = packed_block(block, x, torch.ones_like(same_text))
    assert (free - packed_block(block, x, same_text)).abs().max() > 0.01


def test_the_mask_of_a_packed_row():
    _, same_text = packed([torch.zeros(2, 3), torch.zeros(1, 3)])
    assert same_text.int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_batches_of_like_length_hold_the_same_texts_and_less_padding():
    lengths = [3, 11, 2, 13, 5, 7, 2]
    batches = by_length(lengths, 3)
    assert batches == [[2, 2, 3], [5, 7, 11], [13]]
    assert sum(padded_flops(batch, D, F) for batch in batches) < padded_flops(lengths, D, F)


def test_lengths_that_are_none_are_refused():
    with pytest.raises(ArgumentError, match=r"lengths must be of one text or more; got \[\]"):
        padding_share([])
    with pytest.raises(ArgumentError, match="lengths must be a whole number ≥ 1; got 0"):
        needed_flops([3, 0], D, F)
    for flops in (padded_flops, packed_flops):
        with pytest.raises(ArgumentError, match="lengths must be of one text or more"):
            flops([], D, F)
    with pytest.raises(ArgumentError, match="batch must be a whole number ≥ 1; got 0"):
        by_length([3], 0)
