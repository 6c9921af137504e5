"""Who reads whom: over the batch, over the positions, with and without attention."""

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.checks.bench import switch_off
from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.parts import find
from oneblock.checks.probes import Run, apart, batch, each_mode, others, roughened, rounding, rows, steady_runs
from oneblock.checks.subject import Subject


def batch_independence(subject: Subject) -> Finding:
    """A text's rows stay when the other texts are replaced, and when there are none."""
    rough = roughened(subject)
    x, other = rows(rough), rows(rough, seed=1)

    def moves(run: Run) -> Iterator[tuple[str, float]]:
        y = run(x)
        for n in range(len(x)):
            changed = other.clone()
            changed[n] = x[n]
            yield f"text {n}, others replaced", apart(y[n], run(changed)[n])
            yield f"text {n}, alone", apart(y[n : n + 1], run(x[n : n + 1]))

    return _judged("batch_independence", rough, moves)


def permutation_equivariance(subject: Subject) -> Finding:
    """Without positions, tokens in another order give the same rows in that order; real and padding tokens alike."""
    if subject.causal or subject.positions:
        return not_applicable("permutation_equivariance")
    rough = roughened(subject)
    given, order = batch(rough), torch.randperm(len(rows(rough)[0]), generator=torch.Generator().manual_seed(0))
    real = given.valid_tokens if subject.takes_mask else torch.ones_like(given.valid_tokens)

    def moves(run: Run) -> Iterator[tuple[str, float]]:
        y, moved = run(given.x, real), run(given.x[:, order], real[:, order])
        L = min(y.shape[1], moved.shape[1])
        shown = _padded(y[:, :L], given.x)
        yield "other order", apart(shown[:, order][real[:, order]], _padded(moved, given.x)[real[:, order]])

    return _judged("permutation_equivariance", rough, moves)


def token_independence(subject: Subject) -> Finding:
    """With attention off, a position's row depends on its own input alone, and in the same way everywhere."""
    rough = roughened(subject)
    found = find(rough)
    if not found.attention_last:
        return not_applicable("token_independence")
    switch_off(rough.block, found.attention_last)
    x, other = rows(rough), rows(rough, seed=1)
    same = x[:, :1].expand_as(x).contiguous()

    def moves(run: Run) -> Iterator[tuple[str, float]]:
        y = run(x)
        for i in range(x.shape[1]):
            changed = x.clone()
            changed[:, i] = other[:, i]
            kept = others(i, x.shape[1])
            yield f"position {i} replaced", apart(y[:, kept], run(changed)[:, kept])
        if not subject.positions:
            equal = run(same)
            yield "one token everywhere", apart(equal[:, :1].expand_as(equal), equal)

    return _judged("token_independence", rough, moves)


def causality(subject: Subject) -> Finding:
    """If causal, no position reads a later one; if not, each reads every other. Counted are the pairs that are wrong."""
    rough = roughened(subject)
    x, other, noise = rows(rough), rows(rough, seed=1), rounding(rough.like.dtype)
    L = x.shape[1]
    due = torch.ones(L, L, dtype=torch.bool)
    due = due.tril() if subject.causal else due

    def moves(run: Run) -> Iterator[tuple[str, float]]:
        y, reads = run(x), torch.zeros(L, L, dtype=torch.bool)
        for j in range(L):
            changed = x.clone()
            changed[:, j] = other[:, j]
            reads[:, j] = ((run(changed) - y).abs().amax((0, 2)) > noise * y.abs().max()).cpu()
        yield "reads what it must not", float((reads & ~due).sum())
        yield "does not read what it may", float((due & ~reads).sum())

    return _judged("causality", rough, moves, threshold=0.0)


def _judged(check: str, subject: Subject, moves: object, threshold: float | None = None) -> Finding:
    runs = steady_runs(subject)
    if not runs:
        return not_applicable(check)
    return judged(check, each_mode(runs, moves), rounding(subject.like.dtype) if threshold is None else threshold)


def _padded(y: Tensor, x: Tensor) -> Tensor:
    full = torch.zeros_like(x)
    full[:, : y.shape[1]] = y
    return full
