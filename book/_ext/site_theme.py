"""Sphinx extension: takes out, or mends, what the book cannot use as it comes."""
import hashlib
from pathlib import Path

BOOK = Path(__file__).parents[1]


def drop_thebe(app):
    """Jupyter Book always loads sphinx-thebe, whose scripts come from another site
    and complain on each page that THEBE_JS_URL is declared twice."""
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [
            one for one in listeners if one.handler.__module__ != "sphinx_thebe"]
    app.registry.css_files = [css for css in app.registry.css_files if "thebe" not in css[0]]


def mend_citations(app, pagename, templatename, context, doctree):
    """Sphinx marks a reference with a role that ARIA has since dropped."""
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def appearance():
    """Changes with any file that shapes all pages; Sphinx does not look at these."""
    files = sorted(path for folder in ("_ext", "_static", "_templates")
                   for path in (BOOK / folder).rglob("*.*") if path.suffix != ".pyc")
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def setup(app):
    drop_thebe(app)
    app.add_config_value("site_appearance", appearance(), "html", str)
    app.connect("html-page-context", mend_citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
