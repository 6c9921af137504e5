"""The bag counts words and forgets their order; the regression is at the minimum of its convex problem."""

import math

import pytest
import torch

from oneblock.baselines import bag_of_words, logistic_regression, majority
from oneblock.errors import ArgumentError

N, L, V, C = 11, 5, 7, 3


@pytest.fixture
def ids():
    return torch.randint(V, (N, L), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def classes():
    return torch.arange(N) % C


def test_the_majority_is_the_commonest_class():
    assert majority(torch.tensor([4, 2, 2, 0, 2, 4])) == 2 and majority(torch.tensor([1, 0, 1, 0])) == 0


def test_a_bag_counts_each_word_but_not_padding(ids):
    counts = bag_of_words(ids, V)
    assert counts.shape == (N, V) and counts.is_floating_point()
    for row, text in zip(counts.tolist(), ids.tolist(), strict=True):
        assert row == [0 if word == 0 else text.count(word) for word in range(V)]


def test_a_bag_forgets_the_order(ids):
    assert torch.equal(bag_of_words(ids, V), bag_of_words(ids.flip(1), V))


def test_one_word_and_two_classes_have_a_minimum_in_closed_form():
    # of 4 texts with the word 3 are of class 1; of 4 without it 1 is: W and b give log-odds log 3 and −log 3
    counts = torch.tensor([[1.0]] * 4 + [[0.0]] * 4, dtype=torch.float64)
    fit = logistic_regression(counts, torch.tensor([1, 1, 1, 0, 1, 0, 0, 0]), C=2)
    odds = (fit.weight[1] - fit.weight[0]).item(), (fit.bias[1] - fit.bias[0]).item()
    assert odds == pytest.approx((2 * math.log(3), -math.log(3)), abs=1e-4)


@pytest.mark.parametrize("penalty", [0.01, 0.3])
def test_no_small_step_from_the_minimum_is_better(fixed, classes, penalty):
    counts = fixed(N, V).abs()
    fit = logistic_regression(counts, classes, C, penalty)

    def cost(W, b):
        logits = counts @ W.T + b
        picked = logits[torch.arange(N), classes] - logits.exp().sum(1).log()
        return (penalty * W.square().sum() - picked.mean()).item()

    W, b = fit.weight.detach(), fit.bias.detach()
    least = cost(W, b)
    for seed in range(10):
        dW, db = 1e-2 * fixed(C, V, seed=seed), 1e-2 * fixed(C, seed=seed)
        assert cost(W + dW, b + db) > least and cost(W - dW, b - db) > least


def test_a_word_without_texts_keeps_the_weight_zero(fixed, classes):
    counts = fixed(N, V).abs()
    counts[:, 4] = 0
    fit = logistic_regression(counts, classes, C, penalty=0.01)
    assert (fit.weight[:, 4] == 0).all() and (fit.weight[:, 5] != 0).all()


@pytest.mark.parametrize("penalty", [-1, math.nan, "none", True])
@pytest.mark.usefixtures("as_readers_run_it")
def test_a_penalty_that_rewards_is_refused(fixed, classes, penalty):
    with pytest.raises(ArgumentError, match=r"^penalty must be a number ≥ 0; got "):
        logistic_regression(fixed(N, V), classes, C, penalty)
