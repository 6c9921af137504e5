"""The stored studies are what their scripts would store: a sample of each is made anew."""

from itertools import product
from pathlib import Path

import pytest
import torch

from oneblock import naming
from oneblock.depth import LOSSES, TEXT, TOKEN, Summary, summarise
from oneblock.orders import SPAN, Trial, learned, outcome, trial
from oneblock.stacks import INITS, STRUCTURES
from oneblock.stored import load, pick

DATA = Path(__file__).parents[2] / "book" / "data"
DEEP = load(DATA / "depth_study.json", Summary)
TRIALS = load(DATA / "orders_study.json", Trial)
NAMED = load(DATA / "names_study.json", naming.Trial)
# Three significant digits: at worst 1.005 is stored as 1.00 or 1.01.
DIGITS = 5.1e-3


def test_the_stored_studies_are_small():
    assert sum(path.stat().st_size for path in DATA.glob("*.json")) < 200_000


def test_the_study_of_depth_holds_every_kind_once(script):
    kinds = [(one.structure, one.init, one.loss, one.K) for one in DEEP]
    assert kinds == list(product(STRUCTURES, INITS, LOSSES, script("depth_study").DEPTHS))


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize(
    ("init", "loss", "K"), [("PyTorch's default", TEXT, 2), ("Xavier", TOKEN, 8), ("branches / √(2K)", TEXT, 4)]
)
def test_a_sample_of_the_study_of_depth_is_found_again(structure, init, loss, K):
    (stored,) = pick(DEEP, structure=structure, init=init, loss=loss, K=K)
    anew = summarise(structure, K, init, loss)
    assert stored[:6] == anew[:6]
    for name, curve in anew.curves.items():
        assert stored.curves[name] == [pytest.approx(three, rel=DIGITS) for three in curve], name


def test_the_study_of_orders_holds_every_kind_once(script):
    assert [(one.structure, one.lr, one.warmup, one.seed, one.K) for one in TRIALS] == script("orders_study").KINDS


@pytest.mark.parametrize(
    ("structure", "lr", "warmup", "seed", "K"),
    [("Pre-LN", 0.01, 0, 3, 6), ("Post-LN", 0.01, 0, 1, 6), ("Post-LN", 0.003, 100, 4, 12)],
)
def test_the_first_spans_of_a_sample_of_trials_are_found_again(structure, lr, warmup, seed, K):
    (stored,) = pick(TRIALS, structure=structure, lr=lr, warmup=warmup, seed=seed, K=K)
    anew = trial(structure, lr, warmup, seed, K, steps=3 * SPAN)
    assert stored.losses[:3] == pytest.approx(anew.losses, rel=DIGITS)


def test_trials_learn_all_or_nothing():
    ends = [outcome(one) for one in TRIALS]
    assert not any(0.25 <= end <= 1.5 for end in ends)


@pytest.mark.parametrize(
    ("K", "structure", "warmup", "of_five"),
    [
        (6, "Pre-LN", 0, {0.001: 5, 0.003: 5, 0.01: 5, 0.03: 0}),
        (6, "Pre-LN", 100, {0.001: 5, 0.003: 5, 0.01: 5, 0.03: 5}),
        (6, "Post-LN", 0, {0.001: 5, 0.003: 5, 0.01: 0, 0.03: 0}),
        (6, "Post-LN", 100, {0.001: 5, 0.003: 5, 0.01: 4, 0.03: 0}),
        (12, "Pre-LN", 0, {0.003: 5}),
        (12, "Pre-LN", 100, {0.003: 5}),
        (12, "Post-LN", 0, {0.003: 0}),
        (12, "Post-LN", 100, {0.003: 5}),
    ],
)
def test_post_ln_bears_smaller_rates_unless_warmed_up(K, structure, warmup, of_five):
    trials = pick(TRIALS, K=K, structure=structure, warmup=warmup)
    assert {lr: learned(pick(trials, lr=lr)) for lr in of_five} == of_five


def test_the_study_of_names_holds_every_kind_once(script):
    study = script("names_study")
    usual = {"at_least": 100, "family": "itself", "fraction": 1.0, "D": 32}
    due = [{**usual, **setting, "seed": seed} for setting, seed in product(study.SETTINGS, study.SEEDS)]
    assert [{key: getattr(one, key) for key in (*usual, "seed")} for one in NAMED] == due


def test_a_sample_of_the_study_of_names_is_found_again():
    (stored,) = pick(NAMED, fraction=1 / 8, seed=1)
    torch.set_default_dtype(torch.float64)
    try:
        anew = naming.trial(fraction=1 / 8, seed=1)
    finally:
        torch.set_default_dtype(torch.float32)
    assert stored[:7] == anew[:7] and stored[7:] == pytest.approx(anew[7:], rel=DIGITS)


@pytest.mark.parametrize(("at_least", "ahead"), [(100, 3), (50, 3), (1, 0)])
def test_the_block_is_ahead_where_few_words_are_known(at_least, ahead):
    some = pick(NAMED, at_least=at_least, family="itself", fraction=1, D=32)
    assert sum(one.classifier > one.bag for one in some) == ahead
