import json

import pytest
import torch

from oneblock.activations import ACTIVATIONS
from oneblock.errors import ArgumentError
from oneblock.ffn import ffn
from oneblock.names import words_of
from oneblock.norms import layer_norm
from oneblock.residual import residual
from oneblock.trace import record
from oneblock.widgets import Choice, Explorer, Sliders, Text, curves_view, span, steps_view, table_view
from oneblock.widgets import explorer as explorer_module

VALUES = [-1.0, 0.0, 0.5, 2.0]
XS = torch.linspace(-2, 2, 9, dtype=torch.float64)


def by_hand(x, W1, activation):
    bias = torch.zeros(2, dtype=torch.float64)
    return record(lambda: residual(x, ffn(x, W1, bias, W1.mT, bias, activation)))


def normed(x, eps):
    trace = record(layer_norm, x, eps=eps)
    return table_view(["", "LN(x)"], [["mean", trace["mean"]], ["result", trace["ln"]]])


def curve(x):
    return curves_view(XS, {"silu": ACTIVATIONS["silu"](XS)}, at=x, heights={"silu": ACTIVATIONS["silu"](torch.tensor(x)).item()})


def steps_explorer(**options):
    x, W1 = Sliders([0.5, 2], VALUES), Sliders([[-1, 0], [0.5, 2]], VALUES)
    return Explorer(by_hand, title="t", x=x, W1=W1, activation=Choice(["relu", "silu"]), **options)


def tensors(*shapes_and_values):
    return [torch.tensor(value, dtype=torch.float64) for value in shapes_and_values]


EXPLORERS = {
    "steps": (lambda: steps_explorer(one_at_a_time=True), lambda s: steps_view(by_hand(*tensors(s[:2], [s[2:4], s[4:6]]), s[6]))),
    "table": (
        lambda: Explorer(normed, title="t", x=Sliders([-1, 2], VALUES), eps=Sliders(0, [0, 0.5])),
        lambda s: normed(*tensors(s[:2]), s[2]),
    ),
    "curves": (lambda: Explorer(curve, title="t", x=Sliders(1.0, span(-2, 2, 0.25))), lambda s: curve(s[0])),
}


@pytest.fixture(params=EXPLORERS)
def explorer_and_oracle(request):
    make, oracle = EXPLORERS[request.param]
    return make(), oracle


def settings(figure):
    """Each point of the payload, as a setting and its numbers, read as the script reads them."""
    controls = figure["controls"]
    for key, difference in figure["points"].items():
        places = [control["start"] for control in controls]
        for pair in key.split():
            k, place = pair.split("=")
            places[int(k)] = int(place)
        numbers = list(figure["numbers"])
        for pair in difference.split():
            k, text = pair.split("=")
            numbers[int(k)] = text
        texts = [control["values"][place] for control, place in zip(controls, places, strict=True)]
        yield [t if c["kind"] == "choice" else float(t) for c, t in zip(controls, texts, strict=True)], numbers


def test_every_point_of_the_grid_is_what_a_fresh_computation_gives(explorer_and_oracle):
    explorer, oracle = explorer_and_oracle
    figure = json.loads(json.dumps(explorer.figure))
    points = list(settings(figure))
    assert len(points) == {"steps": 2 * (1 + 6 * 3), "table": 4 * 4 * 2, "curves": 17}[figure["frame"]["kind"]]
    for setting, numbers in points:
        assert numbers == oracle(setting).numbers, setting


def test_the_table_holds_the_start_and_says_how_many_more_there_are():
    explorer = EXPLORERS["table"][0]()
    assert explorer.rows() == [["", "LN(x)"], ["mean", "0.5"], ["result", "[-1, 1]"]]
    assert explorer.to_text().endswith("\n31 more settings are in the interactive figure.")


def counted(calls):
    def function(**numbers):
        calls.append(numbers)
        return table_view(["x"], [[number] for number in numbers.values()])

    return function


def test_a_grid_of_millions_of_millions_is_refused_before_it_is_computed():
    calls, controls = [], {f"x{k}": Sliders(0, span(-2, 2, 0.5)) for k in range(14)}
    rule = r"^controls must be a grid of at most 100,000 bytes; got '137,260,754,729,766 or more'; there are 22,876,792,454,961 settings, "
    with pytest.raises(ArgumentError, match=rule):
        Explorer(counted(calls), title="t", **controls)
    assert len(calls) == 1  # the start


def test_a_grid_is_not_computed_beyond_the_limit():
    calls, controls = [], {f"x{k}": Sliders(0, [0, 1, 2, 3]) for k in range(3)}
    message = (
        r"^controls must be a grid of at most 400 bytes; got '4\d\d or more'; "
        r"there are 64 settings, 4 \(x0\) × 4 \(x1\) × 4 \(x2\): declare fewer values, or one_at_a_time=True$"
    )
    with pytest.raises(ArgumentError, match=message):
        Explorer(counted(calls), title="t", limit=400, **controls)
    assert len(calls) < 40
    assert len(Explorer(counted(calls), title="t", limit=400, one_at_a_time=True, **controls).figure["points"]) == 10


@pytest.mark.parametrize("make", [make for make, _ in EXPLORERS.values()], ids=EXPLORERS)
def test_the_limit_is_that_of_the_bytes_on_the_page(make, monkeypatch):
    size = len(json.dumps(make().figure["points"], separators=(",", ":"))) - len("{}") + len(",")
    refuse, sizes = explorer_module._refuse_large_grid, []
    monkeypatch.setattr(explorer_module, "_refuse_large_grid", lambda *args: sizes.append(args[2]) or refuse(*args))
    make()
    assert sizes[-1] == size


def test_a_structure_that_changes_over_the_grid_is_refused():
    def grows(x):
        return table_view(["x"], [[x]] if x < 1 else [[x], [x]])

    with pytest.raises(ArgumentError, match=r"^function must be of one structure for every setting; got \[1\.0\]"):
        Explorer(grows, title="t", x=Sliders(0, [0, 1]))


def test_an_explorer_needs_a_control():
    with pytest.raises(ArgumentError, match=r"^controls must be at least one Sliders or Choice, by argument name; got \{\}"):
        Explorer(curve, title="t")


def test_a_setting_off_the_grid_is_computed_when_asked_for():
    explorer = steps_explorer(one_at_a_time=True)
    explorer.ask = {"id": "me-1", "setting": [0.123, -0.7, 1.9, 0, 0.25, 2, "silu"]}
    x, W1 = tensors([0.123, -0.7], [[1.9, 0], [0.25, 2]])
    y = x + torch.nn.functional.silu(W1 @ x) @ W1
    at = explorer.figure["frame"]["tensors"]["y"]["at"]
    assert explorer.answer["id"] == "me-1"
    assert [float(text) for text in explorer.answer["numbers"][at : at + 2]] == pytest.approx(y.tolist(), rel=5e-6)
    assert explorer.answer["numbers"] == steps_view(by_hand(x, W1, "silu")).numbers


@pytest.mark.parametrize(
    "setting, error",
    [
        ([2.5, 0.5, 0], r"ArgumentError: x[1] must be from -1 to 2; got 2.5"),
        ([0, "half", 0], r"ArgumentError: x[2] must be a number; got 'half'"),
        ([0, 1], r"ArgumentError: setting must be of 3 values; got [0, 1]"),
    ],
)
def test_a_setting_that_does_not_exist_is_answered_with_the_reason(setting, error):
    explorer = EXPLORERS["table"][0]()
    before = json.dumps(explorer.figure)
    explorer.ask = {"id": "me-1", "setting": setting}
    assert explorer.answer == {"id": "me-1", "error": error}
    assert json.dumps(explorer.figure) == before


def test_what_the_function_raises_is_the_answer_and_the_next_question_is_heard():
    def divides(x):
        if 0 < x < 1:
            raise ZeroDivisionError("no halves")
        return table_view(["x"], [[x]])

    explorer = Explorer(divides, title="t", x=Sliders(0, [0, 1, 3]))
    explorer.ask = {"id": "me-1", "setting": [0.5]}
    assert explorer.answer == {"id": "me-1", "error": "ZeroDivisionError: no halves"}
    explorer.ask = {"id": "me-2", "setting": [2]}
    assert explorer.answer == {"id": "me-2", "numbers": ["2"]}


def test_a_structure_that_changes_off_the_grid_is_answered_with_the_reason():
    explorer = Explorer(lambda x: table_view(["x"], [[x]] * (2 if 0 < x < 1 else 1)), title="t", x=Sliders(0, [0, 1]))
    explorer.ask = {"id": "me-1", "setting": [0.5]}
    assert explorer.answer["error"] == "ArgumentError: function must be of one structure for every setting; got [0.5]"


def test_a_figure_starts_at_its_start():
    assert steps_explorer(one_at_a_time=True).setting == [0.5, 2.0, -1.0, 0.0, 0.5, 2.0, "relu"]


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("control", [3, [0, 1], "relu", None])
def test_a_control_that_is_none_is_refused_by_its_name(control):
    with pytest.raises(ArgumentError, match=r"^x must be Sliders, a Choice or a Text; got .*; every other argument stays in the function"):
        Explorer(curve, title="t", y=Sliders(0, [0, 1]), x=control)


@pytest.mark.parametrize("result", [None, 3.0, torch.zeros(2)])
def test_a_function_returns_a_trace_or_a_view(result):
    rule = r"^function must be from the controls to a Trace or a View; got .*; use record\(\) or table_view\(\)"
    with pytest.raises(ArgumentError, match=rule):
        Explorer(lambda x: result, title="t", x=Sliders(0, [0, 1]))


@pytest.mark.parametrize("bad", [0, 2])
def test_what_the_function_raises_on_the_grid_names_the_setting(bad):
    def fails(x, word):
        if x == bad and word == "a":
            raise ZeroDivisionError("by hand")
        return table_view(["x"], [[x]])

    with pytest.raises(ZeroDivisionError, match="^by hand") as caught:
        Explorer(fails, title="t", x=Sliders(0, [0, 1, 2]), word=Choice(["a", "b"]))
    assert caught.value.__notes__ == [f"This came at the setting [{bad:.1f}, 'a'], in the order of the controls."]


def test_a_function_that_draws_is_refused():
    drawn = iter(range(99))
    with pytest.raises(ArgumentError, match=r"^function must be one that gives the same numbers each time; got .*; seed what it draws"):
        Explorer(lambda x: table_view(["x"], [[next(drawn)]]), title="t", x=Sliders(1, [0, 1]))


def test_a_setting_that_does_not_exist_is_not_taken():
    explorer = EXPLORERS["table"][0]()
    with pytest.raises(ArgumentError, match=r"^x\[1\] must be from -1 to 2; got 2\.5"):
        explorer.setting = [2.5, 0.5, 0]
    assert explorer.setting == [-1.0, 2.0, 0.0]
    explorer.setting = [0.25, 0.5, 0]
    assert explorer.setting == [0.25, 0.5, 0]


@pytest.mark.parametrize("ask", [{"id": "me-1"}, {"setting": None}, {"setting": 3}, {"other": 1}])
def test_a_message_that_asks_nothing_is_answered(ask):
    explorer = EXPLORERS["table"][0]()
    explorer.ask = ask
    came = ask.get("setting")
    assert explorer.answer == {"id": ask.get("id"), "error": f"ArgumentError: setting must be of 3 values; got {came}"}


def test_a_trace_too_large_for_a_page_is_refused_before_it_is_written_out():
    x = torch.zeros(30_011, dtype=torch.float64)
    with pytest.raises(ArgumentError, match=r"^trace must be a figure of at most 100,000 bytes; got '[34]\d\d,\d{3} or more'"):
        Explorer(lambda k: record(residual, x, x + k), title="t", k=Sliders(0, [0, 1]))


def test_a_view_too_large_for_a_page_is_refused():
    with pytest.raises(ArgumentError, match=r"^view must be a figure of at most 100,000 bytes; got '.* or more'; show fewer rows or points"):
        Explorer(lambda k: table_view(["k"], [["much"]] * 20_011), title="t", k=Sliders(0, [0, 1]))


def lengths(text):
    words = words_of(text, L=3)
    sizes = torch.tensor([[float(len(word)), 1.0] for word in words] + [[0.0, 1.0]] * (3 - len(words)))
    return steps_view(record(layer_norm, sizes), labels={"L": words + ["·"] * (3 - len(words))})


def test_every_example_of_a_text_is_computed_and_any_other_when_asked_for():
    explorer = Explorer(lengths, title="t", text=Text(["NOT BAD", "BAD", "SO SO"]))
    assert list(explorer.figure["points"]) == ["", "0=1", "0=2"]
    assert explorer.figure["points"]["0=1"].startswith("0=BAD 1=· ")
    explorer.ask = {"id": "me-1", "setting": ["a typed text"]}
    assert explorer.answer == {"id": "me-1", "numbers": lengths("A TYPED TEXT").numbers}


@pytest.mark.parametrize(
    ("text", "says"),
    [("  ", "text must be of one word or more; got '  '"), ("A B C D", "text must be of at most 3 words, as there are positions; got '4 words'")],
)
def test_what_the_function_says_of_a_text_is_the_answer(text, says):
    explorer = Explorer(lengths, title="t", text=Text(["NOT BAD", "BAD"]))
    explorer.ask = {"id": "me-1", "setting": [text]}
    assert explorer.answer == {"id": "me-1", "error": f"ArgumentError: {says}"}
