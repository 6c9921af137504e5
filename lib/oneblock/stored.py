"""Studies too long for a page: their records in a JSON file, beside the script in ``book/data`` that makes it.

::

    deep = load("data/depth_study.json", Summary)
    pick(deep, structure="Post-LN", init="Xavier")
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

R = TypeVar("R", bound=tuple)  # a NamedTuple
DIGITS = 3


def store(path: str | Path, made_by: str, records: Iterable[tuple]) -> None:
    """Writes the records, NamedTuples, one a line, each number with 3 significant digits."""
    lines = ",\n".join(json.dumps(_rounded(record._asdict()), ensure_ascii=False) for record in records)
    head = json.dumps({"made by": made_by, "significant digits": DIGITS})[:-1]
    Path(path).write_text(f'{head}, "records": [\n{lines}\n]}}\n', "utf-8")


def load(path: str | Path, kind: type[R]) -> list[R]:
    """The records of a file, each as a ``kind``."""
    return [kind(**fields) for fields in json.loads(Path(path).read_text("utf-8"))["records"]]


def pick(records: Iterable[R], **wanted: object) -> list[R]:
    """The records whose fields are as wanted."""
    return [one for one in records if all(getattr(one, field) == value for field, value in wanted.items())]


def _rounded(value: object) -> object:
    """Every float within, to 3 significant digits; what JSON cannot say, such as NaN, becomes null."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value
