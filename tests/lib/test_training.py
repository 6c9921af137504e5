import math
from itertools import repeat

import pytest
import torch
from torch import nn

from oneblock.errors import ArgumentError
from oneblock.training import train

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


class TwoClasses(nn.Module):
    """One number θ: the logits of an input x are [0, θx]."""

    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

    def forward(self, x):
        return torch.stack([0 * x, self.theta * x], dim=-1)


def adam_by_hand(theta, x, lr, warmup, steps):
    """Adam on −log p(class 1) of one x, in plain numbers."""
    m = v = 0.0
    losses = []
    for t in range(1, steps + 1):
        losses.append(math.log1p(math.exp(-theta * x)))
        gradient = -x / (1 + math.exp(theta * x))
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        rate = lr if t > warmup else lr * t / warmup
        theta -= rate * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta, losses


@pytest.mark.parametrize("warmup", [0, 1, 3, 20])
def test_each_step_is_adams_step_with_its_share_of_the_learning_rate(warmup):
    model, x = TwoClasses(), torch.tensor([1.7], dtype=torch.float64)
    losses = train(model, repeat((x, torch.tensor([1])), 7), lr=0.05, warmup=warmup)
    theta, by_hand = adam_by_hand(0.3, 1.7, 0.05, warmup, 7)
    assert losses == pytest.approx(by_hand, rel=1e-12)
    assert model.theta.item() == pytest.approx(theta, rel=1e-12)


def test_the_loss_is_the_mean_over_every_position(fixed):
    model, x = TwoClasses(), fixed(2, 3)
    classes = torch.tensor([[0, 1, 1], [1, 0, 1]])
    (loss,) = train(model, [(x, classes)], lr=0.01)
    each = [math.log1p(math.exp(0.3 * z if c == 0 else -0.3 * z)) for z, c in zip(x.flatten(), classes.flatten())]
    assert loss == pytest.approx(sum(each) / 6, rel=1e-12)


def test_batches_are_taken_in_turn(fixed):
    model = TwoClasses()
    batches = [(fixed(5, seed=seed), torch.ones(5, dtype=torch.long)) for seed in range(3)]
    losses = train(model, batches, lr=1e-12)
    assert losses == pytest.approx([torch.log1p(torch.exp(-0.3 * x)).mean().item() for x, _ in batches], rel=1e-9)


@pytest.mark.parametrize("lr", [0, -0.1, math.nan, True, "fast"])
def test_a_learning_rate_that_is_no_step_is_refused(lr):
    with pytest.raises(ArgumentError, match=r"^lr must be a number > 0; got "):
        train(TwoClasses(), [], lr=lr)


@pytest.mark.parametrize("warmup", [-1, 2.5, math.inf, math.nan, None])
def test_a_warm_up_that_is_no_number_of_steps_is_refused(warmup):
    with pytest.raises(ArgumentError, match=r"^warmup must be a whole number ≥ 0; got "):
        train(TwoClasses(), [], lr=0.1, warmup=warmup)
