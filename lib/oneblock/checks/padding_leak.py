"""Does anything that is said of real tokens depend on what fills the rest of the batch?"""

from collections.abc import Callable

import torch
from torch import Tensor

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.probes import Run, batch, roughened, rounding, steady_runs
from oneblock.checks.subject import Subject
from oneblock.masks import masked_mean
from oneblock.padding import padding_invariance

CLASSES = 5


def padding_leak(subject: Subject) -> Finding:
    """Other padding, more of it, none of it: real rows and the logits of a text stay."""
    if not subject.takes_mask or subject.L:
        return not_applicable("padding_leak")
    rough = roughened(subject)
    x, valid_tokens = (given := batch(rough)).x, given.valid_tokens
    measured: dict[str, float] = {}
    for mode, run in steady_runs(rough).items():
        for what, f in {"positions": run, "logits": _logits(subject, run)}.items():
            found = padding_invariance(f, x, valid_tokens)
            size = f(x, valid_tokens)[valid_tokens].abs().max() if what == "positions" else f(x, valid_tokens).abs().max()
            moves = {**found.refilled, **found.resized}
            measured |= {f"{mode}, {what}: {name}": move / size.item() for name, move in moves.items()}
    if not measured:
        return not_applicable("padding_leak")
    return judged("padding_leak", measured, rounding(x.dtype))


def _logits(subject: Subject, run: Run) -> Callable[[Tensor, Tensor], Tensor]:
    """The subject's own logits, or those of a masked mean and a fixed linear head."""
    if subject.logits is not None:
        return lambda x, valid_tokens: subject.logits(run.args[0].block, x, valid_tokens)
    draw = torch.Generator().manual_seed(4)
    head = torch.randn(CLASSES, subject.D, generator=draw, dtype=torch.float64)

    def logits(x: Tensor, valid_tokens: Tensor) -> Tensor:
        y = run(x, valid_tokens)
        full = torch.zeros_like(x)
        full[:, : y.shape[1]] = y  # some blocks leave out the positions behind the longest text
        return masked_mean(full, valid_tokens) @ head.to(x).T

    return logits
