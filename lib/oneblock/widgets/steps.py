"""A trace as a view: step by step, spelt out in numbers, with a question before each step."""

import math
import re
from collections.abc import Sequence

from oneblock.errors import ArgumentError
from oneblock.misreadings import misread
from oneblock.trace import Step, Trace, local, symbol_of
from oneblock.widgets.numbers import nested
from oneblock.widgets.view import REFERENCE, Numbers, View, plain
from oneblock.words import words

COPY = re.compile(r"\{[^}]*\}")
SHOWN = ("symbol", "axes", "shape", "at", "labels")
MANY = 8


def steps_view(
    trace: Trace, digits: int = 6, language: str = "en", labels: dict[str, Sequence[str]] | None = None
) -> View:
    """A trace, step by step, with the questions a reader may be asked before each step.

    Args:
        labels: names for the places of an axis, by its letter: ``{"L": ["not", "bad"]}``. They may differ from one
            setting of an explorer to the next, as numbers do.

    Raises:
        ArgumentError: there are not as many names as places, or one has a space, which parts two numbers; U+00A0 may be used.
    """
    text, numbers = words(language), Numbers(digits)
    named = {axis: numbers.add_texts(f"labels[{axis!r}]", names) for axis, names in (labels or {}).items()}
    tensors = {name: _tensor_entry(trace, name, numbers, named) for name in trace.tensors}
    _check_labels(tensors, labels or {})
    steps = [_given_entry(_at_first(trace), text["ui"])]
    steps += [_step_entry(trace, step, tensors, text["steps"]) for step in trace.steps]
    questions = [_question(trace, step, tensors, numbers, text["misreadings"]) for step in trace.steps]
    frame = {
        "kind": "steps",
        "tensors": {name: {key: entry[key] for key in SHOWN if key in entry} for name, entry in tensors.items()},
        "steps": steps,
        "questions": {str(k): q for k, q in enumerate(questions, start=1) if q},
    }
    table = _steps_table(frame, _given(trace), text["ui"])
    table[1:1] = [["", axis, "", _places(named[axis], len(names)), "", ""] for axis, names in (labels or {}).items()]
    return View(frame, numbers.texts, table)


def _places(at: int, count: int) -> str:
    return nested([f"{{{at + k}}}" for k in range(count)], (count,))


def _check_labels(tensors: dict, labels: dict[str, Sequence[str]]) -> None:
    for axis, names in labels.items():
        size = _sizes(tensors).get(axis.lower())
        if len(names) != size:
            due = f"{size} names, one for each place" if size else "the names of an axis of the trace"
            raise ArgumentError(f"labels[{axis!r}]", due, names)


def _tensor_entry(trace: Trace, name: str, numbers: Numbers, named: dict[str, int]) -> dict:
    tensor = trace[name]
    labels = {axis: at for axis, at in named.items() if axis in trace.axes(name)}
    return {
        **({"labels": labels} if labels else {}),
        "symbol": plain(symbol_of(name)),  # a scope's name may be any text
        "axes": list(trace.axes(name)),
        "letters": trace.letters(name),
        "shape": list(tensor.shape),
        "at": numbers.add(tensor, name),
    }


def _given(trace: Trace) -> list[str]:
    made = set(trace.names)
    return [name for name in trace.tensors if name not in made]


def _at_first(trace: Trace) -> list[str]:
    """What is given. Of very much, only what several steps read; the rest is shown at the step that reads it."""
    given, read = _given(trace), [name for step in trace.steps for name in step.reads.values()]
    return given if len(given) <= MANY else [name for name in given if read.count(name) > 1]


def _given_entry(given: list[str], ui: dict) -> dict:
    return {"title": ui["given"], "formula": "", "worked": [], "sentence": ui["given_sentence"], "shows": given}


def _step_entry(trace: Trace, step: Step, tensors: dict, texts: dict) -> dict:
    text = texts.get(step.name) or texts[local(step.name)]
    own, formula = tensors[step.name], plain(step.formula)
    alike = (n for n in step.reads.values() if (tensors[n]["axes"], tensors[n]["shape"]) == (own["axes"], own["shape"]))
    entry = {
        "title": text["title"],
        "formula": formula if formula == own["symbol"] else f"{own['symbol']} = {formula}",
        "worked": _worked(step, tensors),
        "sentence": _sentence(text["sentence"], step, tensors),
        "shows": list(dict.fromkeys(step.reads.values())),
        "makes": step.name,
    }
    before = next(alike, None) if step.worked else None  # a branch of many steps does not turn its input into its output
    return {**entry, "before": before} if before else entry


def _list(tensor: dict) -> str:
    shape = tensor["shape"] if tensor["axes"] != ["1"] else []
    return nested([f"{{{tensor['at'] + k}}}" for k in range(math.prod(tensor["shape"]))], tuple(shape))


def _sentence(template: str, step: Step, tensors: dict) -> str:
    sizes = _sizes(tensors)

    def value(match: re.Match) -> str:
        key = match[1]
        if key.startswith("#"):
            return str(sizes[key[1:].lower()])
        return _list(tensors[step.reads.get(key, step.name)])

    return re.sub(r"\{([#\w]+)\}", value, template)


def _sizes(tensors: dict) -> dict[str, int]:
    """The size of each axis, by its letter."""
    pairs = (zip(tensor["letters"], tensor["shape"], strict=True) for tensor in tensors.values())
    return {letter: size for pair in pairs for letter, size in pair}


def _worked(step: Step, tensors: dict) -> list[str]:
    """A line for each element of the result, where the tensors have no leading axes."""
    own = tensors[step.name]
    if not step.worked or len(own["axes"]) != 1:
        return []
    sizes, letter, simple = _sizes(tensors), own["letters"][0], own["symbol"].isalpha()
    lines = []
    for k in range(own["shape"][0]):
        right = _expand(step.worked, {letter: k}, sizes, tensors)
        if REFERENCE.fullmatch(right):  # a copy needs no working out
            return []
        left = f"{own['symbol']}{_subscript(k + 1) if letter != '1' else ''} = " if simple else ""
        lines.append(f"{left}{right} = {{{own['at'] + k}}}")
    return lines


def _subscript(n: int) -> str:
    return str(n).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _expand(worked: str, index: dict[str, int], sizes: dict, tensors: dict) -> str:
    """Spells a worked formula out: sums become their terms, references the places of their numbers."""

    def terms(match: re.Match) -> str:
        letter, body = match[1], match[2]
        each = [_expand(body, {**index, letter: k}, sizes, tensors) for k in range(sizes[letter])]
        return " + ".join(each)

    def place(match: re.Match) -> str:
        tensor, at = tensors[match[1]], 0
        unpicked = [letter for letter in (match[2] or "").split(",") if letter in tensor["letters"]]
        for n, letter in zip(tensor["shape"], unpicked, strict=False):
            at = at * n + index[letter]
        return f"{{{tensor['at'] + at}}}"

    worked = re.sub(r"Σ([a-z])⟨(.*?)⟩", terms, worked)
    worked = re.sub(r"#([A-Z])", lambda match: str(sizes[match[1].lower()]), worked)
    worked = re.sub(r"\{([A-Za-z][\w.]*)(?:\[([^\]]*)\])?\}", place, worked)
    return worked.replace(" - ", " − ")


def _question(trace: Trace, step: Step, tensors: dict, numbers: Numbers, texts: dict) -> dict | None:
    """What a misreading of this step gives, element by element; the figure asks for a telling one.

    Only what a reader can work out is asked: rows, not matrices, and no mere copy.
    """
    wrong = misread(trace, step)
    can_be_worked_out = step.worked and not COPY.fullmatch(step.worked)
    if trace[step.name].ndim > 1 or not (wrong or can_be_worked_out):
        return None
    return {"of": step.name, "wrong": [[numbers.add(value), texts[mistake]] for mistake, value in wrong.items()]}


def _steps_table(frame: dict, given: list[str], ui: dict) -> list[list[str]]:
    tensors = frame["tensors"]

    def row(head: str, name: str, formula: str, worked: str, sentence: str) -> list[str]:
        tensor = tensors[name]
        axes = [axis for axis in tensor["axes"] if axis != "1"]
        label = f"{tensor['symbol']} [{', '.join(axes)}]" if axes else tensor["symbol"]
        return [head, label, formula, _list(tensor), worked, sentence]

    head = [ui["step"], ui["tensor"], ui["formula"], ui["numbers"], ui["worked"], ui["in_words"]]
    rows = [row(f"1 {ui['given']}", name, "", "", "") for name in given]
    for k, step in enumerate(frame["steps"][1:], start=2):
        worked = "; ".join(step["worked"])
        rows.append(row(f"{k} {step['title']}", step["makes"], step["formula"], worked, step["sentence"]))
    return [head, *rows]
