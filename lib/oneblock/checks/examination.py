"""One check on one subject: an exception is a finding, and afterwards every module is as it was."""

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from torch import nn

from oneblock.checks.finding import Finding, crashed
from oneblock.checks.guard import guard

Subject = TypeVar("Subject")


def examine(subject: Subject, check: Callable[[Subject], Finding]) -> Finding:
    """What a check finds out about a block, a model or a procedure; each module that the subject holds is guarded."""
    with ExitStack() as stack, warnings.catch_warnings():
        for module in (nn.Identity(), *vars(subject).values()):
            if isinstance(module, nn.Module):
                stack.enter_context(guard(module))
        warnings.simplefilter("ignore")
        try:
            return check(subject)
        except Exception as error:
            return crashed(check.__name__, error)
