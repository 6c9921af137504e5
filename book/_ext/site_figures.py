"""Sphinx extension: the figures' script and style, from the library to every page.

The script is a classic deferred one, not a module: a browser runs no module
from a file on disk, and the built pages must work there too. Pages get it
without comments and spaces; the sources in the library stay as people read them.
"""
from rjsmin import jsmin
from site_static import write

from oneblock.widgets import site_assets

SCRIPT, STYLE = "oneblock-figures.js", "oneblock-figures.css"


def served():
    """What a page loads, by file name."""
    assets = site_assets()
    return {**assets, SCRIPT: jsmin(assets[SCRIPT])}


def write_assets(app):
    """Each build writes them, so that a change in the library is always seen."""
    for name, text in served().items():
        write(app, name, text)


def setup(app):
    app.connect("builder-inited", write_assets)
    app.add_js_file(SCRIPT, loading_method="defer")
    app.add_css_file(STYLE)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
