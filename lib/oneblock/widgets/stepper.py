"""The stepper: a trace, one step at a time."""

from oneblock.errors import ArgumentError
from oneblock.trace import Trace
from oneblock.widgets.figure import PAYLOAD_LIMIT, Figure, refuse_large_trace
from oneblock.widgets.steps import steps_view


class Stepper(Figure):
    """Steps through a trace: formula, tensors, what changed, a sentence.

    Args:
        trace: what :func:`oneblock.trace.record` returned.
        title: the figure's name.
        predict: whether the reader is asked for a number before a step shows it; they can switch this.
        digits: significant digits of every number.
        limit: bytes of JSON that the trace's numbers and texts may take.

    Raises:
        ArgumentError: the trace is too large.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        title: str,
        predict: bool = False,
        digits: int = 6,
        limit: int = PAYLOAD_LIMIT,
        language: str = "en",
    ) -> None:
        if not isinstance(trace, Trace):
            raise ArgumentError("trace", "a Trace, such as record(function, x) returns", trace)
        refuse_large_trace(trace, limit)
        super().__init__(steps_view(trace, digits, language), title, language, limit, kind="stepper", predict=predict)
