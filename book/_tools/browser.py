"""Find a Chromium to test with, or install one.

Debian's Chromium, Chrome, or Playwright's own: the first that runs is taken.
Plain Python, since the set-up script imports it before anything is installed.
"""
import os
import shutil
import subprocess
import sys

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
ASK_PLAYWRIGHT = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
)
MISSING = (
    "No Chromium or Chrome was found. Install one:\n"
    "  Debian:       apt-get install chromium\n"
    "  otherwise:    .venv/bin/playwright install --with-deps chromium"
)


def runs(path):
    """Ubuntu's chromium package is a stub that only asks for snap: try it."""
    try:
        return subprocess.call([path, "--version"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def playwrights(python):
    """Where the Playwright of this Python keeps its browser, on any system."""
    try:
        answer = subprocess.check_output([python, "-c", ASK_PLAYWRIGHT], stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.decode().strip()


def find(python=sys.executable):
    """The path of a browser that runs, or None."""
    for path in filter(None, map(shutil.which, NAMES)):
        if runs(path):
            return path
    own = playwrights(python)
    return own if own and runs(own) else None


def under_ci():
    """Is this CI? Services set CI to true or to 1."""
    return os.environ.get("CI", "").strip().lower() not in ("", "0", "false")


def install(python):
    """Debian's package where apt-get may be used, else Playwright's download."""
    if os.getuid() == 0 and shutil.which("apt-get"):
        subprocess.call(["apt-get", "update", "-qq"])
        subprocess.call(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-qq", "-y", "chromium"])
    if not find(python):
        subprocess.call([python, "-m", "playwright", "install", "chromium"])


def require(python):
    """Install a browser when there is none, and say plainly when that fails."""
    if not find(python):
        print("No browser yet: installing one for the tests.", flush=True)
        install(python)
    if not find(python):
        sys.stderr.write(MISSING + "\nWithout one the browser tests are skipped"
                         " (under CI they fail).\n")
