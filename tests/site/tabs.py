"""Tabs of the browser for pages of the site, which have to behave.

A request to another site, or a warning or error in the console, fails the test.
"""

from contextlib import contextmanager


class Tab:
    """Opens one page after the other; ``without_mathematics`` leaves formulas as they are written, in half the time."""

    def __init__(self, browser, width=1280, height=900, dark=False, without_mathematics=False, **options):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **options
        )
        self.page = self.context.new_page()
        self.problems, self.origin = [], None
        self.page.on("request", self.on_request)
        self.page.on("console", self.on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        if without_mathematics:
            self.page.route("**/mathjax/**", lambda route: route.fulfill(body="", content_type="text/javascript"))

    def on_request(self, request):
        if not request.url.startswith((self.origin, "data:", "blob:")):
            self.problems.append(f"request for {request.url}")

    def on_console(self, message):
        if message.type in ("warning", "error"):
            self.problems.append(f"{message.type}: {message.text} ({message.location['url']})")

    def open(self, address):
        """The page, when it is loaded and its mathematics is set."""
        scheme, _, rest = address.partition("://")
        self.origin = "file:" if scheme == "file" else f"{scheme}://{rest.partition('/')[0]}"
        self.page.goto(address, wait_until="load")
        self.page.evaluate("window.MathJax?.startup?.promise")
        return self.page

    def check(self):
        """Fails when a page did not behave, and forgets it."""
        found, self.problems = self.problems, []
        assert not found, "\n".join(found)


@contextmanager
def opened_tab(browser, **options):
    """A tab that is closed at the end, and has to have behaved."""
    tab = Tab(browser, **options)
    yield tab
    tab.context.close()
    tab.check()
