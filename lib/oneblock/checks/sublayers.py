"""Where do the sums and the norms stand? Each sublayer is switched off in turn, and the rest must be what the order says."""

import torch
from torch import Tensor

from oneblock.checks.bench import switch_off
from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.found import Found
from oneblock.checks.parts import find
from oneblock.checks.probes import apart, copied, quiet, roughened, rounding, rows, seed_all
from oneblock.checks.subject import Subject

PRE, POST, BRANCH = "Pre-LN", "Post-LN", "norm after each branch"


def sublayers_off(subject: Subject) -> Finding:
    """Both branches off, Pre-LN is ``y = x`` and Post-LN ``y = LN₂(LN₁(x))``; then one of them is off.

    Of Pre-LN the gradient is the identity, too, and one branch alone is added: twice its last map moves ``y`` twice as
    far. Where a norm closes each branch, as in Swin V2 or OLMo 2, ``y = x + β₁ + β₂``, and what is added is that norm's
    row. Of Post-LN each norm closes its sum: put a fixed row in its place, and nothing before it is to be seen.
    """
    rough = quiet(roughened(subject))
    found, x = find(rough), rows(subject)
    if not found.has_branches:
        return not_applicable("sublayers_off")
    distance = _orders(rough, found, x)
    order = min(distance, key=distance.get)
    measured = {f"{order}, both off": distance[order]}
    if distance[order] <= rounding(x.dtype):
        measured |= _post_claims(rough, found, x) if order == POST else _pre_claims(rough, found, x)
    return judged("sublayers_off", measured, rounding(x.dtype), f"nearest: {order}")


def order_of(subject: Subject) -> str | None:
    """``"Pre-LN"``, ``"Post-LN"``, ``"norm after each branch"``, or ``None`` where it is none of them or cannot be told."""
    rough = quiet(roughened(subject))
    found, x = find(rough), rows(subject)
    if not found.has_branches:
        return None
    distance = _orders(rough, found, x)
    order = min(distance, key=distance.get)
    return order if distance[order] <= rounding(x.dtype) else None


def added(subject: Subject, off: tuple[str, ...], x: Tensor) -> Tensor:
    """``y − x`` with the branch that ends in ``off`` switched off: what the other adds to a Pre-LN block's input."""
    return _without(subject, off, x) - x


def _without(subject: Subject, off: tuple[str, ...], x: Tensor) -> Tensor:
    silent = copied(subject)
    switch_off(silent.block, off)
    seed_all(0)
    return silent(x).detach()


def _orders(subject: Subject, found: Found, x: Tensor) -> dict[str, float]:
    """How far the block, both branches off, is from the identity, and from its two norms one after the other.

    Norms that close the branches leave their β when these are off, the same row everywhere; RMSNorm leaves none.
    """
    y = _without(subject, (*found.attention_last, *found.ffn_last), x)
    shifted = apart(x + (y - x).mean((0, 1)), y)
    if shifted <= rounding(x.dtype) and any(_closed(subject, found, off, x) for off in (found.ffn_last, found.attention_last)):
        return {BRANCH: shifted}
    norms = [subject.block.get_submodule(name) for name in found.norms]
    if len(norms) != 2:
        return {PRE: apart(x, y)}
    with torch.no_grad():
        return {PRE: apart(x, y), POST: min(apart(last(first(x)), y) for first, last in (norms, norms[::-1]))}


def _pre_claims(subject: Subject, found: Found, x: Tensor) -> dict[str, float]:
    claims = {"gradient of both off": _gradient_gap(subject, found, x)}
    neither = _without(subject, (*found.attention_last, *found.ffn_last), x)
    for name, on, off in (
        ("attention alone", found.attention_last, found.ffn_last),
        ("FFN alone", found.ffn_last, found.attention_last),
    ):
        if len(on) == 1 and not _closed(subject, found, off, x):
            once, twice = _without(subject, off, x), _without(_scaled(subject, on[0]), off, x)
            claims[f"{name}, doubled"] = apart(2 * once - neither, twice)
    return claims


def _closed(subject: Subject, found: Found, off: tuple[str, ...], x: Tensor) -> bool:
    """Whether a norm ends the branch that is on: a fixed row in the place of that norm is what the branch adds."""
    row = _row(subject, x)
    gaps = (
        apart(_without(_fixed(subject, name, 0 * row), off, x) + row, _without(_fixed(subject, name, row), off, x))
        for name in found.norms
    )
    return any(gap <= rounding(x.dtype) for gap in gaps)


def _post_claims(subject: Subject, found: Found, x: Tensor) -> dict[str, float]:
    """None where the norms are not called, as by a block that hands their γ and β to a function itself."""
    (first, last), row, y = _in_order(subject, found, x), _row(subject, x), _without(subject, (), x)
    if any(torch.equal(y, _without(_fixed(subject, name, row), (), x)) for name in found.norms):
        return {}
    alone = [_without(_fixed(subject, first, row), off, x) for off in (found.ffn_last, (*found.attention_last, *found.ffn_last))]
    return {
        "first norm closes the first sum": apart(alone[1], alone[0]),
        "last norm closes the last sum": apart(row.expand_as(x), _without(_fixed(subject, last, row), (), x)),
    }


def _in_order(subject: Subject, found: Found, x: Tensor) -> tuple[str, str]:
    """The two norms, the one whose fixed row is the output last."""
    row = _row(subject, x)
    gaps = {name: apart(row.expand_as(x), _without(_fixed(subject, name, row), (), x)) for name in found.norms}
    return tuple(sorted(gaps, key=gaps.get, reverse=True))


def _row(subject: Subject, x: Tensor) -> Tensor:
    return torch.linspace(-1, 1, subject.D, dtype=torch.float64).to(x)


def _fixed(subject: Subject, norm: str, row: Tensor) -> Subject:
    """A copy in which that norm gives one row, whatever comes in; it stays there for blocks that read its γ or ε."""
    changed = copied(subject)
    changed.block.get_submodule(norm).register_forward_hook(lambda _, given, y: row.expand_as(y))
    return changed


def _scaled(subject: Subject, last: str) -> Subject:
    changed = copied(subject)
    with torch.no_grad():
        for parameter in changed.block.get_submodule(last).parameters():
            parameter *= 2
    return changed


def _gradient_gap(subject: Subject, found: Found, x: Tensor) -> float:
    """A path that carries the value carries the gradient: that of ``Σ P ⊙ y`` by ``x`` is P."""
    silent, P = copied(subject), rows(subject, seed=5)
    switch_off(silent.block, (*found.attention_last, *found.ffn_last))
    at = x.clone().requires_grad_()
    with torch.enable_grad():
        y = silent(at)
    if not y.requires_grad:
        return torch.inf
    (slope,) = torch.autograd.grad((P * y).sum(), at, materialize_grads=True)
    return apart(P, slope)
