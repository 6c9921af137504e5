"""Reading other rows, against torch's attention with keys and values of their own."""

import pytest
import torch
from torch import nn

from oneblock.attention import MultiHeadAttention
from oneblock.errors import ShapeError
from oneblock.neighbours.reading import keys_values, read

N, L, J, D, H = 2, 5, 7, 33, 3
VALID = torch.arange(J) < torch.tensor([[4], [J]])


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def attention(request, filled):
    return filled(MultiHeadAttention(D, H, request.param))


@pytest.mark.parametrize("padded", [False, True])
def test_it_is_torchs_attention_over_other_rows(fixed, run, attention, padded):
    theirs = nn.MultiheadAttention(D, H, bias=attention.in_proj_bias is not None, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(attention.state_dict())
    x, rows = fixed(N, L, D), fixed(N, J, D, seed=3)
    came = run(read, attention, x, keys_values(attention, rows), VALID if padded else None)
    due = theirs(x, rows, rows, key_padding_mask=~VALID if padded else None)[0]
    torch.testing.assert_close(came, due, atol=1e-12, rtol=1e-12)


def test_rows_that_read_themselves_give_self_attention(fixed, run, attention):
    x = fixed(N, L, D)
    torch.testing.assert_close(run(read, attention, x, keys_values(attention, x)), attention(x), atol=1e-12, rtol=1e-12)


def test_what_is_handed_over_in_two_parts_is_what_is_handed_over_at_once(fixed, attention):
    rows = fixed(N, J, D)
    parts = keys_values(attention, rows[:, :3]).followed_by(keys_values(attention, rows[:, 3:]))
    for came, due in zip(parts, keys_values(attention, rows), strict=True):
        torch.testing.assert_close(came, due, atol=1e-12, rtol=1e-12)
    assert parts.k.shape == (N, H, J, D // H) and not torch.equal(parts.k, parts.v)


def test_dropout_acts_on_the_shares_in_training_only(fixed, run):
    attention = MultiHeadAttention(D, H, dropout=0.5).double()
    x, handed = fixed(N, L, D), keys_values(attention, fixed(N, J, D))
    assert not torch.equal(run(read, attention, x, handed), run(read, attention, x, handed))
    attention.eval()
    assert torch.equal(run(read, attention, x, handed), run(read, attention, x, handed))


@pytest.mark.usefixtures("as_readers_run_it")
def test_rows_of_another_width_are_refused(fixed, attention):
    with pytest.raises(ShapeError, match=r"^rows must be floating \[N, J, D\] = \[N, J, 33\]; got float64 \[2, 7, 5\]"):
        keys_values(attention, fixed(N, J, 5))
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\] = \[N, L, 33\]; got float64 \[5, 33\]"):
        read(attention, fixed(L, D), keys_values(attention, fixed(N, J, D)))
