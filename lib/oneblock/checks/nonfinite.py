"""Do extreme rows stay finite, and does a NaN stay in its own text?"""

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.checks.finding import Finding, judged
from oneblock.checks.probes import Run, all_runs, each_mode, roughened, rows, seed_all
from oneblock.checks.subject import Subject
from oneblock.errors import ArgumentError

LARGE = 1e4


def nonfinite(subject: Subject) -> Finding:
    """Zeros, constant and large rows give finite rows and gradients; NaN and infinity in one text touch no other.

    A block that refuses what is not finite passes the second claim. Counted are the numbers that are not finite.
    """
    rough = roughened(subject)
    x = rows(rough)
    extremes = {"zeros": 0 * x, "constant rows": torch.full_like(x, 3.0), "large rows": LARGE * x}

    def counts(run: Run) -> Iterator[tuple[str, float]]:
        for name, extreme in extremes.items():
            yield name, float((~run(extreme).isfinite()).sum())
        for odd in (torch.nan, torch.inf):
            yield f"{odd} in another text", _spread(run, x, odd)

    slopes = {f"gradient at {name}": _bad_slopes(rough, extreme) for name, extreme in extremes.items()}
    return judged("nonfinite", each_mode(all_runs(rough), counts) | slopes, 0.0)


def _spread(run: Run, x: Tensor, odd: float) -> float:
    spoilt = x.clone()
    spoilt[0, 1, 0] = odd
    try:
        return float((~run(spoilt)[1:].isfinite()).sum())
    except (ArgumentError, ValueError):
        return 0.0


def _bad_slopes(subject: Subject, x: Tensor) -> float:
    at, P = x.clone().requires_grad_(), rows(subject, seed=13)
    seed_all(0)
    with torch.enable_grad():
        y = subject(at)
    if not y.requires_grad:
        return 0.0
    return float((~torch.autograd.grad((P * y).sum(), at, materialize_grads=True)[0].isfinite()).sum())
