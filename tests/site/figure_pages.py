"""Pages made for a test, of figures or of the bare scripts; no site is built for them."""

from importlib.resources import files
from urllib.parse import urlsplit

import pytest
import site_figures

from oneblock.widgets import Table

ORIGIN = "http://figures.test"
PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8"><title>Figures</title>
<meta name="viewport" content="width=device-width">
<style>html[data-theme=dark] {{ --pst-color-text-base: #ced6dd; --pst-color-background: #14181e; background: #14181e }}
html[data-theme=dark] h1 {{ color: #ced6dd }}</style>
<link rel="stylesheet" href="/oneblock-figures.css"><script defer src="/oneblock-figures.js"></script>
<body style="max-width: 760px; margin: auto"><main><h1>Figures</h1>
{body}</main></body></html>"""

SOURCES = {
    f"/scripts/{path.name}": path.read_text("utf-8")
    for path in files("oneblock.widgets").iterdir()
    if path.name.endswith(".js")
}


def opener(browser):
    contexts, problems = [], []

    def open_(*figures, dark=False, width=1280, height=900, **options):
        body = "\n".join(one._repr_html_() if isinstance(one, Table) else one.to_html() for one in figures)
        served = {"/": PAGE.format(theme="dark" if dark else "light", body=body), "/favicon.ico": ""}
        served |= {f"/{name}": text for name, text in site_figures.served().items()} | SOURCES

        def serve(route):
            url = urlsplit(route.request.url)
            if not url.geturl().startswith(ORIGIN) or url.path not in served:
                problems.append(f"request for {url.geturl()}")
                return route.abort()
            kind = {"js": "text/javascript", "css": "text/css"}.get(url.path.rpartition(".")[2], "text/html")
            route.fulfill(body=served[url.path], content_type=f"{kind}; charset=utf-8")

        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.route("**/*", serve)
        page = context.new_page()
        page.on("console", lambda message: message.type in ("warning", "error") and problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.goto(f"{ORIGIN}/")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert problems == []


def freeze(page):
    """From here on time passes only in ``page.clock.run_for``."""
    page.clock.install(time=0)
    page.clock.pause_at(1)


@pytest.fixture
def open_figures(browser):
    """Opens figures as a page of the site shows them.

    At the end of the test, a request for anything else and a complaint in the console fail it.
    """
    yield from opener(browser)


@pytest.fixture(scope="module")
def scripts(browser):
    """An empty page whose ``ob`` has what the scripts export, for ``page.evaluate``."""
    open_ = opener(browser)
    page = next(open_)()
    page.evaluate("""async () => {
        const names = ["figure", "stepper", "curves", "grid", "sentence", "explorer"];
        window.ob = Object.assign({}, ...(await Promise.all(names.map((name) => import(`/scripts/${name}.js`)))));
    }""")
    yield page
    next(open_, None)


def frozen(browser, *figures):
    """One page of figures for a whole module of tests, its time standing still; they reload it."""
    opened = opener(browser)
    page = next(opened)(*figures)
    freeze(page)
    yield page
    next(opened, None)
