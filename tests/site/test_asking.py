"""How an explorer asks a kernel, with a kernel played by the test."""

import json
import re

import pytest

from oneblock.widgets import Explorer, Sliders, table_view

from .figure_pages import freeze

MODEL = """(figure) => {
    const listeners = {};
    const state = { figure, step: 0, setting: [0, 0], answer: {}, ask: {}, live: true };
    window.asks = [];
    window.model = {
        get: (name) => state[name],
        set(name, value) {
            state[name] = value;
            if (name === "ask") asks.push(value);
            (listeners[`change:${name}`] || []).forEach((listener) => listener());
        },
        save_changes() {},
        on: (event, listener) => (listeners[event] ||= []).push(listener),
        off: (event, listener) => (listeners[event] = listeners[event].filter((each) => each !== listener)),
    };
    window.count = () => Object.values(listeners).flat().length;
    window.stop = ob.render({ model, el: document.querySelector("main") });
}"""


class Asking:
    """An explorer of two sliders whose kernel answers when told to."""

    def __init__(self, page):
        self.page = page

    def move(self, *setting):
        self.page.evaluate("(setting) => model.set('setting', setting)", list(setting))

    def asked(self):
        return [ask["setting"] for ask in self.page.evaluate("asks")]

    def answer(self, which, **answer):
        self.page.evaluate("([k, answer]) => model.set('answer', { id: asks[k].id, ...answer })", [which, answer])

    def wait(self, milliseconds):
        self.page.clock.run_for(milliseconds)

    @property
    def status(self):
        return self.page.locator(".ob-status").text_content()

    @property
    def numbers(self):
        return [cell.removesuffix("•") for cell in self.page.locator(".ob-table td").all_text_contents()]


@pytest.fixture
def asking(scripts):
    explorer = Explorer(lambda x, y: table_view(["x", "y"], [[x, y]]), title="t", x=Sliders(0, [-1, 0, 2]), y=Sliders(0, [0, 1]))
    freeze(scripts)
    scripts.evaluate("document.querySelector('main').replaceChildren()")
    scripts.evaluate(MODEL, json.loads(json.dumps(explorer.figure)))
    yield Asking(scripts)
    scripts.evaluate("stop()")


def test_on_the_grid_nothing_is_asked(asking):
    asking.move(2, 1)
    assert asking.asked() == [] and asking.numbers == ["2", "1"] and asking.status == ""


def test_off_the_grid_the_kernel_is_asked_and_its_answer_shown(asking):
    asking.move(0.5, 0)
    assert asking.asked() == [[0.5, 0]]
    assert asking.status == "PyTorch is computing…" and asking.numbers == ["0", "0"]
    asking.answer(0, numbers=["0.5", "0"])
    assert asking.numbers == ["0.5", "0"] and asking.status == "computed now by PyTorch"


def test_while_the_kernel_computes_only_the_latest_setting_waits(asking):
    for x in (0.1, 0.2, 0.3, 0.4):
        asking.move(x, 0)
    assert asking.asked() == [[0.1, 0]]
    asking.answer(0, numbers=["0.1", "0"])
    assert asking.asked() == [[0.1, 0], [0.4, 0]]
    asking.answer(1, numbers=["0.4", "0"])
    assert asking.numbers == ["0.4", "0"] and len(asking.asked()) == 2


def test_an_answer_to_an_older_question_is_not_shown(asking):
    asking.move(0.1, 0)
    asking.move(2, 0)  # on the grid: no answer is needed any more
    asking.answer(0, numbers=["0.1", "0"])
    assert asking.numbers == ["2", "0"] and asking.status == ""


def test_an_answer_to_another_view_is_not_shown(asking):
    asking.move(0.1, 0)
    asking.page.evaluate("model.set('answer', { id: 'other-1', numbers: ['9', '9'] })")
    assert asking.numbers == ["0", "0"] and asking.status == "PyTorch is computing…"


def test_what_went_wrong_is_said_and_the_numbers_stay(asking):
    asking.move(0.5, 1)
    asking.answer(0, error="ValueError: <b>no</b>")
    assert asking.status == "ValueError: <b>no</b>" and asking.numbers == ["0", "0"]
    assert asking.page.locator(".ob-status b").count() == 0


def test_a_silent_kernel_is_called_silent_and_declared_values_still_work(asking):
    asking.move(0.5, 0)
    asking.wait(9_000)
    assert asking.status == "PyTorch is computing…"
    asking.wait(2_000)
    assert asking.status == "The kernel does not answer. The marked values still work without it."
    asking.move(-1, 1)
    assert asking.status == "" and asking.numbers == ["-1", "1"]


def test_after_a_silence_the_kernel_is_asked_again(asking):
    asking.move(0.5, 0)
    asking.wait(11_000)
    asking.move(0.6, 0)
    asking.answer(1, numbers=["0.6", "0"])
    assert asking.asked() == [[0.5, 0], [0.6, 0]] and asking.numbers == ["0.6", "0"]


def test_a_setting_that_waited_in_vain_is_forgotten(asking):
    asking.move(0.5, 0)
    asking.move(0.55, 0)
    asking.wait(11_000)
    asking.move(0.6, 0)
    asking.answer(1, numbers=["0.6", "0"])
    assert asking.asked() == [[0.5, 0], [0.6, 0]] and asking.numbers == ["0.6", "0"]


def test_nobody_waits_for_a_kernel_that_is_not_needed_any_more(asking):
    asking.move(0.5, 0)
    asking.move(2, 0)
    asking.wait(20_000)
    assert asking.status == ""


def test_a_late_answer_is_still_taken(asking):
    asking.move(0.5, 0)
    asking.wait(11_000)
    asking.answer(0, numbers=["0.5", "0"])
    assert asking.numbers == ["0.5", "0"] and asking.status == "computed now by PyTorch"


@pytest.mark.parametrize("typed", ["2.5", "-1.01", "1e9"])
def test_a_number_out_of_range_is_refused_with_the_browsers_message(asking, typed):
    field = asking.page.locator("input[type=number]").first
    field.evaluate("(field) => { field.oninvalid = () => (window.told = field.validationMessage) }")
    field.fill(typed)
    field.press("Enter")
    assert re.search(r"must be (less|greater) than or equal to (2|-1)", asking.page.evaluate("told"))
    assert asking.asked() == [] and asking.numbers == ["0", "0"]
    field.fill("2")
    field.press("Enter")
    assert asking.numbers == ["2", "0"]


def test_a_number_in_range_is_asked_for_when_it_is_entered(asking):
    field = asking.page.locator("input[type=number]").last
    field.fill("0.125")
    assert asking.asked() == []
    field.press("Enter")
    assert asking.asked() == [[0, 0.125]]


def test_a_figure_that_leaves_listens_no_more(scripts, asking):
    asking.move(0.5, 0)
    scripts.evaluate("stop()")
    assert scripts.evaluate("count()") == 0
    asking.wait(11_000)
    assert asking.status == "PyTorch is computing…"  # no clock of its own runs on
