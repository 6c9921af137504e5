"""The explorer: sliders and choices over a function that PyTorch computes."""

from collections.abc import Callable, Sequence

import traitlets

from oneblock.errors import ArgumentError
from oneblock.trace import Trace
from oneblock.widgets.controls import Choice, Sliders, check_setting, count_places, key_of, places
from oneblock.widgets.figure import PAYLOAD_LIMIT, Figure, refuse_large_trace
from oneblock.widgets.steps import steps_view
from oneblock.widgets.view import View

POINT = len('"":"",')
"""Bytes that a point takes besides its key and its changed numbers."""


class Explorer(Figure):
    """Shows what ``function`` returns for a setting of its arguments.

    Without a kernel the declared grid works, every point computed here and now. With a kernel any
    number in a slider's range works, computed as the reader drags, and any text.

    Args:
        function: from the controls' values to a ``Trace`` or a ``View``. Its structure may not depend on them,
            and the same setting gives the same numbers.
        title: the figure's name.
        one_at_a_time: without a kernel, sliders leave the start one by one. A grid of many sliders is
            too large for a page otherwise.
        predict: whether the reader is asked for numbers first (traces only).
        digits: significant digits of every number of a trace.
        limit: bytes of JSON that the grid may take, and the view at the start as many.
        controls: for each argument of ``function``, :class:`Sliders`, :class:`Choice` or :class:`Text`.

    Raises:
        ArgumentError: the grid is too large, the structure changes over it, or ``function`` returns something else.
    """

    kind = "explorer"

    def __init__(
        self,
        function: Callable,
        *,
        title: str,
        one_at_a_time: bool = False,
        predict: bool = False,
        digits: int = 6,
        limit: int = PAYLOAD_LIMIT,
        language: str = "en",
        **controls: Sliders | Choice,
    ) -> None:
        if not controls:
            raise ArgumentError("controls", "at least one Sliders or Choice, by argument name", controls)
        for name, control in controls.items():
            if not isinstance(control, (Sliders, Choice)):
                raise ArgumentError(name, "Sliders, a Choice or a Text", control, "every other argument stays in the function")
        self._function, self._controls, self._options, self._limit = function, controls, (digits, language), limit
        entries = [entry for name, control in controls.items() for entry in control.entries(name)]
        setting = _values([entry["start"] for entry in entries], entries)
        start = self._on_grid(setting)
        points = self._points(entries, start, one_at_a_time, limit)
        super().__init__(
            start,
            title,
            language,
            limit,
            kind=self.kind,
            predict=predict,
            controls=entries,
            points=points,
            one_at_a_time=one_at_a_time,
            **self._words(language),
        )
        self.setting = setting
        self.observe(self._on_ask, "ask")

    def _words(self, language: str) -> dict:
        """Words that a kind of explorer has beside those of every figure, or in their place."""
        return {}

    def _compute(self, setting: Sequence) -> View:
        values = iter(setting)
        arguments = {name: control.argument(values) for name, control in self._controls.items()}
        return self._shown(self._function(**arguments))

    def _shown(self, result: object) -> View:
        if isinstance(result, Trace):
            refuse_large_trace(result, self._limit)
            return steps_view(result, *self._options)
        if not isinstance(result, View):
            raise ArgumentError("function", "from the controls to a Trace or a View", result, "use record() or table_view()")
        return result

    def _on_grid(self, setting: Sequence) -> View:
        try:
            return self._compute(setting)
        except Exception as error:
            error.add_note(f"This came at the setting {setting}, in the order of the controls.")
            raise

    def _points(self, entries: list[dict], start: View, one_at_a_time: bool, limit: int) -> dict[str, str]:
        count = count_places(entries, one_at_a_time)
        _refuse_large_grid(count, entries, count * POINT, limit)  # before computing any of millions of points
        points, size = {}, 0
        for place in places(entries, one_at_a_time):
            key, setting = key_of(place, entries), _values(place, entries)
            points[key] = _difference(start, self._on_grid(setting), setting)
            if not key and points[key]:
                hint = "seed what it draws, with torch.Generator().manual_seed(0), and call .eval() where there is dropout"
                raise ArgumentError("function", "one that gives the same numbers each time", self._function, hint)
            size += len(key) + len(points[key]) + POINT
            _refuse_large_grid(count, entries, size, limit)  # nor wait for the thousands behind the limit
        return points

    @traitlets.validate("setting")
    def _setting_exists(self, proposal: dict) -> list:
        check_setting(self.figure["controls"], proposal["value"])
        return proposal["value"]

    def _on_ask(self, change: dict) -> None:
        ask = change["new"]
        try:
            setting = ask.get("setting")
            check_setting(self.figure["controls"], setting)
            view = self._compute(setting)
            _difference(self._view, view, setting)
            self.answer = {"id": ask.get("id"), "numbers": view.numbers}
        except Exception as error:  # whatever the function raises is shown in the figure
            self.answer = {"id": ask.get("id"), "error": f"{type(error).__name__}: {error}"}

    def note(self) -> str:
        more = len(self.figure["points"]) - 1
        return self.figure["ui"]["more_settings"].format(more)


def _values(place: Sequence[int], entries: list[dict]) -> list:
    texts = [entry["values"][i] for i, entry in zip(place, entries, strict=True)]
    return [float(t) if e["kind"] == "slider" else t for t, e in zip(texts, entries, strict=True)]


def _difference(start: View, view: View, setting: Sequence) -> str:
    """The numbers in which a view differs from the start: ``12=-1.5 13=0``."""
    if view.frame != start.frame or len(view.numbers) != len(start.numbers):
        raise ArgumentError("function", "of one structure for every setting", setting)
    return " ".join(f"{k}={n}" for k, (n, s) in enumerate(zip(view.numbers, start.numbers, strict=True)) if n != s)


def _refuse_large_grid(points: int, entries: list[dict], size: int, limit: int) -> None:
    if size <= limit:
        return
    sizes = " × ".join(f"{len(e['values'])} ({e['label']})" for e in entries)
    hint = f"there are {points:,} settings, {sizes}: declare fewer values, or one_at_a_time=True"
    raise ArgumentError("controls", f"a grid of at most {limit:,} bytes", f"{size:,} or more", hint)
