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
    return [str(number) for number, _ in prose.claims(source)]


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
    ("section 3.2, Chapter 4.1, PyTorch 2.13, Python 3.11, torch 2.13.0", []),
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


def chapter(source, **output):
    return {"cells": [{"cell_type": "markdown", "id": "claim", "source": [source]},
                      {"cell_type": "code", "id": "proof", "source": [], "outputs": [output]}]}


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
