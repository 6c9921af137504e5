"""Does the gradient reach everything, and is it the slope of what the forward pass computes?"""

import re

import torch
from torch import Tensor

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.probes import quiet, roughened, rows, seed_all
from oneblock.checks.subject import Subject

STEP, AGREES = 1e-3, 0.02
"""A step at which a norm that computes in float32, as many do on purpose, costs 1e-4; kinks of ReLU cost 1e-3."""
BATCHES = 3
KEY_BIAS = re.compile(r"(^|[._])k(ey)?(_?(proj|lin|linear|layer))?\.bias$|\bW_?[kK]\.bias$")
"""softmax does not see what is added to all scores of a row: the bias of the keys has no gradient in any attention."""


def gradient_reach(subject: Subject) -> Finding:
    """Every parameter, and the input, gets a gradient from a random projection of the rows."""
    learner = quiet(roughened(subject))
    parameters = {name: value.requires_grad_() for name, value in learner.block.named_parameters() if value.is_floating_point()}
    reached = {name: False for name in ("x", *parameters)}
    for seed in range(BATCHES):
        for name, slope in _slopes(learner, parameters, seed).items():
            reached[name] |= bool(slope.any())
    missed = [name for name, any_slope in reached.items() if not any_slope and not KEY_BIAS.search(name)]
    return judged("gradient_reach", {"without a gradient": float(len(missed))}, 0.0, ", ".join(missed))


def gradient_agrees(subject: Subject) -> Finding:
    """The derivative that autograd gives, in one random direction, is that of finite differences, in float64."""
    if subject.like.device.type == "mps":
        return not_applicable("gradient_agrees")
    wide = quiet(roughened(subject))
    wide = wide.of(wide.block.double())
    x, P = rows(wide, seed=10), rows(wide, seed=11)
    slope = _slopes(wide, {}, 10)["x"]
    return judged("gradient_agrees", {"x, one direction": _gap(wide, x, P, slope)}, AGREES)


def _gap(subject: Subject, x: Tensor, P: Tensor, slope: Tensor) -> float:
    """Along P itself, where a skip that autograd does not see weighs most."""
    with torch.no_grad():
        ahead, behind = (_projected(subject, x + sign * STEP * P, P) for sign in (1, -1))
    due, came = (ahead - behind) / (2 * STEP), (slope * P).sum()
    size = torch.stack([due.abs(), came.abs(), slope.norm() * P.norm() / 10]).max()
    return ((came - due).abs() / size).nan_to_num(nan=torch.inf).item() if size else 0.0


def _projected(subject: Subject, x: Tensor, P: Tensor) -> Tensor:
    seed_all(0)
    return (P * subject(x)).sum()


def _slopes(subject: Subject, parameters: dict[str, Tensor], seed: int) -> dict[str, Tensor]:
    x, P = rows(subject, seed=seed).requires_grad_(), rows(subject, seed=seed + 1)
    with torch.enable_grad():
        loss = _projected(subject, x, P)
    if not loss.requires_grad:
        return {"x": torch.zeros_like(x)}
    inputs = {"x": x, **parameters}
    slopes = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(inputs, slopes, strict=True))
