"""Every check on one function that predicts, takes a loss, takes a step, or compares."""

from collections.abc import Callable, Sequence

from torch import Tensor

from oneblock.checks.examination import examine
from oneblock.checks.finding import Finding
from oneblock.checks.procedures.comparison import Comparison, comparison_edge, comparison_effort, comparison_rates
from oneblock.checks.procedures.loss import Loss, loss_finite, loss_mean, loss_of_logits, loss_padding, loss_parity
from oneblock.checks.procedures.prediction import Prediction, prediction_free, prediction_keeps, prediction_mode, prediction_repeats
from oneblock.checks.procedures.step import Step, step_follows, step_forgets, step_moves, step_refuses, step_reports
from oneblock.checks.report import Report
from oneblock.orders import Trial


def _named(*checks: Callable[..., Finding]) -> dict[str, Callable[..., Finding]]:
    return {check.__name__: check for check in checks}


PREDICTION_CHECKS = _named(prediction_repeats, prediction_free, prediction_keeps, prediction_mode)
LOSS_CHECKS = _named(loss_padding, loss_of_logits, loss_mean, loss_parity, loss_finite)
STEP_CHECKS = _named(step_forgets, step_follows, step_moves, step_reports, step_refuses)
COMPARISON_CHECKS = _named(comparison_rates, comparison_edge, comparison_effort)


def diagnose_prediction(predict: Callable[..., Tensor], **given: object) -> Report:
    """Runs every check on ``predict(model, inputs)``; ``given`` are the other fields of a :class:`Prediction`."""
    return _report(predict, Prediction(predict, **given), PREDICTION_CHECKS)


def diagnose_loss(loss: Callable[..., Tensor], **given: object) -> Report:
    """Runs every check on ``loss(logits, classes)`` or ``loss(logits, classes, valid_tokens)``; ``given`` as for :class:`Loss`."""
    return _report(loss, Loss(loss, **given), LOSS_CHECKS)


def diagnose_step(step: Callable[..., object], **given: object) -> Report:
    """Runs every check on ``step(model, optimizer, inputs, classes)``; ``given`` are the other fields of a :class:`Step`."""
    return _report(step, Step(step, **given), STEP_CHECKS)


def diagnose_comparison(compare: Callable[..., dict[str, float]] | None = None, trials: Sequence[Trial] = ()) -> Report:
    """Runs every check on ``compare(trials)``, on a table of trials, or on both."""
    return _report(compare or trials, Comparison(compare, trials), COMPARISON_CHECKS)


def _report(named: object, subject: object, checks: dict[str, Callable[..., Finding]]) -> Report:
    name = getattr(named, "__name__", type(named).__name__)
    return Report(name, tuple(examine(subject, check) for check in checks.values()))
