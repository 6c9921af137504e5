"""The explorer without a kernel: every control, by mouse and by keys, against fresh results of PyTorch."""

import pytest
import torch

from oneblock.norms import layer_norm

from .figure_pages import opener
from .figure_samples import B, VALUES, W2, curves_explorer, measured, numbers, steps_explorer, table_explorer, text_explorer
from .figures import Shown, approx, numbers_in

START = ["1", "2", "1", "-1", "0.5", "0.5", "relu"]
LABELS = ["x[1]", "x[2]", "W₁[1,1]", "W₁[1,2]", "W₁[2,1]", "W₁[2,2]"]
PHI = {"relu": torch.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}


@pytest.fixture(scope="module")
def page_of_explorers(browser):
    opened = opener(browser)
    yield next(opened)(steps_explorer(), table_explorer(), curves_explorer(), text_explorer())
    next(opened, None)


@pytest.fixture
def explorer(page_of_explorers):
    """``explorer("steps")``, as on a page just opened."""
    page_of_explorers.reload()
    return lambda title: Shown(page_of_explorers, title)


def due_y(values):
    """The last step for a setting, by plain PyTorch."""
    x, W1 = numbers([float(v) for v in values[:2]]), numbers([float(v) for v in values[2:6]]).reshape(2, 2)
    return x + W2 @ PHI[values[6]](W1 @ x + B) + B


def y_of(figure):
    return numbers_in(figure.read()["tensors"][-1]["cells"])


@pytest.mark.parametrize("label", LABELS)
def test_each_slider_moves_by_keys_through_all_its_values(explorer, label):
    figure = explorer("steps")
    figure.press("End")
    k = LABELS.index(label)
    figure.slider(label).press("Home")
    for value in VALUES:
        shown = figure.read()
        assert shown["values"] == [*START[:k], f"{value:g}", *START[k + 1 :]]
        assert y_of(figure) == approx(due_y(shown["values"]))
        figure.page.keyboard.press("ArrowRight")
    assert figure.read()["values"][k] == "2"


def drag(figure, label, share):
    """Moves a slider's handle with the mouse to a share of its way."""
    slider = figure.slider(label)
    slider.scroll_into_view_if_needed()
    box, mouse = slider.bounding_box(), figure.page.mouse
    middle = box["y"] + box["height"] / 2
    mouse.move(box["x"] + box["width"] / 2, middle)
    mouse.down()
    mouse.move(box["x"] + 2 + share * (box["width"] - 4), middle, steps=6)
    mouse.up()


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("share, value", [(0, "-2"), (1, "2")])
def test_each_slider_moves_by_mouse(explorer, label, share, value):
    figure = explorer("steps")
    figure.press("End")
    drag(figure, label, share)
    values = figure.read()["values"]
    assert values[LABELS.index(label)] == value and y_of(figure) == approx(due_y(values))


def test_moving_one_slider_sets_the_others_back(explorer):
    figure = explorer("steps")
    assert figure.root.get_by_text("On this page one slider moves at a time").is_visible()
    figure.slider("x[1]").press("End")
    assert figure.read()["values"] == ["2", *START[1:]]
    figure.slider("W₁[1,2]").press("Home")
    assert figure.read()["values"] == ["1", "2", "1", "-2", *START[4:]]


@pytest.mark.parametrize("phi", ["gelu", "silu"])
def test_a_choice_combines_with_every_slider(explorer, phi):
    figure = explorer("steps")
    figure.press("End")
    figure.root.get_by_role("combobox").select_option(phi)
    assert y_of(figure) == approx(due_y([*START[:6], phi]))
    figure.slider("x[2]").press("Home")
    values = figure.read()["values"]
    assert values == ["1", "-2", *START[2:6], phi] and y_of(figure) == approx(due_y(values))


def test_a_choice_is_made_by_keys(explorer):
    figure = explorer("steps")
    figure.press("End")
    figure.root.get_by_role("combobox").focus()
    figure.page.keyboard.press("ArrowDown")
    figure.page.keyboard.press("ArrowDown")
    assert figure.read()["values"][6] == "silu" and y_of(figure) == approx(due_y([*START[:6], "silu"]))


def test_one_button_leads_back_to_the_start(explorer):
    figure = explorer("steps")
    figure.press("End")
    figure.root.get_by_role("combobox").select_option("silu")
    figure.slider("x[2]").press("Home")
    figure.button("Back to the start").click()
    assert figure.read()["values"] == START and y_of(figure) == approx(due_y(START))


def test_the_step_stays_while_numbers_change(explorer):
    figure = explorer("steps")
    figure.press("ArrowRight", "ArrowRight")
    figure.slider("x[1]").press("End")
    shown = figure.read()
    assert shown["place"].startswith("3 / 5") and numbers_in(shown["tensors"][-1]["cells"]) == [0, 2]
    assert shown["says"] == "The activation looks at one number at a time. [0, 2] becomes [0, 2]."


def test_numbers_that_moved_carry_a_dot_and_the_dot_is_explained(explorer):
    figure = explorer("steps")
    figure.press("ArrowRight")
    note = figure.root.get_by_text("differs from the setting at the start")
    assert not note.is_visible()
    figure.slider("x[1]").press("End")  # h was [-1, 1.5] and is [0, 2]
    moved = {tensor["label"]: tensor["moved"] for tensor in figure.read()["tensors"]}
    assert moved == {"W₁ [F, D]": [False] * 4, "x [D]": [True, False], "b₁ [F]": [False] * 2, "h [F]": [True, True]}
    assert note.is_visible()


def test_sliders_and_steps_do_not_take_each_others_keys(explorer):
    figure = explorer("steps")
    figure.slider("x[1]").press("ArrowRight")
    assert figure.read()["place"].startswith("1 / 5") and figure.read()["values"][0] == "1.5"
    figure.slider("Step").press("ArrowRight")
    assert figure.read()["place"].startswith("2 / 5") and figure.read()["values"][0] == "1.5"


@pytest.mark.parametrize("moves", [{}, {"x[1]": 2, "γ[2]": 0}, {"x[2]": 1, "ε": 2}, {"x[1]": 1, "x[2]": 0, "γ[1]": 0, "γ[2]": 2, "ε": 2}])
def test_in_a_full_grid_all_sliders_move_together(explorer, moves):
    grid = {"x[1]": [-1, 0, 5], "x[2]": [-1, 0, 5], "γ[1]": [-0.5, 1, 2], "γ[2]": [-0.5, 1, 2], "ε": [0, 1e-5, 1 / 3]}
    figure = explorer("table")
    chosen = {"x[1]": 0, "x[2]": 2, "γ[1]": 1, "γ[2]": 1, "ε": 0} | moves
    for label, k in chosen.items():
        figure.slider(label).press("Home")
        for _ in range(k):
            figure.page.keyboard.press("ArrowRight")
    x1, x2, g1, g2, eps = (grid[label][k] for label, k in chosen.items())
    x, gamma = numbers([x1, x2]), numbers([g1, g2])
    spread, rms = (x.var(correction=0) + eps).sqrt(), (x.square().mean() + eps).sqrt()
    _, (_, ln_spread, rms_spread), (_, ln, rms_norm) = figure.read()["table"]
    assert numbers_in([ln_spread, rms_spread]) == pytest.approx([spread.item(), rms.item()], rel=5e-6)
    assert numbers_in(ln.strip("[]").split(", ")) == approx(layer_norm(x, gamma, eps=eps))
    assert numbers_in(rms_norm.strip("[]").split(", ")) == approx(gamma * x / rms)


@pytest.mark.parametrize("key, value", [("Home", -4.0), ("ArrowLeft", 0.75), ("End", 4.0)])
def test_a_place_on_a_curve_shows_the_heights_there(explorer, key, value):
    figure = explorer("curves")
    figure.slider("x").press(key)
    head, row = figure.read()["table"]
    at = numbers(value)
    gelu = torch.nn.functional.gelu
    due = {"relu": at.relu(), "gelu": gelu(at), "gelu_tanh": gelu(at, approximate="tanh"), "silu": at * at.sigmoid()}
    assert head == ["x", *due]
    assert numbers_in(row) == pytest.approx([value, *(height.item() for height in due.values())], rel=5e-6)


def test_a_screen_reader_hears_the_value_and_not_the_place(explorer):
    slider = explorer("steps").slider("x[1]")
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "2"


def test_an_example_of_a_text_is_chosen_by_keys(explorer):
    figure = explorer("texts")
    figure.press("End")
    figure.root.get_by_role("combobox", name="text").focus()
    for k, text in enumerate(["BAD", "SO SO WHAT"], start=1):
        figure.page.keyboard.press("ArrowDown")
        view, shown = measured(text), figure.read()
        ln = view.frame["tensors"]["ln"]["at"]
        assert shown["values"] == [text] and shown["tensors"][-1]["cells"] == view.numbers[ln : ln + 9], k


def test_the_words_of_a_text_name_its_rows(explorer):
    figure = explorer("texts")
    names = "(figure) => [...figure.querySelectorAll('tbody th')].map((cell) => cell.textContent)"
    rows = figure.root.locator(".ob-tensor").first
    assert rows.evaluate(names) == ["NOT", "BAD", "·"]
    figure.root.get_by_role("combobox", name="text").select_option("SO SO WHAT")
    assert rows.evaluate(names) == ["SO", "SO", "WHAT"]


def test_without_a_kernel_there_is_no_field_to_type_in(explorer):
    assert explorer("texts").root.get_by_role("textbox").count() == 0
