import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest
import torch
import traitlets

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.norms import layer_norm
from oneblock.residual import residual
from oneblock.trace import Trace, record
from oneblock.widgets import Choice, Explorer, Sliders, Stepper, Table, site_assets, table_view
from oneblock.widgets.figure import _source, module

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "<!--<script>", "\"'&<b>", "</table></div>"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)


def tags_of(html):
    parser = Tags()
    parser.feed(html)
    return parser.seen


def payload_of(html):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture
def trace():
    return record(layer_norm, torch.tensor([-1.0, 5.0, 5.0, 7.0], dtype=torch.float64), eps=0.0)


@pytest.fixture
def stepper(trace):
    return Stepper(trace, title="LayerNorm of four features")


@pytest.mark.parametrize("title", HOSTILE)
def test_a_title_with_markup_stays_text(trace, title):
    html = Stepper(trace, title=title).to_html()
    assert tags_of(html) == tags_of(Stepper(trace, title="plain").to_html())
    assert unescape(re.search(r"<caption>(.*?)</caption>", html)[1]) == title
    assert payload_of(html)["title"] == title


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_figure_can_leave_its_payload(text):
    explorer = Explorer(lambda word: table_view([text], [[text]]), title="t", word=Choice(["a", text]))
    payload = re.search(r'(?s)<script type="application/json">(.*)</script>', explorer.to_html())[1]
    assert "<" not in payload  # not even "<!--<script>", behind which a browser overlooks the end of a script
    assert json.loads(payload)["controls"][0]["values"] == ["a", text]
    assert json.loads(payload)["frame"]["rows"] == [[text]]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_standing_table_keeps_markup_as_text(text):
    html = Table([text], [[text]], title=text)._repr_html_()
    assert tags_of(html) == ["div", "table", "caption", "thead", "tr", "th", "tbody", "tr", "td"]
    assert [unescape(found) for found in re.findall(r"<(?:caption|th|td)>(.*?)</", html)] == [text] * 3


def test_a_figure_is_a_live_view_a_page_and_a_text_at_once(stepper):
    data, _ = stepper._repr_mimebundle_()
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert data["text/html"] == stepper.to_html() and data["text/plain"] == stepper.to_text()


def test_the_page_and_the_text_have_the_same_numbers(stepper):
    cells = [unescape(cell) for cell in re.findall(r"<t[dh]>(.*?)</t[dh]>", stepper.to_html())]
    flat = re.sub(r"\s+", " ", stepper.to_text())
    assert "σ² = (25 + 1 + 1 + 9) / 4" not in cells  # each cell is a whole line of working
    assert "(25 + 1 + 1 + 9) / 4 = 9" in cells
    assert all(re.sub(r"\s+", " ", cell) in flat for cell in cells)


def test_the_page_carries_all_that_the_script_needs(stepper):
    assert payload_of(stepper.to_html()) == json.loads(json.dumps(stepper.figure))


def test_an_output_is_the_same_in_every_run(trace):
    first, second = (Stepper(trace, title="t") for _ in range(2))
    assert first.to_html() == second.to_html() and first.to_text() == second.to_text()


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_stepper_wants_a_trace():
    with pytest.raises(ArgumentError, match=r"^trace must be a Trace, such as record\(function, x\) returns; got float32 \[2\]"):
        Stepper(torch.zeros(2), title="t")


@pytest.mark.parametrize("step", [-1, 8, 99])
def test_a_step_that_does_not_exist_is_refused(stepper, step):
    with pytest.raises(traitlets.TraitError, match=rf"step must be from 0 to 7; got {step}"):
        stepper.step = step
    assert stepper.step == 0


def test_an_existing_step_is_taken(stepper):
    stepper.step = 7
    assert stepper.step == 7


def test_an_explorer_without_steps_has_one():
    explorer = Explorer(lambda x: table_view(["x"], [[x]]), title="t", x=Sliders(1, [1, 2]))
    with pytest.raises(traitlets.TraitError, match="step must be from 0 to 0; got 1"):
        explorer.step = 1


def test_the_scripts_join_into_one_module_that_imports_nothing():
    code = module()
    assert re.findall(r"(?m)^import ", code) == []
    assert re.findall(r"(?m)^export .*", code) == ["export default { render };"]


def test_the_page_script_is_a_classic_one():
    script = site_assets()["oneblock-figures.js"]
    assert re.findall(r"(?m)^(?:import|export) ", script) == []
    assert script.startswith("(() => {") and script.endswith("})();\n")


def test_no_two_scripts_declare_the_same_name():
    names = re.findall(r"(?m)^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", module() + _source("page.js"))
    assert len(names) > 20 and sorted(set(names)) == sorted(names)


def test_a_standing_table_is_shown_alike_on_a_page_and_in_a_terminal():
    table = Table(["a", "b"], [["one", 1 / 3], ["two", torch.tensor([1.0, -2.0])]], title="T", digits=3)
    assert repr(table) == "T\na    b\none  0.333\ntwo  [1, -2]"
    assert re.findall(r"<t[dh](?: [^>]*)?>(.*?)<", table._repr_html_()) == ["a", "b", "one", "0.333", "two", "[1, -2]"]


def test_a_trace_too_large_for_a_page_is_refused_by_its_sizes(monkeypatch):
    monkeypatch.setattr("oneblock.widgets.stepper.steps_view", lambda *_: pytest.fail("its numbers were written out"))
    x = torch.zeros(3, 5, 1009)
    rule = (
        r"^trace must be a figure of at most 100,000 bytes; got '181,620 or more'; the largest tensors are "
        r"x \[3, 5, 1009\], increment \[3, 5, 1009\], y \[3, 5, 1009\]: show one place of some axes, trace\.pick\(n=0, l=2\)"
    )
    with pytest.raises(ArgumentError, match=rule):
        Stepper(record(residual, x, x), title="t")


def test_one_place_of_it_fits(fixed):
    x = fixed(3, 5, 1009)
    with pytest.raises(ArgumentError, match=r"^view must be a figure of at most 100,000 bytes; got '\d\d\d,\d\d\d or more'; the largest"):
        Stepper(record(residual, x, x).at(0, 2), title="t")  # its working and its digits are too much
    assert Stepper(record(residual, x, x).at(0, 2), title="t", limit=200_000).figure["kind"] == "stepper"
    assert Stepper(record(residual, x[..., :97], x[..., :97]).at(0, 2), title="t").figure["kind"] == "stepper"


@pytest.mark.usefixtures("as_readers_run_it")
def test_a_title_is_a_text(trace):
    for make in (lambda: Stepper(trace, title=7), lambda: Table(["a"], [[1]], title=7)):
        with pytest.raises(ArgumentError, match=r"^title must be a text; got 7"):
            make()


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("digits", [0, 2.5, "3"])
def test_digits_are_a_whole_number(trace, digits):
    for make in (lambda: Stepper(trace, title="t", digits=digits), lambda: Table(["a"], [[1]], title="t", digits=digits)):
        with pytest.raises(ArgumentError, match=r"^digits must be a whole number ≥ 1; got "):
            make()


def test_a_language_without_words_is_refused(trace):
    with pytest.raises(ArgumentError, match=r"^language must be one of .*en.*; got 'tlh'"):
        Stepper(trace, title="t", language="tlh")


def test_a_tensor_without_numbers_or_with_complex_ones_is_refused_by_its_name(trace):
    for value, error, rule in (
        (torch.zeros(0), ShapeError, r"^ln must be of at least one number; got float32 \[0\]"),
        (torch.ones(4) * 1j, DtypeError, r"^ln must be of real numbers; got complex64 \[4\]"),
    ):
        with pytest.raises(error, match=rule):
            Stepper(Trace(trace.steps, {**trace.tensors, "ln": value}), title="t")
