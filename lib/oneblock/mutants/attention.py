"""Attention with a wrong axis, a wrong scale, or heads cut in the wrong place."""

from math import sqrt

from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.mutants.plain import Plain


class SoftmaxOverQueries(Plain):
    """The shares of each key over the queries sum to 1, not those of each query over the keys.

    The fill is finite, as where this is found: with −∞ the column of a padded key would be NaN.
    """

    FILL = -1e9

    def softmax(self, scores: Float[Tensor, "N H L L"]) -> Float[Tensor, "N H L L"]:
        return scores.softmax(-2)


class SoftmaxOverHeadsToo(Plain):
    """One softmax over the keys of all heads: the heads share what each should have for itself."""

    def softmax(self, scores: Float[Tensor, "N H L L"]) -> Float[Tensor, "N H L L"]:
        by_query = scores.transpose(1, 2)
        return by_query.flatten(-2).softmax(-1).view_as(by_query).transpose(1, 2)


class Unscaled(Plain):
    """``q kᵀ`` without ``1/√E``."""

    def scores(self, q: Float[Tensor, "N H L E"], k: Float[Tensor, "N H L E"]) -> Float[Tensor, "N H L L"]:
        return q @ k.mT


class ScaledByWidth(Plain):
    """``1/√D``, with the width of the model, where that of a head is due."""

    def scores(self, q: Float[Tensor, "N H L E"], k: Float[Tensor, "N H L E"]) -> Float[Tensor, "N H L L"]:
        return q @ k.mT / sqrt(self.D)


class HeadsByView(Plain):
    """``view`` to ``[N, H, L, E]`` at once: it cuts the text into H pieces where each row should be cut."""

    def split(self, part: Float[Tensor, "N L D"]) -> Float[Tensor, "N H L E"]:
        N, L, _ = part.shape
        return part.reshape(N, self.self_attn.H, L, -1)


class JoinedByView(Plain):
    """``view`` back to ``[N, L, D]`` without the transpose: a row is filled from one head at several positions."""

    def join(self, mixed: Float[Tensor, "N H L E"]) -> Float[Tensor, "N L D"]:
        N, _, L, _ = mixed.shape
        return mixed.reshape(N, L, -1)


class BatchSecond(Plain):
    """Attention of a layer that takes ``[L, N, D]``: the texts of a batch read each other, position by position.

    The mask was turned round until it fitted; a position that is padding in all texts is refused.
    """

    def attend(self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None) -> Float[Tensor, "N L D"]:
        turned = None if valid_tokens is None else valid_tokens.T
        return super().attend(x.transpose(0, 1), turned).transpose(0, 1)


class NoOutputProjection(Plain):
    """The heads laid side by side are the increment; W_O is there and never used."""

    def out(self, joined: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return joined
