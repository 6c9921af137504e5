"""A built site, a server and a browser for the tests of this folder."""
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import browser as installed_browser
import build
import pytest
import serve
from filelock import FileLock
from playwright.sync_api import sync_playwright

from .figure_pages import open_figures, scripts  # noqa: F401 (fixtures of every test here)
from .tabs import opened_tab

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


@pytest.fixture
def open_page(browser, server):
    """Open a page of the site, such as `book/03_by_hand.html`, or any address, in a tab of its own."""
    with ExitStack() as tabs:
        def open_(path, **options):
            tab = tabs.enter_context(opened_tab(browser, **options))
            return tab.open(path if "://" in path else f"{server}/{path}")

        yield open_
