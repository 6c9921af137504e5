"""The chapters in a real JupyterLab: an explorer computes with the kernel what no page could hold."""

import json
import re

import pytest
import torch

from oneblock.activations import ACTIVATIONS
from oneblock.ffn import ffn
from oneblock.residual import residual

from .figures import READ, approx, numbers_in
from .lab import Lab

BY_KERNEL, SILENT = "computed now by PyTorch", "The kernel does not answer."


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def context(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    yield context
    context.close()


@pytest.fixture(scope="module")
def by_hand(lab, context):
    """Chapter 3, run; the questions it asked its kernel are in ``page.asked``."""
    page = context.new_page()
    page.asked = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: note_question(page.asked, frame)))
    lab.open(page, "03_by_hand.ipynb")
    return page


def note_question(asked, frame):
    text = frame.decode("utf-8", "ignore") if isinstance(frame, bytes) else frame
    asked.extend(re.findall(r'"ask": ?\{"id": ?"([\w-]+)"', text))


class Live:
    """A figure among a notebook's outputs."""

    def __init__(self, page, title):
        self.page = page
        self.root = page.get_by_role("group", name=title, exact=True).and_(page.locator(".jp-OutputArea .ob"))

    def read(self):
        return self.root.evaluate(READ)

    def field(self, label):
        return self.root.get_by_role("spinbutton", name=label, exact=True)

    def enter(self, label, value):
        self.field(label).fill(value)
        self.field(label).press("Enter")

    def wait_for_status(self, text, timeout=30_000):
        self.root.locator(".ob-status", has_text=text).wait_for(timeout=timeout)

    def y(self):
        return numbers_in(self.read()["tensors"][-1]["cells"])


@pytest.fixture
def explorer(by_hand):
    """The token of chapter 3 with every number to move, at its start and at its last step."""
    figure = Live(by_hand, "The same token, with every number to move")
    figure.root.get_by_role("button", name="Back to the start").click()
    figure.wait_for_status(re.compile("^$"))
    figure.root.focus()
    by_hand.keyboard.press("End")
    return figure


def due_y(x, activation="relu"):
    weights = [[1, -1], [0.5, 0.5]], [0, 0], [[2, 0], [0, -1]], [0, 0]
    W1, b1, W2, b2 = (torch.tensor(value, dtype=torch.float64) for value in weights)
    x = torch.tensor(x, dtype=torch.float64)
    return residual(x, ffn(x, W1, b1, W2, b2, activation))


@pytest.fixture(scope="module")
def activations(lab, context):
    """Chapter 4, run."""
    page = context.new_page()
    lab.open(page, "04_norms_and_activations.ipynb")
    return page


TYPING = """
from oneblock.names import words_of
from oneblock.norms import layer_norm
from oneblock.trace import record
from oneblock.widgets import Explorer, Text, progress, steps_view
import torch

def measured(text):
    words = words_of(text, L=3)
    rows = [[float(len(word)), 1.0] for word in words] + [[0.0, 1.0]] * (3 - len(words))
    trace = record(layer_norm, torch.tensor(rows, dtype=torch.float64), eps=0.5)
    return steps_view(trace, labels={"L": words + ["·"] * (3 - len(words))})

for _ in progress("three rounds")(range(3)):
    pass

Explorer(measured, title="texts", text=Text(["NOT BAD", "BAD"]))
"""


@pytest.fixture(scope="module")
def typing(lab, context):
    """An explorer of texts, in a notebook of its own."""
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None, "source": TYPING}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": [cell]}
    (lab.folder / "book" / "typing.ipynb").write_text(json.dumps(notebook))
    page = context.new_page()
    lab.open(page, "typing.ipynb")
    return Live(page, "texts")


def words_typed(figure, text):
    field = figure.root.get_by_role("textbox", name="Or type a text of your own")
    field.fill(text)
    field.press("Enter")


def rows_of(figure):
    names = "(figure) => [...figure.querySelectorAll('tbody th')].map((cell) => cell.textContent)"
    return figure.root.locator(".ob-tensor").first.evaluate(names)


def test_any_text_can_be_typed(typing):
    words_typed(typing, "rather good")
    typing.wait_for_status(BY_KERNEL)
    assert rows_of(typing) == ["RATHER", "GOOD", "·"]
    assert numbers_in(typing.read()["tensors"][0]["cells"]) == [6, 1, 4, 1, 0, 1]


@pytest.mark.parametrize(("text", "says"), [("", "text must be of one word or more; got ''"), ("a b c d", "at most 3 words, as there are positions")])
def test_a_text_that_cannot_be_read_is_answered_with_the_reason(typing, text, says):
    typing.root.get_by_role("button", name="Back to the start").click()
    typing.wait_for_status(re.compile("^$"))
    words_typed(typing, text)
    typing.wait_for_status(says)
    assert rows_of(typing) == ["NOT", "BAD", "·"]


def test_an_example_still_needs_no_kernel(typing):
    typing.root.get_by_role("combobox", name="text").select_option("BAD")
    typing.wait_for_status(re.compile("^$"))
    assert rows_of(typing) == ["BAD", "·", "·"]
    assert typing.root.get_by_role("textbox").input_value() == "BAD"


def test_a_bar_shows_how_far_a_loop_is(typing):
    bar = typing.page.locator(".jp-OutputArea .widget-hprogress")
    assert bar.count() == 1 and bar.inner_text() == "three rounds"
    assert bar.locator(".progress-bar").evaluate("(bar) => bar.style.width") == "100%"


@pytest.mark.parametrize("chapter", ["by_hand", "activations"])
def test_a_chapter_runs_and_all_its_figures_are_live(request, chapter):
    page = request.getfixturevalue(chapter)
    page.wait_for_function(ALL_LIVE)
    assert page.locator(".jp-OutputArea .ob").count() > 2
    assert page.locator(".jp-OutputArea .ob input[type=number]").count() > 10
    assert page.locator("[data-mime-type*=error], [data-mime-type*=stderr]").count() == 0
    assert page.locator(".jp-OutputArea .ob-figure .ob").count() == 0  # the live view alone, no copy of the page's


ALL_LIVE = """() => {
    const outputs = jupyterapp.shell.currentWidget.content.widgets.flatMap((cell) => (cell.model.outputs ? cell.model.outputs.toJSON() : []));
    const views = outputs.filter((output) => output.data && "application/vnd.jupyter.widget-view+json" in output.data);
    return views.length > 0 && document.querySelectorAll(".jp-OutputArea :is(.ob, .ob-line)").length === views.length;
}"""


def test_the_text_of_a_chapter_is_rendered(by_hand):
    texts = by_hand.locator(".jp-MarkdownCell .myst").all_inner_texts()
    assert len(texts) > 5 and not any(mark in "".join(texts) for mark in ("```", ":::", "{term}`", "{ref}`", "$$"))


def test_a_value_off_the_grid_is_computed_by_the_kernel(explorer):
    explorer.enter("x[1]", "0.37")
    explorer.wait_for_status(BY_KERNEL)
    assert explorer.y() == approx(due_y([0.37, 2.0]))
    explorer.enter("x[2]", "-1.234")  # with a kernel all sliders move together
    wait_for_y(explorer, due_y([0.37, -1.234]))
    assert explorer.field("x[1]").input_value() == "0.37"


def wait_for_y(explorer, due):
    """Until the figure shows the numbers due; fails with the difference."""
    for _ in range(100):
        if explorer.y() == approx(due):
            return
        explorer.page.wait_for_timeout(100)
    assert explorer.y() == approx(due)


def test_a_choice_and_a_value_off_the_grid_combine(explorer):
    explorer.root.get_by_role("combobox").select_option("silu")
    explorer.enter("x[1]", "1.9")
    explorer.wait_for_status(BY_KERNEL)
    wait_for_y(explorer, due_y([1.9, 2.0], "silu"))


def test_a_value_on_the_grid_needs_no_kernel(explorer):
    before = len(explorer.page.asked)
    explorer.enter("x[1]", "-2")
    wait_for_y(explorer, due_y([-2.0, 2.0]))
    assert len(explorer.page.asked) == before


@pytest.mark.parametrize("value", ["2.5", "-1e9"])
def test_a_value_out_of_range_is_refused_with_a_message(explorer, value):
    field, before = explorer.field("x[1]"), explorer.read()["tensors"]
    explorer.enter("x[1]", value)
    assert re.search(r"Value must be (less|greater) than or equal to -?2", field.evaluate("(field) => field.validationMessage"))
    assert explorer.read()["tensors"] == before


def test_of_many_quick_moves_the_last_wins_and_few_are_computed(explorer):
    before, moves = len(explorer.page.asked), 200
    slider = explorer.root.get_by_role("slider", name="x[1]", exact=True)
    slider.evaluate(
        """async (slider, moves) => {
            for (let k = 1; k <= moves; k++) {
                slider.value = (8 * k) / moves - 0.35;
                slider.dispatchEvent(new Event("input"));
                await new Promise((done) => setTimeout(done, 2));
            }
        }""",
        moves,
    )
    last = float(explorer.field("x[1]").input_value())
    assert last == pytest.approx(-2 + 7.65 / 2)
    wait_for_y(explorer, due_y([last, 2.0]))
    explorer.wait_for_status(BY_KERNEL)
    asked = len(explorer.page.asked) - before
    print(f"\n{moves} moves, {asked} computed")
    assert 1 <= asked < moves / 2


def test_steps_and_predictions_work_live(by_hand):
    figure = Live(by_hand, "One token through the FFN and the residual")
    figure.root.focus()
    by_hand.keyboard.press("Home")
    by_hand.keyboard.press("ArrowRight")
    figure.root.get_by_role("textbox", name="What will h₁ be?").fill("-1")
    by_hand.keyboard.press("Enter")
    assert figure.read()["place"].startswith("2 / 5") and figure.read()["tensors"][-1]["cells"] == ["-1", "1.5"]
    by_hand.keyboard.press("End")
    assert figure.read()["place"].startswith("5 / 5") and figure.root.locator(".ob-question").count() == 1


def test_a_curve_takes_any_place(activations):
    figure = Live(activations, "ReLU, GELU (exact and tanh) and SiLU")
    figure.enter("x", "-0.777")
    figure.wait_for_status(BY_KERNEL)
    head, heights = figure.read()["table"]
    at = torch.tensor(-0.777, dtype=torch.float64)
    assert numbers_in(heights) == pytest.approx([-0.777, *(ACTIVATIONS[name](at).item() for name in head[1:])], rel=5e-6)


def test_a_number_dragged_in_a_sentence_takes_values_off_the_grid(activations):
    line = activations.locator(".jp-OutputArea .ob-line")
    number, status = line.get_by_role("slider", name="ε", exact=True), activations.locator(".jp-OutputArea .ob-sentence .ob-status")
    number.scroll_into_view_if_needed()
    box, mouse = number.bounding_box(), activations.mouse
    mouse.move(box["x"] + 9, box["y"] + 9)
    mouse.down()
    mouse.move(box["x"] + 9 - 17, box["y"] + 9)  # half a step: between 1e-6 and 1e-5
    mouse.up()
    shown = number.text_content()
    eps = float(shown)
    assert 2e-6 < eps < 8e-6
    status.filter(has_text=BY_KERNEL).wait_for(timeout=30_000)
    due = 0.001 / (1e-6 + eps) ** 0.5
    told = f"With ε = {shown}, and so √ε = {eps**0.5:.2g}, LN([0.001, −0.001]) begins with {due:.4f}; without ε it would begin with 1."
    assert line.text_content() == told
    number.press("ArrowRight")
    assert "begins with 0.3015;" in line.text_content() and status.text_content() == ""


def test_without_its_kernel_a_figure_says_so_and_the_grid_still_works(lab, explorer):
    sessions = [session for session in lab.request("GET", "sessions") if session["path"].endswith("03_by_hand.ipynb")]
    lab.request("DELETE", f"kernels/{sessions[0]['kernel']['id']}")
    explorer.page.clock.install()
    explorer.enter("x[1]", "0.41")
    explorer.page.clock.fast_forward(10_000)
    explorer.wait_for_status(SILENT)
    explorer.enter("x[1]", "-2")
    assert explorer.read()["status"] == "" and explorer.y() == approx(due_y([-2.0, 2.0]))
