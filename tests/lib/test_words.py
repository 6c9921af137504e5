"""The catalogue has every word that is needed and none besides."""

import json
import re
import string
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from docutils.nodes import make_id

from oneblock.blocks import PreNorm
from oneblock.checks import CHECKS, COMPARISON_CHECKS, LOSS_CHECKS, MODEL_CHECKS, PREDICTION_CHECKS, STEP_CHECKS
from oneblock.checks.finding import OUTCOMES
from oneblock.classifier import Classifier, classified, stages
from oneblock.errors import ArgumentError
from oneblock.ffn import ffn, swiglu
from oneblock.masks import masked_mean
from oneblock.misreadings import MISREADINGS
from oneblock.norms import layer_norm, rms_norm
from oneblock.residual import residual
from oneblock.tour import tour
from oneblock.trace import local, record
from oneblock.widgets import steps_view
from oneblock.words import words

BOOK = Path(__file__).parents[2] / "book"
EVERY = [*CHECKS, *MODEL_CHECKS, *PREDICTION_CHECKS, *LOSS_CHECKS, *STEP_CHECKS, *COMPARISON_CHECKS]
LANGUAGES = sorted(path.name.removesuffix(".toml") for path in files("oneblock.words").iterdir() if path.name.endswith(".toml"))


@pytest.fixture
def made(fixed):
    """The names of every step that some part of the library makes."""
    row, square = fixed(2, 3, 6), fixed(6, 6)
    block = PreNorm(6, 2, 7, dropout=0.5).double()
    valid_tokens = torch.ones(2, 3, dtype=torch.bool)
    runs = [(block, row, valid_tokens), (masked_mean, row, valid_tokens), (swiglu, row, square, square, square), (rms_norm, row)]
    run = classified(Classifier(11, 3, 2, 6, 2, 7, K=1), torch.ones(2, 2, dtype=torch.int64))
    traces = [*(record(*run) for run in runs), tour(record(block.eval(), row)), run, tour(run, stages(1))]
    return {local(name) for trace in traces for name in trace.names}


def test_every_step_that_is_made_has_words_and_no_other(made):
    assert set(words()["steps"]) == made


def test_every_misreading_has_a_sentence_and_every_sentence_a_misreading():
    assert set(words()["misreadings"]) == {mistake for rules in MISREADINGS.values() for mistake in rules}


def test_every_misreading_belongs_to_a_step():
    assert set(MISREADINGS) <= set(words()["steps"])


def test_the_figures_use_every_word_and_no_other():
    code = "\n".join(path.read_text("utf-8") for path in files("oneblock.widgets").iterdir() if path.name.endswith((".js", ".py")))
    used = re.findall(r"\bui\.(\w+)", code) + re.findall(r"\bui\"?\]?\[\"(\w+)\"\]", code)
    assert set(used) == set(words()["ui"])


def test_every_check_has_words_and_no_other():
    assert set(words()["checks"]) == set(EVERY) and len(set(EVERY)) == len(EVERY)
    for said in words()["checks"].values():
        assert set(said) == {"title", "proves", "source", "causes", "needs", "link"} and all(said.values())
    assert set(words()["report"]["outcomes"]) == set(OUTCOMES)


@pytest.mark.parametrize("check", EVERY)
def test_a_check_links_to_a_section_that_is_there(check):
    chapter, _, section = words()["checks"][check]["link"].partition(".html#")
    cells = json.loads((BOOK / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    lines = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "markdown").splitlines()
    assert section in {make_id(line.lstrip("# ")) for line in lines if line.startswith("#")}


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


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("language", ["xx", "", "../en", None, ["en"]])
def test_a_language_without_words_is_refused_and_those_there_are_are_named(language):
    with pytest.raises(ArgumentError, match=rf"^language must be one of {', '.join(LANGUAGES)}; got "):
        words(language)
