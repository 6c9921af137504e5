"""The catalogue has every word that is needed and none besides."""

import inspect
import pkgutil
import re
import string
from importlib import import_module
from importlib.resources import files

import pytest

import oneblock
from oneblock.ffn import ffn, swiglu
from oneblock.misreadings import MISREADINGS
from oneblock.norms import layer_norm, rms_norm
from oneblock.notation import SYMBOLS
from oneblock.residual import residual
from oneblock.trace import record
from oneblock.widgets import steps_view
from oneblock.words import words

LANGUAGES = sorted(path.name.removesuffix(".toml") for path in files("oneblock.words").iterdir() if path.name.endswith(".toml"))


def public_functions():
    for found in pkgutil.iter_modules(oneblock.__path__):
        module = import_module(f"oneblock.{found.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("_") and function.__module__ == module.__name__:
                yield function


def test_every_symbol_that_is_no_argument_is_a_step_with_words():
    arguments = {name for function in public_functions() for name in inspect.signature(function).parameters}
    assert set(words()["steps"]) == set(SYMBOLS) - arguments


def test_every_misreading_has_a_sentence_and_every_sentence_a_misreading():
    assert set(words()["misreadings"]) == {mistake for rules in MISREADINGS.values() for mistake in rules}


def test_every_misreading_belongs_to_a_step():
    assert set(MISREADINGS) <= set(words()["steps"])


def test_the_figures_use_every_word_and_no_other():
    code = "\n".join(path.read_text("utf-8") for path in files("oneblock.widgets").iterdir() if path.name.endswith((".js", ".py")))
    used = re.findall(r"\bui\.(\w+)", code) + re.findall(r"\bui\"?\]?\[\"(\w+)\"\]", code)
    assert set(used) == set(words()["ui"])


def placeholders(table):
    if isinstance(table, str):
        return {field for _, field, _, _ in string.Formatter().parse(table) if field is not None}
    return {key: placeholders(value) for key, value in table.items()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_the_same_things_with_the_same_numbers_in_them(language):
    assert placeholders(words(language)) == placeholders(words("en"))


@pytest.mark.parametrize(
    "function, shapes",
    [
        (residual, ["D", "D"]),
        (ffn, ["D", "FD", "F", "DF", "D"]),
        (ffn, ["D", "FD", None, "DF", None]),
        (lambda *given: ffn(*given, dropout=lambda a: 2 * a), ["D", "FD", "F", "DF", "D"]),
        (swiglu, ["D", "FD", "FD", "DF"]),
        (swiglu, ["D", "FD", "FD", "DF", "F", "F", "D"]),
        (layer_norm, ["D"]),
        (layer_norm, ["D", "D", "D"]),
        (rms_norm, ["D"]),
        (rms_norm, ["D", "D"]),
    ],
)
def test_every_traced_function_can_be_told_in_words(fixed, function, shapes):
    sizes = {"D": 5, "F": 7}
    given = [shape and fixed(*(sizes[axis] for axis in shape), seed=k) for k, shape in enumerate(shapes)]
    steps = steps_view(record(function, *given)).frame["steps"]
    assert all(step["title"] and step["sentence"] for step in steps)
    assert not any(re.search(r"\{[^\d}]", step["sentence"] + "".join(step["worked"])) for step in steps)
