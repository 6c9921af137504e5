"""Which parameter of a block plays which part of torch's layer, if the block has just these and no others."""

from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear

from oneblock.checks.bench import WHOLE, is_map
from oneblock.checks.found import Found
from oneblock.checks.probes import apart, rounding, rows
from oneblock.checks.subject import Subject

NAMES_OF_EPS = ("eps", "epsilon", "variance_epsilon")
USUAL_EPS = (1e-5, 1e-6, 1e-3, 1e-8, 1e-12)
SHIFT, CENTRED, SMALL = 3.0, 1e-3, 1e-2
"""A LayerNorm does not see a shift of its row, but for rounding; in small rows its ε shows."""


@dataclass(frozen=True)
class Affine:
    """``weight`` and ``bias`` of a map, zeros where it has none; of a norm γ, β and ε."""

    weight: Tensor
    bias: Tensor
    eps: float = 0.0


@dataclass(frozen=True)
class Roles:
    """The parts, and the names of the maps; ``H`` is the number of heads if the attention is one of torch's modules.

    ``qkv`` is one map to 3D, made of one or of three; which rows are q, k and v is open unless H is known.
    """

    norms: tuple[Affine, ...]
    qkv: Affine
    out: Affine
    first: Affine
    last: Affine
    projections: tuple[str, ...]
    H: int | None


def roles(subject: Subject, found: Found) -> Roles | None:
    """The parts; ``None`` if one is missing, of another kind or shape, or if the block has parameters besides."""
    block, first = subject.block, tuple(name for name in found.ffn_first if name not in found.ffn_last)
    outer = (*found.attention_last, *first, *found.ffn_last)
    if [len(names) for names in (found.norms, found.attention_last, first, found.ffn_last)] != [2, 1, 1, 1]:
        return None
    whole = tuple(name for name in found.attentions if isinstance(block.get_submodule(name), WHOLE))
    inner = whole or _projections(block, found)
    maps = [_whole(part) if isinstance(part, WHOLE) else _map(part) for part in map(block.get_submodule, (*inner, *outer))]
    norms = [_norm(block.get_submodule(name), rows(subject)) for name in found.norms]
    if len(inner) not in (1, 3) or None in (*maps, *norms) or not _covered(block, (*found.norms, *inner, *outer)):
        return None
    qkv, (out, opening, closing) = _stacked(maps[:-3]), maps[-3:]
    if not _fit(subject.D, qkv, out, opening, closing):
        return None
    return Roles(tuple(norms), qkv, out, opening, closing, () if whole else inner, _heads(block, whole))


def _stacked(maps: list[Affine]) -> Affine:
    """One map, whose rows are those of all."""
    return Affine(torch.cat([part.weight for part in maps]), torch.cat([part.bias for part in maps]))


def _fit(D: int, qkv: Affine, out: Affine, opening: Affine, closing: Affine) -> bool:
    F = len(opening.weight)
    shapes = [tuple(part.weight.shape) for part in (qkv, out, opening, closing)]
    return shapes == [(3 * D, D), (D, D), (F, D), (D, F)]


def _projections(block: nn.Module, found: Found) -> tuple[str, ...]:
    """The maps inside the attention but the last."""
    maps = [name for name, module in block.named_modules() if is_map(module) and name not in found.attention_last]
    return tuple(name for name in maps if any(f"{name}.".startswith(f"{outer}.") for outer in found.attention_inside))


def _covered(block: nn.Module, names: tuple[str, ...]) -> bool:
    """Whether these modules hold all parameters of the block."""
    held = chain.from_iterable(block.get_submodule(name).parameters() for name in names)
    return {id(parameter) for parameter in held} == {id(parameter) for parameter in block.parameters()}


def _heads(block: nn.Module, whole: tuple[str, ...]) -> int | None:
    """As an attention of torch's or of the library tells it."""
    attentions = [block.get_submodule(name) for name in whole]
    return next((getattr(one, "num_heads", None) or one.H for one in attentions), None)


def _whole(attention: nn.Module) -> Affine | None:
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    return None if weight is None else Affine(weight, _zeros(weight) if bias is None else bias)


def _map(module: nn.Module) -> Affine | None:
    """Checked by what the module does: some store the matrix the other way round."""
    if not is_map(module):
        return None
    bias = getattr(module, "bias", None)
    for weight in (module.weight, module.weight.T):
        part = Affine(weight, _zeros(weight) if bias is None else bias)
        x = torch.linspace(-1, 1, weight.shape[1], dtype=torch.float64).to(weight).sin()[None]
        try:
            if apart(linear(x, part.weight, part.bias), module(x)) <= rounding(x.dtype):
                return part
        except RuntimeError:  # the shapes do not fit: it is the other way round
            continue
    return None


def _zeros(weight: Tensor) -> Tensor:
    return weight.new_zeros(len(weight))


def _norm(norm: nn.Module, x: Tensor) -> Affine | None:
    """γ and β, which is what a row of zeros gives; ``None`` if it is none that centres its row."""
    own = list(norm.parameters())
    try:
        with torch.no_grad():
            centred, beta = apart(norm(x), norm(x + SHIFT)) < CENTRED, norm(torch.zeros_like(x))[0, 0]
    except (RuntimeError, ValueError):  # made for another axis
        return None
    weights = [one for one in own if apart(beta, one.detach()) > rounding(x.dtype)]
    if not centred or len(weights) > 1 or any(one.shape != beta.shape for one in own):
        return None
    gamma = _gamma(norm, weights[0], beta, x) if weights else torch.ones_like(beta)
    return Affine(gamma, beta, _eps(norm, gamma, beta, x))


def _gamma(norm: nn.Module, weight: Tensor, beta: Tensor, x: Tensor) -> Tensor:
    """The weight, or one more than it: some store γ as its distance from 1."""
    with torch.no_grad():
        y = norm(x)
        return min((weight, 1 + weight), key=lambda gamma: apart(y, layer_norm(x, beta.shape, gamma, beta)))


def _eps(norm: nn.Module, gamma: Tensor, beta: Tensor, x: Tensor) -> float:
    """As an attribute tells it, or the usual one that comes nearest."""
    told = next((value for name in NAMES_OF_EPS if isinstance(value := getattr(norm, name, None), float)), None)
    with torch.no_grad():
        y = norm(SMALL * x)
        gap = {eps: apart(y, layer_norm(SMALL * x, beta.shape, gamma, beta, eps)) for eps in USUAL_EPS}
    return min(gap, key=gap.get) if told is None else told
