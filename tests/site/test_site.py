"""Every built page: stays on its own site, fits a phone, can be used by all, and is light."""
import gzip
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import site_icons
from axe_playwright_python.sync_playwright import Axe

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(f"book/{path.stem}.html" for path in (ROOT / "book").glob("*.ipynb"))
PAGES = [*CHAPTERS, "search.html", *(f"book/{path.stem}.html" for path in (ROOT / "book").glob("*.md"))]
NOT_COUNTED = re.compile(r"/mathjax/|\.woff2?$")
AXE = {"preload": False}  # it would look for imported style sheets in the wrong folder
PAGE_BUDGET, SCRIPT_BUDGET = 350_000, 30_000

each_page = pytest.mark.parametrize("path", PAGES)
each_chapter = pytest.mark.parametrize("path", CHAPTERS)


def compressed(body):
    return len(gzip.compress(body, 6))


@each_page
def test_a_page_opens_without_a_foreign_request_or_a_complaint(open_page, path):
    """What `open_page` recorded fails the test when it ends."""
    page = open_page(path)
    page.wait_for_load_state("networkidle")
    assert page.locator("main").inner_text().strip()


@each_page
def test_a_page_does_not_scroll_sideways_on_a_phone(open_page, path):
    page = open_page(path, width=390)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


@each_page
@pytest.mark.parametrize("width, dark", [(1280, False), (1280, True), (390, False)],
                         ids=["light", "dark", "phone"])
def test_axe_finds_nothing(open_page, path, width, dark):
    page = open_page(path, width=width, dark=dark, reduced_motion="reduce")
    found = Axe().run(page, options=AXE).response["violations"]
    messages = [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]
    assert not messages, "\n".join(messages)


@each_chapter
def test_a_chapter_is_light(open_page, server, site, path, record_property):
    page = open_page(path)
    names = page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    files = {urlsplit(name).path for name in [f"{server}/{path}", *names]}
    weights = {name: compressed((site / name.lstrip("/")).read_bytes())
               for name in sorted(files) if not NOT_COUNTED.search(name)}
    record_property(f"bytes compressed for {path}", sum(weights.values()))
    assert sum(weights.values()) <= PAGE_BUDGET, weights


def test_our_script_is_small(site, record_property):
    script = site / "_static" / "oneblock-figures.js"
    record_property(f"bytes of {script.name}", script.stat().st_size)
    assert 0 < script.stat().st_size <= SCRIPT_BUDGET


@each_chapter
def test_a_chapter_opened_from_disk_shows_its_text_and_its_figures(open_page, site, path):
    page = open_page((site / path).as_uri())
    assert page.locator("article h1").is_visible()
    assert page.locator(".ob-figure .ob").count() == page.locator(".ob-figure:has(script)").count() > 0


@each_chapter
def test_a_chapter_without_scripts_shows_the_numbers_of_each_figure(open_page, site, path):
    page = open_page((site / path).as_uri(), java_script_enabled=False)
    figures = page.locator(".ob-figure:has(script):not(details *)")
    assert figures.count() > 0
    assert all(figure.locator("table").is_visible() for figure in figures.all())


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
