"""What stepper and explorer share: one payload, shown live, on a page without a kernel, or as a table."""

import json
import math
import re
from html import escape
from importlib.resources import files

import anywidget
import traitlets

from oneblock.errors import ArgumentError
from oneblock.trace import Trace
from oneblock.widgets.table import html_table, text_table
from oneblock.widgets.view import View, check_text, fill
from oneblock.words import words

SCRIPTS = ("figure.js", "stepper.js", "curves.js", "heat.js", "card.js", "grid.js", "sentence.js", "explorer.js")
UNSHIPPED = re.compile(r"^export (?=function|const)|^ *//.*\n", re.MULTILINE)
"""Words and comments that a browser does not need."""

IMPORT = re.compile(r"^import .*? from \"\./.*?\";\n", re.MULTILINE | re.DOTALL)

PAYLOAD_LIMIT = 100_000
"""Bytes of JSON one figure may add to a page."""

NUMBER = len('"0",')
"""Bytes that a number takes at least."""


def _source(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def module() -> str:
    """The scripts as one ES module. anywidget loads a widget from a blob, where imports cannot resolve."""
    parts = [IMPORT.sub("", _source(name)) for name in SCRIPTS]
    return "\n".join(UNSHIPPED.sub("", part) for part in parts)


def site_assets() -> dict[str, str]:
    """The files a web page needs, by name: a classic script, which also runs from a disk, and a style sheet."""
    body = re.sub(r"^export default \{ render \};\n", "", module(), flags=re.MULTILINE)
    script = f'(() => {{\n"use strict";\n{body}\n{UNSHIPPED.sub("", _source("page.js"))}}})();\n'
    return {"oneblock-figures.js": script, "oneblock-figures.css": _source("figure.css")}


def refuse_large_trace(trace: Trace, limit: int) -> None:
    """Refuses a trace by its sizes, before any of millions of numbers is written out."""
    shapes = {name: list(tensor.shape) for name, tensor in trace.tensors.items()}
    _refuse_large("trace", NUMBER * sum(map(math.prod, shapes.values())), limit, shapes)


def _refuse_large(argument: str, size: int, limit: int, shapes: dict[str, list[int]]) -> None:
    if size <= limit:
        return
    largest = sorted(shapes, key=lambda name: -math.prod(shapes[name]))[:3]
    sizes = ", ".join(f"{name} {shapes[name]}" for name in largest)
    hint = f"the largest tensors are {sizes}: show one place of some axes, trace.pick(n=0, l=2) or trace.at(0, 2)"
    hint = hint if shapes else "show fewer rows or points"
    raise ArgumentError(argument, f"a figure of at most {limit:,} bytes", f"{size:,} or more", hint)


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


class Figure(anywidget.AnyWidget):
    """An interactive figure with a fallback: a table of its numbers, for pages, print and terminals.

    Traits: ``figure`` is everything to show, as plain data; ``step`` the step in view, from 0;
    ``setting`` a value for each control; ``ask`` and ``answer`` carry settings to the kernel and numbers back.
    """

    _esm = module()
    _css = _source("figure.css")

    figure = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    setting = traitlets.List().tag(sync=True)
    ask = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)

    def __init__(self, view: View, title: str, language: str, limit: int, **payload: object) -> None:
        check_text("title", title)
        tensors = view.frame.get("tensors", {})
        shapes = {entry["symbol"]: entry["shape"] for entry in tensors.values()}
        size = sum(len(_json(part).encode()) for part in (view.frame, view.numbers))
        _refuse_large("view", size, limit, shapes)
        self._view = view
        ui = words(language)["ui"]
        super().__init__(
            figure={"title": title, "frame": view.frame, "numbers": view.numbers, "ui": ui, **payload}
        )

    @traitlets.validate("step")
    def _step_exists(self, proposal: dict) -> int:
        last = len(self.figure["frame"].get("steps", [None])) - 1 if self.figure else 0
        if not 0 <= proposal["value"] <= last:
            raise traitlets.TraitError(f"step must be from 0 to {last}; got {proposal['value']}")
        return proposal["value"]

    def rows(self) -> list[list[str]]:
        """The table of every number in view at the start; the first row is the head."""
        return [[fill(cell, self._view.numbers) for cell in row] for row in self._view.table]

    def note(self) -> str:
        """A sentence under the table."""
        return ""

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/html": self.to_html(), "text/plain": self.to_text()}, metadata

    def payload(self) -> str:
        """Everything to show, as data that a page carries."""
        data = _json(self.figure).replace("<", "\\u003c")
        return f'<script type="application/json">{data}</script>'

    def to_html(self) -> str:
        """The table, and the payload that the page's script turns into the figure."""
        note = f"<p>{escape(self.note())}</p>\n" if self.note() else ""
        table = html_table(self.figure["title"], self.rows())
        return f'<div class="ob-figure">\n{table}\n{note}{self.payload()}\n</div>'

    def to_text(self) -> str:
        """Title, table and note as text."""
        table = text_table(self.figure["title"], self.rows())
        return f"{table}\n{self.note()}" if self.note() else table
