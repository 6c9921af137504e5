"""What torch 2.13 offers on CPU for texts of different lengths without padding: tried, one way after the other."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention

from oneblock.failures.packing import packed, padded
from oneblock.fast_path import operations, outcome
from oneblock.memory import peak

D, H, F = 64, 4, 128
Texts = Sequence[Float[Tensor, "_ D"]]


def _heads(rows: Tensor) -> Tensor:
    """``[…, L, D] → […, H, L, E]``."""
    return rows.unflatten(-1, (H, -1)).transpose(-3, -2)


def _joined(heads: Tensor) -> Tensor:
    return heads.transpose(-3, -2).flatten(-2)


def _lengths(texts: Texts) -> list[int]:
    return [len(text) for text in texts]


def attention_alone(texts: Texts) -> list[Tensor]:
    """Attention with q, k and v the rows themselves, one text after the other."""
    return [_joined(scaled_dot_product_attention(*3 * [_heads(text)[None]]))[0] for text in texts]


def rectangle(texts: Texts) -> list[Tensor]:
    """Padded, with a mask."""
    x, valid_tokens = padded(texts)
    mixed = _joined(scaled_dot_product_attention(*3 * [_heads(x)], attn_mask=valid_tokens[:, None, None]))
    return [row[real] for row, real in zip(mixed, valid_tokens, strict=True)]


def one_row(texts: Texts) -> list[Tensor]:
    """Packed, with a mask of who belongs to whom."""
    x, same_text = packed(texts)
    mixed = _joined(scaled_dot_product_attention(*3 * [_heads(x)], attn_mask=same_text))
    return list(mixed[0].split(_lengths(texts)))


def flexible(texts: Texts) -> list[Tensor]:
    """Packed, with the mask as a function; not compiled, which on CPU takes a C++ compiler."""
    x, same_text = packed(texts)
    L = len(same_text)
    mask = create_block_mask(lambda b, h, i, j: same_text[i, j], 1, 1, L, L, device="cpu")
    return list(_joined(flex_attention(*3 * [_heads(x)], block_mask=mask))[0].split(_lengths(texts)))


def jagged(texts: Texts) -> list[Tensor]:
    """A nested tensor of the newer layout."""
    rows = torch.nested.nested_tensor(list(texts), layout=torch.jagged).unflatten(-1, (H, -1)).transpose(1, 2)
    return list(scaled_dot_product_attention(rows, rows, rows).transpose(1, 2).flatten(-2).unbind())


def variable(texts: Texts) -> list[Tensor]:
    """The kernel for variable lengths: rows behind each other, and where each text begins."""
    x, _ = packed(texts)
    lengths = torch.tensor([0, *_lengths(texts)])
    starts, most = lengths.cumsum(0).to(torch.int32), int(lengths.max())
    rows = x[0].unflatten(-1, (H, -1))
    return list(varlen_attn(rows, rows, rows, starts, starts, most, most).flatten(-2).split(lengths[1:].tolist()))


def _encoder() -> nn.TransformerEncoder:
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
        torch.manual_seed(0)
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, F, batch_first=True), 1).eval()


def encoder_alone(texts: Texts) -> list[Tensor]:
    """``nn.TransformerEncoder``, one text after the other."""
    return [_encoder()(text[None])[0] for text in texts]


def encoder_padded(texts: Texts) -> list[Tensor]:
    """The same on its fast path, which by itself makes a nested tensor of rows and mask."""
    x, valid_tokens = padded(texts)
    rows = _encoder()(x, src_key_padding_mask=~valid_tokens)
    return [row[: len(text)] for row, text in zip(rows, texts, strict=True)]


def encoder_jagged(texts: Texts) -> list[Tensor]:
    """The same, given a nested tensor of the newer layout."""
    return list(_encoder()(torch.nested.nested_tensor(list(texts), layout=torch.jagged)).unbind())


class Route(NamedTuple):
    """One way to compute a batch, and what it is to agree with."""

    call: Callable[[Texts], list[Tensor]]
    alone: Callable[[Texts], list[Tensor]]


ROUTES = {
    "padded, with a mask": Route(rectangle, attention_alone),
    "packed, with a mask": Route(one_row, attention_alone),
    "packed, flex_attention": Route(flexible, attention_alone),
    "nested, jagged": Route(jagged, attention_alone),
    "varlen_attn": Route(variable, attention_alone),
    "encoder: nested by itself": Route(encoder_padded, encoder_alone),
    "encoder: given jagged": Route(encoder_jagged, encoder_alone),
}


class Tried(NamedTuple):
    """How a route went: the first sentence of its error, or the largest gap to each text alone.

    ``pads`` says whether it made a padded tensor or scores of a whole rectangle on the way; ``peak`` is in bytes.
    """

    error: str
    gap: float | None
    pads: bool | None
    peak: int | None


@torch.no_grad()
def tried(route: Route, texts: Texts) -> Tried:
    """Runs a route without gradients. Source: ``torch.profiler`` for operations and bytes."""
    result = outcome(lambda: torch.cat(route.call(texts)))
    if result.error:
        return Tried(result.error.split(". ")[0], None, None, None)
    gap = (result.value - torch.cat(route.alone(texts))).abs().max().item()
    with warnings.catch_warnings(action="ignore"):
        pads = "aten::to_padded_tensor" in operations(lambda: route.call(texts))
        return Tried("", gap, pads, peak(lambda: route.call(texts)))
