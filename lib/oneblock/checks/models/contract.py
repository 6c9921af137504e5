"""Logits out, and only ids that there are in."""

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.checks.dtypes import HALF
from oneblock.checks.finding import Finding, crashed, judged, not_applicable
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import all_runs, answer, copied, length, longest, quiet, ragged, roughened, still, texts
from oneblock.checks.operations import operations
from oneblock.checks.probes import Run, apart, each_mode, rounding

SUMS = 1e-3


def logits_given(model: Model) -> Finding:
    """For every number of texts and every length finite ``[N, C]``, one row a text, and no probabilities; the ids stay.

    Counted are the sizes at which it is not so. Rows of positive numbers that sum to 1 are probabilities.
    """
    sizes = [(N, L) for N in (1, 3) for L in sorted({1, length(model), longest(model)})]

    def wrong(run: Run) -> Iterator[tuple[str, float]]:
        C = model.C or run(texts(model)).shape[-1]
        for N, L in sizes:
            logits = run(texts(model, (L,) * N))
            fits = logits.shape == (N, C) and logits.is_floating_point()
            yield f"N={N}, L={L}", float(not (fits and logits.isfinite().all()))
        yield "rows that are probabilities", float(_shares(run(texts(model, ragged(model)))))

    measured = each_mode(all_runs(roughened(model)), wrong)
    return judged("logits_given", measured | {"ids written to": float(_writes(copied(model)))}, 0.0)


def ids_refused(model: Model) -> Finding:
    """An id below 0 or above V − 1 is no token: the model raises. So it does for a text longer than L, where L is given."""
    unknown, L = still(model), length(model)
    if unknown.like.device.type != "cpu":
        unknown = unknown.of(unknown.model.cpu())  # elsewhere such an id ends the process
    measured = {}
    for odd in {-1, model.V} - {model.padding}:
        token_ids = texts(unknown, (L, L))
        token_ids[1, -1] = odd
        measured[f"id {odd} taken"] = float(_takes(unknown, token_ids))
    if model.L:
        measured[f"{model.L + 1} tokens taken"] = float(_takes(unknown, texts(unknown, (model.L + 1,))))
    return judged("ids_refused", measured, 0.0)


def logits_dtype(model: Model) -> Finding:
    """Brought to float64, all of it computes in float64, the logits agree with those in float32, and nothing is halved."""
    if model.like.device.type == "mps":
        return not_applicable("logits_dtype")
    narrow = quiet(roughened(model))
    narrow.model.float()
    wide, token_ids = copied(narrow), texts(model, ragged(model))
    wide.model.double()
    logits = answer(narrow, True, token_ids)
    try:
        due = answer(wide, True, token_ids)
    except Exception as error:  # a part stayed behind in float32
        return judged("logits_dtype", {"refuses float64": torch.inf}, rounding(torch.float32), crashed("logits_dtype", error).note)
    halved = [one for one in operations(lambda: narrow(token_ids)) if one.dtype in HALF]
    measured = {"operations in half precision": float(len(halved))}
    measured |= {"other dtype": float((logits.dtype, due.dtype) != (torch.float32, torch.float64))}
    return judged("logits_dtype", measured | {"float32 against float64": apart(due, logits)}, rounding(torch.float32))


def _shares(logits: Tensor) -> bool:
    """Whether each row is a share of 1 for more than one class."""
    return logits.shape[-1] > 1 and bool((logits > 0).all()) and bool(((logits.sum(-1) - 1).abs() < SUMS).all())


def _writes(model: Model) -> bool:
    token_ids = texts(model, ragged(model))
    given = token_ids.clone()
    with torch.no_grad():
        model.call(model.model, given, given != model.padding)
    return not torch.equal(given, token_ids)


def _takes(model: Model, token_ids: Tensor) -> bool:
    try:
        answer(model, False, token_ids)
    except Exception:
        return False
    return True
