"""Nested brackets: which kind does each one close? Learned to some depth, and asked for deeper ones of the same length.

All ways to nest 8 pairs are known, 1,430 of them. Half of each depth is withheld from training, so that a new nesting
and a deeper one can be told apart. ``book/data/brackets_study.py`` stores the trials::

    trials = load("data/brackets_study.json", Trial)
    pick(trials, deepest=3)
"""

from collections.abc import Iterator
from itertools import accumulate, product
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from oneblock.errors import check_number, check_size
from oneblock.failures.positions import LearnedRows
from oneblock.stacks import drawn_in_float64, stack
from oneblock.training import train

D, H, F, K = 32, 4, 64, 2
L = 16
DEPTHS = (2, 3, 4, 5, 6, 7)
SPAN, STEPS, BATCH, LR, WARMUP = 100, 1500, 64, 0.003, 100
CLOSING = 2
"""The token of every closing bracket; opening ones are 0 and 1, for two kinds."""


def nestings(depth: int, L: int = L) -> Bool[Tensor, "n L"]:
    """Every text of L brackets that is nested just so deep, True where one opens.

    Raises:
        ArgumentError: ``depth`` or ``L`` is not a whole number ≥ 1.
    """
    check_size("depth", depth)
    check_size("L", L)
    found = [text for text in product((True, False), repeat=L) if _depth(text) == depth]
    return torch.tensor(found, dtype=torch.bool).reshape(-1, L)


def _depth(text: tuple[bool, ...]) -> int | None:
    """How deep a text is nested; None where a bracket closes nothing or stays open."""
    heights = list(accumulate(1 if opens else -1 for opens in text))
    return max(heights) if min(heights) >= 0 and heights[-1] == 0 else None


def partners(opens: Bool[Tensor, "n L"]) -> Int[Tensor, "n L"]:
    """For each bracket the place where its pair opens, by a stack: an opening one is put on it, a closing one takes it off."""
    found = torch.arange(opens.shape[1]).repeat(len(opens), 1)
    for text, row in zip(opens.tolist(), found, strict=True):
        waiting: list[int] = []
        for place, is_open in enumerate(text):
            if is_open:
                waiting.append(place)
            else:
                row[place] = waiting.pop()
    return found


def texts(opened: Int[Tensor, "n L"], N: int, draw: torch.Generator) -> tuple[Int[Tensor, "N L"], Int[Tensor, "N L"]]:
    """N texts, each with the :func:`partners` of one of the nestings and random kinds: tokens, and each bracket's kind."""
    check_size("N", N)
    opened = opened[torch.randint(len(opened), (N,), generator=draw)]
    classes = torch.randint(2, opened.shape, generator=draw).gather(1, opened)
    return torch.where(opened == torch.arange(opened.shape[1]), classes, CLOSING), classes


def exercises(steps: int, deepest: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of 64 texts, each of a depth from 2 to ``deepest``, all equally often; of each depth every other nesting."""
    draw = torch.Generator().manual_seed(seed)
    met = [partners(nestings(depth)[::2]) for depth in DEPTHS if depth <= deepest]
    for _ in range(steps):
        parts = [texts(opened, BATCH // len(met), draw) for opened in met]
        yield tuple(torch.cat(part) for part in zip(*parts, strict=True))


class Reader(nn.Module):
    """``logits = W Stack(E[token] + P) + c``: of each bracket, its kind. Two Pre-LN blocks without a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(3, D), LearnedRows(D, L)
        self.deep, self.head = stack("Pre-LN", K, D, H, F), nn.Linear(D, 2)

    def forward(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "N L 2"]:
        return self.head(self.deep(self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))))


class Trial(NamedTuple):
    """One reader. ``losses`` are means over 100 steps each, in nats a bracket.

    ``closers[i]`` and ``texts[i]`` are the shares of closing brackets that are right, and of texts that are right
    throughout, at depth ``DEPTHS[i]``; all of them are nestings that no training had.
    """

    deepest: int
    seed: int
    losses: list[float]
    closers: list[float]
    texts: list[float]


def trial(deepest: int, seed: int, steps: int = STEPS) -> Trial:
    """Trains a reader in float32 on :func:`exercises` and asks it for 512 texts of each depth.

    Args:
        steps: a multiple of 100.
    Raises:
        ArgumentError: ``deepest`` is not one of ``DEPTHS``.
    Source: languages of nested brackets as a test of self-attention: Hahn, *Theoretical Limitations of Self-Attention in
        Neural Sequence Models*, 2020, arXiv:1906.06755.
    """
    check_number("deepest", deepest, "a depth from 2 to 7", lambda depth: depth in DEPTHS)
    with drawn_in_float64(seed):
        reader = Reader().float()
    losses = train(reader, exercises(steps, deepest, seed), LR, WARMUP)
    spans = [sum(losses[start : start + SPAN]) / SPAN for start in range(0, steps, SPAN)]
    draw = torch.Generator().manual_seed(1000 + seed)
    found = [right(reader, *texts(partners(nestings(depth)[1::2]), 512, draw)) for depth in DEPTHS]
    return Trial(deepest, seed, spans, *map(list, zip(*found, strict=True)))


@torch.inference_mode()
def right(reader: nn.Module, tokens: Int[Tensor, "N L"], classes: Int[Tensor, "N L"]) -> tuple[float, float]:
    """The share of closing brackets that are right, and of texts in which all of them are."""
    hits = (reader(tokens).argmax(-1) == classes) | (tokens != CLOSING)
    return hits[tokens == CLOSING].double().mean().item(), hits.all(1).double().mean().item()
