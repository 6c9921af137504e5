"""Does each norm measure one row of D features, by the formula that its name says?"""

import re
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor, nn

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.parts import find
from oneblock.checks.probes import apart, roughened, rounding, rows
from oneblock.checks.subject import Subject

SPOKEN = re.compile(r"layer_?norm|rms_?norm", re.I)
SIZES = {"ordinary rows": 1.0, "small rows": 1e-2}


def norm_axes(subject: Subject) -> Finding:
    """A row's result stays when the other rows are replaced; a LayerNorm or RMSNorm is the nearest of the two formulas."""
    rough = roughened(subject)
    rough.block.train()
    names = find(rough).norms
    x, other = rows(rough), rows(rough, seed=1)
    measured = {}
    with torch.no_grad():
        for name in names:
            norm = rough.block.get_submodule(name)
            measured |= {f"{name}, {what}": gap for what, gap in _gaps(norm, x, other)}
    return judged("norm_axes", measured, rounding(x.dtype)) if measured else not_applicable("norm_axes")


def _gaps(norm: nn.Module, x: Tensor, other: Tensor) -> Iterator[tuple[str, float]]:
    try:
        y, changed = norm(x), other.clone()
        changed[0, 0] = x[0, 0]
        yield "other rows replaced", apart(y[0, 0], norm(changed)[0, 0])
        yield "one row alone", apart(y[:1, :1], norm(x[:1, :1]))
    except (RuntimeError, ValueError):  # made for one length or another axis
        yield "refuses [N, L, D]", torch.inf
        return
    if SPOKEN.search(type(norm).__name__):
        for name, size in SIZES.items():
            yield f"formula, {name}", min(apart(due, norm(size * x)) for due in _formulas(norm, size * x))


def _formulas(norm: nn.Module, x: Tensor) -> Iterator[Tensor]:
    """LayerNorm and RMSNorm by the norm's own γ, β and ε, in float64; γ may be stored as its distance from 1."""
    wide = x.double()
    gammas, betas = _vectors(norm)
    for row, eps in product((wide - wide.mean(-1, keepdim=True), wide), _epsilons(norm, x)):
        scaled = row / (row.square().mean(-1, keepdim=True) + eps).sqrt()
        for gamma, beta in product(gammas, betas):
            for factor in (gamma, 1 + gamma):
                yield (scaled * factor + beta).to(x.dtype)


def _vectors(norm: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """What may be γ, and what may be β: by their names in torch, or each vector of a norm that has others."""
    none, own = torch.zeros((), dtype=torch.float64), {name: value.double() for name, value in norm.named_parameters()}
    if not own.keys() <= {"weight", "bias"}:
        return [*own.values()], [none, *own.values()]
    return [own.get("weight", none)], [own.get("bias", none)]


def _epsilons(norm: nn.Module, x: Tensor) -> list[float]:
    """ε under one of its names; without one that of ``nn.RMSNorm``, or none at all."""
    named = (getattr(part, name, None) for part in norm.modules() for name in ("eps", "variance_epsilon", "epsilon"))
    eps = next((value for value in named if value is not None), None)
    return [torch.finfo(x.dtype).eps, 0.0] if eps is None else [eps]
