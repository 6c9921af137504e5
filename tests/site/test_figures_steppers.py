"""The stepper, driven as a reader drives it."""

import statistics

import pytest

from oneblock.widgets import Stepper

from .figure_pages import frozen, opener
from .figure_samples import TRACES, steps_explorer, stepper
from .figures import READ, Shown, compare_with_table, compare_with_trace

BEAT = 1800
MINUTE = 60_000


@pytest.fixture(scope="module")
def page_of_four(browser):
    yield from frozen(browser, stepper("four features"))


@pytest.fixture
def four(page_of_four):
    """LayerNorm of four features: eight places."""
    page_of_four.reload()
    return Shown(page_of_four, "four features")


def place(figure):
    return int(figure.read()["place"].split()[0])


@pytest.fixture(scope="module")
def walked(browser):
    """What each sample showed, step by step, and its table."""
    opened = opener(browser)
    page = next(opened)(*map(stepper, TRACES), steps_explorer())
    seen = {name: (Shown(page, name).walk(), Shown(page, name).table()) for name in [*TRACES, "steps"]}
    yield seen
    next(opened, None)


@pytest.mark.parametrize("name", TRACES)
def test_every_step_shows_what_the_library_computes(walked, name):
    compare_with_trace(walked[name][0], TRACES[name]())


def test_an_explorer_of_steps_is_a_stepper_too(walked):
    compare_with_trace(walked["steps"][0], TRACES["by hand"]())


@pytest.mark.parametrize("name", TRACES)
def test_every_step_is_a_row_of_the_table(walked, name):
    compare_with_table(*walked[name])


def test_several_grids_carry_the_letter_of_their_axis(walked):
    *_, last = walked["two norms"][0]
    *_, made = last["tensors"]
    assert made["axes"] == ["L ↓", "D →"] * 2 and len(made["cells"]) == 30


def test_buttons_step_and_stop_at_both_ends(four):
    assert place(four) == 1 and four.button("Previous").is_disabled()
    four.button("Next").click()
    four.button("Next").click()
    assert place(four) == 3
    four.button("Previous").click()
    assert place(four) == 2
    for _ in range(5):
        four.button("Next").click()
    assert place(four) == 7
    four.button("Next").click()
    assert place(four) == 8 and four.button("Next").is_disabled()
    four.page.keyboard.press("Enter")  # the focus is still there
    assert place(four) == 8
    four.page.keyboard.press("Home")
    assert place(four) == 1


def test_arrows_step_and_home_and_end_jump(four):
    reached = []
    for key in ["ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "ArrowLeft", "Home", "ArrowLeft"]:
        four.press(key)
        reached.append(place(four))
    assert reached == [2, 3, 2, 8, 8, 7, 1, 1]


@pytest.mark.parametrize("within", ["Next", "Play", "slider", "stage"])
def test_the_same_keys_work_wherever_the_focus_is_in_the_figure(four, within):
    focus = {"slider": four.slider("Step"), "stage": four.root.locator(".ob-stage")}.get(within) or four.button(within)
    focus.focus()
    reached = []
    for key in ["ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home"]:
        four.page.keyboard.press(key)
        reached.append(place(four))
    assert reached == [2, 3, 2, 8, 1]


@pytest.mark.parametrize("keys", ["Control+ArrowRight", "Alt+ArrowRight", "Meta+ArrowRight"])
def test_keys_of_the_browser_are_left_to_it(four, keys):
    four.press(keys)
    assert place(four) == 1


def test_the_slider_takes_the_mouse(four):
    box = four.slider("Step").bounding_box()
    four.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    assert place(four) == 8
    four.page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)
    assert place(four) == 1


def test_nothing_moves_until_asked(four):
    four.page.clock.run_for(MINUTE)
    assert place(four) == 1 and four.button("Play").is_visible()


@pytest.mark.parametrize("start", ["click", "space"])
def test_playing_takes_a_step_at_a_time_and_stops_by_itself_at_the_last(four, start):
    four.button("Play").click() if start == "click" else four.press("Space")
    reached = [place(four)]
    for _ in range(7):
        four.page.clock.run_for(BEAT)
        reached.append(place(four))
    assert reached == [1, 2, 3, 4, 5, 6, 7, 8] and four.button("Play").is_visible()
    four.page.clock.run_for(MINUTE)
    assert place(four) == 8


@pytest.mark.parametrize("stop", ["click", "space"])
def test_playing_can_be_paused(four, stop):
    four.button("Play").click()
    four.page.clock.run_for(2 * BEAT)
    four.button("Pause").click() if stop == "click" else four.press("Space")
    four.page.clock.run_for(MINUTE)
    assert place(four) == 3 and four.button("Play").is_visible()


def test_playing_from_the_last_step_begins_again(four):
    four.press("End", "Space")
    assert place(four) == 1
    four.page.clock.run_for(BEAT)
    assert place(four) == 2


def test_the_space_bar_on_a_button_presses_it(four):
    four.button("Next").focus()
    four.page.keyboard.press("Space")
    assert place(four) == 2 and four.button("Play").is_visible()


def test_a_screen_reader_hears_each_step_and_nothing_before(four):
    assert four.read()["spoken"] == ""
    four.press("ArrowRight")
    assert four.read()["spoken"] == "Step 2 / 8 · Mean. The balance point of the 4 features is 4."
    assert four.root.locator("[aria-live=polite]").count() == 1
    assert four.slider("Step").get_attribute("aria-valuetext") == "2 / 8 · Mean"


def test_a_held_space_bar_is_one_press_and_shift_leaves_the_keys_to_others(open_figures):
    figure = Shown(open_figures(stepper("by hand")), "by hand")
    figure.root.focus()
    for _ in range(4):
        figure.page.keyboard.down("Space")  # the second and later ones repeat
    assert figure.button("Pause").count() == 1
    figure.page.keyboard.up("Space")
    figure.press("Space", "Home", "Shift+ArrowRight")
    assert figure.read()["place"].startswith("1 / ")


def test_what_changed_is_said_in_words_and_not_by_colour_alone(four):
    four.press("ArrowRight", "ArrowRight")
    *_, made = four.read()["tensors"]
    assert made["isNew"] and made["was"] == ["from -1", "from 5", "from 5", "from 7"]


def test_two_figures_of_a_page_are_independent(open_figures):
    page = open_figures(stepper("four features"), stepper("by hand"))
    one, other = Shown(page, "four features"), Shown(page, "by hand")
    one.press("ArrowRight", "ArrowRight")
    assert (place(one), place(other)) == (3, 1)
    other.press("End")
    assert (place(one), place(other)) == (3, 5)


def test_a_figure_that_is_drawn_again_stays_at_its_step(scripts):
    figure = Stepper(TRACES["four features"](), title="again").figure
    places = scripts.evaluate(
        """([figure, read]) => {
            const state = { figure, step: 3 };
            const model = { get: (name) => state[name], set: (name, value) => (state[name] = value), save_changes() {}, on() {}, off() {} };
            const show = () => { const el = document.createElement("div"); const stop = ob.render({ model, el }); return [el, stop]; };
            const [first, stop] = show();
            first.querySelector(".ob").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
            stop();
            return [first, show()[0]].map((el) => eval(read)(el).place);
        }""",
        [figure, READ],
    )
    assert places == ["5 / 8 · Variance", "5 / 8 · Variance"]


def test_two_views_of_one_figure_show_the_same_step(scripts):
    figure = Stepper(TRACES["four features"](), title="twice").figure
    places = scripts.evaluate(
        """([figure, read]) => {
            const state = { figure, step: 0 }, heard = [];
            const model = { get: (name) => state[name], set(name, value) { state[name] = value; heard.forEach((f) => f()); }, save_changes() {}, on: (_, f) => heard.push(f), off() {} };
            const [first, second] = [0, 1].map(() => { const el = document.createElement("div"); ob.render({ model, el }); return el; });
            first.querySelector(".ob").dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
            return [first, second].map((el) => eval(read)(el).place);
        }""",
        [figure, READ],
    )
    assert places == ["8 / 8 · Output", "8 / 8 · Output"]


PAINT = """async (root) => {
    const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const times = [];
    for (let k = 0; k < 21; k++) {
        await painted();
        const began = performance.now();
        root.dispatchEvent(new KeyboardEvent("keydown", { key: k % 2 ? "ArrowLeft" : "ArrowRight" }));
        root.getBoundingClientRect();
        const drawn = performance.now();
        const place = root.querySelector(".ob-place").textContent;
        await painted();
        times.push([drawn - began, performance.now() - began, place]);
    }
    return times;
}"""


def test_a_key_leads_to_a_painted_step(open_figures, record_property):
    """Times are printed and not judged: they are the machine's as much as the figure's."""
    figure = Shown(open_figures(stepper("two norms")), "two norms")
    drawn, painted, places = zip(*figure.root.evaluate(PAINT), strict=True)
    assert [place.split()[0] for place in places] == ["2", "1"] * 10 + ["2"]
    record_property("ms from key press to step drawn and laid out (median)", round(statistics.median(drawn), 1))
    record_property("ms from key press to two frames later (median)", round(statistics.median(painted), 1))
