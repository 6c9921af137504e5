"""Every word a reader sees in a figure, one file a language; none of it stands in the code."""

import tomllib
from functools import cache
from importlib.resources import files


@cache
def words(language: str = "en") -> dict:
    """The catalogue of a language: ``ui``, ``steps``, ``misreadings``."""
    return tomllib.loads(files(__package__).joinpath(f"{language}.toml").read_text("utf-8"))
