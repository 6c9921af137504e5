"""torch's layer with the parameters of a block that has other names for them.

Names do not tell the order of q, k and v, how a row is cut into heads, or φ. Taken are those that come nearest to what
the block itself hands to the map that ends the attention, and to the one that ends the FFN.
"""

from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention

from oneblock.checks.bench import Bench
from oneblock.checks.found import Found
from oneblock.checks.parts import find
from oneblock.checks.probes import Batch, answer, apart, batch, rounding
from oneblock.checks.roles import Affine, Roles, roles
from oneblock.checks.subject import Subject

KNOWN = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda h: functional.gelu(h, approximate="tanh"),
    "gelu_sigmoid": lambda h: h * torch.sigmoid(1.702 * h),
    "silu": functional.silu,
    "squared relu": lambda h: functional.relu(h).square(),
    "tanh": torch.tanh,
    "elu": functional.elu,
    "mish": functional.mish,
    "leaky_relu": functional.leaky_relu,
}


BETA = 1e-3
"""How far a row that was added to a larger one may be from itself: rounding is that of the sum."""


class Phi(NamedTuple):
    """An activation and what it is called."""

    name: str
    function: Callable[[Tensor], Tensor]


class Heads(NamedTuple):
    """Which rows of the map to 3D are q, k and v, head by head; ``note`` says it in words."""

    H: int
    rows: Tensor
    note: str


def standard_layers(subject: Subject) -> tuple[Subject, dict[str, nn.TransformerEncoderLayer]]:
    """The block as it was run, and torch's layer with its parameters in either order of sublayer and norm, by name.

    There is none where a parameter is of another kind or in excess, where positions are told apart, where φ is not
    known, where chance cannot be taken out, where the FFN does not read what the attention gave, and where norms stand
    behind the branches.
    """
    bench, found = Bench(subject), find(subject)
    if subject.positions or not _steadied(bench):
        return bench.subject, {}
    given, parts = batch(subject), roles(bench.subject, found)
    mask = given.valid_tokens if subject.takes_mask else None
    if parts is None or not _stands_as_torchs(bench, found, parts, given.x, mask):
        return bench.subject, {}
    bench.run(given.x, mask)
    phi, heads = _activation(bench, found), _heads(bench, found, parts, mask)
    return bench.subject, {} if phi is None or heads is None else dict(_layers(parts, phi, heads))


def _layers(parts: Roles, phi: Phi, heads: Heads) -> Iterator[tuple[str, nn.TransformerEncoderLayer]]:
    """In either order of sublayers and norms, with what was found out as its name."""
    for norm_first, in_turn in product((True, False), (True, False)):
        norms, note = (parts.norms, "") if in_turn else (parts.norms[::-1], ", norms exchanged")
        yield f"norm_first={norm_first}, {phi.name}, {heads.note}{note}", _layer(parts, norms, norm_first, phi, heads)


def _steadied(bench: Bench) -> bool:
    """Whether the block answers the same whatever the random numbers; in eval, if a rate is written into ``forward``."""
    x = batch(bench.subject).x
    for training in (True, False):
        bench.subject.block.train(training)
        if torch.equal(*(answer(bench.subject, False, x, seed=seed) for seed in (0, 1))):
            return True
    return False


def _stands_as_torchs(bench: Bench, found: Found, parts: Roles, x: Tensor, mask: Tensor | None) -> bool:
    """Whether every map is called, the FFN comes behind the attention, and no norm behind a branch."""
    bench.run(x, mask)
    called = {*found.ffn_first, *found.ffn_last, *parts.projections} | ({*found.attention_last} if parts.projections else set())
    if not called <= bench.seen.keys():
        return False
    return _one_after_the_other(bench, found, x, mask) and not _norms_close_the_branches(bench, found, x, mask)


def _one_after_the_other(bench: Bench, found: Found, x: Tensor, mask: Tensor | None) -> bool:
    """Whether the FFN is given something else if the attention is off; beside it, or before it, it is not."""
    opening = next(name for name in found.ffn_first if name not in found.ffn_last)
    given = []
    for off in ((), found.attention_last):
        bench.run(x, mask, off)
        given.append(bench.seen[opening].given)
    return apart(*given) > rounding(x.dtype)


def _norms_close_the_branches(bench: Bench, found: Found, x: Tensor, mask: Tensor | None) -> bool:
    """Whether both branches, switched off, still add one row to all: the β of norms behind them."""
    added = bench.run(x, mask, (*found.attention_last, *found.ffn_last)) - x
    return bool(added.abs().max() > rounding(x.dtype) * x.abs().max()) and apart(added[:1, :1].expand_as(added), added) <= BETA


def _activation(bench: Bench, found: Found) -> Phi | None:
    """φ, a known function or a module of the block; relu in place of none at all."""
    opening = next(name for name in found.ffn_first if name not in found.ffn_last)
    h, a = bench.seen[opening].gave, bench.seen[found.ffn_last[0]].given
    own = {type(bench.modules[name]).__name__: bench.modules[name] for name, seen in bench.seen.items() if _may_be_phi(bench, name, h)}
    for name, phi in (KNOWN | own).items():
        if apart(a, phi(h.clone())) <= rounding(h.dtype):
            return Phi(name, phi)
    return Phi("relu", functional.relu) if apart(a, h) <= rounding(h.dtype) else None


def _may_be_phi(bench: Bench, name: str, h: Tensor) -> bool:
    """Given h, without parameters, and not the identity, as a dropout that is off is."""
    given, gave = bench.seen[name]
    return not any(True for _ in bench.modules[name].parameters()) and torch.equal(given, h) and not torch.equal(gave, h)


def _heads(bench: Bench, found: Found, parts: Roles, mask: Tensor | None) -> Heads | None:
    if parts.H:
        return Heads(parts.H, torch.arange(len(parts.qkv.weight)), f"{parts.H} heads")
    x = batch(bench.subject).x
    seen = [bench.seen[name].gave for name in parts.projections]
    qkv, joined = _by_text(torch.cat(seen, -1), x), _by_text(bench.seen[found.attention_last[0]].given, x)
    if qkv is None or joined is None:
        return None
    real = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask
    readable = real[:, None, None].expand(-1, 1, x.shape[1], -1)
    readable = readable.tril() if bench.subject.causal else readable
    options = {apart(joined[real], _attended(qkv, heads, readable)[real]): heads for heads in _cuts(bench.subject, parts)}
    return options[min(options)] if options else None


def _by_text(seen: Tensor, x: Tensor) -> Tensor | None:
    """As ``[N, L, …]``, also if it came as ``[L, N, …]``."""
    if seen.ndim != 3 or seen.shape[:2] not in (x.shape[:2], x.shape[1::-1]):
        return None
    return seen if seen.shape[:2] == x.shape[:2] else seen.transpose(0, 1)


def _attended(qkv: Tensor, heads: Heads, readable: Tensor) -> Tensor:
    q, k, v = (part.unflatten(-1, (heads.H, -1)).transpose(1, 2) for part in qkv[..., heads.rows].chunk(3, -1))
    return scaled_dot_product_attention(q, k, v, readable).transpose(1, 2).flatten(2)


def _cuts(subject: Subject, parts: Roles) -> Iterator[Heads]:
    """Every H that is possible, every order of q, k and v, one after the other or head by head."""
    D, known = subject.D, subject.heads
    for H in [known] if known and D % known == 0 else [H for H in range(1, D + 1) if D % H == 0]:
        after = torch.arange(3 * D).view(3, H, -1)
        cuts = {"one after the other": after, "head by head": torch.arange(3 * D).view(H, 3, -1).transpose(0, 1)}
        for (cut, rows), order in product(list(cuts.items())[: 4 - len(parts.projections)], permutations(range(3))):
            yield Heads(H, rows[list(order)].flatten().to(subject.like.device), f"{H} heads, {_told(parts.projections, order, cut)}")


def _told(projections: tuple[str, ...], order: tuple[int, ...], cut: str) -> str:
    if len(projections) == 3:
        return f"q, k, v = {', '.join(projections[k] for k in order)}"
    return f"{' '.join('qkv'[order.index(k)] for k in range(3))} {cut}"


def _layer(parts: Roles, norms: tuple[Affine, ...], norm_first: bool, phi: Phi, heads: Heads) -> nn.TransformerEncoderLayer:
    F, D = parts.first.weight.shape
    options = {"dropout": 0.0, "activation": phi.function, "norm_first": norm_first, "batch_first": True}
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(D, heads.H, F, **options)
    places = {"self_attn.out_proj.": parts.out, "linear1.": parts.first, "linear2.": parts.last, "norm1.": norms[0], "norm2.": norms[1]}
    state = {"self_attn.in_proj_weight": parts.qkv.weight[heads.rows], "self_attn.in_proj_bias": parts.qkv.bias[heads.rows]}
    state |= {f"{place}{what}": getattr(part, what) for place, part in places.items() for what in ("weight", "bias")}
    layer.load_state_dict({name: value.detach() for name, value in state.items()}, assign=True)
    layer.norm1.eps, layer.norm2.eps = (norm.eps for norm in norms)
    return layer
