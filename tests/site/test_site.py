"""Every built page: stays on its own site, fits a phone, can be used by all, and is light."""
import gzip
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import site_figures
import site_icons
from playwright.sync_api import TimeoutError

from oneblock.widgets import site_assets

from .accessibility import NO_COLOURS, ONLY_COLOURS, complaints
from .tabs import opened_tab

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(f"book/{path.stem}.html" for path in (ROOT / "book").glob("*.ipynb"))
PAGES = [*CHAPTERS, "search.html", "genindex.html", *(f"book/{path.stem}.html" for path in (ROOT / "book").glob("*.md"))]
NOT_COUNTED = re.compile(r"/mathjax/|\.woff2?$")
REACHABLE = """() => [...document.querySelectorAll("[tabindex='-1']")].every((one) => one.scrollWidth <= one.clientWidth)"""
"""Whether keys reach all that scrolls. The theme sees to it, a moment after a page has changed."""
THEME_LOOKS_AGAIN = 400  # ms; it waits 300

PAGE_BUDGET, SCRIPT_BUDGET = 350_000, 30_000

each_page = pytest.mark.parametrize("path", PAGES)
each_chapter = pytest.mark.parametrize("path", CHAPTERS)


def compressed(body):
    return len(gzip.compress(body, 6))


@pytest.fixture(scope="module", params=PAGES)
def tab(request, browser, server):
    """Each page, opened once, on a phone in light mode; the tests widen and darken it in their order."""
    with opened_tab(browser, width=390, reduced_motion="reduce") as tab:
        tab.open(f"{server}/{request.param}")
        yield tab


def test_a_page_does_not_scroll_sideways_on_a_phone(tab):
    width = tab.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


@pytest.mark.parametrize("width, dark", [(390, False), (1280, False), (1280, True)],
                         ids=["phone", "light", "dark"])
def test_axe_finds_nothing(tab, width, dark):
    """All rules in one form; in the dark those of colours; on a phone, whose colours are the same, the others.

    On a phone the pages without a number have all: they show what is only there.
    """
    page, theme = tab.page, "dark" if dark else "light"
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.wait_for_timeout(THEME_LOOKS_AGAIN)
    with suppress(TimeoutError):  # what is still unreachable then, axe tells
        page.wait_for_function(REACHABLE, timeout=3000)
    of_a_phone = NO_COLOURS if re.search(r"/\d\d_", page.url) else None
    messages = complaints(page, ONLY_COLOURS if dark else of_a_phone if width == 390 else None)
    assert not messages, "\n".join(messages)


def test_a_page_is_light(tab, site, record_property):
    names = tab.page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    files = {urlsplit(name).path for name in [tab.page.url, *names]}
    weights = {name: compressed((site / name.lstrip("/")).read_bytes())
               for name in sorted(files) if not NOT_COUNTED.search(name)}
    record_property(f"bytes compressed for {urlsplit(tab.page.url).path}", sum(weights.values()))
    assert sum(weights.values()) <= PAGE_BUDGET, weights


def test_a_page_makes_no_foreign_request_and_no_complaint(tab):
    """Since it was opened, and in every form."""
    tab.page.wait_for_load_state("networkidle")
    assert tab.page.locator("main").inner_text().strip()
    tab.check()


def test_our_script_is_small(site, record_property):
    script = site / "_static" / "oneblock-figures.js"
    record_property(f"bytes of {script.name}", script.stat().st_size)
    assert 0 < script.stat().st_size <= SCRIPT_BUDGET


def test_a_page_gets_the_small_form_of_the_script_that_the_figures_are_tested_with(site):
    served, readable = (site / "_static" / site_figures.SCRIPT).read_text("utf-8"), site_assets()[site_figures.SCRIPT]
    assert served == site_figures.served()[site_figures.SCRIPT]
    assert len(served) < 0.9 * len(readable) and "\n  " in readable and "\n  " not in served


@pytest.fixture(scope="module")
def disk_tab(browser):
    with opened_tab(browser) as tab:
        yield tab


@pytest.fixture(scope="module")
def tab_without_scripts(browser):
    with opened_tab(browser, java_script_enabled=False) as tab:
        yield tab


@each_chapter
def test_a_chapter_opened_from_disk_shows_its_text_and_its_figures(disk_tab, site, path):
    page = disk_tab.open((site / path).as_uri())
    assert page.locator("article h1").is_visible()
    assert page.locator(".ob-figure .ob").count() == page.locator(".ob-figure:has(script)").count() > 0
    disk_tab.check()


@each_chapter
def test_a_chapter_without_scripts_shows_the_numbers_of_each_figure(tab_without_scripts, site, path):
    page = tab_without_scripts.open((site / path).as_uri())
    figures = page.locator(".ob-figure:has(script):not(details *)")
    assert figures.count() > 0
    assert all(figure.locator("table").is_visible() for figure in figures.all())
    tab_without_scripts.check()


def test_every_button_is_seen_and_named(open_page):
    page = open_page(CHAPTERS[0])
    for button in page.locator("button:visible").all():
        html = button.evaluate("one => one.outerHTML")
        name = re.search(r'(?:title|aria-label)="[^"]+"|<title>', html) or button.inner_text().strip()
        assert name, f"no name: {html}"
        assert button.inner_text().strip() or "<svg" in html or "fa-" in html, f"nothing to see: {html}"


@each_page
def test_each_icon_of_a_page_is_drawn(site, path):
    html = (site / path).read_text(encoding="utf-8")
    used = {name for icon in re.findall(r'class="([^"]*\bfa-[^"]*)"', html) for name in icon.split()}
    drawn = {f"fa-{name}" for name in site_icons.BUTTONS} | {"fa-solid", "fa-lg"}
    assert {name for name in used if name.startswith("fa-")} <= drawn


def test_the_icon_fonts_of_the_theme_are_not_loaded(open_page):
    page = open_page("book/index.html")
    loaded = page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    assert not [name for name in loaded if "fontawesome" in name]
