"""Texts longer than those of training: what a reader of :mod:`oneblock.polarity` makes of more and more filler words."""

from itertools import repeat
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from oneblock import polarity
from oneblock.errors import check_number
from oneblock.polarity import FLAG, HALVES_AND_WHOLE, POLARITY, Reader, sentences
from oneblock.stacks import drawn_in_float64
from oneblock.trace import record
from oneblock.training import train


def reader_of_sevens(seed: int, steps: int = 150, lr: float = 0.005) -> Reader:
    """The whole block that :mod:`oneblock.polarity` builds, trained in float64 on 64 sentences of 7 words and on no other length."""
    with drawn_in_float64(seed):
        reader = HALVES_AND_WHOLE["the whole block"]()
    train(reader, repeat(sentences(16, seed), steps), lr)
    return reader


def longer(fours: int, L: int, seed: int) -> tuple[Int[Tensor, "N L"], Int[Tensor, " N"]]:
    """:func:`oneblock.polarity.sentences` with filler words in front, up to L words; the classes stay.

    The reader has no positions: to it these are the same words, and some more that mean nothing.

    Raises:
        ArgumentError: L is below 7, or ``fours`` is not a whole number ≥ 1.
    """
    check_number("L", L, f"a whole number ≥ {polarity.L}", lambda L: isinstance(L, int) and L >= polarity.L)
    token_ids, praise = sentences(fours, seed)
    draw, first = torch.Generator().manual_seed(seed), len(POLARITY + FLAG)
    fillers = torch.randint(first, len(polarity.WORDS) - 1, (fours, L - polarity.L), generator=draw)
    return torch.cat([fillers.repeat_interleave(4, dim=0), token_ids], dim=1), praise


class Seen(NamedTuple):
    """Shares: of right answers, and of the full stop's attention that goes to the two words that count."""

    right: float
    attention: float


def seen(reader: Reader, L: int, fours: int = 32, seed: int = 5) -> Seen:
    """How a reader with one attention head does on sentences of L words."""
    token_ids, praise = longer(fours, L, seed)
    with torch.inference_mode():
        right = (reader(token_ids).argmax(-1) == praise).double().mean().item()
        rows = reader.block.norm1(reader.embedding(token_ids))
        weights = record(reader.block.self_attn, rows)["weights"][:, 0, -1]
    counts = token_ids < len(POLARITY + FLAG)
    return Seen(right, (weights * counts).sum(-1).mean().item())


def diluted(gap: float, L: int, counting: int = 2) -> float:
    """``c eᵍ / (c eᵍ + L − c)``: the share that c positions keep whose scores are higher than all others by g.

    Raises:
        ArgumentError: L is below ``counting``.
    """
    check_number("L", L, f"a number ≥ {counting}", lambda L: counting <= L)
    weight = counting * torch.tensor(gap, dtype=torch.float64).exp().item()
    return weight / (weight + L - counting)
