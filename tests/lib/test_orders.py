import math

import pytest
import torch

from oneblock import orders
from oneblock.errors import ArgumentError
from oneblock.orders import SPAN, Tagger, Trial, learned, mirror_sums, outcome, trial, tuned
from oneblock.stacks import stack

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def ended(loss, lr=0.1):
    return Trial("Pre-LN", 6, lr, 0, 0, [1.6, loss])


def test_a_class_is_the_sum_of_a_token_and_its_mirror_image():
    ((token_ids, classes),) = mirror_sums(1, seed=5, N=31)
    for row, sums in zip(token_ids.tolist(), classes.tolist(), strict=True):
        assert sums == [(one + other) % 5 for one, other in zip(row, reversed(row), strict=True)]
    assert token_ids.unique().tolist() == classes.unique().tolist() == [0, 1, 2, 3, 4]


def test_batches_are_fixed_by_the_seed_and_never_come_twice():
    one, same, other = (list(mirror_sums(3, seed)) for seed in (5, 5, 6))
    assert all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(one, same, strict=True))
    assert not torch.equal(one[0][0], one[1][0]) and not torch.equal(one[0][0], other[0][0])


def test_a_tagger_reads_words_and_places():
    tagger = Tagger(stack("Pre-LN, no final LN", 1, 32, 4, 64))
    tagger.deep = torch.nn.Identity()
    token_ids = torch.tensor([[4, 0, 3, 3, 1, 2, 0, 1]])
    for i, token in enumerate(token_ids[0]):
        row = tagger.embedding.weight[token] + tagger.positions[i]
        torch.testing.assert_close(tagger(token_ids)[0, i], tagger.head.weight @ row + tagger.head.bias)


def test_a_trial_is_fixed_by_its_seed_and_starts_near_knowing_nothing():
    one, same, other = (trial("Post-LN", 0.001, 10, seed, K=2, steps=2 * SPAN) for seed in (5, 5, 6))
    assert one == same and one.losses != other.losses
    assert one[:5] == ("Post-LN", 2, 0.001, 10, 5) and len(one.losses) == 2
    assert one.losses[0] == pytest.approx(math.log(5), abs=0.3)


def test_the_order_the_rate_and_the_warm_up_reach_the_training():
    base = {"structure": "Post-LN", "lr": 0.001, "warmup": 0, "seed": 5, "K": 2, "steps": SPAN}
    changes = ({}, {"structure": "Pre-LN"}, {"lr": 0.01}, {"warmup": 10}, {"K": 1})
    losses = [trial(**base | change).losses[0] for change in changes]
    assert len(set(losses)) == len(losses)


def test_a_seed_draws_both_the_first_values_and_the_batches(monkeypatch):
    drawn = []

    def only_look(tagger, batches, lr, warmup):
        drawn.append((tagger.head.weight, next(batches)[0]))
        return [0.0] * SPAN

    monkeypatch.setattr(orders, "train", only_look)
    for seed in (5, 5, 6):
        trial("Pre-LN", 0.001, 0, seed, K=1, steps=SPAN)
    for one, same, other in zip(*drawn, strict=True):
        assert torch.equal(one, same) and not torch.equal(one, other)


def test_losses_are_means_over_spans():
    fine = trial("Pre-LN", 0.003, 0, 5, K=1, steps=3 * SPAN)
    assert fine.losses[:1] == trial("Pre-LN", 0.003, 0, 5, K=1, steps=SPAN).losses
    assert fine.losses[0] > fine.losses[1] > fine.losses[2]
    assert fine.losses[0] > 1


@pytest.mark.parametrize("lost", [None, math.nan])
def test_a_loss_that_is_no_number_is_the_worst_outcome(lost):
    assert outcome(ended(lost)) == math.inf and outcome(ended(0.3)) == 0.3
    assert learned([ended(lost), ended(0.49), ended(0.51)]) == 1


def test_the_tuned_rate_has_the_smallest_median_outcome():
    by_rate = {0.1: (0.5, 0.6, 0.7), 0.2: (0.0, 0.9, None), 0.3: (0.4, 0.45, 9.0)}
    assert tuned([ended(loss, lr) for lr, losses in by_rate.items() for loss in losses]) == 0.3


def test_an_unknown_order_is_refused():
    with pytest.raises(ArgumentError, match=r"^structure must be one of .*; got 'Sandwich'"):
        trial("Sandwich", 0.001, 0, 5)
