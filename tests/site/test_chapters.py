"""Every figure of every chapter, driven on the built page."""

import json
import math
import re
from pathlib import Path

import pytest
import torch

from oneblock.activations import ACTIVATIONS
from oneblock.ffn import ffn, swiglu
from oneblock.norms import layer_norm, rms_norm
from oneblock.residual import residual
from oneblock.trace import record
from oneblock.widgets.view import fill

from .figure_pages import freeze
from .figures import approx, compare_with_table, compare_with_trace, figures_of, numbers_in, point_of
from .tabs import opened_tab

BOOK = Path(__file__).parents[2] / "book"
CHAPTERS = sorted(path.stem for path in BOOK.glob("*.ipynb"))
STEPPED = [name for name in CHAPTERS if r'kind\":\"steps\"' in (BOOK / f"{name}.ipynb").read_text("utf-8")]
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS)
each_with_steps = pytest.mark.parametrize("chapter", STEPPED)


@pytest.fixture(scope="module")
def tab(browser):
    with opened_tab(browser, without_mathematics=True) as tab:
        yield tab


@pytest.fixture(scope="module")
def frozen_tab(browser):
    """A tab whose time stands still."""
    with opened_tab(browser, without_mathematics=True) as tab:
        freeze(tab.page)
        yield tab


def opening(tab, server):
    def of(chapter):
        found = figures_of(tab.open(f"{server}/book/{chapter}.html"))
        assert found, "no figure is on this page"
        return found

    yield of
    tab.check()


@pytest.fixture
def figures(tab, server):
    """``figures("03_by_hand")``: the figures of a chapter, as just opened."""
    yield from opening(tab, server)


@pytest.fixture
def frozen_figures(frozen_tab, server):
    """The same; time passes only in ``page.clock.run_for``."""
    yield from opening(frozen_tab, server)


def has_steps(figure):
    return figure.payload()["frame"]["kind"] == "steps"


@each_with_steps
def test_every_stepper_walks_through_its_table_by_keys_and_back_by_mouse(figures, chapter):
    for figure in filter(has_steps, figures(chapter)):
        figure.show_everything()
        seen = figure.walk()
        compare_with_table(seen, figure.table())
        figure.press("Home", "End")
        for shown in reversed(seen[:-1]):
            figure.button("Previous").click()
            assert figure.read()["tensors"] == shown["tensors"]


@each_with_steps
def test_every_stepper_plays_to_its_end_and_stops(frozen_figures, chapter):
    for figure in filter(has_steps, frozen_figures(chapter)):
        figure.show_everything()
        last = len(figure.payload()["frame"]["steps"])
        figure.press("Space")
        assert figure.button("Pause").is_visible()
        figure.page.clock.run_for(1800 * last)
        assert figure.read()["place"].startswith(f"{last} / {last} ") and figure.button("Play").is_visible()


@each_with_steps
def test_every_question_knows_its_answer_and_its_misreadings(figures, chapter):
    for figure in filter(has_steps, figures(chapter)):
        payload, place = figure.payload(), 0
        if payload["frame"]["questions"]:
            figure.root.get_by_label("Predict first").check()
            figure.press("Home")
        for step, question in payload["frame"]["questions"].items():
            figure.press(*["ArrowRight"] * (int(step) - place))
            place = int(step)
            answer_question(figure, question, payload)


def answer_question(figure, question, payload):
    numbers, tensor = payload["numbers"], payload["frame"]["tensors"][question["of"]]
    cell = cell_asked_for(figure.root.locator(".ob-question label").text_content())
    answer = numbers[tensor["at"] + cell]
    assert f"= {answer}" not in figure.root.inner_text()
    says = {}
    for at, sentence in question["wrong"]:
        says.setdefault(numbers[at + cell], []).append(sentence)
    for value, sentences in says.items():
        if value != answer and math.isfinite(float(value)):
            assert guess(figure, value) == f"Not {value}. {' Or: '.join(sentences)}"
    guess(figure, answer)
    shown = figure.read()
    assert shown["says"].startswith("Yes: ") and shown["tensors"][-1]["cells"][cell] == answer


def cell_asked_for(label):
    """``What will h₂ be?`` and ``What will d²[2] be?`` ask for the second; a number alone is the first."""
    plain = label.translate(str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789"))
    found = re.search(r"(\d+)\]? be", plain)
    return int(found[1]) - 1 if found else 0


def guess(figure, value):
    figure.root.get_by_role("textbox").fill(value)
    figure.page.keyboard.press("Enter")
    reply = figure.root.locator(".ob-reply")
    return reply.text_content() if reply.count() else None


@each_chapter
def test_every_control_of_every_explorer_leads_to_its_point_of_the_grid(figures, chapter):
    shown = figures(chapter)
    assert any(map(has_steps, shown)) == (chapter in STEPPED)
    for figure in shown:
        payload = figure.payload()
        if payload["kind"] != "explorer":
            continue
        if has_steps(figure):
            figure.show_everything()
            figure.press("End")
        for k, control in enumerate(payload["controls"]):
            for place in move(figure, control):
                compare_with_point(figure, payload, (k, place))
            figure.button("Back to the start").click()
            compare_with_point(figure, payload)


def move(figure, control):
    """Moves a control by keys and by mouse, to three of its values or fewer; gives the place of each."""
    last = len(control["values"]) - 1
    if control["kind"] != "slider":
        choice = figure.root.get_by_role("combobox", name=control["label"], exact=True)
        for place in sorted({last, (last + 1) // 2, 1}, reverse=True):
            choice.select_option(control["values"][place])
            yield place
        return
    slider = figure.slider(control["label"])
    slider.press("End")
    yield last
    slider.press("ArrowLeft")
    yield last - 1
    box = slider.bounding_box()
    figure.page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
    yield 0


def compare_with_point(figure, payload, *moved):
    frame, numbers, shown = payload["frame"], point_of(payload, *moved), figure.read()
    values = [control["values"][dict(moved).get(k, control["start"])] for k, control in enumerate(payload["controls"])]
    assert shown["values"] == values
    if frame["kind"] == "steps":
        *_, made = shown["tensors"]
        tensor = frame["tensors"][frame["steps"][-1]["makes"]]
        assert made["cells"] == numbers[tensor["at"] : tensor["at"] + math.prod(tensor["shape"])]
    elif frame["kind"] == "table":
        assert shown["table"][1:] == [[fill(cell, numbers) for cell in row] for row in frame["rows"]]
    elif frame["kind"] == "card":
        assert shown["card"] == [text.replace("\u00a0", " ") for text in numbers if text]
    elif frame["kind"] == "curves":
        assert shown["table"][1] == numbers[frame["mark"] :]
    else:
        assert [cell for tensor in shown["tensors"] for cell in tensor["cells"]] == numbers


def row(*values):
    return torch.tensor(values, dtype=torch.float64)


def by_hand(x=row(1, 2)):
    W1, W2 = row([1, -1], [0.5, 0.5]), row([2, 0], [0, -1])
    return record(lambda: residual(x, ffn(x, W1, row(0, 0), W2, row(0, 0))))


def row_of(title):
    """The row of numbers that a title names: ``LayerNorm of [1, 3]``."""
    return row(*json.loads(re.search(r"\[.*?\]", title)[0]))


@pytest.mark.parametrize(
    "chapter, start, trace",
    [
        ("03_by_hand", "One token through", lambda title: by_hand()),
        ("03_by_hand", "The same token", lambda title: by_hand()),
        ("04_norms_and_activations", "LayerNorm of [", lambda title: record(layer_norm, row_of(title), eps=0.0)),
        ("04_norms_and_activations", "RMSNorm of [", lambda title: record(rms_norm, row_of(title), eps=0.0)),
        ("04_norms_and_activations", "SwiGLU", lambda title: record(swiglu, row(1, 2), *(torch.eye(2).double() for _ in range(3)))),
    ],
)
def test_a_figure_shows_a_trace_that_the_test_computed(figures, chapter, start, trace):
    (figure,) = (figure for figure in figures(chapter) if figure.title.startswith(start))
    figure.show_everything()
    compare_with_trace(figure.walk(), trace(figure.title))


def titled(figures, title):
    (figure,) = (figure for figure in figures if figure.title == title)
    return figure


def test_the_token_by_hand_gives_fresh_results_for_other_inputs(figures):
    figure = titled(figures("03_by_hand"), "The same token, with every number to move")
    figure.press("End")
    for presses in range(1, 6):
        figure.slider("x[2]").press("ArrowLeft")
        assert numbers_in(figure.read()["tensors"][-1]["cells"]) == approx(by_hand(row(1, 2 - presses / 2))["y"])


def test_the_activations_give_fresh_results(figures):
    figure = titled(figures("04_norms_and_activations"), "ReLU, GELU (exact and tanh) and SiLU")
    for key, x in [("Home", -4.0), ("ArrowRight", -3.75), ("ArrowRight", -3.5), ("End", 4.0)]:
        figure.slider("x").press(key)
        head, heights = figure.read()["table"]
        assert numbers_in(heights) == approx(torch.stack([row(x)[0], *(ACTIVATIONS[name](row(x))[0] for name in head[1:])]))
