"""Attention in two halves: what rows hand over, and who reads it. The reader need not be among those it reads."""

from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

from oneblock.attention import MultiHeadAttention
from oneblock.errors import check_tensor
from oneblock.trace import written_out


class KeysValues(NamedTuple):
    """What J rows hand over to whoever reads them, in every head."""

    k: Float[Tensor, "N H J E"]
    v: Float[Tensor, "N H J E"]

    def followed_by(self, later: "KeysValues") -> "KeysValues":
        """Those of these rows, then those of later ones."""
        return KeysValues(torch.cat([self.k, later.k], -2), torch.cat([self.v, later.v], -2))


def keys_values(attention: MultiHeadAttention, rows: Float[Tensor, "N J D"]) -> KeysValues:
    """``k = W_K rows + b_K`` and ``v = W_V rows + b_V`` in every head.

    Args:
        attention: whose projections are used.
        rows: ``[N, J, D]``.
    Raises:
        ShapeError: ``rows`` is not ``[N, J, D]``.
    Source: Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.2, arXiv:1706.03762.
    """
    check_tensor("rows", rows, "N J D", D=attention.D)
    return KeysValues(_projected(attention, 1, rows), _projected(attention, 2, rows))


def read(
    attention: MultiHeadAttention,
    x: Float[Tensor, "N L D"],
    handed: KeysValues,
    valid_tokens: Bool[Tensor, "N J"] | None = None,
) -> Float[Tensor, "N L D"]:
    """``attended = W_O [softmax(q kᵀ / √E) v of every head] + b_O`` with ``q = W_Q x + b_Q`` and k, v as handed.

    The L readers read the same J rows, all of them. Dropout on the shares is the attention's own.

    Args:
        attention: whose W_Q and W_O are used.
        x: ``[N, L, D]``, the rows that read.
        handed: what :func:`keys_values` made of the rows that are read.
        valid_tokens: ``[N, J]``; no row reads one that is ``False``.
    Returns:
        ``[N, L, D]``.
    Source: as :func:`keys_values`.
    """
    check_tensor("x", x, "N L D", D=attention.D)
    q, readable = _projected(attention, 0, x), None if valid_tokens is None else valid_tokens[:, None, None]
    mixed = _mixed(attention, q, handed, readable)
    return attention.out_proj(mixed.transpose(-3, -2).flatten(-2))


def _mixed(attention: MultiHeadAttention, q: Tensor, handed: KeysValues, readable: Tensor | None) -> Tensor:
    if not written_out():
        dropout = attention.dropout.p if attention.dropout.training else 0.0
        return scaled_dot_product_attention(q, *handed, attn_mask=readable, dropout_p=dropout)
    scores = q @ handed.k.mT / sqrt(q.shape[-1])
    scores = scores if readable is None else scores.masked_fill(~readable, -torch.inf)
    return attention.dropout(scores.softmax(-1)) @ handed.v


def _projected(attention: MultiHeadAttention, part: int, rows: Tensor) -> Tensor:
    """q, k or v of every head, ``[N, H, L, E]``."""
    b = None if attention.in_proj_bias is None else attention.in_proj_bias.chunk(3)[part]
    return linear(rows, attention.in_proj_weight.chunk(3)[part], b).unflatten(-1, (attention.H, -1)).transpose(-3, -2)
