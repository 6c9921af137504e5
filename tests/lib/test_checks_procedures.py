"""Each check of a procedure fails on a function that is broken in the way it looks for, and on no right one."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax, nll_loss

from oneblock import training
from oneblock.checks import (
    COMPARISON_CHECKS,
    LOSS_CHECKS,
    PREDICTION_CHECKS,
    STEP_CHECKS,
    Comparison,
    Loss,
    Prediction,
    Step,
    diagnose_comparison,
    diagnose_loss,
    diagnose_prediction,
    diagnose_step,
    examine,
)
from oneblock.checks.finding import CRASHED, FAILED, NOT_APPLICABLE
from oneblock.classifier import Classifier
from oneblock.masks import IGNORED, token_loss
from oneblock.mutants import procedures
from oneblock.mutants.catalogue import MISTAKES, PROCEDURE
from oneblock.orders import Trial
from oneblock.stored import load, pick

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

STUDY = Path(__file__).parents[2] / "book" / "data" / "orders_study.json"
DIAGNOSE = {
    "eval_only": diagnose_prediction,
    "inference_only": diagnose_prediction,
    "loss_over_padding": diagnose_loss,
    "softmax_before_loss": diagnose_loss,
    "step_without_forgetting": diagnose_step,
    "at_one_rate": diagnose_comparison,
}
CAUGHT = {
    "eval_only": {"prediction_free"},
    "inference_only": {"prediction_repeats", "prediction_keeps"},
    "loss_over_padding": {"loss_padding", "loss_of_logits", "loss_mean", "loss_parity"},
    "softmax_before_loss": {"loss_of_logits", "loss_parity"},
    "step_without_forgetting": {"step_forgets"},
    "at_one_rate": {"comparison_rates"},
}


def failed(report):
    assert not any(finding.outcome == CRASHED for finding in report.findings), report.text
    return {finding.check for finding in report.findings if finding.outcome == FAILED}


def test_every_procedure_of_the_catalogue_is_tried():
    assert set(CAUGHT) == set(DIAGNOSE) == {name for name, mistake in MISTAKES.items() if mistake.kind == PROCEDURE}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_mistake_of_the_catalogue_is_caught_by_these_checks_and_no_other(name):
    assert failed(DIAGNOSE[name](MISTAKES[name].wrong)) == CAUGHT[name]
    assert DIAGNOSE[name](MISTAKES[name].right).ok


def restored(model, inputs):
    """As :func:`oneblock.training.evaluate` does: the mode of each part is put back."""
    modes = {part: part.training for part in model.modules()}
    model.eval()
    with torch.no_grad():
        answer = model(inputs)
    for part, mode in modes.items():
        part.training = mode
    return answer


def by_ignored_class(logits, classes, valid_tokens):
    return cross_entropy(logits.mT, classes.masked_fill(~valid_tokens, IGNORED))


def by_shares(logits, classes, valid_tokens):
    """The logarithms taken apart, weighed by the mask."""
    each = -log_softmax(logits, -1).gather(-1, classes[..., None])[..., 0]
    return (each * valid_tokens).sum() / valid_tokens.sum()


def of_logarithms(logits, classes):
    return nll_loss(logits.log_softmax(-1), classes)


def forgets_at_the_end(model, optimizer, inputs, classes):
    cross_entropy(model(inputs), classes).backward()
    optimizer.step()
    optimizer.zero_grad()


def skips_what_is_not_finite(model, optimizer, inputs, classes):
    loss = cross_entropy(model(inputs), classes)
    if loss.isfinite():
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.detach()


RIGHT = {
    "restored": lambda: diagnose_prediction(restored),
    "token_loss": lambda: diagnose_loss(token_loss),
    "by ignored class": lambda: diagnose_loss(by_ignored_class),
    "by shares": lambda: diagnose_loss(by_shares),
    "of logarithms": lambda: diagnose_loss(of_logarithms),
    "cross_entropy": lambda: diagnose_loss(cross_entropy, per_token=False),
    "smoothed": lambda: diagnose_loss(lambda logits, classes: cross_entropy(logits, classes, label_smoothing=0.003), plain=False),
    "training.step": lambda: diagnose_step(training.step, clip=1.0, refuses=True),
    "forgets at the end": lambda: diagnose_step(forgets_at_the_end),
    "skips what is not finite": lambda: diagnose_step(skips_what_is_not_finite, refuses=True),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_procedure_that_is_right_passes(name):
    assert (report := RIGHT[name]()).ok, report.text


@pytest.mark.parametrize("seed", range(20))
def test_predictions_and_steps_are_right_on_any_model(seed):
    torch.manual_seed(seed)
    dtype = (torch.float32, torch.float64)[seed % 2]
    model = Classifier(13, 5, 7, 12, 2, 11, 1, dropout=0.3).to(dtype)
    ids = torch.randint(1, 13, (2, 3, 7))
    assert diagnose_prediction(procedures.predictions, model=model, inputs=ids[0]).ok
    assert failed(diagnose_prediction(procedures.inference_only, model=model, inputs=ids[0])) == {"prediction_repeats"}
    still = Classifier(13, 5, 7, 12, 2, 11, 1).to(dtype)
    pairs = [(one, torch.randint(5, (3,))) for one in ids]
    assert (report := diagnose_step(procedures.step, model=still, batches=pairs)).ok, report.text
    assert failed(diagnose_step(procedures.step_without_forgetting, model=still, batches=pairs)) == {"step_forgets"}


BROKEN = []


def breaks(subject, check, run, **claims):
    """Marks a function as one on which the check has to fail, in the run that is named."""

    def keep(function):
        BROKEN.append(pytest.param(subject, check, run, function, claims, id=f"{check}-{function.__name__}"))
        return function

    return keep


@breaks(Prediction, "prediction_repeats", "against eval")
def of_a_model_in_training(model, inputs):
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return model.train()(inputs)


@breaks(Prediction, "prediction_repeats", "two seeds")
@breaks(Prediction, "prediction_keeps", "tensors that changed")
def without_eval(model, inputs):
    with torch.no_grad():
        return model(inputs)


@breaks(Prediction, "prediction_free", "parameters with a gradient")
def with_a_backward_pass(model, inputs):
    answer = model.eval()(inputs)
    answer.sum().backward()
    return answer.detach()


@breaks(Prediction, "prediction_keeps", "requires_grad changed")
def frozen_for_good(model, inputs):
    return model.eval().requires_grad_(False)(inputs)


@breaks(Prediction, "prediction_keeps", "gradients off")
def switched_off_for_good(model, inputs):
    torch.set_grad_enabled(False)
    return model.eval()(inputs)


@breaks(Prediction, "prediction_mode", "parts in another mode")
def back_to_training(model, inputs):
    answer = procedures.predictions(model, inputs)
    model.train()
    return answer


@breaks(Prediction, "prediction_mode", "parts in another mode")
def one_part_in_eval(model, inputs):
    list(model.children())[-1].eval()
    with torch.no_grad():
        return model(inputs)


@breaks(Loss, "loss_padding", "other classes")
def classes_of_padding_count(logits, classes, valid_tokens):
    return by_shares(logits, classes, valid_tokens) * (1 + classes.double().square().mean())


@breaks(Loss, "loss_padding", "more padding")
@breaks(Loss, "loss_mean", "text by text")
def divided_by_all_positions(logits, classes, valid_tokens):
    return by_shares(logits, classes, valid_tokens) * valid_tokens.sum() / valid_tokens.numel()


@breaks(Loss, "loss_padding", "gradient at padding")
def value_without_padding_and_gradient_with(logits, classes, valid_tokens):
    wrong = procedures.loss_over_padding(logits, classes, valid_tokens)
    return by_shares(logits, classes, valid_tokens).detach() + wrong - wrong.detach()


@breaks(Loss, "loss_padding", "other logits")
def padding_is_drawn_to_zero(logits, classes, valid_tokens):
    return by_shares(logits, classes, valid_tokens) + 0.01 * logits.square().mean()


@breaks(Loss, "loss_of_logits", "sure and right, the loss")
@breaks(Loss, "loss_of_logits", "sure and wrong, missing of the gradient")
def of_shares(logits, classes):
    return cross_entropy(logits.softmax(-1), classes)


@breaks(Loss, "loss_of_logits", "sure and wrong, missing of the gradient")
def class_0_is_taken_for_padding(logits, classes):
    return cross_entropy(logits, classes, ignore_index=0)


@breaks(Loss, "loss_mean", "the batch twice")
def a_sum(logits, classes):
    return cross_entropy(logits, classes, reduction="sum")


@breaks(Loss, "loss_mean", "text by text")
def a_mean_of_means(logits, classes, valid_tokens):
    each = [by_shares(logits[n : n + 1], classes[n : n + 1], valid_tokens[n : n + 1]) for n in range(len(logits))]
    return torch.stack(each).mean()


@breaks(Loss, "loss_parity", "loss")
def smoothed(logits, classes):
    return cross_entropy(logits, classes, label_smoothing=0.01)


@breaks(Loss, "loss_parity", "gradient")
def half_of_the_gradient(logits, classes):
    loss = cross_entropy(logits, classes)
    return (loss + loss.detach()) / 2


@breaks(Loss, "loss_finite", "float32, logits × 10000")
def logarithm_of_softmax(logits, classes):
    return -logits.softmax(-1).log().gather(-1, classes[:, None]).mean()


@breaks(Loss, "loss_finite", "float64, logits × 1")
def always_float32(logits, classes):
    return cross_entropy(logits.float(), classes)


@breaks(Loss, "loss_finite", "float64, logits × 1")
def one_number_a_token(logits, classes):
    return cross_entropy(logits, classes, reduction="none")


@breaks(Step, "step_forgets", "second step")
@breaks(Step, "step_reports", "with a graph")
def never_forgets(model, optimizer, inputs, classes):
    loss = cross_entropy(model(inputs), classes)
    loss.backward()
    optimizer.step()
    return loss


@breaks(Step, "step_follows", "large gradient")
@breaks(Step, "step_refuses", "moved by NaN", refuses=True)
def clips_unsaid(model, optimizer, inputs, classes):
    optimizer.zero_grad()
    loss = cross_entropy(model(inputs), classes)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


@breaks(Step, "step_follows", "large gradient", clip=1.0)
def clips_each_number(model, optimizer, inputs, classes):
    optimizer.zero_grad()
    loss = cross_entropy(model(inputs), classes)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


@breaks(Step, "step_follows", "small gradient")
@breaks(Step, "step_moves", "parameters that stayed")
def forgets_what_it_has_learned(model, optimizer, inputs, classes):
    loss = cross_entropy(model(inputs), classes)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


@breaks(Step, "step_moves", "frozen ones that moved")
def wakes_what_is_frozen(model, optimizer, inputs, classes):
    return procedures.step(model.requires_grad_(True), optimizer, inputs, classes)


@breaks(Step, "step_moves", "out of training")
def ends_in_eval(model, optimizer, inputs, classes):
    return procedures.step(model.eval(), optimizer, inputs, classes)


@breaks(Step, "step_reports", "loss before the step")
def reports_the_sum(model, optimizer, inputs, classes):
    return len(inputs) * procedures.step(model, optimizer, inputs, classes)


@breaks(Comparison, "comparison_rates", "Pre-LN, Post-LN first")
def at_the_rate_of_the_first(trials):
    return procedures.at_one_rate(trials)


@breaks(Comparison, "comparison_rates", "Post-LN, Post-LN first")
def best_of_all_seeds(trials):
    """The luckiest seed of each."""
    return {name: min(one.losses[-1] for one in pick(trials, structure=name)) for name in procedures.structures(trials)}


CHECKS = PREDICTION_CHECKS | LOSS_CHECKS | STEP_CHECKS | COMPARISON_CHECKS


@pytest.mark.parametrize("subject, check, run, function, claims", BROKEN)
def test_a_check_fails_on_what_it_looks_for(subject, check, run, function, claims):
    finding = examine(subject(function, **claims), CHECKS[check])
    assert finding.outcome == FAILED and not finding.measured[run] <= finding.threshold, finding


def test_every_check_of_a_function_has_one_on_which_it_fails():
    assert set(CHECKS) - {case.values[1] for case in BROKEN} == {"comparison_edge", "comparison_effort"}


def table(**rates):
    """Trials of each structure, the outcome by the rate."""
    return [Trial(name, 6, lr, 0, 0, [loss]) for name, by_rate in rates.items() for lr, loss in by_rate.items()]


def test_a_best_rate_at_the_edge_of_what_was_tried_is_told():
    trials = table(pre={0.1: 3, 0.01: 1, 0.001: 2}, post={0.1: 3, 0.01: 2, 0.001: 1})
    report = diagnose_comparison(trials=trials)
    assert failed(report) == {"comparison_edge"} and report["comparison_edge"].note == "post at 0.001"
    assert diagnose_comparison(trials=table(pre={0.1: 3, 0.01: 1, 0.001: 2})).ok


def test_a_structure_that_was_tried_less_is_told():
    trials = table(pre={0.1: 3, 0.01: 1, 0.001: 2}, post={0.1: 3, 0.01: 1, 0.003: 2})
    finding = diagnose_comparison(trials=trials)["comparison_effort"]
    assert finding.outcome == FAILED and finding.measured == {"pre": 0.0, "post": 2.0}


@pytest.mark.parametrize("warmup", [0, 100])
def test_the_stored_study_passes(warmup):
    report = diagnose_comparison(procedures.at_own_rates, pick(load(STUDY, Trial), K=6, warmup=warmup))
    assert report.ok and not any(finding.outcome == NOT_APPLICABLE for finding in report.findings)


def test_the_model_is_as_it_was_and_random_numbers_too():
    model, ids = Classifier(13, 5, 7, 12, 2, 11, 1, dropout=0.3).train(), torch.ones(2, 3, dtype=torch.int64)
    before, draws = {name: value.clone() for name, value in model.state_dict().items()}, torch.get_rng_state()
    diagnose_prediction(with_a_backward_pass, model=model, inputs=ids)
    diagnose_prediction(frozen_for_good, model=model, inputs=ids)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(part.training for part in model.modules()) and torch.equal(torch.get_rng_state(), draws)
    assert all(value.requires_grad and value.grad is None for value in model.parameters()) and torch.is_grad_enabled()


def test_a_function_that_raises_is_a_finding_and_the_rest_goes_on():
    def raises(model, optimizer, inputs, classes):
        raise RuntimeError("first\nno step today")

    report = diagnose_step(raises)
    assert report["step_moves"].note == "RuntimeError: no step today"
    assert report.summary == "raises: 0 passed, 0 failed, 1 not applicable, 4 crashed"


@pytest.mark.parametrize(
    "function, per_token, due",
    [
        (token_loss, None, True),
        (procedures.loss, None, False),
        (lambda logits, classes, *, scale=1.0: 0, None, False),
        (lambda logits, classes, valid_tokens=None: 0, True, True),
    ],
)
def test_how_a_loss_is_called_is_told_by_its_parameters_or_by_its_claim(function, per_token, due):
    assert Loss(function, per_token).takes_tokens() is due
