"""Does anything that is said of real tokens depend on what fills the rest of the batch?"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.parts import find
from oneblock.checks.probes import Run, apart, batch, copied, roughened, rounding, rows, steady_runs
from oneblock.checks.subject import Call, Subject
from oneblock.masks import masked_mean
from oneblock.padding import padding_invariance, refill

CLASSES = 5
SHARP = 1000.0
"""Times W_Q and W_K: the scores grow a millionfold. No block that masks with −∞, or the dtype's least number, notices."""


def padding_leak(subject: Subject) -> Finding:
    """Other padding, more of it, none of it: real rows and the logits of a text stay."""
    if not subject.takes_mask or subject.L:
        return not_applicable("padding_leak")
    rough = roughened(subject)
    x, valid_tokens = (given := batch(rough)).x, given.valid_tokens
    measured: dict[str, float] = {}
    for what, one in {"positions": rough, "logits": replace(rough, call=subject.logits or _logits(subject))}.items():
        for mode, run in steady_runs(one).items():
            measured |= {f"{mode}, {what}: {name}": move for name, move in _moves(run, x, valid_tokens)}
    if not measured:
        return not_applicable("padding_leak")
    measured |= {f"{mode}, sharp scores": move for mode, move in _sharp(rough, x, valid_tokens)}
    return judged("padding_leak", measured, rounding(x.dtype))


def _moves(run: Run, x: Tensor, valid_tokens: Tensor) -> Iterator[tuple[str, float]]:
    """How far real numbers move, relative to the largest; an inverted mask leaves a full text nothing to read: NaN."""
    y = run(x, valid_tokens)
    real = y[valid_tokens[:, : y.shape[1]]] if y.ndim > 2 else y
    if not real.isfinite().all():
        yield "not finite", torch.inf
        return
    found = padding_invariance(run, x, valid_tokens)
    for name, move in {**found.refilled, **found.resized}.items():
        yield name, move / real.abs().max().item()


def _sharp(subject: Subject, x: Tensor, valid_tokens: Tensor) -> Iterator[tuple[str, float]]:
    """How far real rows move with other padding where scores are large: a fill that is not −∞ gives way there."""
    sharp = copied(subject)
    found = find(sharp)
    last = {id(value) for name in found.attention_last for value in sharp.block.get_submodule(name).parameters()}
    with torch.no_grad():
        for name in found.attention_inside:
            for value in sharp.block.get_submodule(name).parameters():
                value *= 1.0 if id(value) in last else SHARP
    noise = rows(subject, seed=14)
    for mode, run in steady_runs(sharp).items():
        y, other = run(x, valid_tokens), run(refill(x, valid_tokens, noise), valid_tokens)
        real = valid_tokens[:, : y.shape[1]]
        yield mode, apart(y[real], other[real])


def _logits(subject: Subject) -> Call:
    """Those of a masked mean and a fixed linear head."""
    draw = torch.Generator().manual_seed(4)
    head = torch.randn(CLASSES, subject.D, generator=draw, dtype=torch.float64)

    def logits(block: nn.Module, x: Tensor, valid_tokens: Tensor) -> Tensor:
        rows = subject.of(block)(x, valid_tokens)
        kept = valid_tokens[:, : rows.shape[1]]  # some blocks leave out the positions behind the longest text
        return masked_mean(rows, kept) @ head.to(x).T

    return logits
