"""Little data: a block learns a few names of :mod:`oneblock.names` by heart, and with wrong classes just as well.

``book/data/memorising_study.py`` stores the trials::

    trials = load("data/memorising_study.json", Trial)
    pick(trials, names=200, labels="shuffled")
"""

from typing import NamedTuple

import torch

from oneblock.baselines import majority
from oneblock.classifier import Classifier
from oneblock.names import Vocabulary, split, unicode_names
from oneblock.naming import L, Part, encoded
from oneblock.stacks import drawn_in_float64, named
from oneblock.training import Training, evaluate

D, H, F, K, LR, BATCH = 32, 4, 64, 1, 0.003, 32
HELD_OUT = 1000


class Few(NamedTuple):
    """Some names to learn from and 1000 others, encoded, and the sizes of the vocabulary and of the set of classes."""

    training: Part
    validation: Part
    V: int
    C: int


def right_labels(part: Part, seed: int) -> Part:
    """The names with their own classes."""
    return part


def shuffled_labels(part: Part, seed: int) -> Part:
    """The same names and the same classes, dealt out anew: what a name says no longer tells its class.

    Source: Zhang et al., *Understanding Deep Learning Requires Rethinking Generalization*, 2017, arXiv:1611.03530.
    """
    token_ids, classes = part
    return token_ids, classes[torch.randperm(len(classes), generator=torch.Generator().manual_seed(seed))]


LABELS = {"right": right_labels, "shuffled": shuffled_labels}


def few(names: int, seed: int, labels: str = "right") -> Few:
    """So many training names. Every word of theirs is in the vocabulary, so that no two of them are alike.

    Args:
        labels: a key of ``LABELS``; the held-out names keep their own classes.
    Raises:
        ArgumentError: there are no such labels.
    """
    relabel = named("labels", labels, LABELS)
    every = unicode_names()
    categories = sorted({name.category for name in every})
    training, validation = (some[:size] for some, size in zip(split(every, seed=seed), (names, HELD_OUT), strict=True))
    vocabulary = Vocabulary([name.text for name in training])
    parts = (encoded(some, vocabulary, categories) for some in (training, validation))
    return Few(relabel(next(parts), seed), next(parts), len(vocabulary), len(categories))


class Point(NamedTuple):
    """Behind an epoch: losses in nats and shares of right answers, on the names learned from and on the others."""

    training_loss: float
    training_accuracy: float
    loss: float
    accuracy: float


def curve(given: Few, epochs: int, seed: int) -> list[Point]:
    """Trains one block without dropout, in float64, and looks at it after each epoch, in ``eval()``."""
    with drawn_in_float64(seed):
        model = Classifier(given.V, given.C, L, D, H, F, K)
    run = Training(model, given.training, given.validation, LR, batch=BATCH, seed=seed, patience=epochs)
    points = []
    for epoch in range(1, epochs + 1):
        run.fit(epoch)
        model.load_state_dict(run.last)  # not the best state, which fit() leaves
        points.append(Point(*evaluate(model, *given.training), *run.history[-1][1:]))
    return points


class Trial(NamedTuple):
    """Shares of right answers: of the names learned from, and of others at the lowest validation loss and at the end.

    ``epoch`` is the one with the lowest validation loss, ``commonest`` what the commonest class alone would reach, and
    ``losses`` are the validation losses there and at the end.
    """

    names: int
    labels: str
    seed: int
    learned: float
    epoch: int
    best: float
    end: float
    commonest: float
    losses: list[float]


def trial(names: int, labels: str, seed: int, epochs: int = 32) -> Trial:
    """:func:`curve` on :func:`few` names, in short."""
    given = few(names, seed, labels)
    points = curve(given, epochs, seed)
    best = min(points, key=lambda point: point.loss)
    commonest = (given.validation[1] == majority(given.training[1])).double().mean().item()
    shares = points[-1].training_accuracy, points.index(best) + 1, best.accuracy, points[-1].accuracy, commonest
    return Trial(names, labels, seed, *shares, [best.loss, points[-1].loss])
