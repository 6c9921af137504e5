"""Buttons for Binder and for the repository: there when its address is known, absent otherwise."""
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import build
import pytest
import site_address

ROOT = Path(__file__).parents[2]
TOC = "format: jb-book\nroot: book/index\nchapters: [file: book/page]\n"
NOTEBOOK = '{"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Page"}],' \
           ' "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},' \
           ' "nbformat": 4, "nbformat_minor": 5}'
ADDRESS = "https://github.com/someone/abook"
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


def repository(folder, remote):
    subprocess.run(["git", "init", "-q", folder], check=True)
    if remote:
        subprocess.run(["git", "-C", folder, "remote", "add", "origin", remote], check=True)


@pytest.mark.parametrize("remote, configured, address", [
    ("git@github.com:someone/abook.git", "", ADDRESS),
    ("/srv/git/other", ADDRESS, ADDRESS),
    ("git@github.com:someone/else.git", ADDRESS, ADDRESS),
    (None, "", ""),
    ("/srv/git/abook", "", ""),
])
def test_the_address_is_the_configured_one_or_else_the_remotes(tmp_path, remote, configured, address):
    repository(tmp_path, remote)
    options = {"repository_url": configured, "launch_buttons": {"binderhub_url": "https://mybinder.org"}}
    site_address.set_buttons(SimpleNamespace(confdir=tmp_path), SimpleNamespace(html_theme_options=options))
    assert (options["repository_url"], options["use_repository_button"]) == (address, address != "")
    assert (options["launch_buttons"] != {}) == (address != "")


@pytest.fixture
def built_page(tmp_path):
    """Builds a book of one page in a repository without an address of its own; returns the page."""
    def build_with(configured):
        shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("*.ipynb", "*.md"))
        config = (ROOT / "_config.yml").read_text().replace('url: ""', f'url: "{configured}"')
        files = {"_config.yml": config, "_toc.yml": TOC, "book/index.md": "# Book\n", "book/page.ipynb": NOTEBOOK}
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        repository(tmp_path, "/srv/git/abook")
        assert build.build(tmp_path) is None
        return (tmp_path / "_build/html/book/page.html").read_text()
    return build_with


def test_with_an_address_a_page_can_be_opened_on_binder(built_page):
    page = built_page(configured=ADDRESS)
    assert BINDER in page
    assert f'href="{ADDRESS}"' in page


def test_without_an_address_no_button_is_left_behind(built_page):
    page = built_page(configured="")
    assert "binder" not in page.lower()
    assert "fa-rocket" not in page and "repository" not in page.lower()
