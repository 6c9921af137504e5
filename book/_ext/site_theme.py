"""Sphinx extension: takes out what the book does not use.

Jupyter Book always loads sphinx-thebe, whose scripts come from another site and
complain on each page that THEBE_JS_URL is declared twice.
"""


def is_thebe(name):
    return "thebe" in str(name)


def drop_thebe(app):
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [
            one for one in listeners if one.handler.__module__ != "sphinx_thebe"]
    app.registry.css_files = [css for css in app.registry.css_files if not is_thebe(css[0])]


def setup(app):
    drop_thebe(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
