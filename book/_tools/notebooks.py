"""The one form in which a chapter's notebook is stored.

    python notebooks.py book/*.ipynb           run each and rewrite it in this form
    python notebooks.py --check book/*.ipynb   only say what is wrong

A stored output is what the web page shows and what nbval compares, so only what
nbval compares may be stored: text and tables, no images and no widget state.
"""
import json
import os
import re
import sys
from pathlib import Path

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT_CELL_METADATA = {"tags", "mystnb"}
LIVE_VIEW = "application/vnd.jupyter.widget-view+json"
VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SHORT, LONGEST = 15, 25  # lines of a code cell


def text_of(source):
    return source if isinstance(source, str) else "".join(source)


def lines_of(text):
    return text.splitlines(keepends=True)


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


# -- The canonical form --------------------------------------------------------

def cell_ids(cells):
    """Keep what is valid and unique; name the others after their place."""
    taken = set()
    for place, cell in enumerate(cells, 1):
        name = cell.get("id", "")
        if name in taken or not VALID_ID.fullmatch(name):
            name = f"cell-{place:02}"
        while name in taken:
            name += "x"
        taken.add(name)
        yield name


def joined_streams(outputs):
    """One print or many: a kernel may cut a stream anywhere."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            output = {**output, "text": text_of(last["text"]) + text_of(output["text"])}
            joined.pop()
        joined.append(output)
    return joined


def canonical_data(data):
    kept = {kind: value for kind, value in data.items() if kind != LIVE_VIEW}
    return {kind: lines_of(text_of(value)) if kind.startswith("text/") else value
            for kind, value in kept.items()}


def canonical_output(output, count):
    output = dict(output)
    if "text" in output:
        output["text"] = lines_of(text_of(output["text"]))
    if "data" in output:
        output.update(data=canonical_data(output["data"]), metadata={})
    if "execution_count" in output:
        output["execution_count"] = count
    return output


def canonical_outputs(outputs, count):
    done = [canonical_output(one, count) for one in joined_streams(outputs)]
    return [one for one in done if one.get("data") != {}]


def canonical_cell(cell, name, count):
    kept = {key: value for key, value in cell["metadata"].items() if key in KEPT_CELL_METADATA}
    done = {"cell_type": cell["cell_type"], "id": name, "metadata": kept,
            "source": lines_of(text_of(cell["source"]).strip("\n"))}
    if cell["cell_type"] == "code":
        done.update(execution_count=count, outputs=canonical_outputs(cell["outputs"], count))
    return done


def canonical(notebook):
    """The notebook as it is stored, whatever program wrote it."""
    cells, count = [], 0
    for cell, name in zip(notebook["cells"], cell_ids(notebook["cells"])):
        count += cell["cell_type"] == "code"
        cells.append(canonical_cell(cell, name, count))
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def as_text(notebook):
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


# -- What may be wrong ---------------------------------------------------------

def never_run(notebook):
    """nbval passes such a cell without comparing anything."""
    return [f"cell {cell.get('id')} was never run"
            for cell in code_cells(notebook) if cell["execution_count"] is None]


def images(notebook):
    return [f"cell {cell.get('id')} stores {kind}: nbval does not compare images; show a table or a figure"
            for cell in code_cells(notebook) for output in cell["outputs"]
            for kind in output.get("data", {}) if kind.startswith("image/")]


def long_cells(notebook):
    lengths = {cell.get("id"): len(text_of(cell["source"]).splitlines())
               for cell in code_cells(notebook)}
    found = [f"cell {name} has {length} lines; the most is {LONGEST}"
             for name, length in lengths.items() if length > LONGEST]
    short = sum(length <= SHORT for length in lengths.values())
    if short < 0.9 * len(lengths):
        found.append(f"only {short} of {len(lengths)} code cells have at most {SHORT} lines; 90 % should")
    return found


def problems(path):
    text = Path(path).read_text(encoding="utf-8")
    notebook = json.loads(text)
    found = never_run(notebook) + images(notebook) + long_cells(notebook)
    if not found and text != as_text(canonical(notebook)):
        found = ["not in the stored form; run: make chapters"]
    return [f"{Path(path).name}: {problem}" for problem in found]


# -- The two commands ----------------------------------------------------------

def execute(path):
    """Run as nbval does: one thread, in the notebook's own folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    NotebookClient(notebook, timeout=300, kernel_name="python3",
                   resources={"metadata": {"path": str(Path(path).parent)}},
                   extra_arguments=["--log-level=ERROR"]).execute()
    return notebook


def rewrite(path):
    print(f"Running {path}", flush=True)
    text = as_text(canonical(execute(path)))
    Path(path).write_text(text, encoding="utf-8")


def main(arguments):
    check = "--check" in arguments
    paths = [argument for argument in arguments if argument != "--check"]
    if not check:
        for path in paths:
            rewrite(path)
    return "\n".join(problem for path in paths for problem in problems(path)) or None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
