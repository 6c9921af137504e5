import json
import re
from fractions import Fraction
from html import unescape

import pytest
import torch

from oneblock.errors import ArgumentError, DtypeError
from oneblock.widgets import Choice, Sentence, Sliders

LENGTHS = Sliders(6, [1, 3, 6, 12, 3000])


def of_length(L):
    return {"share": Fraction(1, int(L)), "pairs": int(L * L), "ends": torch.tensor([L, -1.5]), "word": "long" if L > 6 else "not long"}


TEMPLATE = "For {L} positions: {share} each, {pairs} scores, {ends}; {word}."


def sentence(template=TEMPLATE, function=of_length, **options):
    return Sentence(template, function, **({"L": LENGTHS} | options))


def payload_of(html):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1])


def test_the_sentence_at_the_start_is_the_text_and_the_page_without_a_script():
    due = "For 6 positions: 0.166667 each, 36 scores, [6, -1.5]; not long."
    data, _ = sentence()._repr_mimebundle_()
    assert data["text/plain"] == due and f"<p>{due}</p>" in data["text/html"]
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}


def read_out(figure, point):
    """The sentence of a point of the grid, put together as the script does."""
    numbers = list(figure["numbers"])
    for pair in figure["points"][point].split():
        k, text = pair.split("=")
        numbers[int(k)] = text
    place = int(point.partition("=")[2] or figure["controls"][0]["start"])
    value = figure["controls"][0]["values"][place]
    return "".join(value if isinstance(piece, int) else re.sub(r"\{(\d+)\}", lambda m: numbers[int(m[1])], piece) for piece in figure["frame"]["pieces"])


def test_every_value_of_the_grid_has_its_sentence():
    figure = payload_of(sentence().to_html())
    assert figure["kind"] == "sentence" and figure["frame"]["kind"] == "sentence"
    assert [read_out(figure, point) for point in ("0=0", "0=1", "", "0=3", "0=4")] == [
        "For 1 positions: 1 each, 1 scores, [1, -1.5]; not\u00a0long.",
        "For 3 positions: 0.333333 each, 9 scores, [3, -1.5]; not\u00a0long.",
        "For 6 positions: 0.166667 each, 36 scores, [6, -1.5]; not\u00a0long.",
        "For 12 positions: 0.0833333 each, 144 scores, [12, -1.5]; long.",
        "For 3000 positions: 0.000333333 each, 9,000,000 scores, [3000, -1.5]; long.",
    ]


def test_digits_are_those_that_are_asked_for():
    assert "0.17 each, 36 scores" in sentence(digits=2).to_text()


def test_a_value_off_the_grid_is_computed_when_asked_for():
    one = sentence()
    one.ask = {"id": "me-1", "setting": [7]}
    assert one.answer == {"id": "me-1", "numbers": ["0.142857", "49", "7", "-1.5", "long"]}


def test_two_numbers_in_one_sentence_move_together():
    both = Sentence("{x} times {y} is {product}.", lambda x, y: {"product": x * y}, x=Sliders(2, [1, 2]), y=Sliders(5, [5, 7, 11]))
    assert both.to_text() == "2 times 5 is 10." and both.figure["points"]["0=0 1=2"] == "0=11" and len(both.figure["points"]) == 6


def test_the_number_of_a_symbol_is_called_by_it():
    one = Sentence("{eps} gives {y}.", lambda eps: {"y": eps}, eps=Sliders(1e-5, [0, 1e-5]))
    assert one.figure["controls"][0]["label"] == "ε" and one.to_text() == "1e-5 gives 1e-5."


def test_a_negative_number_behind_an_operator_gets_parentheses():
    one = Sentence("{x} + {y} is {sum}.", lambda x: {"y": -x, "sum": 0}, x=Sliders(2, [1, 2]))
    assert one.to_text() == "2 + (-2) is 0."


@pytest.mark.parametrize("text", ["<b>", "</script>", "{{0}}", "&amp;"])
def test_markup_and_braces_stay_text(text):
    html = sentence(f"{text} {TEMPLATE}").to_html()
    shown = text.replace("{{0}}", "(0)")
    assert unescape(re.search(r"<p>(.*?)</p>", html)[1]).startswith(f"{shown} For 6 positions")
    assert html.count("<") == 6  # of the division, the paragraph and the script


@pytest.mark.parametrize("template", ["{share} {pairs} {ends} {word}", "{L} {L} {share} {pairs} {ends} {word}"])
def test_each_control_stands_in_the_sentence_once(template):
    with pytest.raises(ArgumentError, match=r"^template must be with \{L\} in it, once; got "):
        sentence(template)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("control", [Choice(["a", "b"]), Sliders([1, 2], [1, 2]), 3, None])
def test_a_control_is_of_one_number(control):
    with pytest.raises(ArgumentError, match=r"^L must be Sliders of one number; got "):
        sentence(L=control)


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("result", [None, 3.0, {}, {"even": 1, "odd": 2}, {"even": 1, "more": 2, "odd": 3}])
def test_the_function_returns_what_the_sentence_names_and_no_more(result):
    with pytest.raises(ArgumentError, match=r"^function must be to a dict of even, more; got "):
        sentence("{L} {even} {more}", lambda L: result)


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_is_refused_is_called_by_its_name():
    with pytest.raises(ArgumentError, match=r"^template must be a text; got 3"):
        sentence(3)
    with pytest.raises(DtypeError, match=r"^y must be of real numbers; got complex64"):
        sentence("{L} {y}", lambda L: {"y": torch.tensor(1j)})
    with pytest.raises(ArgumentError, match=r"^y must be a text, a real number or a tensor; got None"):
        sentence("{L} {y}", lambda L: {"y": None})


def test_a_sentence_without_a_number_to_move_is_refused():
    with pytest.raises(ArgumentError, match=r"^controls must be at least one Sliders or Choice"):
        Sentence("Nothing.", dict)
