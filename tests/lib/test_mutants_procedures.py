"""Each wrong procedure is wrong in the way that is told of it, and agrees with the right one where it hides."""

from math import log
from pathlib import Path

import pytest
import torch
from torch import nn

from oneblock.classifier import Classifier
from oneblock.masks import token_loss
from oneblock.mutants import procedures
from oneblock.orders import Trial, tuned
from oneblock.stored import load, pick
from oneblock.training import step

N, L, C = 2, 5, 7
IDS = torch.tensor([[3, 10, 1, 0, 0], [2, 4, 9, 9, 7]])
VALID = IDS != 0
CLASSES = torch.tensor([[3, 6, 1, 0, 0], [2, 4, 0, 5, 5]])
STUDY = Path(__file__).parents[2] / "book" / "data" / "orders_study.json"


@pytest.fixture
def model(filled):
    """In training, with dropout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield filled(Classifier(13, C, L, 21, 3, 11, 1, dropout=0.5)).train()


def test_right_predictions_are_repeatable_and_keep_no_graph(model):
    logits = procedures.predictions(model, IDS)
    assert torch.equal(logits, procedures.predictions(model, IDS))
    assert logits.is_inference() and not logits.requires_grad


def test_eval_alone_gives_the_right_numbers_and_keeps_the_graph(model):
    logits = procedures.eval_only(model, IDS)
    assert logits.grad_fn is not None
    torch.testing.assert_close(logits.detach(), procedures.predictions(model, IDS).clone(), atol=1e-12, rtol=0)


def test_inference_mode_alone_leaves_dropout_on(model):
    logits = procedures.inference_only(model, IDS)
    assert not logits.requires_grad and (logits - procedures.inference_only(model, IDS)).abs().max() > 0.01


def test_inference_mode_alone_hides_where_the_model_is_in_eval_already(model):
    logits = procedures.inference_only(model.eval(), IDS)
    assert torch.equal(logits, procedures.predictions(model, IDS))


def test_the_right_loss_of_tokens_is_that_of_the_library(fixed):
    logits = fixed(N, L, C)
    due = token_loss(logits, CLASSES, VALID)
    torch.testing.assert_close(procedures.loss_of_tokens(logits, CLASSES, VALID), due, atol=1e-12, rtol=0)


def test_a_loss_over_padding_looks_good_where_padding_is_easy(fixed):
    logits = fixed(N, L, C)
    logits[~VALID] = 100.0 * torch.eye(C, dtype=torch.float64)[0]
    wrong, right = (one(logits, CLASSES, VALID) for one in (procedures.loss_over_padding, procedures.loss_of_tokens))
    torch.testing.assert_close(wrong, right * VALID.sum() / VALID.numel(), atol=1e-12, rtol=0)


def test_a_loss_over_padding_hides_where_there_is_none(fixed):
    given = fixed(N, L, C), CLASSES, torch.ones_like(VALID)
    torch.testing.assert_close(procedures.loss_over_padding(*given), procedures.loss_of_tokens(*given), atol=1e-12, rtol=0)


def test_a_softmax_before_the_loss_keeps_it_above_a_bound():
    sure = 1e3 * torch.eye(C, dtype=torch.float64)
    classes = torch.arange(C)
    wrong = procedures.softmax_before_loss(sure, classes).item()
    assert wrong == pytest.approx(log(1 + (C - 1) / torch.e)) and procedures.loss(sure, classes) < 1e-12


def test_a_softmax_before_the_loss_hides_where_the_logits_are_equal():
    logits, classes = torch.full((N, C), 3.0, dtype=torch.float64), torch.tensor([3, 6])
    torch.testing.assert_close(procedures.softmax_before_loss(logits, classes), procedures.loss(logits, classes))


class Row(nn.Module):
    """One row of logits, learned."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(C, dtype=torch.float64))

    def forward(self, inputs):
        return self.logits.expand(len(inputs), C)


def after(one_step, steps):
    row = Row()
    optimizer = torch.optim.SGD(row.parameters(), 0.1)
    for k in range(steps):
        one_step(row, optimizer, IDS, torch.tensor([k, k + 1]))
    return row.logits


def test_the_right_step_is_that_of_the_library():
    torch.testing.assert_close(after(procedures.step, 3), after(step, 3), atol=1e-12, rtol=0)


def test_without_forgetting_a_step_follows_the_sum_of_all_gradients():
    """From the gradients by hand: softmax minus the share of each class, the second at the row after the first step."""

    def gradient(row, k):
        shares = torch.zeros(C, dtype=torch.float64)
        shares[k : k + 2] = 0.5
        return row.softmax(0) - shares

    row = torch.zeros(C, dtype=torch.float64)
    first = gradient(row, 0)
    row = row - 0.1 * first
    due = row - 0.1 * (first + gradient(row, 1))
    torch.testing.assert_close(after(procedures.step_without_forgetting, 2), due, atol=1e-12, rtol=0)
    torch.testing.assert_close(after(procedures.step, 2), row - 0.1 * gradient(row, 1), atol=1e-12, rtol=0)


def test_without_forgetting_it_hides_in_the_first_step():
    assert torch.equal(after(procedures.step_without_forgetting, 1), after(procedures.step, 1))


def made(**losses):
    """Trials of a structure, by learning rate."""
    return [Trial(name, 6, lr, 0, 0, [loss]) for name, by_rate in losses.items() for lr, loss in by_rate.items()]


def test_at_one_rate_the_second_structure_is_judged_at_the_rate_of_the_first():
    trials = made(pre={0.1: 0.3, 0.01: 0.5}, post={0.1: 1.6, 0.01: 0.2})
    assert procedures.at_own_rates(trials) == {"pre": 0.3, "post": 0.2}
    assert procedures.at_one_rate(trials) == {"pre": 0.3, "post": 1.6}


def test_at_one_rate_post_ln_looks_five_times_worse_in_the_stored_study_with_warm_up():
    trials = pick(load(STUDY, Trial), K=6, warmup=100)
    assert tuned(pick(trials, structure="Pre-LN")) > tuned(pick(trials, structure="Post-LN"))
    wrong, right = procedures.at_one_rate(trials), procedures.at_own_rates(trials)
    assert list(wrong) == ["Pre-LN", "Post-LN"] and wrong["Pre-LN"] == right["Pre-LN"]
    assert wrong["Post-LN"] > 5 * right["Post-LN"]


def test_at_one_rate_it_hides_in_the_stored_study_without_warm_up_where_both_are_best_at_one():
    trials = pick(load(STUDY, Trial), K=6, warmup=0)
    assert procedures.at_one_rate(trials) == procedures.at_own_rates(trials)


def test_at_one_rate_hides_where_it_is_best_for_both():
    trials = made(pre={0.1: 0.3, 0.01: 0.5}, post={0.1: 0.2, 0.01: 1.6})
    assert procedures.at_one_rate(trials) == procedures.at_own_rates(trials)
