"""Is it the function that torch's own layer computes from the same parameters?"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional

from oneblock.blocks import PostNorm, PreNorm
from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.probes import Batch, apart, batch, quiet, roughened, rounding, seed_all
from oneblock.checks.standard import standard_layers
from oneblock.checks.subject import Adapter, Subject
from oneblock.errors import ArgumentError
from oneblock.official import from_official, to_official
from oneblock.parity import parity

OFFICIAL = Adapter("padding", "src_key_padding_mask")
ACTIVATIONS = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda h: functional.gelu(h, approximate="tanh"),
    "silu": functional.silu,
}
NEAR = 0.1
"""What another activation, ε or scale of the scores costs at most; another structure costs more, and is like no layer."""


def official_parity(subject: Subject) -> Finding:
    """The output and its gradients against ``nn.TransformerEncoderLayer`` with the same parameters.

    torch's layer itself and the library's blocks are compared sublayer by sublayer. Any other block is, if it has the
    parameters of torch's layer and no others: under the same names with the order and activation that come nearest,
    under other names also with the nearest of all ways to cut q, k and v into heads.
    """
    rough = quiet(roughened(subject))
    given = batch(rough)
    if type(rough.block) in (nn.TransformerEncoderLayer, PreNorm, PostNorm) and not subject.causal:
        try:
            return _sublayers(rough, given)
        except ArgumentError:  # a part has been replaced: from here on it is a block like any other
            pass
    H = subject.heads
    if not claims_to_be_official(rough.block, subject.D):
        rough, layers = standard_layers(subject)
    else:
        layers = dict(_candidates(rough, H)) if H and subject.D % H == 0 else {}
    if not layers:
        return not_applicable("official_parity")
    call = _causal if subject.causal else OFFICIAL
    gaps = {name: gaps_to(replace(rough, block=layer, call=call), rough, given) for name, layer in layers.items()}
    name = min(gaps, key=lambda name: max(gaps[name].values()))
    near = max(gaps[name].values()) <= NEAR
    return judged("official_parity", gaps[name], rounding(given.x.dtype), f"nearest: {name}" if near else "none of the layouts tried is near")


def claims_to_be_official(block: nn.Module, D: int) -> bool:
    """Whether the parameters have the names and shapes of torch's layer."""
    own = {name: value.shape for name, value in block.named_parameters(remove_duplicate=False)}
    if "linear1.weight" not in own or len(own["linear1.weight"]) != 2:
        return False
    F, bias = own["linear1.weight"][0], "linear1.bias" in own
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(D, 1, F, bias=bias)
    return own == {name: value.shape for name, value in layer.named_parameters()}


def _sublayers(subject: Subject, given: Batch) -> Finding:
    block = subject.block
    ours = from_official(block) if isinstance(block, nn.TransformerEncoderLayer) else block
    layer = block if ours is not block else to_official(block)
    found = parity(ours, layer, given.x, given.valid_tokens)
    values = {f"{one.sublayer}": one.relative for one in found.values}
    slopes = {f"gradient of {one.tensor}": one.relative for one in found.gradients}
    return judged("official_parity", values | {"output": found.output.relative} | slopes, rounding(given.x.dtype))


def _candidates(subject: Subject, H: int) -> Iterator[tuple[str, nn.TransformerEncoderLayer]]:
    """torch's layer in both orders and with every activation, the block's parameters copied into it."""
    state, own = subject.block.state_dict(), getattr(subject.block, "activation", None)
    known = ACTIVATIONS | ({"its own": own} if callable(own) else {})
    F, bias, eps = len(state["linear1.weight"]), "linear1.bias" in state, _eps(subject.block)
    for norm_first, (name, phi) in product((True, False), known.items()):
        options = {"norm_first": norm_first, "bias": bias, "layer_norm_eps": eps, "batch_first": True}
        layer = nn.TransformerEncoderLayer(subject.D, H, F, dropout=0.0, activation=phi, **options).to(subject.like)
        layer.load_state_dict({key: state[key] for key in layer.state_dict()})
        yield f"norm_first={norm_first}, {name}", layer


def _causal(layer: nn.Module, x: Tensor, valid_tokens: Tensor | None) -> Tensor:
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
    return layer(x, src_mask=later, src_key_padding_mask=None if valid_tokens is None else ~valid_tokens)


def _eps(block: nn.Module) -> float:
    return next((module.eps for module in block.modules() if isinstance(getattr(module, "eps", None), float)), 1e-5)


def gaps_to(layer: Subject, subject: Subject, given: Batch) -> dict[str, float]:
    """How far output and gradient by the input are from those of ``layer``, at real positions where the mask is taken."""
    real = given.valid_tokens if subject.takes_mask else torch.ones_like(given.valid_tokens)
    (y, slope), (due, due_slope) = (_answers(one, given.x, real) for one in (subject, layer))
    return {"output": apart(due, y), "gradient of x": apart(due_slope, slope)}


def _answers(subject: Subject, x: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    x, draw = x.clone().requires_grad_(), torch.Generator().manual_seed(5)
    P = torch.randn(x.shape, generator=draw, dtype=torch.float64).to(x)
    seed_all(0)
    with torch.enable_grad():
        y = subject(x, real)[real]
        (slope,) = torch.autograd.grad((P[real] * y).sum(), x, materialize_grads=True)
    return y.detach(), slope
