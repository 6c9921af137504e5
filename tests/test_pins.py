"""A package is pinned to one version wherever it is named."""
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ["requirements.txt", "tests/requirements.txt", ".binder/requirements.txt", "constraints.txt"]
PIN = re.compile(r"^([\w-]+)==([\w.]+)(?:\+cpu)?$", re.MULTILINE)


def pins(name):
    found = PIN.findall((ROOT / name).read_text())
    return {package.lower().replace("_", "-"): version for package, version in found}


def test_every_file_pins_a_package_to_the_version_of_the_lock():
    lock = pins("constraints.txt")
    for name in FILES:
        assert pins(name).items() <= lock.items(), name


def test_each_needed_package_is_pinned():
    for name in FILES:
        lines = [line for line in (ROOT / name).read_text().splitlines() if line and line[0].isalnum()]
        assert len(lines) == len(pins(name)), name
