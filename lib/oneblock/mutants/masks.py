"""Masks on the wrong side, on the wrong axis, too late, too weak, off by one, or nowhere."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.mutants.plain import Plain


class MaskInverted(Plain):
    """Real tokens are hidden and padding is read: True was taken for "ignore", as torch's ``key_padding_mask`` does.

    The fill is finite, as in code that adds it: with −∞ a text without padding would be NaN.
    """

    FILL = -1e9

    def masked(self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N H L L"]:
        return scores.masked_fill(valid_tokens[:, None, None, :], self.FILL)


class MaskOnQueries(Plain):
    """The mask along the rows that read, not those that are read: real tokens still read padding.

    The fill is finite, as where this is found: with −∞ the rows of padding would be NaN.
    """

    FILL = -1e9

    def masked(self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N H L L"]:
        return scores.masked_fill(~valid_tokens[:, None, :, None], self.FILL)


class MaskTooWeak(Plain):
    """−10000 is added to the scores of padding, where −∞ is due."""

    def masked(self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N H L L"]:
        return scores - 1e4 * (~valid_tokens[:, None, None, :]).to(scores)


class MaskAfterSoftmax(Plain):
    """The shares of padding are set to 0 after the softmax; the others no longer sum to 1."""

    def weights(
        self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"] | None
    ) -> Float[Tensor, "N H L L"]:
        weights = self.softmax(scores)
        return weights if valid_tokens is None else weights * valid_tokens[:, None, None, :]


class MaskForgotten(Plain):
    """The block takes a mask and nothing reads it."""

    def weights(
        self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"] | None
    ) -> Float[Tensor, "N H L L"]:
        return self.softmax(scores)


class Causal(Plain):
    """Right: a position reads itself and what stands before it. Padding, if any, stands at the end."""

    def weights(
        self, scores: Float[Tensor, "N H L L"], valid_tokens: Bool[Tensor, "N L"] | None
    ) -> Float[Tensor, "N H L L"]:
        return super().weights(scores.masked_fill(~self.may_read(scores), -torch.inf), valid_tokens)

    def may_read(self, scores: Float[Tensor, "N H L L"]) -> Bool[Tensor, "L L"]:
        return torch.ones_like(scores[0, 0], dtype=torch.bool).tril()


class CausalOffByOne(Causal):
    """A position also reads the next one: in a language model, the answer."""

    def may_read(self, scores: Float[Tensor, "N H L L"]) -> Bool[Tensor, "L L"]:
        return torch.ones_like(scores[0, 0], dtype=torch.bool).tril(1)
