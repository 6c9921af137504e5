"""The stepper: a trace, one step at a time."""

from oneblock.errors import ArgumentError
from oneblock.trace import Trace
from oneblock.widgets.figure import Figure
from oneblock.widgets.steps import steps_view


class Stepper(Figure):
    """Steps through a trace: formula, tensors, what changed, a sentence.

    Args:
        trace: what :func:`oneblock.trace.record` returned.
        title: the figure's name.
        predict: whether the reader is asked for a number before a step shows it; they can switch this.
        digits: significant digits of every number.
    """

    def __init__(
        self, trace: Trace, *, title: str, predict: bool = False, digits: int = 6, language: str = "en"
    ) -> None:
        if not isinstance(trace, Trace):
            raise ArgumentError("trace", "a Trace, such as record(function, x) returns", trace)
        super().__init__(steps_view(trace, digits, language), title, language, kind="stepper", predict=predict)
