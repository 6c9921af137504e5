"""Does the block compute in the dtype it is given?"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # torch has no public way to see each operation

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.probes import all_runs, apart, copied, quiet, roughened, rounding, rows
from oneblock.checks.subject import Subject

HALF = (torch.float16, torch.bfloat16)


class _Halves(TorchDispatchMode):
    """Counts the operations that give half precision."""

    count = 0

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> object:
        result = func(*args, **(kwargs or {}))
        self.count += isinstance(result, Tensor) and result.dtype in HALF
        return result


def dtypes(subject: Subject) -> Finding:
    """In float32 and float64 the rows come back in the dtype of ``x``, the two agree, and nothing is halved on the way."""
    if subject.like.device.type == "mps":
        return not_applicable("dtypes")
    narrow = roughened(subject)
    narrow.block.float()
    wide = copied(narrow)
    wide.block.double()  # the very same numbers in both
    x, measured = rows(narrow), {"operations in half precision": float(_halved(narrow))}
    for (mode, run), other in zip(all_runs(wide).items(), all_runs(narrow).values(), strict=True):
        y, short = run(x.double()), other(x)
        measured[f"{mode}: other dtype"] = float((y.dtype, short.dtype) != (torch.float64, torch.float32))
        measured[f"{mode}: float32 against float64"] = apart(y, short) if run(x.double(), seed=1).equal(y) else 0.0
    return judged("dtypes", measured, rounding(torch.float32))


def _halved(subject: Subject) -> int:
    still, x = quiet(subject), rows(subject)
    with _Halves() as seen:
        still(x)
    return seen.count
