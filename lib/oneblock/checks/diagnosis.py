"""Every check on one block."""

from collections.abc import Callable, Iterable

from torch import nn

from oneblock.checks.depth_gradient import depth_gradient
from oneblock.checks.dropout_sites import dropout_sites
from oneblock.checks.dtypes import dtypes
from oneblock.checks.examination import examine
from oneblock.checks.finding import Finding
from oneblock.checks.gradients import gradient_agrees, gradient_reach
from oneblock.checks.independence import (
    batch_independence,
    causality,
    permutation_equivariance,
    token_independence,
)
from oneblock.checks.input_kept import input_kept
from oneblock.checks.nonfinite import nonfinite
from oneblock.checks.norm_axes import norm_axes
from oneblock.checks.official_parity import official_parity
from oneblock.checks.overfit import overfit
from oneblock.checks.padding_leak import padding_leak
from oneblock.checks.parts import with_parts
from oneblock.checks.reference_parity import reference_parity
from oneblock.checks.report import Report
from oneblock.checks.residual_ratio import residual_ratio
from oneblock.checks.shapes import shapes
from oneblock.checks.sharing import parameter_sharing
from oneblock.checks.subject import Call, Subject, subject_of
from oneblock.checks.sublayers import sublayers_off
from oneblock.checks.train_eval import train_eval

Check = Callable[[Subject], Finding]
EIGHT = (overfit, shapes, padding_leak, sublayers_off, residual_ratio, depth_gradient, train_eval, official_parity)
FURTHER = (
    reference_parity,
    batch_independence,
    permutation_equivariance,
    token_independence,
    causality,
    norm_axes,
    dropout_sites,
    parameter_sharing,
    gradient_reach,
    gradient_agrees,
    nonfinite,
    dtypes,
    input_kept,
)
CHECKS: dict[str, Check] = {check.__name__: check for check in (*EIGHT, *FURTHER)}


def diagnose(
    block: nn.Module | Subject, D: int | None = None, call: Call | None = None, checks: Iterable[Check] | None = None, **claims: object
) -> Report:
    """Runs every check on a block and reports what each found.

    The block is left as it was: parameters, buffers, modes, gradients, hooks and random numbers.

    Args:
        block, D, call, claims: as :func:`oneblock.checks.subject.subject_of` takes them.
        checks: which to run; all of them by default.
    Raises:
        ArgumentError: it cannot be told how the block is called, or a part is named that it does not have.
    """
    subject = with_parts(subject_of(block, D, call, **claims))
    chosen = CHECKS.values() if checks is None else checks
    return Report(type(subject.block).__name__, tuple(examine(subject, check) for check in chosen))

