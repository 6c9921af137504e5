"""A Pre-LN block in plain torch, each step a method of a line or two, so that a mistake can replace one of them."""

from collections.abc import Iterable
from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import layer_norm, linear

from oneblock.activations import activation_named
from oneblock.blocks import PreNorm
from oneblock.masks import check_valid_tokens
from oneblock.norms import LayerNorm


class Plain(PreNorm):
    """Computes what :class:`~oneblock.blocks.PreNorm` does, with its parameters; only the taps are missing.

    ``FILL`` is the score of what may not be read.
    """

    FILL = -torch.inf

    def first_norm(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.norm(x, self.norm1)

    def second_norm(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.norm(x, self.norm2)

    def norm(self, x: Float[Tensor, "N L D"], part: LayerNorm) -> Float[Tensor, "N L D"]:
        scaled = self.normed(x, part.eps) * part.weight
        return scaled if part.bias is None else scaled + part.bias

    def normed(self, x: Float[Tensor, "N L D"], eps: float) -> Float[Tensor, "N L D"]:
        return layer_norm(x, x.shape[-1:], eps=eps)

    def attend(self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None) -> Float[Tensor, "N L D"]:
        if valid_tokens is not None:
            check_valid_tokens(valid_tokens, x)
        q, k, v = (self.split(part) for part in self.project(x))
        weights = self.self_attn.dropout(self.weights(self.scores(q, k), valid_tokens))
        return self.dropout_attended(self.out(self.join(weights @ v)))

    def project(self, x: Float[Tensor, "N L D"]) -> Iterable[Float[Tensor, "N L D"]]:
        return linear(x, self.self_attn.in_proj_weight, self.self_attn.in_proj_bias).chunk(3, -1)

    def split(self, part: Float[Tensor, "N L D"]) -> Float[Tensor, "N H L E"]:
        return part.unflatten(-1, (self.self_attn.H, -1)).transpose(1, 2)

    def scores(self, q: Float[Tensor, "N H L E"], k: Float[Tensor, "N H L E"]) -> Float[Tensor, "N H L L"]:
        return q @ k.mT / sqrt(q.shape[-1])

    def weights(
        self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"] | None
    ) -> Float[Tensor, "N H L L"]:
        return self.softmax(scores if valid_tokens is None else self.masked(scores, valid_tokens))

    def masked(self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N H L L"]:
        return scores.masked_fill(~valid_tokens[:, None, None, :], self.FILL)

    def softmax(self, scores: Float[Tensor, "N H L L"]) -> Float[Tensor, "N H L L"]:
        return scores.softmax(-1)

    def join(self, mixed: Float[Tensor, "N H L E"]) -> Float[Tensor, "N L D"]:
        return mixed.transpose(1, 2).flatten(-2)

    def out(self, joined: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.self_attn.out_proj(joined)

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        a = self.dropout_hidden(self.phi(self.linear1(x)))
        return self.dropout_z(self.linear2(a))

    def phi(self, h: Float[Tensor, "N L F"]) -> Float[Tensor, "N L F"]:
        return activation_named(self.activation)(h)
