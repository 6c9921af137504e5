"""Nothing is left out of the lists that a person keeps: the contents, the home page, its map, all exercises."""
import re
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))
HOME = (ROOT / "book" / "index.md").read_text("utf-8")
LAST = "15_what_to_remember"


def prose(chapter):
    notebook = nbformat.read(ROOT / "book" / f"{chapter}.ipynb", as_version=4)
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def exercises(chapter):
    return re.findall(r"\{exercise\}.*\n:label: (\S+)", prose(chapter))


def test_the_contents_list_every_chapter_in_its_order():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    files = [entry["file"] for part in toc["parts"] for entry in part["chapters"] if part.get("numbered")]
    assert files == [f"book/{chapter}" for chapter in CHAPTERS]


def test_the_home_page_lists_every_chapter_in_its_order():
    assert re.findall(r"^\| \{doc\}`(\w+)`", HOME, re.MULTILINE) == CHAPTERS


def test_the_map_leads_to_every_chapter_by_its_number():
    links = re.findall(r'<a href="(\w+)\.html"><text[^>]*><tspan class="n">(\d+)</tspan>', HOME)
    assert {chapter for chapter, _ in links} == set(CHAPTERS)
    assert all(int(chapter[:2]) == int(number) for chapter, number in links)


@pytest.mark.parametrize("chapter", [chapter for chapter in CHAPTERS if chapter != LAST])
def test_the_last_chapter_lists_every_exercise(chapter):
    listed = re.findall(r"\{ref\}`[^`<]*<([\w-]+)>`", prose(LAST))
    assert len(exercises(chapter)) >= 3
    assert [label for label in listed if label in exercises(chapter)] == exercises(chapter)


def test_no_two_exercises_share_a_label():
    labels = [label for chapter in CHAPTERS for label in exercises(chapter)]
    assert len(set(labels)) == len(labels)
