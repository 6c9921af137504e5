"""Does the block compute in the dtype it is given?"""

import torch

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.operations import operations
from oneblock.checks.probes import all_runs, apart, copied, quiet, roughened, rounding, rows
from oneblock.checks.subject import Subject

HALF = (torch.float16, torch.bfloat16)


def dtypes(subject: Subject) -> Finding:
    """In float32 and float64 the rows come back in the dtype of ``x``, the two agree, and nothing is halved on the way."""
    if subject.like.device.type == "mps":
        return not_applicable("dtypes")
    narrow = roughened(subject)
    narrow.block.float()
    wide = copied(narrow)
    wide.block.double()  # the very same numbers in both
    x, still = rows(narrow), quiet(narrow)
    halved = [operation for operation in operations(lambda: still(x)) if operation.dtype in HALF]
    measured = {"operations in half precision": float(len(halved))}
    for (mode, run), other in zip(all_runs(wide).items(), all_runs(narrow).values(), strict=True):
        y, short = run(x.double()), other(x)
        measured[f"{mode}: other dtype"] = float((y.dtype, short.dtype) != (torch.float64, torch.float32))
        measured[f"{mode}: float32 against float64"] = apart(y, short) if run(x.double(), seed=1).equal(y) else 0.0
    return judged("dtypes", measured, rounding(torch.float32))
