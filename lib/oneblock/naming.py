"""The classifier of names against a bag of words: which wins, under which vocabulary, split and size.

``book/data/names_study.py`` stores the trials; read them with :mod:`oneblock.stored`::

    trials = load("data/names_study.json", Trial)
    pick(trials, at_least=100, family="itself")
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from oneblock.baselines import bag_of_words, logistic_regression, majority
from oneblock.classifier import Classifier
from oneblock.names import Name, Vocabulary, both_cases, itself, numbered, split, unicode_names, words_of
from oneblock.training import Training, evaluate

L, D, H, K, DROPOUT = 13, 32, 4, 2, 0.1
EPOCHS, LR, DECAY, BATCH = 8, 0.006, 0.75, 64
PENALTIES = (1e-6, 4e-6, 1.6e-5)
FAMILIES = ("itself", "both cases", "known words")

Part = tuple[Tensor, Tensor]
"""Token ids ``[N, L]`` and classes ``[N]``."""


class Trial(NamedTuple):
    """The share of right answers on the validation part, and under which conditions."""

    at_least: int
    family: str
    fraction: float
    training: int
    D: int
    seed: int
    vocabulary: int
    majority: float
    bag: float
    classifier: float


def known_words(names: Sequence[Name], at_least: int) -> Callable[[str], str]:
    """One family for all names that differ in rare words only: to the model they are one text."""
    vocabulary = Vocabulary([name.text for name in names], at_least)
    return lambda text: " ".join(word if vocabulary.known(word) else "?" for word in words_of(text))


def parts(family: str = "itself", at_least: int = 100, seed: int = 0) -> tuple[Vocabulary, list[str], list[Name], list[Name]]:
    """The vocabulary, the categories, the training and the validation names of one split."""
    names = unicode_names()
    families = {"itself": itself, "both cases": both_cases, "known words": known_words(names, at_least)}
    training, validation = split(names, seed=seed, family=families[family])
    vocabulary = Vocabulary([name.text for name in training], at_least)
    return vocabulary, sorted({name.category for name in names}), training, validation


def encoded(names: Sequence[Name], vocabulary: Vocabulary, categories: Sequence[str]) -> Part:
    """Names as token ids and classes."""
    return vocabulary.encode([name.text for name in names], L), numbered(names, categories)


def accuracy_of_bag(training: Part, validation: Part, V: int, C: int) -> float:
    """The best share of right answers over the ``PENALTIES``: chosen on the very part that is reported."""
    counts, seen = bag_of_words(training[0], V), bag_of_words(validation[0], V)
    fits = (logistic_regression(counts, training[1], C, penalty) for penalty in PENALTIES)
    return max(evaluate(fit, seen, validation[1])[1] for fit in fits)


def fresh(V: int, C: int, seed: int, D: int = D) -> Classifier:
    """A classifier of this module's sizes, its first values drawn from ``seed``; torch's own seed is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Classifier(V, C, L, D, H, 2 * D, K, DROPOUT)


def trial(
    at_least: int = 100, family: str = "itself", fraction: float = 1.0, D: int = D, seed: int = 0, epochs: int = EPOCHS
) -> Trial:
    """Splits, trains and compares, all by one seed.

    Of the training part only ``fraction`` is learned from, in batches so much smaller that there are as many steps.
    """
    vocabulary, categories, names, held_out = parts(family, at_least, seed)
    names = names[: round(fraction * len(names))]  # a split comes shuffled
    training, validation = (encoded(some, vocabulary, categories) for some in (names, held_out))
    V, C = len(vocabulary), len(categories)
    batch = max(1, round(fraction * BATCH))
    run = Training(fresh(V, C, seed, D), training, validation, LR, DECAY, batch, seed)
    run.fit(epochs)
    commonest = (validation[1] == majority(training[1])).double().mean().item()
    found = accuracy_of_bag(training, validation, V, C), evaluate(run.model, *validation)[1]
    return Trial(at_least, family, fraction, len(names), D, seed, V, commonest, *found)
