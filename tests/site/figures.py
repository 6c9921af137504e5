"""Reads what a figure shows, and says what it is due to show."""

import json
import re

import pytest

from oneblock.trace import local, symbol_of
from oneblock.words import words

READ = """(root) => {
    const all = (selector, scope = root) => [...scope.querySelectorAll(selector)];
    const text = (selector, scope = root) => scope.querySelector(selector)?.textContent ?? null;
    const own = (cell) => {
        const copy = cell.cloneNode(true);
        copy.querySelectorAll("sup, small").forEach((mark) => mark.remove());
        return copy.textContent;
    };
    const tensor = (figure) => ({
        label: figure.querySelector("figcaption").firstChild.textContent,
        isNew: figure.querySelector("figcaption b") !== null,
        axes: all("thead th", figure).map((cell) => cell.textContent).filter(Boolean),
        cells: all("tbody td", figure).map(own),
        was: all("tbody td", figure).map((cell) => text("small", cell)),
        moved: all("tbody td", figure).map((cell) => text("sup", cell) !== null),
    });
    return {
        place: text(".ob-place"), formula: text(".ob-formula"), says: text(".ob-says"), spoken: text(".ob-spoken"),
        status: text(".ob-status"), worked: all(".ob-worked p").map((line) => line.textContent),
        tensors: all(".ob-tensor").map(tensor), table: all(".ob-table tr").map((row) => all("th, td", row).map(own)),
        card: all(".ob-card dd").map((text) => text.textContent),
        values: all(".ob-control").map((control) => control.querySelector("select")?.value ?? text("output", control)),
    };
}"""


class Shown:
    """A figure in a page, found by its title."""

    def __init__(self, page, title):
        self.page, self.title = page, title
        # By its label's attribute: to find a role, the names of all that is in all figures were computed each time.
        root = page.locator(f".ob[role=group][aria-label={json.dumps(title, ensure_ascii=False)}]")
        self.place = page.locator(".ob-figure", has=root)
        self.root = self.place.locator(".ob")

    def read(self):
        return json.loads(self.root.evaluate(f"(root) => JSON.stringify(({READ})(root))"))

    def payload(self):
        return json.loads(self.place.locator("script").text_content())

    def table(self):
        """The rows of the table that stands beside the figure, without its head."""
        rows = "(table) => [...table.rows].slice(1).map((row) => [...row.cells].map((cell) => cell.textContent))"
        return self.place.locator(".ob-numbers table").evaluate(rows)

    def button(self, name):
        return self.root.get_by_role("button", name=name)

    def slider(self, name):
        return self.root.get_by_role("slider", name=name, exact=True)

    def press(self, *keys):
        self.root.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def show_everything(self):
        """Asks no questions any more."""
        if self.root.locator(".ob-predict input").count():
            self.root.locator(".ob-predict input").uncheck()

    def walk(self):
        """What is shown at each step, first to last, by key."""
        self.press("Home")
        seen = [self.read()]
        while self.button("Next").is_enabled():
            self.page.keyboard.press("ArrowRight")
            seen.append(self.read())
        return seen


def figures_of(page):
    titles = page.locator(".ob-figure:has(.ob) > .ob-numbers caption").all_text_contents()
    return [Shown(page, title) for title in titles]


def numbers_in(cells):
    """Cells as numbers, to be compared with tensors at the six digits that are shown."""
    return [float(cell) for cell in cells]


def approx(tensor):
    return pytest.approx(tensor.double().flatten().tolist(), rel=5e-6, abs=1e-12, nan_ok=True)


def label(trace, name):
    axes = [axis for axis in trace.axes(name) if axis != "1"]
    return f"{symbol_of(name)} [{', '.join(axes)}]" if axes else symbol_of(name)


def compare_with_trace(seen, trace):
    """Each step that was seen is the trace's: place, formula, tensors, what is new and what it was."""
    assert len(seen) == len(trace.steps) + 1
    titles = [words()["ui"]["given"], *(words()["steps"][local(name)]["title"] for name in trace.names)]
    assert [one["place"] for one in seen] == [f"{k} / {len(seen)} · {title}" for k, title in enumerate(titles, start=1)]
    compare_tensors(seen[0], trace, [name for name in trace.tensors if name not in trace.names])
    for shown, step in zip(seen[1:], trace.steps, strict=True):
        symbol = symbol_of(step.name)
        assert shown["formula"] == (step.formula if step.formula == symbol else f"{symbol} = {step.formula}")
        compare_tensors(shown, trace, [*dict.fromkeys(step.reads.values()), step.name], new=step.name)
        compare_was(shown, trace, step)


def compare_tensors(shown, trace, names, new=None):
    assert [tensor["label"] for tensor in shown["tensors"]] == [label(trace, name) for name in names]
    assert [tensor["isNew"] for tensor in shown["tensors"]] == [name == new for name in names]
    for tensor, name in zip(shown["tensors"], names, strict=True):
        assert numbers_in(tensor["cells"]) == approx(trace[name])
        last = trace.axes(name)[-1:]
        assert [head[0] for head in tensor["axes"][-1:]] == [axis for axis in last if axis != "1"]


def compare_was(shown, trace, step):
    """A changed number says what it was in the first tensor of the same kind."""
    alike = [n for n in step.reads.values() if (trace.axes(n), trace[n].shape) == (trace.axes(step.name), trace[step.name].shape)]
    *_, made = shown["tensors"]
    before = trace[alike[0]].flatten().tolist() if alike else trace[step.name].flatten().tolist()
    for was, old, new in zip(made["was"], before, trace[step.name].flatten().tolist(), strict=True):
        assert (was is not None) == (abs(old - new) > 1e-12)
        assert was is None or float(was.removeprefix("from ")) == pytest.approx(old, rel=5e-6)


def compare_with_table(seen, rows):
    """Each step that was seen is a row of the table: name, tensor, formula, numbers, working, words."""
    steps = rows[len(rows) - len(seen) + 1 :]
    given = [row for row in rows[: len(rows) - len(steps)] if row[0]]  # without a head: the names of an axis' places
    rows_given = [[row[1], flat(row[3])] for row in given]
    assert all([t["label"], t["cells"]] in rows_given for t in seen[0]["tensors"])
    everything = [[t["label"], t["cells"]] for shown in seen for t in shown["tensors"]]
    assert all(row in everything for row in rows_given)  # at the start, or where it is read
    for k, (shown, row) in enumerate(zip(seen[1:], steps, strict=True), start=2):
        head, tensor, formula, numbers, worked, sentence = row
        *_, made = shown["tensors"]
        assert shown["place"] == f"{k} / {len(seen)} · {head.removeprefix(f'{k} ')}"
        assert (made["label"], made["cells"], shown["formula"]) == (tensor, flat(numbers), formula)
        assert (shown["worked"], shown["says"]) == ([line for line in worked.split("; ") if line], sentence)


def flat(numbers):
    return re.findall(r"[^\s,\[\]]+", numbers)


def point_of(payload, *moved):
    """The numbers of a point of the grid; ``moved`` are pairs of a control's place and its value's place."""
    key = " ".join(f"{k}={place}" for k, place in sorted(moved) if place != payload["controls"][k]["start"])
    numbers = list(payload["numbers"])
    for pair in payload["points"][key].split(" ") if payload["points"][key] else []:
        k, text = pair.split("=", 1)
        numbers[int(k)] = text
    return numbers
