"""How does the gradient fare on its way down a stack of such blocks, beside a stack known to be right?"""

from collections.abc import Sequence
from copy import deepcopy
from math import inf, isfinite, log10

import torch
from torch import Tensor, nn

from oneblock.blocks import Parts, PostNorm, PreNorm
from oneblock.checks.finding import Finding, judged
from oneblock.checks.parts import find
from oneblock.checks.probes import quiet, rows, seed_all
from oneblock.checks.subject import Subject, subject_of
from oneblock.checks.sublayers import BRANCH, order_of

K = 16
FACTOR = 30.0
"""Blocks that are right came within 3.8, over 20 seeds and five other ways to draw the first values, those of other packages
within 6, and BERT's layer, at a width of 24 only, within 9.9 over 60 seeds. Where the skip carries no gradient it was
800,000 and more, at widths from 8 to 64. Without any sum it was 2 to 400: norms keep the gradient up."""


class BranchNorm(Parts):
    """``U = X + LN₁(MHA(X))``, ``Y = U + LN₂(FFN(U))``: each branch adds a row of unit size, and gradients grow by it."""

    def forward(self, x: Tensor, valid_tokens: Tensor | None = None) -> Tensor:
        u = x + self.first_norm(self.attend(x, valid_tokens))
        return u + self.second_norm(self.process(u))


def depth_gradient(subject: Subject) -> Finding:
    """The gradient norm at each layer's input over that at the last one's, against Pre-LN and Post-LN of the same size.

    The layers are copies whose matrices are shifted within themselves: independent, with the same first values.
    """
    own = profile(_layers(quiet(subject)))
    kinds = (BranchNorm,) if order_of(subject) == BRANCH else (PreNorm, PostNorm)
    references = {kind.__name__: _reference(subject, kind) for kind in kinds}
    factors = {name: _farthest(own, reference) for name, reference in references.items()}
    name = min(factors, key=factors.get)
    note = f"first to last: {own[0]:.3g}, {name}: {references[name][0]:.3g}"
    return judged("depth_gradient", {f"factor to {name}": factors[name]}, FACTOR, note)


def profile(layers: Sequence[Subject]) -> list[float]:
    """``‖∂ Σ P ⊙ y / ∂x_k‖`` at each layer's input, over that at the last one's."""
    inputs, x = [], rows(layers[0], seed=6).requires_grad_()
    with torch.enable_grad():
        for layer in layers:
            inputs.append(x)
            seed_all(0)
            x = layer(x)
    if not x.requires_grad:
        return [inf] * len(layers)
    slopes = torch.autograd.grad((rows(layers[0], seed=7) * x).sum(), inputs, materialize_grads=True, allow_unused=True)
    norms = [slope.norm().item() for slope in slopes]
    return [norm / norms[-1] if norms[-1] else inf for norm in norms]


def _layers(subject: Subject) -> list[Subject]:
    draw = torch.Generator().manual_seed(8)
    layers = [subject.of(deepcopy(subject.block)) for _ in range(K)]
    with torch.no_grad():
        for layer in layers[1:]:
            for parameter in layer.block.parameters():
                if parameter.ndim > 1:
                    parameter.copy_(_shifted(parameter, draw))
    return layers


def _shifted(parameter: Tensor, draw: torch.Generator) -> Tensor:
    places = int(torch.randint(parameter.numel(), (), generator=draw))
    return parameter.flatten().roll(places).view_as(parameter)


def _reference(subject: Subject, kind: type[nn.Module]) -> list[float]:
    found = find(subject)
    F = max((subject.block.get_submodule(name).weight.numel() // subject.D for name in found.ffn_first), default=4 * subject.D)
    H = subject.heads if subject.heads and subject.D % subject.heads == 0 else 1
    seed_all(9)
    layers = [subject_of(kind(subject.D, H, F).to(subject.like)) for _ in range(K)]
    return profile(layers)


def _farthest(own: list[float], reference: list[float]) -> float:
    """The largest factor between two profiles, either way."""
    if not all(isfinite(norm) and norm > 0 for norm in own):
        return inf
    return 10 ** max(abs(log10(mine / due)) for mine, due in zip(own, reference, strict=True))
