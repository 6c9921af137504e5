import math

import pytest
import torch

from oneblock.errors import ArgumentError
from oneblock.failures.longer import diluted, longer, reader_of_sevens, seen
from oneblock.polarity import FLAG, HALVES_AND_WHOLE, POLARITY, sentences

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def test_only_fillers_are_added_in_front():
    token_ids, praise = longer(3, 23, seed=1)
    short, same = sentences(3, seed=1)
    assert torch.equal(token_ids[:, -7:], short) and torch.equal(praise, same)
    fillers = token_ids[:, :-7]
    assert fillers.shape == (12, 16) and fillers.min() >= len(POLARITY + FLAG) and fillers.max() < 10


def test_four_in_a_row_still_differ_in_their_two_words_only():
    token_ids, _ = longer(5, 13, seed=1)
    assert ((token_ids.view(5, 4, 13) != token_ids.view(5, 4, 13)[:, :1]).any(1).sum(1) == 2).all()


def test_a_reader_is_right_at_its_own_length_and_reads_less_of_the_two_words_in_longer_texts():
    reader = reader_of_sevens(seed=0)
    found = [seen(reader, L) for L in (7, 28, 112)]
    assert found[0].right == 1 and found[2].right < 0.9
    assert found[0].attention > found[1].attention > found[2].attention


def test_the_two_words_get_an_even_share_of_uniform_attention():
    reader = HALVES_AND_WHOLE["the whole block"]()
    torch.nn.init.zeros_(reader.block.self_attn.in_proj_weight)
    assert seen(reader, 11).attention == pytest.approx(2 / 11)


def test_it_is_the_full_stop_that_asks():
    reader = reader_of_sevens(seed=2, steps=20)
    official = torch.nn.MultiheadAttention(16, 1, batch_first=True).double()
    official.load_state_dict(reader.block.self_attn.state_dict())
    token_ids, _ = longer(32, 13, seed=5)
    rows = reader.block.norm1(reader.embedding(token_ids))
    _, weights = official(rows, rows, rows)
    due = [weights[n, -1, i].item() for n, text in enumerate(token_ids) for i, token in enumerate(text) if token < 4]
    assert seen(reader, 13).attention == pytest.approx(sum(due) / len(token_ids))


def test_the_share_is_that_of_a_softmax():
    scores = torch.tensor([1.5] * 3 + [0.0] * 14, dtype=torch.float64)
    assert diluted(1.5, 17, counting=3) == pytest.approx(scores.softmax(0)[:3].sum().item())
    assert diluted(math.log(6), 8) == pytest.approx(12 / 18)


def test_too_short_a_text_is_refused():
    with pytest.raises(ArgumentError, match="L must be a whole number ≥ 7; got 6"):
        longer(3, 6, seed=0)
    with pytest.raises(ArgumentError, match="L must be a number ≥ 2; got 1"):
        diluted(1.0, 1)
