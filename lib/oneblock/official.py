"""To torch's own layer and back: parameters and options copied both ways."""

from copy import deepcopy

import torch
from torch import nn

from oneblock.activations import KERNELS, Activation
from oneblock.attention import MultiHeadAttention
from oneblock.blocks import PostNorm, PreNorm
from oneblock.errors import ArgumentError
from oneblock.norms import LayerNorm

NORM_FIRST = {PreNorm: True, PostNorm: False}
OURS = {"self_attn": MultiHeadAttention, "norm1": LayerNorm, "norm2": LayerNorm, "linear1": nn.Linear, "linear2": nn.Linear}
TORCHS = {**OURS, "self_attn": nn.MultiheadAttention, "norm1": nn.LayerNorm, "norm2": nn.LayerNorm}
NAMES = {nn.ReLU: "relu", nn.SiLU: "silu"}
MAY_DIFFER = "what only resembles it may compute something else"


def to_official(block: PreNorm | PostNorm, batch_first: bool = True) -> nn.TransformerEncoderLayer:
    """torch's layer that computes what ``block`` does: copies of its parameters, and the options that fit.

    Order, activation, ε of each norm, biases, dropout at each site, dtype, device, mode and which parameters learn are
    the block's. The two share no storage, and torch's random numbers are not touched. A tanh GELU is handed over as
    a function: as ``nn.GELU("tanh")`` it would turn into the exact one on torch's fast path.

    Args:
        block: a block as its class makes it.
        batch_first: whether the layer takes ``[N, L, D]``; ``[L, N, D]`` otherwise.
    Raises:
        ArgumentError: ``block`` is of another class, or a part of it has been replaced.
    Source: ``torch.nn.TransformerEncoderLayer``, torch 2.13.
    """
    check_block(block)
    name, bias = block.activation, block.linear1.bias is not None
    phi = KERNELS[name] if isinstance(name, str) else deepcopy(name)
    options = {"norm_first": NORM_FIRST[type(block)], "bias": bias, "batch_first": batch_first, "activation": phi}
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(block.D, block.self_attn.H, block.linear1.out_features, **options)
    layer.self_attn.dropout, layer.dropout.p = block.self_attn.dropout.p, block.dropout_hidden.p
    layer.dropout1.p, layer.dropout2.p = block.dropout_attended.p, block.dropout_z.p
    return _filled(layer, block, "block")


def from_official(layer: nn.TransformerEncoderLayer) -> PreNorm | PostNorm:
    """The block that computes what torch's ``layer`` does on its ordinary path; the reverse of :func:`to_official`.

    A layer of ``[L, N, D]`` gives a block of ``[N, L, D]``: our blocks have no other form. Hooks are not copied.

    Args:
        layer: a layer as its class makes it.
    Raises:
        ArgumentError: ``layer`` is of another class, a derived one too, a part of it has been replaced, or its attention
            has what our blocks lack: ``add_zero_attn``, ``bias_k``, keys of another width.
    Source: ``torch.nn.TransformerEncoderLayer``, torch 2.13.
    """
    check_layer(layer)
    kind, bias = PreNorm if layer.norm_first else PostNorm, layer.linear1.bias is not None
    sizes = layer.linear1.in_features, layer.self_attn.num_heads, layer.linear1.out_features
    with torch.device("meta"):
        block = kind(*sizes, activation=_named(layer.activation), bias=bias)
    block.self_attn.dropout.p, block.dropout_hidden.p = layer.self_attn.dropout, layer.dropout.p
    block.dropout_attended.p, block.dropout_z.p = layer.dropout1.p, layer.dropout2.p
    return _filled(block, layer, "layer")


def check_block(block: object) -> None:
    """Refuses all but a block of the library, its parts as the class makes them."""
    _check_kind("block", block, *NORM_FIRST)
    for name, kind in OURS.items():
        _check_kind(f"block.{name}", getattr(block, name), kind)


def check_layer(layer: object) -> None:
    """Refuses all but torch's layer, its parts as the class makes them."""
    _check_kind("layer", layer, nn.TransformerEncoderLayer)
    for name, kind in TORCHS.items():
        _check_kind(f"layer.{name}", getattr(layer, name), kind)
    if layer.self_attn.add_zero_attn:
        raise ArgumentError("layer.self_attn.add_zero_attn", "False", True, "our attention adds no row of zeros")


def _check_kind(argument: str, module: object, *kinds: type) -> None:
    if type(module) not in kinds:
        due = f"a {' or a '.join(kind.__name__ for kind in kinds)}, and no derived class"
        raise ArgumentError(argument, due, type(module).__name__, MAY_DIFFER)


def _named(phi: Activation) -> Activation:
    """The name of torch's φ where it has one; otherwise the callable, its parameters copied."""
    if type(phi) is nn.GELU:
        return "gelu" if phi.approximate == "none" else "gelu_tanh"
    known = (name for name, kernel in KERNELS.items() if kernel is phi)
    return NAMES.get(type(phi)) or next(known, None) or deepcopy(phi)


def _filled(target: nn.Module, source: nn.Module, argument: str) -> nn.Module:
    """``target`` with copies of the parameters of ``source``, and with what else the two have in common."""
    state = {name: tensor.detach().clone() for name, tensor in source.state_dict().items()}
    unlike = sorted(state.keys() ^ target.state_dict().keys())
    if unlike:
        raise ArgumentError(argument, "of the parameters that its class makes", unlike, "these are missing, or too many")
    target.load_state_dict(state, assign=True)
    target.norm1.eps, target.norm2.eps = source.norm1.eps, source.norm2.eps
    for name, parameter in source.named_parameters():
        target.get_parameter(name).requires_grad_(parameter.requires_grad)
    return target.train(source.training)
