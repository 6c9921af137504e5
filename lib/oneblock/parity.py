"""How far a block and torch's own layer are apart: sublayer by sublayer, in value and gradient."""

from functools import partial
from math import inf
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.func import functional_call

from oneblock.blocks import Parts, PostNorm, PreNorm
from oneblock.errors import ArgumentError
from oneblock.official import NORM_FIRST, TORCHS, check_block, check_layer
from oneblock.trace import record


class Difference(NamedTuple):
    """How far two tensors are apart: the largest difference, and the same over the largest magnitude of torch's one.

    A NaN is infinitely far from everything. ``sublayer`` and ``tensor`` are names of torch where it has one.
    """

    sublayer: str
    tensor: str
    absolute: float
    relative: float


class Parity(NamedTuple):
    """Every difference between a block and torch's layer, values in the order in which they are computed.

    ``output`` comes from a run without record and hooks, as ``gradients`` do; its value is no part of ``values``.
    """

    values: tuple[Difference, ...]
    output: Difference
    gradients: tuple[Difference, ...]

    @property
    def largest(self) -> float:
        """The largest of all relative differences."""
        return max(one.relative for one in (*self.values, self.output, *self.gradients))

    def by_sublayer(self) -> dict[str, tuple[float | None, float | None]]:
        """The largest relative difference of each sublayer's values and of its parameters' gradients, where it has any.

        ``x`` comes first: no value, but a gradient.
        """
        sublayers = ["x", *(one.sublayer for one in self.values)]
        return {name: (_largest(self.values, name), _largest(self.gradients, name)) for name in sublayers}


def parity(
    block: PreNorm | PostNorm,
    layer: nn.TransformerEncoderLayer,
    x: Float[Tensor, "N L D"],
    valid_tokens: Bool[Tensor, "N L"] | None = None,
) -> Parity:
    """Runs both on the same numbers and compares them sublayer by sublayer, in value and gradient.

    Our values are those of :func:`oneblock.trace.record`, torch's are seen by forward hooks. Gradients are those of one
    fixed random projection of the output, ``Σ P ⊙ y``, by the input and by each parameter, in a run without either.
    Both run with autograd, so that torch's layer is on its ordinary path. Real positions only are compared, and only
    they enter the projection. Neither module nor ``x`` is changed, and ``.grad`` is left alone.

    Args:
        block, layer: of the same order and sizes, in the same mode; with dropout at 0, or in ``eval()``.
        x: ``[N, L, D]``, even if the layer takes ``[L, N, D]``.
        valid_tokens: ``[N, L]``, bool, ``True`` for a real token.
    Raises:
        ArgumentError: the orders or the parameters' shapes differ, or dropout is on in one of the two.
    """
    _check_comparable(block, layer)
    trace, seen = record(block, x, valid_tokens), _seen(layer, x, valid_tokens)
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if valid_tokens is None else valid_tokens
    values = (_difference(*stage, trace[stage[1]][real], seen[stage[0]][real]) for stage in _stages(layer.norm_first))
    ours, torchs = _gradients(block, x, real, valid_tokens), _gradients(layer, x, real, valid_tokens)
    differences = [_difference(name.partition(".")[0], name, ours[name], torchs[name]) for name in torchs]
    return Parity(tuple(values), differences[0], tuple(differences[1:]))


def _stages(norm_first: bool) -> list[tuple[str, str]]:
    """Each sublayer, in the order of computation, and the name of its result in a block's trace."""
    attention, network = [("self_attn", "attended")], [("linear1", "h"), ("activation", "a"), ("linear2", "z")]
    norm1, norm2, sum1, sum2 = ("norm1", "norm1.ln"), ("norm2", "norm2.ln"), ("sum1", "sum1.y"), ("sum2", "sum2.y")
    if norm_first:
        return [norm1, *attention, sum1, norm2, *network, sum2]
    return [*attention, sum1, norm1, *network, sum2, norm2]


def _seen(layer: nn.TransformerEncoderLayer, x: Tensor, valid_tokens: Tensor | None) -> dict[str, Tensor]:
    """The result of each sublayer of torch's layer, on its ordinary path, as ``[N, L, …]``."""
    seen, batch_first = {}, layer.self_attn.batch_first

    def keep(name: str, module: nn.Module, given: tuple, result: Tensor | tuple | None = None) -> None:
        tensor = given if result is None else result
        tensor = tensor[0] if isinstance(tensor, tuple) else tensor
        seen[name] = (tensor if batch_first else tensor.transpose(0, 1)).detach().clone()  # φ may write into h

    before = {"sum1": layer.norm2} if layer.norm_first else {"sum1": layer.norm1, "sum2": layer.norm2}
    before["activation"] = layer.dropout
    after = {name: getattr(layer, name) for name in TORCHS} | ({"sum2": layer} if layer.norm_first else {})
    hooks = [module.register_forward_pre_hook(partial(keep, name)) for name, module in before.items()]
    hooks += [module.register_forward_hook(partial(keep, name)) for name, module in after.items()]
    try:
        with torch.enable_grad():  # without autograd torch's attention has a fused path of its own
            _run(layer, {}, x.detach().requires_grad_(), valid_tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _run(module: nn.Module, parameters: dict[str, Tensor], x: Tensor, valid_tokens: Tensor | None) -> Tensor:
    """Either of the two, with other tensors in place of its parameters, ``[N, L, D]`` in and out."""
    if isinstance(module, Parts):
        return functional_call(module, parameters, (x, valid_tokens))
    padding = None if valid_tokens is None else ~valid_tokens
    if module.self_attn.batch_first:
        return functional_call(module, parameters, x, {"src_key_padding_mask": padding})
    return functional_call(module, parameters, x.transpose(0, 1), {"src_key_padding_mask": padding}).transpose(0, 1)


def _gradients(module: nn.Module, x: Tensor, real: Tensor, valid_tokens: Tensor | None) -> dict[str, Tensor]:
    """The output at real positions, and the gradients of its projection by the input and by every parameter."""
    inputs = {"x": x, **dict(module.named_parameters())}
    inputs = {name: tensor.detach().clone().requires_grad_() for name, tensor in inputs.items()}
    P = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(x)
    with torch.enable_grad():
        y = _run(module, {name: inputs[name] for name in inputs if name != "x"}, inputs["x"], valid_tokens)[real]
        gradients = torch.autograd.grad((P[real] * y).sum(), list(inputs.values()), materialize_grads=True)
    return {"output": y.detach(), **dict(zip(inputs, gradients, strict=True))}


def distance(due: Tensor, came: Tensor) -> tuple[float, float]:
    """``max |came − due|``, and the same over ``max |due|``; both infinite where a number became NaN.

    Args:
        due, came: of one shape, with one number or more.
    """
    absolute = (came.double() - due.double()).abs().max().nan_to_num(nan=inf).item()
    magnitude = due.double().abs().max().nan_to_num(nan=0.0).item()
    return absolute, absolute / magnitude if magnitude else inf if absolute else 0.0


def _difference(sublayer: str, name: str, ours: Tensor, torchs: Tensor) -> Difference:
    return Difference(sublayer, name, *distance(torchs, ours))


def _largest(differences: tuple[Difference, ...], sublayer: str) -> float | None:
    return max((one.relative for one in differences if one.sublayer == sublayer), default=None)


def _check_comparable(block: PreNorm | PostNorm, layer: nn.TransformerEncoderLayer) -> None:
    check_block(block)
    check_layer(layer)
    if layer.norm_first != NORM_FIRST[type(block)]:
        due = f"{NORM_FIRST[type(block)]}, the order of a {type(block).__name__}"
        raise ArgumentError("layer.norm_first", due, layer.norm_first, "to_official() makes a layer of the same order")
    shapes = [{name: list(value.shape) for name, value in one.named_parameters()} for one in (block, layer)]
    unlike = sorted(name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name))
    if unlike:
        raise ArgumentError("layer", "of the parameters and shapes of the block", unlike, "these differ")
    for argument, module in {"block": block, "layer": layer}.items():
        if max(_rates(module), default=0):
            raise ArgumentError(argument, "without dropout", _rates(module), "set each rate to 0, or call eval() before")


def _rates(module: nn.Module) -> list[float]:
    """The dropout rates of the parts in training of either of the two; torch's attention keeps its own as a number."""
    own = [module.self_attn.dropout] if not isinstance(module, Parts) and module.self_attn.training else []
    return own + [part.p for part in module.modules() if isinstance(part, nn.Dropout) and part.training]
