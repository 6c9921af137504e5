"""A built site, a server and a browser for the tests of this folder.

A page handed out by `open_page` has to behave: at the end of the test a request
to another site, or a warning or error in the console, fails it.
"""
from pathlib import Path
from threading import Thread

import browser as installed_browser
import build
import pytest
import serve
from filelock import FileLock
from playwright.sync_api import sync_playwright

from .figure_pages import open_figures, scripts  # noqa: F401 (fixtures of every test here)

ROOT = Path(__file__).parents[2]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def site(worker_id, testrun_uid):
    """The folder of the built pages, built from nothing, once in a test run."""
    folder, mark = ROOT / "_build", ROOT / "_build" / "built-for"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if worker_id == "master" or not mark.exists() or mark.read_text() != testrun_uid:
            build.forget(ROOT)
            problem = build.build()
            assert problem is None, problem
            mark.write_text(testrun_uid)
    return folder / "html"


@pytest.fixture(scope="session")
def server(site):
    """The address of a server of the built pages, on a free port."""
    server = serve.make_server(0, site)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    path = installed_browser.find()
    if path is None:
        complain = pytest.fail if installed_browser.under_ci() else pytest.skip
        complain(installed_browser.MISSING)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


def record(page, origin):
    """Keep what the page asks of other sites, and what its console complains of."""
    page.foreign_requests, page.console_problems = [], []

    def on_request(request):
        if not request.url.startswith((origin, "data:", "blob:")):
            page.foreign_requests.append(request.url)

    def on_console(message):
        if message.type in ("warning", "error"):
            page.console_problems.append(f"{message.type}: {message.text} ({message.location['url']})")

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda error: page.console_problems.append(f"error: {error}"))


@pytest.fixture
def open_page(browser, server):
    """Open a page of the site, such as `book/03_by_hand.html`, or any address.

    It comes back when it is loaded and its mathematics is set.
    """
    contexts, pages = [], []

    def open_(path, width=1280, height=900, dark=False, **options):
        context = browser.new_context(viewport={"width": width, "height": height},
                                      color_scheme="dark" if dark else "light", **options)
        page = context.new_page()
        contexts.append(context)
        pages.append(page)
        origin = "file:" if path.startswith("file:") else server
        record(page, origin)
        page.goto(path if "://" in path else f"{server}/{path}", wait_until="load")
        page.evaluate("window.MathJax?.startup?.promise")
        return page

    yield open_
    problems = [p for page in pages for p in page.foreign_requests + page.console_problems]
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)
