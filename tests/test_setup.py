"""The set-up script installs no more than needed, and says plainly what is missing."""
import ast
import socket
import subprocess
import sys
from pathlib import Path

import browser
import pytest
import serve
import setup

TOOLS = Path(__file__).parents[1] / "book" / "_tools"


def empty_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


def executable(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", ["setup.py", "browser.py"])
def test_an_old_python_can_read_the_script(name):
    ast.parse((TOOLS / name).read_text(), feature_version=(3, 4))


def test_an_old_python_hands_over_to_a_newer_one(monkeypatch, tmp_path):
    empty_path(monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    newer = executable(tmp_path / "python3.12", "exit 0")
    assert setup.find_python() == newer


def test_a_machine_with_only_an_old_python_is_told(monkeypatch, tmp_path):
    empty_path(monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"Python 3\.11 or newer is needed; python3 here is 3\.9"):
        setup.find_python()


def test_a_missing_venv_module_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(setup, "PYTHON", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match="no venv module.*apt-get install python3-venv"):
        setup.make_venv(executable(tmp_path / "python3", "exit 1"))


def test_a_taken_port_is_told_before_anything_is_built(monkeypatch):
    monkeypatch.setattr(serve.build, "main", lambda: pytest.fail("built first"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match=f"Port {port} .*make book PORT={serve.another(port)}"):
            serve.main(str(port))


def test_a_failed_build_is_not_served(monkeypatch):
    monkeypatch.setattr(serve.build, "main", lambda: "the builder's words")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SystemExit, match="the builder's words"):
        serve.main(str(port))


@pytest.mark.parametrize("text", ["abc", "", "0", "-1", "65536", "70000", "80.5"])
def test_what_is_no_port_is_told(text):
    with pytest.raises(SystemExit, match=f"PORT is a whole number from 1 to 65535, not '{text}'"):
        serve.port_of(text)


@pytest.mark.parametrize("port, suggested", [(1, 8000), (80, 8000), (1023, 8000), (1024, 1025), (8000, 8001), (65534, 65535), (65535, 8000)])
def test_the_port_suggested_instead_is_one_that_anybody_may_take(port, suggested):
    assert serve.port_of(str(port)) == port
    assert serve.another(port) == suggested


def recipe(target, *settings):
    """What `make` would run for a target."""
    command = ["make", "--dry-run", "-C", str(TOOLS.parents[1]), target, *settings]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_make_book_leaves_the_build_to_what_holds_the_port():
    assert 'serve.py "9000"' in recipe("book", "PORT=9000")
    assert 'serve.py ""' in recipe("book", "PORT=")
    assert "build.py" not in recipe("book")


@pytest.mark.parametrize("value, due", [(None, False), ("", False), ("0", False), ("false", False), ("False", False), ("1", True), ("true", True), ("yes", True)])
def test_ci_is_known_by_any_value_but_a_no(monkeypatch, value, due):
    monkeypatch.delenv("CI", raising=False)
    if value is not None:
        monkeypatch.setenv("CI", value)
    assert browser.under_ci() is due


def test_a_missing_browser_is_told(monkeypatch, tmp_path, capsys):
    empty_path(monkeypatch, tmp_path)
    monkeypatch.setattr(browser, "install", lambda python: None)
    browser.require("python3")
    assert "No Chromium or Chrome was found" in capsys.readouterr().err


def test_a_browser_that_does_not_run_is_passed_over(monkeypatch, tmp_path):
    empty_path(monkeypatch, tmp_path)
    executable(tmp_path / "chromium", "exit 1")
    works = executable(tmp_path / "google-chrome", "exit 0")
    assert browser.find() == works


def test_playwright_is_asked_where_its_own_browser_is(monkeypatch, tmp_path):
    empty_path(monkeypatch, tmp_path)
    own = executable(tmp_path / "Chromium for Testing", "exit 0")
    python = executable(tmp_path / "python", f'echo "{own}"')
    assert browser.find(python) == own
    assert browser.find(executable(tmp_path / "bare", "exit 1")) is None


def test_a_browser_that_playwright_has_yet_to_download_is_none(monkeypatch, tmp_path):
    empty_path(monkeypatch, tmp_path)
    assert str(tmp_path) in browser.playwrights(sys.executable)
    assert browser.find(sys.executable) is None


@pytest.fixture
def project(monkeypatch, tmp_path):
    """A project whose Python only writes down what it is asked to install."""
    for name in [*setup.INSTALL_FILES, "tests/requirements.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("torch==2.13.0\n")
    log = 'case "$*" in *install*) echo "$*" >> installs;; esac'
    fake = executable(tmp_path / "python", f'cd {tmp_path}; {log}; case "$*" in $FAIL) exit 1;; esac')
    for name, value in {"ROOT": str(tmp_path), "VENV": str(tmp_path), "PYTHON": fake}.items():
        monkeypatch.setattr(setup, name, value)
    monkeypatch.setattr(setup, "has_nvidia", lambda: False)
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def installs(project):
    """What the fake Python was asked to install since the last time."""
    log = project / "installs"
    lines = log.read_text().splitlines() if log.exists() else []
    log.write_text("")
    return [line.split("install -q ")[1] for line in lines]


def test_a_second_run_installs_nothing_until_a_requirement_changes(project):
    setup.main("book")
    assert installs(project)
    setup.main("book")
    assert not installs(project)
    (project / "constraints.txt").write_text("torch==2.13.1\n")
    setup.main("book")
    assert installs(project)


def test_a_cpu_build_on_disk_is_taken_first(project):
    setup.main("book")
    assert installs(project) == ["--no-deps torch==2.13.0 --no-index", "-r requirements.txt -c constraints.txt"]


def test_the_index_of_cpu_builds_comes_next(project, monkeypatch):
    monkeypatch.setenv("FAIL", "*--no-index*")
    setup.main("book")
    assert setup.CPU_WHEELS in installs(project)[1]


def test_the_default_build_comes_last_and_with_a_warning(project, monkeypatch, capsys):
    monkeypatch.setenv("FAIL", "*--no-deps*")
    setup.main("book")
    assert installs(project)[2] == "-r requirements.txt -c constraints.txt"
    assert "may download CUDA" in capsys.readouterr().out


def test_a_machine_with_a_gpu_gets_the_default_build(project, monkeypatch):
    monkeypatch.setattr(setup, "has_nvidia", lambda: True)
    setup.main("book")
    assert installs(project) == ["-r requirements.txt -c constraints.txt"]


def test_a_failed_install_stops_and_is_tried_again(project, monkeypatch):
    monkeypatch.setenv("FAIL", "*-r requirements.txt*")
    with pytest.raises(SystemExit, match="This step failed"):
        setup.main("book")
    monkeypatch.delenv("FAIL")
    installs(project)
    setup.main("book")
    assert installs(project)
