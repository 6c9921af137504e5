"""How wide the feed-forward network has to be, and what more width brings: the sentences of :mod:`oneblock.polarity`.

Whether a sentence is praise is an exclusive or. To read it off needs a few hidden numbers; more of them cost parameters
and operations in proportion. ``book/data/width_study.py`` stores the trials::

    trials = load("data/width_study.json", Trial)
    pick(trials, F=128, fours=3)
"""

from itertools import repeat
from typing import NamedTuple

import torch

from oneblock.blocks import PreNorm
from oneblock.errors import check_size
from oneblock.polarity import Reader, score, sentences
from oneblock.stacks import drawn_in_float64
from oneblock.training import evaluate, train

D, H, STEPS, LR = 16, 1, 150, 0.005
WIDTHS = (1, 2, 4, 8, 32, 128, 512, 2048)


class Trial(NamedTuple):
    """One reader: ``4 · fours`` sentences to learn from, and the shares that are right of those and of 256 new ones."""

    F: int
    fours: int
    seed: int
    parameters: int
    learned: float
    new: float


def trial(F: int, fours: int, seed: int, steps: int = STEPS) -> Trial:
    """Trains one block with an FFN of width F, in float64, on the same sentences in every step.

    Raises:
        ArgumentError: F or ``fours`` is not a whole number ≥ 1.
    """
    check_size("F", F)
    with drawn_in_float64(seed):
        reader = Reader(D, PreNorm(D, H, F, activation="relu"))
    given = sentences(fours, seed)
    train(reader, repeat(given, steps), LR)
    parameters = sum(p.numel() for p in reader.parameters())
    return Trial(F, fours, seed, parameters, evaluate(reader, *given)[1], score(reader, 1000 + seed).sentences)
