"""Every number that a chapter's prose states is printed by one of its cells."""
import json
from decimal import Decimal
from pathlib import Path

import prose
import pytest

CHAPTERS = sorted((Path(__file__).parents[2] / "book").glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_number_in_the_prose_is_printed_by_a_cell(path):
    missing = list(prose.unprinted(json.loads(path.read_text(encoding="utf-8"))))
    assert not missing, "\n" + "\n".join(missing)


def numbers(source):
    """Everything a source states, a list's numbers one by one."""
    found = [what for what, _ in prose.claims(source)]
    return [str(one) for what in found for one in (what if isinstance(what, list) else [what])]


@pytest.mark.parametrize("source, expected", [
    # plain decimals, and what is no decimal
    ("It is 0.75, not 2.", ["0.75"]),
    ("a sum of 1,234.5", ["1234.5"]),
    ("Ends with 1.5.", ["1.5"]),
    # signs
    ("−1.5 and -0.5", ["-1.5", "-0.5"]),
    ("±0.30", ["0.30"]),
    ("$x-0.5$ and $x - 0.5$ and $= -0.5$", ["0.5", "0.5", "-0.5"]),
    ("between 0.5–0.7", ["0.5", "0.7"]),
    # mathematics
    (r"$\mu = 0.75,\ \sigma^2 = {-}0.0625$", ["0.75", "-0.0625"]),
    (r"$\frac{1.25}{x_{1}}$", ["1.25"]),
    ("{math}`y = 0.25`", ["0.25"]),
    (r"$2{,}097{,}152.5$", ["2097152.5"]),
    # powers of ten
    ("1e-5 or $10^{-5}$ or 10⁻⁵", ["0.00001"] * 3),
    (r"$-3.2 \times 10^{-4}$", ["-0.00032"]),
    (r"$1.5\cdot 10^{3}$ and $10^{3}$", ["1500"]),
    # lists: each number counts, whole ones too
    ("[1, -1.5]", ["1", "-1.5"]),
    (r"$h = [-1,\, 1.5]$", ["-1", "1.5"]),
    ("W1 = [[1, -1], [0.5, 0.5]]", ["1", "-1", "0.5", "0.5"]),
    (r"$\begin{bmatrix} 1 & -1 \\ 0.5 & 7 \end{bmatrix}$", ["1", "-1", "0.5", "7"]),
    (r"$\left[1; 2\right]$", ["1", "2"]),
    ("[N, 2] and [2, ..., 3]", []),
    # no claims
    ("`x = 0.1` and ``y = `0.2` ``", []),
    ("```python\nx = 0.1\n```", []),
    ("[text](a_0.5.html) and https://example.org/1.5", []),
    ("[1, 2](notes.md)", []),
    ("## 3.1 A heading with 0.5", ["0.5"]),
    ("{cite}`ba2016` and {ref}`fig-1.5` and arXiv:1607.06450", []),
    ("<img width='1.5'> 2.5 <!-- 3.5 -->", ["2.5"]),
    ("2.13.0 is a version", []),
    # directives: options are no prose, the body is
    (":::{figure}\n:width: 1.5\nA caption, 2.5\n:::\n3.5", ["2.5", "3.5"]),
    ("```{note} About 1.5\n2.5\n```\n3.5", ["1.5", "2.5", "3.5"]),
    ("````{note}\n```python\n1.5\n```\n2.5\n````", ["2.5"]),
    ("```{code-block} python\n1.5\n```", []),
    ("```{math}\n:label: eq\ny = 1.5\n```", ["1.5"]),
])
def test_the_numbers_that_count_as_claims(source, expected):
    assert sorted(map(Decimal, numbers(source))) == sorted(map(Decimal, expected))


@pytest.mark.parametrize("source, expected", [
    # no digit before the point, and emphasis
    ("It is .987 or -.5, in _9.87_, __9.75__, *1.5* and _about 2.5 now_.", ["0.987", "-0.5", "9.87", "9.75", "1.5", "2.5"]),
    (r"$x_1 = a_{512}$ and $\mu_B$ and $\|x\|_2$", []),
    # a chapter has a whole number, a decimal is a claim
    ("table 9.87, figure 9.75, chapter 1.5, version 2.5, torch 0.25", ["9.87", "9.75", "1.5", "2.5", "0.25"]),
    ("Chapter 5, figures 12, § 3, PyTorch 2.13, Python 3.11, torch 2.13.0", []),
    # lists
    ("(9, 8, 7) and [1, −.5], but not (9)", ["[9, 8, 7]", "[1, -0.5]"]),
    ("[1, 2](notes.md) and $(a, 2)$ and (2, see above)", []),
    # percentages
    (r"98 % or 98.5% or $7\,\%$", ["98 %", "98.5 %", "7 %"]),
    # fractions
    (r"97/99 of it, $\frac{3}{4}$, $\tfrac12$, $\dfrac{-1}{8}$", ["97/99", "3/4", "1/2", "-1/8"]),
    (r"$0/0$ and $1/n$ and $\frac{1}{D}$ and $F/2$", []),
    # integers
    ("2,097,152 and $11{,}008$ and 512, not 99.", ["2097152", "11008", "512"]),
    ("65,504, or 1,024.", ["65504", "1024"]),
    ("`F = 11008` and ``512``\n```\n1024\n```", []),
    ("Ba et al. (2016), Vaswani et al., 2017, (Xiong, 2020) and {cite}`ba2016`", []),
    ("It took 2016 steps (about 2017 too).", ["2016", "2017"]),
    ("blocks ($D = 64$, $H = 4$, $F = 256$, ReLU), and $F = 512$", ["512"]),
])
def test_the_other_forms_that_count_as_claims(source, expected):
    found = [what for what, _ in prose.claims(source)]
    written = [f"[{', '.join(map(str, what))}]" if isinstance(what, list) else str(what) for what in found]
    assert written == expected


def chapter(source, code="", **output):
    return {"cells": [{"cell_type": "markdown", "id": "claim", "source": [source]},
                      {"cell_type": "code", "id": "proof", "source": [code], "outputs": [output]}]}


@pytest.mark.parametrize("output", [
    {"text": ["mean 0.750\n"]},
    {"data": {"text/plain": ["tensor([0.7500, 2.])"]}},
    {"data": {"text/html": ["<td>0.75</td>"]}},
    {"data": {"text/plain": ["7.5e-01"]}},
], ids=["stream", "repr", "table", "exponent"])
def test_a_printed_number_backs_the_prose_in_any_written_form(output):
    assert not list(prose.unprinted(chapter("The mean is 0.75.", **output)))


@pytest.mark.parametrize("output", [
    {"text": ["0.76\n"]},
    {"text": ["-0.75\n"]},
    {"text": ["10.75 0.755 x0.75\n"]},
    {"data": {"text/html": ["<script>0.75</script><td title='0.75'>1</td>"]}},
], ids=["other", "sign", "part", "hidden"])
def test_a_number_that_no_cell_shows_is_reported_with_its_place(output):
    [message] = prose.unprinted(chapter("One.\nThe mean is 0.75.", **output))
    assert message.startswith("0.75 in cell claim, line 2, is printed by no cell: The mean is 0.75.")


def test_a_minus_sign_is_the_same_in_either_spelling():
    assert not list(prose.unprinted(chapter("h = [-1, −1.5]", text=["−1 -1.5"])))


@pytest.mark.parametrize("source, output, wrong", [
    ("It is .987.", "0.987", "0.986"),
    ("It is 0.987.", ".987", "x.987"),
    ("It is _9.87_.", "9.87", "9.86"),
    ("table 9.87", "9.87", "9.86"),
    ("98 %", "98 %", "98"),
    ("98 %", "0.98", "97 %"),
    ("98.5 %", "98.5%", "98 %"),
    ("97/99", "97/99", "97/98"),
    (r"$\frac{3}{4}$", "0.75", "0.7500001"),
    (r"$\tfrac12$", "1/2", "1/3"),
    ("1,024 rows", "1024", "1025"),
    ("1024 rows", "1,024", "1,0245"),
    ("(9, 8, 7)", "tensor([9., 8., 7.])", "[9, 7, 8]"),
    ("(9, 8, 7)", "torch.Size([9, 8, 7])", "9 and 8 and 7"),
    ("[1, -1.5]", "[tensor(1.), tensor(-1.5)]", "f(1.), f(-1.5)"),
    ("[1, -1.5]", "[[1,\n -1.5]]", "[1, 2, -1.5]"),
    ("[1, 2]", "[0, 1, 2, 3]", "[1] x [2]"),
    (r"$\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}$", "tensor([[1, 2],\n        [3, 4]])", "[[1, 2], [4, 3]]"),
])
def test_each_form_is_backed_by_what_is_printed_and_by_nothing_near(source, output, wrong):
    assert not list(prose.unprinted(chapter(source, text=[output])))
    assert len(list(prose.unprinted(chapter(source, text=[wrong])))) == 1


def test_a_list_is_not_put_together_from_two_outputs():
    assert list(prose.unprinted(chapter("[1, 2]", text=["1"], data={"text/plain": ["2"]})))


@pytest.mark.parametrize("source, code, wrong", [
    ("the increment $[2, -0.5, 0]$", "f(torch.tensor([2.0, -0.5, 0.0]))", "f(torch.tensor([2.0, 0.5, 0.0]))"),
    ("$F = 11008$", "D, F = 4096, 11_008", "D, F = 4096  # 11008"),
])
def test_what_a_cell_is_given_needs_no_output(source, code, wrong):
    assert not list(prose.unprinted(chapter(source, code)))
    assert len(list(prose.unprinted(chapter(source, wrong)))) == 1


def test_a_decimal_in_the_code_is_no_proof():
    assert list(prose.unprinted(chapter("It is 0.75.", "assert x == 0.75")))


def test_the_largest_half_precision_number_needs_no_cell():
    torch = pytest.importorskip("torch")
    assert prose.FACTS == {Decimal(int(torch.finfo(torch.float16).max))}
    assert not list(prose.unprinted(chapter("nothing above 65,504")))
