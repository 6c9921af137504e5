"""Each chapter is stored in the one canonical form, with every cell run."""
import copy
import json
from pathlib import Path

import notebooks
import pytest

CHAPTERS = sorted((Path(__file__).parents[2] / "book").glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_is_in_the_stored_form(path):
    assert notebooks.problems(path) == []


def output(**data):
    return {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}


def code(source="x", count=1, outputs=(), **more):
    return {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": count,
            "source": [source], "outputs": list(outputs), **more}


def notebook(*cells):
    return {"cells": list(cells), "metadata": notebooks.METADATA, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def problems(tmp_path):
    def of(book):
        path = tmp_path / "chapter.ipynb"
        path.write_text(notebooks.as_text(book), encoding="utf-8")
        return notebooks.problems(path)
    return of


def test_a_notebook_in_the_stored_form_has_no_problems(problems):
    assert problems(notebook(code(outputs=[output(**{"text/plain": ["1"]})]))) == []


@pytest.mark.parametrize("book, reason", [
    (notebook(code(count=None)), "cell a was never run"),
    (notebook(code(outputs=[output(**{"image/png": "AAAA"})])), "cell a stores image/png"),
    (notebook(code("\n".join("x" * 26))), "cell a has 26 lines; the most is 25"),
    (notebook(code("\n".join("x" * 16))), "only 0 of 1 code cells have at most 15 lines"),
    (notebook(code(count=7)), "not in the stored form"),
    (notebook(code(metadata={"execution": {"iopub.execute_input": "12:00"}})), "not in the stored form"),
    (notebook(code(), code(count=2)), "not in the stored form"),  # the same id twice
    ({**notebook(code()), "metadata": {"widgets": {}}}, "not in the stored form"),
    (notebook(code(outputs=[output(**{notebooks.LIVE_VIEW: {}})])), "not in the stored form"),
], ids=["never run", "image", "long", "many long", "count", "timing", "id", "widget state", "live view"])
def test_each_departure_is_named(problems, book, reason):
    assert any(reason in problem for problem in problems(book)), problems(book)


def test_the_form_does_not_depend_on_who_wrote_the_notebook():
    tidy = notebook(code("a\nb", outputs=[{"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}]))
    messy = copy.deepcopy(tidy)
    messy["metadata"] = {"kernelspec": {"name": "venv"}, "widgets": {}}
    messy["cells"][0].update(execution_count=9, source="a\nb\n", outputs=[
        {"output_type": "stream", "name": "stdout", "text": text} for text in ("1\n", "2\n")])
    stored = notebooks.as_text(notebooks.canonical(messy))
    assert stored == notebooks.as_text(notebooks.canonical(json.loads(stored)))
    assert json.loads(stored)["cells"][0]["outputs"] == notebooks.canonical(tidy)["cells"][0]["outputs"]


def test_cells_get_ids_that_stay():
    names = [{"id": "keep"}, {"id": "keep"}, {}, {"id": "not valid"}]
    assert list(notebooks.cell_ids(names)) == ["keep", "cell-02", "cell-03", "cell-04"]
