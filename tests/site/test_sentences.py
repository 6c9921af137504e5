"""Numbers dragged in a sentence, without a kernel: by mouse, by touch, by keys; and with one, by the model alone."""

import pytest

from .accessibility import complaints
from .figure_pages import opener
from .figure_samples import eps_sentence, length_sentence

LENGTHS = [1, 2, 4, 8, 16]
START = "At L = 4 there are 16 scores, and an even share is 0.25."


def due(L):
    return f"At L = {L} there are {L * L} scores, and an even share is {1 / L:g}."


@pytest.fixture(scope="module")
def page_of_sentences(browser):
    opened = opener(browser)
    yield next(opened)(length_sentence(), eps_sentence(), width=390, height=700, has_touch=True)
    next(opened, None)


@pytest.fixture
def page(page_of_sentences):
    page_of_sentences.reload()
    return page_of_sentences


def line(page):
    return page.locator(".ob-line").first.text_content()


def number(page):
    return page.get_by_role("slider", name="L", exact=True)


def middle(one):
    box = one.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_it_starts_as_it_is_printed(page):
    assert line(page) == START
    assert page.locator(".ob-sentence > p:not(.ob-line)").count() == 0  # the printed one has gone


def test_keys_step_through_all_values_and_stop_at_both_ends(page):
    keys = [("Home", 1), ("ArrowLeft", 1), ("ArrowRight", 2), ("ArrowUp", 4), ("ArrowDown", 2), ("PageUp", 4), ("End", 16), ("ArrowRight", 16), ("PageDown", 8)]
    number(page).focus()
    for key, L in keys:
        page.keyboard.press(key)
        assert line(page) == due(L), key


def test_other_keys_are_left_to_the_page(page):
    number(page).focus()
    for key in ("Enter", "a", "Control+ArrowRight", "Alt+ArrowLeft"):
        page.keyboard.press(key)
        assert line(page) == START, key
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "ε"


@pytest.mark.parametrize("way, L", [(0, 4), (15, 4), (25, 8), (45, 8), (85, 16), (500, 16), (-45, 2), (-85, 1), (-500, 1)])
def test_the_mouse_drags_it(page, way, L):
    x, y = middle(number(page))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + way * 0.5, y + 3)
    page.mouse.move(x + way, y + 200)  # far off the number
    page.mouse.up()
    assert line(page) == due(L)
    page.mouse.move(x, y)
    assert line(page) == due(L)  # let go


def test_another_button_of_the_mouse_drags_nothing(page):
    x, y = middle(number(page))
    page.mouse.move(x, y)
    page.mouse.down(button="right")
    page.mouse.move(x + 100, y)
    page.mouse.up(button="right")
    assert line(page) == START


@pytest.mark.parametrize("way, L", [((45, 0), 8), ((-100, 4), 1), ((0, -300), 4)])
def test_a_finger_drags_it_to_the_side_and_scrolls_the_page_up(page, way, L):
    page.evaluate("document.body.style.minHeight = '3000px'")
    client = page.context.new_cdp_session(page)
    x, y = middle(number(page))
    client.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for k in range(1, 11):
        at = {"x": x + way[0] * k / 10, "y": y + way[1] * k / 10}
        client.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [at]})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert line(page) == due(L)
    assert (page.evaluate("scrollY") > 0) == (way[1] < -100)


def test_a_screen_reader_hears_the_value_its_range_and_the_new_sentence(page):
    one = number(page)
    assert page.locator(".ob-spoken").first.text_content() == ""
    one.press("End")
    names = ["aria-valuenow", "aria-valuetext", "aria-valuemin", "aria-valuemax", "title"]
    assert [one.get_attribute(name) for name in names] == ["16", "16", "1", "16", "Drag it to the side, or use the arrow keys"]
    assert page.locator(".ob-spoken").first.text_content() == due(16)


def test_a_text_changes_with_the_number_and_each_value_is_written_as_it_is_declared(page):
    second, eps = page.locator(".ob-line").nth(1), page.get_by_role("slider", name="ε")
    assert second.text_content() == "With ε = 1e-5 the row is far from zero: 316.228."
    eps.press("Home")
    assert second.text_content() == "With ε = 0 the row is not there: inf."
    assert line(page) == START  # each sentence for itself


STYLE = "(one) => [getComputedStyle(one).borderBottomStyle, getComputedStyle(one, '::after').content, getComputedStyle(one).cursor]"


def test_that_it_moves_is_told_by_dots_and_arrows(page):
    dots, arrows, cursor = number(page).evaluate(STYLE)
    assert (dots, cursor) == ("dotted", "ew-resize") and "↔" in arrows
    page.emulate_media(media="print")
    dots, arrows, _ = number(page).evaluate(STYLE)
    page.emulate_media(media="screen")
    assert (dots, arrows) == ("none", "none")


def test_focus_is_seen(page):
    page.keyboard.press("Tab")
    assert number(page).evaluate("(one) => [one === document.activeElement, getComputedStyle(one).outlineStyle]") == [True, "solid"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_and_a_phone_is_wide_enough(open_figures, dark, width):
    page = open_figures(length_sentence(), eps_sentence(), dark=dark, width=width)
    assert complaints(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_a_script_the_sentence_is_there(browser):
    opened = opener(browser)
    page = next(opened)(length_sentence(), java_script_enabled=False)
    assert page.locator(".ob-sentence > p").text_content() == START and page.locator(".ob-drag").count() == 0
    next(opened, None)


LIVE = """async () => {
    const { renderSentence } = await import("/scripts/sentence.js");
    const figure = JSON.parse(document.querySelector("script[type='application/json']").textContent);
    const state = { figure, setting: [4], live: true, answer: {} }, heard = {};
    window.live = state;
    const model = {
        get: (name) => state[name],
        set: (name, value) => ((state[name] = value), heard[`change:${name}`]?.()),
        save_changes() {},
        on: (event, listener) => (heard[event] = listener),
        off: (event) => delete heard[event],
    };
    const el = document.body.appendChild(document.createElement("div"));
    window.leave = renderSentence({ model, el });
    window.answer = (answer) => model.set("answer", answer);
    el.id = "live";
}"""


def test_with_a_kernel_a_number_off_the_grid_is_asked_for_and_shown(open_figures):
    page = open_figures(length_sentence())
    page.evaluate(LIVE)
    live = page.locator("#live")
    x, y = middle(live.get_by_role("slider"))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 13, y)  # a third of the way from 4 to 8, and of whole numbers the next
    page.mouse.up()
    asked = page.evaluate("live.ask")
    assert asked["setting"] == [5] and live.get_by_role("slider").text_content() == "5"
    assert live.locator(".ob-status").text_content() == "PyTorch is computing…"
    page.evaluate("answer", {"id": asked["id"], "numbers": ["25", "0.2"]})
    assert live.locator(".ob-line").text_content() == "At L = 5 there are 25 scores, and an even share is 0.2."
    page.evaluate("leave()")
    assert live.inner_html() == ""


def test_what_the_kernel_says_is_shown(open_figures):
    page = open_figures(length_sentence())
    page.evaluate(LIVE)
    x, y = middle(page.locator("#live").get_by_role("slider"))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 20, y)
    page.mouse.up()
    page.evaluate("answer({ id: live.ask.id, error: 'ValueError: not 3' })")
    assert page.locator("#live .ob-status").text_content() == "ValueError: not 3"


@pytest.mark.parametrize("key, place, due", [
    ("ArrowRight", 2, 3), ("ArrowRight", 2.5, 3), ("ArrowLeft", 2.5, 2), ("ArrowLeft", 2, 1), ("PageUp", 2, 4), ("PageDown", 2.5, 1),
    ("PageUp", 9, 10), ("Home", 7, 0), ("End", 7, 10), ("Enter", 7, None), ("ArrowRight", 10, 10), ("ArrowLeft", 0, 0),
])  # fmt: skip
def test_a_key_leads_to_the_next_declared_value(scripts, key, place, due):
    assert scripts.evaluate("([key, place]) => ob.placeByKey(key, place, 10)", [key, place]) == due


@pytest.mark.parametrize("place, way, last, live, due", [
    (2, 40, 4, False, 3), (2, 19, 4, False, 2), (2, 19, 4, True, 2.5), (0, -9, 4, True, 0), (3, 99, 4, False, 4), (0, 8, 60, False, 1), (0, 12, 20, False, 1),
])  # fmt: skip
def test_a_way_leads_to_a_place(scripts, place, way, last, live, due):
    assert scripts.evaluate("(all) => ob.placeByWay(...all)", [place, way, last, live]) == pytest.approx(due, abs=0.03)
