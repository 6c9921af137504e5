"""Predict, then check."""

import pytest

from oneblock.notation import SYMBOLS
from oneblock.words import words

from .figure_pages import frozen
from .figure_samples import steps_explorer, stepper
from .figures import Shown

SAYS = words()["misreadings"]


@pytest.fixture(scope="module")
def page_of_four(browser):
    yield from frozen(browser, stepper("four features", predict=True))


@pytest.fixture
def four(page_of_four):
    """LayerNorm of [-1, 5, 5, 7], every step asked for."""
    page_of_four.reload()
    return Shown(page_of_four, "four features")


def ask(figure, guess):
    figure.root.get_by_role("textbox").fill(guess)
    figure.page.keyboard.press("Enter")
    reply = figure.root.locator(".ob-reply")
    return reply.text_content() if reply.count() else None


def question(figure):
    return figure.root.locator(".ob-question label").text_content().strip()


def to(figure, step):
    figure.press("Home", *["ArrowRight"] * step)


@pytest.mark.parametrize(
    "step, name, guesses, right",
    [
        (1, "mean", {"16": "not_divided"}, "4"),
        (2, "centred", {"5": "reversed"}, "-5"),
        (3, "squares", {"-5": "not_squared", "-10": "doubled"}, "25"),
        (4, "variance", {"12": "n_minus_one", "36": "not_divided", "3": "rooted"}, "9"),
        (5, "std", {"9": "no_root"}, "3"),
        (6, "normed", {"-5/9": "by_variance", "−0.56": "by_variance"}, "-5/3"),
    ],
)
def test_a_wrong_number_is_answered_with_its_misreading_and_the_right_one_shows_the_step(four, step, name, guesses, right):
    asked = {"centred": "d₁", "squares": "d²[1]", "normed": "x̂[1]"}.get(name, SYMBOLS[name].text)
    to(four, step)
    assert question(four) == f"What will {asked} be?"
    for guess, mistake in guesses.items():
        assert ask(four, guess) == f"Not {guess}. {SAYS[mistake]}"
    assert ask(four, right) is None
    assert four.read()["says"].startswith(f"Yes: {asked} = ")
    assert "?" not in four.read()["tensors"][-1]["cells"]


@pytest.mark.parametrize("typed", ["", "abc", "1/0", "four"])
def test_what_is_no_number_is_told_how_to_type_one(four, typed):
    to(four, 1)
    assert ask(four, typed) == "Type a number, such as -1.5 or 2/3."


def test_a_wrong_number_without_a_known_misreading_sends_back_to_the_formula(four):
    to(four, 1)
    assert ask(four, "7") == "Not 7. Look at the formula again, or press “Show it”."


@pytest.mark.parametrize("typed", ["-5/3", "−1,67", "-1.6667", "-1.67"])
def test_a_fraction_a_comma_and_two_decimals_are_right(four, typed):
    to(four, 6)
    assert ask(four, typed) is None
    assert four.read()["says"].startswith("Yes: x̂[1] = -1.66667. Measured in standard deviations")


def test_until_it_is_shown_the_answer_is_nowhere_in_the_figure(four):
    to(four, 4)
    assert four.read()["tensors"][-1]["cells"] == ["?"] and four.read()["worked"] == []
    html = four.root.evaluate("(root) => root.outerHTML.replace(/<input[^>]*>/g, '')")
    assert "(25 + 1 + 1 + 9) / 4" not in html and "= 9" not in html and ">36<" not in html
    assert four.place.locator("details").get_attribute("open") is None


def test_it_can_be_shown_without_a_guess(four):
    to(four, 4)
    four.button("Show it").click()
    assert four.read()["tensors"][-1]["cells"] == ["9"]
    assert four.read()["worked"] == ["(25 + 1 + 1 + 9) / 4 = 9"]
    assert four.read()["says"] == "The mean of the squares, divided by 4 and not by one less: 9."


def test_what_was_answered_stays_shown(four):
    to(four, 1)
    ask(four, "4")
    four.press("ArrowRight", "ArrowLeft")
    assert four.read()["tensors"][-1]["cells"] == ["4"] and four.read()["says"].startswith("The balance point")


def test_after_an_answer_the_keys_step_on(four):
    to(four, 1)
    ask(four, "4")
    four.page.keyboard.press("ArrowRight")
    assert four.read()["place"].startswith("3 / 8")


def test_keys_typed_into_the_answer_do_not_step(four):
    to(four, 1)
    four.root.get_by_role("textbox").fill("1 2")
    for key in ["ArrowLeft", "Home", "Space", "ArrowRight", "End"]:
        four.page.keyboard.press(key)
    assert four.read()["place"].startswith("2 / 8") and four.button("Play").is_visible()


def test_playing_waits_at_a_question(four):
    four.press("Space")
    four.page.clock.run_for(60_000)
    assert four.read()["place"].startswith("2 / 8") and four.button("Play").is_visible()


def test_a_screen_reader_hears_the_question_and_then_the_answer(four):
    to(four, 1)
    assert four.read()["spoken"] == "Step 2 / 8 · Mean. What will μ be?"
    assert four.root.get_by_role("textbox", name="What will μ be?").is_visible()
    ask(four, "16")
    assert four.root.locator(".ob-reply[role=status]").count() == 1
    ask(four, "4")
    assert four.read()["spoken"] == "Step 2 / 8 · Mean. Yes: μ = 4. The balance point of the 4 features is 4."


def test_the_reader_decides_whether_to_be_asked(open_figures):
    figure = Shown(open_figures(stepper("four features")), "four features")
    to(figure, 1)
    assert figure.root.locator("form").count() == 0
    figure.root.get_by_label("Predict first").check()
    assert question(figure) == "What will μ be?"
    figure.root.get_by_label("Predict first").uncheck()
    assert figure.read()["tensors"][-1]["cells"] == ["4"]


def test_a_mere_copy_is_shown_at_once(four):
    to(four, 7)
    assert four.read()["place"] == "8 / 8 · Output" and "?" not in four.read()["tensors"][-1]["cells"]


def test_an_explorer_asks_once_and_again_when_told_to(open_figures):
    figure = Shown(open_figures(steps_explorer(predict=True)), "steps")
    to(figure, 4)
    assert question(figure) == "What will y₂ be?"
    assert ask(figure, "1/2") is None and figure.read()["tensors"][-1]["cells"] == ["1", "0.5"]
    figure.slider("x[1]").press("End")  # x = [2, 2]: h = [0, 2], z = [0, -2], y = [2, 0]
    assert figure.read()["tensors"][-1]["cells"] == ["2", "0"]  # to watch what the sliders do
    figure.root.locator(".ob-predict input").uncheck()
    figure.root.locator(".ob-predict input").check()
    assert question(figure) == "What will y₂ be?" and figure.read()["tensors"][-1]["cells"] == ["?", "?"]
    assert ask(figure, "-2") == f"Not -2. {SAYS['no_residual']}"
    assert ask(figure, "0") is None and figure.read()["tensors"][-1]["cells"] == ["2", "0"]
