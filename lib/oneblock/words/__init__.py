"""Every word a reader sees in a figure, one file a language; none of it stands in the code."""

import tomllib
from functools import cache
from importlib.resources import files

from oneblock.errors import ArgumentError


def words(language: str = "en") -> dict:
    """The catalogue of a language: ``ui``, ``steps``, ``misreadings``."""
    known = sorted(path.name[:-5] for path in files(__package__).iterdir() if path.name.endswith(".toml"))
    if language not in known:
        raise ArgumentError("language", f"one of {', '.join(known)}", language)
    return _catalogue(language)


@cache
def _catalogue(language: str) -> dict:
    return tomllib.loads(files(__package__).joinpath(f"{language}.toml").read_text("utf-8"))
