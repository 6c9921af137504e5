"""What the extensions share: a file among the pages' static files, written by each build."""
from pathlib import Path


def write(app, name, text):
    static = Path(app.outdir, "_static")
    static.mkdir(parents=True, exist_ok=True)
    (static / name).write_text(text, encoding="utf-8")
