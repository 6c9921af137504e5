"""Each glossary term leads to its definition from where a page first uses it, and back from the index."""
import re
from pathlib import Path
from urllib.parse import urldefrag

import pytest
import site_terms
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))
TERMS = site_terms.terms_of((ROOT / "book" / "glossary.md").read_text("utf-8"))
BY_HAND = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]["terms_marked_by_hand"]
NOT_PROSE = ["h1", "h2", "h3", "h4", "pre", "code", "script", "summary", ".math", ".cell_output", ".admonition-title", "a:not([href*='#term-'])"]


@pytest.fixture(scope="module")
def soup_of(site):
    return lambda page: BeautifulSoup((site / page).read_text("utf-8"), "html.parser")


@pytest.fixture(scope="module")
def definitions(soup_of):
    """By a term's id: the definition that stands below it; a term and its abbreviation share one."""
    terms = soup_of("book/glossary.html").select("dl.glossary dt[id]")
    return {term["id"].lower(): term.find_next_sibling("dd") for term in terms}


def prose(soup):
    """The running text of a page: each piece, and the link that it stands in, if any."""
    article = soup.select_one("article")
    for other in article.select(",".join(NOT_PROSE)):
        other.replace_with("\N{LINE SEPARATOR}")
    return [(text, text.find_parent("a")) for text in article.find_all(string=True)]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_first_use_of_a_term_is_a_link_to_its_definition(soup_of, definitions, chapter):
    pieces, rest = prose(soup_of(f"book/{chapter}.html")), sorted(set(TERMS) - set(BY_HAND), key=len, reverse=True)
    unlinked = []
    for term in rest:
        longer = [other for other in TERMS if term.lower() in other.lower() and other != term]
        for text, link in pieces:
            told = re.sub("|".join(map(re.escape, longer)) or "$^", "", text, flags=re.IGNORECASE)
            if re.search(rf"(?<![\w-]){re.escape(term)}(e?s)?(?![\w-])", told, re.IGNORECASE):
                due = definitions["term-" + re.sub(r"[^a-z]+", "-", term.lower())]
                if link is None or definitions[urldefrag(link["href"]).fragment.lower()] is not due:
                    unlinked.append((term, text.strip()[:60]))
                break
    assert not unlinked


def test_the_index_leads_to_the_definition_and_to_a_place_in_each_chapter_that_uses_the_term(soup_of):
    links = [urldefrag(link["href"]) for link in soup_of("genindex.html").select(".genindextable a[href]")]
    assert {page for page, _ in links} >= {"book/glossary.html", *(f"book/{chapter}.html" for chapter in CHAPTERS)}
    for page in {page for page, _ in links}:
        ids = {one["id"] for one in soup_of(page).select("[id]")}
        missing = {place for other, place in links if other == page} - ids
        assert not missing, f"{page} lacks {missing}"


def test_every_term_is_defined_once():
    assert len({term.lower() for term in TERMS}) == len(TERMS) > 50


def test_every_word_that_is_marked_by_hand_is_a_term():
    assert set(BY_HAND) <= set(TERMS)


def test_the_longer_term_wins_and_a_plural_counts():
    pattern = site_terms.pattern_of(["padding", "padding mask", "branch"])
    uses = [use[0] for use in pattern.finditer("Padding masks stop padding in both branches; a padding-free post-branch.")]
    assert uses == ["Padding masks", "padding", "branches"]
