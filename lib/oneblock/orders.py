"""Pre-LN and Post-LN in training: which learning rates each can bear, with and without warm-up.

``book/data/orders_study.py`` stores a grid of trials; read them with :mod:`oneblock.stored`::

    trials = load("data/orders_study.json", Trial)
    learned(pick(trials, structure="Post-LN", lr=0.01, warmup=0))   # how many of them
    tuned(pick(trials, structure="Post-LN", warmup=0))              # its best learning rate
"""

from collections.abc import Iterator, Sequence
from math import inf
from statistics import median
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from oneblock.stacks import Stack, drawn_in_float64, stack
from oneblock.training import train

V, L, D, H, F = 5, 8, 32, 4, 64
SPAN = 20


def mirror_sums(steps: int, seed: int, N: int = 32) -> Iterator[tuple[Int[Tensor, "N L"], Int[Tensor, "N L"]]]:
    """Batches of random tokens ``t`` and the classes ``(t_i + t_{L+1−i}) mod V``, with i from 1 to L.

    Every position needs its mirror image's token, and a sum that turns over. To know nothing costs
    ``log V = 1.61`` nats a token.
    """
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        token_ids = torch.randint(V, (N, L), generator=draw)
        yield token_ids, (token_ids + token_ids.flip(dims=[1])) % V


class Tagger(nn.Module):
    """``logits = W Stack(Embedding(token_ids) + positions) + b``: V logits at every position."""

    def __init__(self, deep: Stack) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(V, D), nn.Parameter(torch.randn(L, D))
        self.deep, self.head = deep, nn.Linear(D, V)

    def forward(self, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N L V"]:
        return self.head(self.deep(self.embedding(token_ids) + self.positions))


class Trial(NamedTuple):
    """One training run; ``losses`` are means over 20 steps each, in nats a token, the last one the outcome."""

    structure: str
    K: int
    lr: float
    warmup: int
    seed: int
    losses: list[float]


def trial(structure: str, lr: float, warmup: int, seed: int, K: int = 6, steps: int = 300) -> Trial:
    """Trains K fresh blocks on :func:`mirror_sums` in float64, each batch seen once.

    Args:
        structure: a key of ``oneblock.stacks.STRUCTURES``.
        lr, warmup: as for :func:`oneblock.training.train`.
        steps: a multiple of 20.
    Raises:
        ArgumentError: an unknown structure, a bad K, lr or warm-up.
    Source: the question is that of Xiong et al., 2020, section 3.2, arXiv:2002.04745.
    """
    with drawn_in_float64(seed):
        tagger = Tagger(stack(structure, K, D, H, F))
    losses = train(tagger, mirror_sums(steps, seed), lr, warmup)
    spans = [sum(losses[start : start + SPAN]) / SPAN for start in range(0, steps, SPAN)]
    return Trial(structure, K, lr, warmup, seed, spans)


def outcome(one: Trial) -> float:
    """The mean loss of the last 20 steps; ∞ if it is no number any more."""
    last = one.losses[-1]
    return last if last is not None and last == last else inf


def learned(trials: Sequence[Trial], below: float = 0.5) -> int:
    """How many trials ended below this loss. In the stored study none ends between 0.25 and 1.5: all or nothing."""
    return sum(outcome(one) < below for one in trials)


def tuned(trials: Sequence[Trial]) -> float:
    """The learning rate with the smallest median outcome."""
    rates = sorted({one.lr for one in trials})
    return min(rates, key=lambda lr: median(outcome(one) for one in trials if one.lr == lr))
