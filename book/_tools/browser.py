"""Find a Chromium to test with, or install one.

Debian's Chromium, Chrome, or Playwright's own: the first that runs is taken.
Plain Python, since the set-up script imports it before anything is installed.
"""
import glob
import os
import shutil
import subprocess
import sys

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
PLAYWRIGHT_CACHE = "~/.cache/ms-playwright/chromium-*/chrome-linux*/chrome"
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


def find():
    """The path of a browser that runs, or None."""
    named = [path for path in map(shutil.which, NAMES) if path]
    own = sorted(glob.glob(os.path.expanduser(PLAYWRIGHT_CACHE)))
    return next(filter(runs, named + own), None)


def install(python):
    """Debian's package where apt-get may be used, else Playwright's download."""
    if os.getuid() == 0 and shutil.which("apt-get"):
        subprocess.call(["apt-get", "update", "-qq"])
        subprocess.call(["apt-get", "install", "-qq", "-y", "chromium"])
    if not find():
        subprocess.call([python, "-m", "playwright", "install", "chromium"])


def require(python):
    """Install a browser when there is none, and say plainly when that fails."""
    if not find():
        print("No browser yet: installing one for the tests.", flush=True)
        install(python)
    if not find():
        sys.stderr.write(MISSING + "\nWithout one the browser tests are skipped"
                         " (under CI they fail).\n")
