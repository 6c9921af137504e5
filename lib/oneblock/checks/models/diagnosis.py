"""Every check on one classifier."""

from collections.abc import Callable, Iterable

from torch import nn

from oneblock.checks.examination import examine
from oneblock.checks.finding import Finding
from oneblock.checks.models.contract import ids_refused, logits_dtype, logits_given
from oneblock.checks.models.final_norm import final_norm
from oneblock.checks.models.model import Call, Model, model_of
from oneblock.checks.models.modes import model_modes
from oneblock.checks.models.order import order_counts
from oneblock.checks.models.padding import logits_padding
from oneblock.checks.models.parameters import parameters_own, parameters_reached, parameters_registered
from oneblock.checks.models.reference import logits_reference
from oneblock.checks.models.texts import texts_apart
from oneblock.checks.report import Report

Check = Callable[[Model], Finding]
ALL = (
    logits_given,
    ids_refused,
    logits_padding,
    texts_apart,
    order_counts,
    final_norm,
    parameters_registered,
    parameters_own,
    parameters_reached,
    model_modes,
    logits_dtype,
    logits_reference,
)
MODEL_CHECKS: dict[str, Check] = {check.__name__: check for check in ALL}


def diagnose_model(
    model: nn.Module | Model, V: int | None = None, call: Call | None = None, checks: Iterable[Check] | None = None, **claims: object
) -> Report:
    """Runs every check on a classifier and reports what each found.

    The model is left as it was: parameters, buffers, modes, gradients, hooks and random numbers.

    Args:
        model, V, call, claims: as :func:`oneblock.checks.models.model.model_of` takes them.
        checks: which to run; all of them by default.
    Raises:
        ArgumentError: it cannot be told how the model is called.
    """
    subject = model_of(model, V, call, **claims)
    chosen = MODEL_CHECKS.values() if checks is None else checks
    return Report(type(subject.model).__name__, tuple(examine(subject, check) for check in chosen))
