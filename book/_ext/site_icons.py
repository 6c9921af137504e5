"""Sphinx extension: the few icons that the theme's buttons and notes use.

The theme brings an icon set of 1.5 MB as a script and 0.3 MB as fonts. These
line drawings on a grid of 24 take its place; each is a mask over the colour of
the text, so it follows light and dark mode.
"""
from urllib.parse import quote

from site_static import write

STYLE = "site-icons.css"
CIRCLE = "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18"
SHEET = "M6 2h8l5 5v15H6zM14 2v5h5"
REPOSITORY = "M6 3v18M6 15c0-6 12-2 12-8M4 3h4M4 21h4M16 5l2-2 2 2"

# By the theme's name, in templates and in what its scripts add.
BUTTONS = {
    "angle-left": "M15 5l-7 7 7 7",
    "angle-right": "M9 5l7 7-7 7",
    "arrow-up": "M12 20V4M5 11l7-7 7 7",
    "bars": "M3 6h18M3 12h18M3 18h18",
    "chevron-down": "M5 9l7 7 7-7",
    "circle-half-stroke": CIRCLE + "M13 4v16M15 5v14M17 6v12M19 8v8",
    "code": "M8 7l-5 5 5 5M16 7l5 5-5 5",
    "download": "M12 3v12M6 10l6 6 6-6M4 21h16",
    "expand": "M3 8V3h5M16 3h5v5M21 16v5h-5M8 21H3v-5",
    "file": SHEET,
    "file-pdf": SHEET + "M9 12h7M9 16h7",
    "github": REPOSITORY,
    "gitlab": REPOSITORY,
    "list": "M8 6h13M8 12h13M8 18h13M3 6h1M3 12h1M3 18h1",
    "magnifying-glass": "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14M15 15l6 6",
    "moon": "M20 14A9 9 0 1 1 10 4a7 7 0 0 0 10 10z",
    "rocket": "M9 15c0-7 4-11 11-12-1 7-5 11-12 11M9 15l-4-1 3-4 4-1M9 15l1 4 4-3 1-4M4 20l3-3",
    "sun": "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1 1M18 18l1 1M19 5l-1 1M6 18l-1 1",
    "xmark": "M5 5l14 14M19 5L5 19",
}
# By the class of an admonition, a box with a title.
ADMONITIONS = {
    "note": CIRCLE + "M12 11v6M12 7v1",
    "tip": "M9 21h6M9 17c0-3-3-4-3-8a6 6 0 0 1 12 0c0 4-3 5-3 8z",
    "hint": "M9 21h6M9 17c0-3-3-4-3-8a6 6 0 0 1 12 0c0 4-3 5-3 8z",
    "warning": "M12 3l10 18H2zM12 10v5M12 18v1",
    "caution": "M12 3l10 18H2zM12 10v5M12 18v1",
    "danger": "M12 3l10 18H2zM12 10v5M12 18v1",
    "important": CIRCLE + "M12 7v6M12 16v1",
    "attention": CIRCLE + "M12 7v6M12 16v1",
    "error": CIRCLE + "M9 9l6 6M15 9l-6 6",
    "seealso": "M4 18c0-6 4-9 12-9M12 4l6 5-6 5",
    "exercise": "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
}
SHAPE = """
.fa-solid, .fas, .fab, .admonition > .admonition-title::after {
  display: inline-block; width: 1em; height: 1em; vertical-align: -.125em;
  background: currentColor; mask: var(--icon) center / contain no-repeat;
}
:is(.fa-solid, .fas, .fab)::before { content: none; }
.article-header-buttons { display: flex; align-items: center; }
.article-header-buttons .btn__icon-container { display: flex; }
.admonition { --icon: var(--icon-note); }
.admonition > .admonition-title::after { content: "" !important; font: inherit !important; top: .6em !important; }
.admonition.solution > .admonition-title::after { display: none; }
/* On the blue ground of an exercise the theme's links are too pale to read. */
html[data-theme="light"] .admonition.exercise a { color: color-mix(in srgb, var(--pst-color-link) 80%, black); }
.bd-sidebar-secondary.hide:not(:hover) .onthispage::after { content: none; }
@media (forced-colors: active) {
  .fa-solid, .fas, .fab, .admonition > .admonition-title::after { background: CanvasText; }
}
"""


def image(path):
    svg = ("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='#000'"
           f" stroke-width='2' stroke-linecap='round' stroke-linejoin='round'><path d='{path}'/></svg>")
    return f'url("data:image/svg+xml,{quote(svg, safe=" =:/")}")'


def style():
    rules = [f".fa-{name} {{ --icon: {image(path)}; }}" for name, path in BUTTONS.items()]
    rules += [f".admonition.{name} {{ --icon: {image(path)}; }}" for name, path in ADMONITIONS.items()]
    return SHAPE.replace("var(--icon-note)", image(ADMONITIONS["note"])) + "\n".join(rules) + "\n"


def write_style(app):
    write(app, STYLE, style())


def setup(app):
    app.connect("builder-inited", write_style)
    app.add_css_file(STYLE, priority=900)  # after the theme's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
