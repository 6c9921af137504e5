"""What a check says to read is a section of a page that was built."""
import pytest
from bs4 import BeautifulSoup
from oneblock.words import words


@pytest.fixture(scope="module")
def anchors(site):
    """The ids of a page of the book, by the page's file name."""
    known = {}

    def of(page):
        if page not in known:
            soup = BeautifulSoup((site / "book" / page).read_text("utf-8"), "html.parser")
            known[page] = {tag["id"] for tag in soup.select("article [id]")}
        return known[page]

    return of


@pytest.mark.parametrize("check", sorted(words()["checks"]))
def test_a_check_leads_to_a_section_of_the_built_book(anchors, check):
    page, _, section = words()["checks"][check]["link"].partition("#")
    assert section and section in anchors(page)
