"""What a reader can set in an explorer: declared here, with every value that works without a kernel."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from oneblock.errors import ArgumentError, ShapeError
from oneblock.notation import SYMBOLS
from oneblock.widgets.numbers import format_number

TEXT_DIGITS = 12
INCREASING = "at least two finite numbers, increasing"


def _listed(argument: str, values: object, due: str) -> list:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ArgumentError(argument, due, values)
    return list(values)


@dataclass(frozen=True)
class Sliders:
    """One slider for each element of a number or tensor.

    Args:
        start: the value at first: a number, or nested lists as for ``torch.tensor``.
        values: what a slider offers without a kernel, increasing; every element of ``start`` is among them.
    """

    start: float | Sequence
    values: Iterable[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _listed("values", self.values, INCREASING))  # a generator runs once
        try:
            values = [float(v) for v in self.values]
        except (TypeError, ValueError):
            raise ArgumentError("values", INCREASING, self.values) from None
        if len(values) < 2 or not all(map(math.isfinite, values)) or values != sorted(set(values)):
            raise ArgumentError("values", INCREASING, self.values)
        if len(set(self._texts())) < len(values):
            raise ArgumentError("values", f"different in their first {TEXT_DIGITS} digits", self.values)
        self._check_start(values)

    def _check_start(self, values: list[float]) -> None:
        try:
            start = self.tensor()
        except (TypeError, ValueError, RuntimeError):
            raise ArgumentError("start", "a number, or nested lists of numbers", self.start) from None
        if start.numel() == 0:
            raise ShapeError("start", "of at least one number", start)
        for element in start.flatten().tolist():
            if element not in values:
                raise ArgumentError("start", f"made of elements of values {values}", element)

    def tensor(self) -> Tensor:
        return torch.tensor(self.start, dtype=torch.float64)

    def _texts(self) -> list[str]:
        return [format_number(float(v), TEXT_DIGITS) for v in self.values]

    def entries(self, name: str) -> list[dict]:
        """A control for each element, labelled by the tensor's symbol and the element's place."""
        texts = self._texts()
        shape, symbol = self.tensor().shape, SYMBOLS[name].text if name in SYMBOLS else name
        places = itertools.product(*(range(1, n + 1) for n in shape))
        return [
            {
                "kind": "slider",
                "group": symbol,
                "label": f"{symbol}[{','.join(map(str, place))}]" if place else symbol,
                "values": texts,
                "start": list(map(float, self.values)).index(element),
            }
            for place, element in zip(places, self.tensor().flatten().tolist(), strict=True)
        ]

    def argument(self, setting: Iterator) -> Tensor | float:
        """Takes as many numbers as there are sliders, in the shape of ``start``."""
        start = self.tensor()
        taken = torch.tensor([float(next(setting)) for _ in range(start.numel())], dtype=torch.float64)
        return taken.reshape(start.shape) if start.ndim else taken.item()


def span(low: float, high: float, step: float) -> list[float]:
    """``low, low + step, …, high``, without the rounding error of adding up."""
    if not (math.isfinite(low) and math.isfinite(high) and step > 0 and high > low):
        raise ArgumentError("span", "low < high and step > 0", (low, high, step))
    count = round((high - low) / step)
    if not math.isclose(low + count * step, high, abs_tol=1e-9 * step):
        raise ArgumentError("span", "a whole number of steps from low to high", (low, high, step))
    places = max(12, 6 - math.floor(math.log10(step)))  # a tiny step needs more of them
    return [round(low + k * step, places) for k in range(count + 1)]


@dataclass(frozen=True)
class Choice:
    """One of a few named options; the first is the one at the start."""

    options: Iterable[str]
    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _listed("options", self.options, "a list of names"))
        if not all(isinstance(option, str) for option in self.options):
            raise ArgumentError("options", "texts", self.options, "write numbers as texts: [str(n) for n in numbers]")
        if len(self.options) < 2 or len(set(self.options)) != len(self.options):
            raise ArgumentError("options", "at least two different names", self.options)

    def entries(self, name: str) -> list[dict]:
        label = SYMBOLS[name].text if name in SYMBOLS else name.replace("_", " ")
        return [{"kind": self.kind, "group": label, "label": label, "values": list(self.options), "start": 0}]

    def argument(self, setting: Iterator) -> str:
        return next(setting)


class Text(Choice):
    """Any text: without a kernel one of the examples in ``options``, with a kernel what the reader types.

    The function says what it takes: an error that it raises is shown in the figure.
    """

    kind: ClassVar[str] = "text"


def check_setting(entries: Sequence[dict], setting: object) -> None:
    """Refuses a setting with a number out of range or an option that does not exist."""
    if not isinstance(setting, (list, tuple)) or len(setting) != len(entries):
        raise ArgumentError("setting", f"of {len(entries)} values", setting)
    for entry, value in zip(entries, setting, strict=True):
        values = entry["values"]
        if entry["kind"] == "text":
            if not isinstance(value, str):
                raise ArgumentError(entry["label"], "a text", value)
        elif entry["kind"] == "choice":
            if value not in values:
                raise ArgumentError(entry["label"], f"one of {', '.join(values)}", value)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ArgumentError(entry["label"], "a number", value)
        elif not float(values[0]) <= value <= float(values[-1]):
            raise ArgumentError(entry["label"], f"from {values[0]} to {values[-1]}", value)


def places(entries: Sequence[dict], one_at_a_time: bool) -> Iterator[tuple[int, ...]]:
    """Every setting of the grid, each as the places of its values.

    Choices and texts always combine. Sliders combine too, or, ``one_at_a_time``, leave the start one by one.
    """
    starts = [entry["start"] for entry in entries]
    free = [range(len(e["values"])) if e["kind"] != "slider" or not one_at_a_time else [e["start"]] for e in entries]
    yield from itertools.product(*free)
    if not one_at_a_time:
        return
    for k, entry in enumerate(entries):
        if entry["kind"] == "slider":
            moved = [i for i in range(len(entry["values"])) if i != starts[k]]
            yield from itertools.product(*free[:k], moved, *free[k + 1 :])


def count_places(entries: Sequence[dict], one_at_a_time: bool) -> int:
    """How many settings :func:`places` yields, without making them."""
    choices = math.prod(len(e["values"]) for e in entries if e["kind"] != "slider")
    sliders = [len(e["values"]) for e in entries if e["kind"] == "slider"]
    return choices * (1 + sum(n - 1 for n in sliders) if one_at_a_time else math.prod(sliders))


def key_of(place: Sequence[int], entries: Sequence[dict]) -> str:
    """A setting's name in the payload: what differs from the start, ``0=3 14=1``; the start is ``""``."""
    moved = [f"{k}={i}" for k, (i, entry) in enumerate(zip(place, entries, strict=True)) if i != entry["start"]]
    return " ".join(moved)
