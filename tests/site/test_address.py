"""Buttons for Binder and for the repository: there when its address is known, absent otherwise."""
import shutil
import subprocess
from pathlib import Path

import build
import pytest
import site_address

ROOT = Path(__file__).parents[2]
TOC = "format: jb-book\nroot: book/index\nchapters: [file: book/page]\n"
NOTEBOOK = '{"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Page"}],' \
           ' "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},' \
           ' "nbformat": 4, "nbformat_minor": 5}'
BINDER = "https://mybinder.org/v2/gh/someone/abook/main?urlpath=lab/tree/book/page.ipynb"


@pytest.mark.parametrize("remote, address", [
    ("https://github.com/someone/abook.git", "https://github.com/someone/abook"),
    ("https://github.com/someone/abook/", "https://github.com/someone/abook"),
    ("https://name:token@github.com/someone/abook", "https://github.com/someone/abook"),
    ("git@github.com:someone/a.book.git", "https://github.com/someone/a.book"),
    ("ssh://git@gitlab.com:22/group/sub/abook.git", "https://gitlab.com/group/sub/abook"),
    ("git@gitlab.example.org:someone/abook.git", "https://gitlab.example.org/someone/abook"),
    ("", None),
    ("/srv/git/abook", None),
    ("https://example.org/github/abook", None),
    ("file:///srv/github.com/abook", None),
])
def test_a_remote_gives_the_address_of_its_web_page(remote, address):
    assert site_address.web_address(remote) == address


@pytest.fixture
def built_page(tmp_path):
    """Builds a book of one page in a repository with this remote; returns the page."""
    def build_with(remote=None, configured=""):
        shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("*.ipynb", "*.md"))
        config = (ROOT / "_config.yml").read_text().replace('url: ""', f'url: "{configured}"')
        files = {"_config.yml": config, "_toc.yml": TOC, "book/index.md": "# Book\n", "book/page.ipynb": NOTEBOOK}
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        if remote:
            subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
        assert build.build(tmp_path) is None
        return (tmp_path / "_build/html/book/page.html").read_text()
    return build_with


@pytest.mark.parametrize("known", [
    {"remote": "git@github.com:someone/abook.git"},
    {"remote": "/srv/git/other", "configured": "https://github.com/someone/abook"},
], ids=["remote", "configuration"])
def test_with_an_address_a_page_can_be_opened_on_binder(built_page, known):
    page = built_page(**known)
    assert BINDER in page
    assert 'href="https://github.com/someone/abook"' in page


@pytest.mark.parametrize("remote", [None, "/srv/git/abook"])
def test_without_an_address_no_button_is_left_behind(built_page, remote):
    page = built_page(remote)
    assert "binder" not in page.lower()
    assert "fa-rocket" not in page and "repository" not in page.lower()
