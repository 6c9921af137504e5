"""Residual sums that are missing, fed from the wrong place, stretched, scaled, cut off or written into the input."""

from math import sqrt

from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.activations import activation_named
from oneblock.blocks import PreNorm, first_sum, second_sum
from oneblock.mutants.plain import Plain


class NoAttentionResidual(PreNorm):
    """``U = MHA(LN₁(X))``: what a position had is lost, it has only what it read."""

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = self.attend(self.first_norm(x), valid_tokens)
        return second_sum(u, self.process(self.second_norm(u)))


class ResidualFromNormed(PreNorm):
    """``x = LN₁(x)`` over the old name: the sum starts from the normed row, and no path carries the input itself."""

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        x = self.first_norm(x)
        u = first_sum(x, self.attend(x, valid_tokens))
        u = self.second_norm(u)
        return second_sum(u, self.process(u))


class ResidualScaled(PreNorm):
    """Each sum times ``√½``, to keep its variance; what comes in fades by half in each block."""

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = first_sum(x, self.attend(self.first_norm(x), valid_tokens)) * sqrt(0.5)
        return second_sum(u, self.process(self.second_norm(u))) * sqrt(0.5)


class NoProjectionBack(PreNorm):
    """``Y = U + φ(W₁ LN₂(U) + b₁)`` without W₂. It runs where F is 1, which torch stretches to D, or D; here F is 1."""

    def __init__(self, D: int, H: int, F: int, **options: object) -> None:
        super().__init__(D, H, 1, **options)

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = first_sum(x, self.attend(self.first_norm(x), valid_tokens))
        return u + self.process(self.second_norm(u))

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L F"]:
        return self.dropout_z(activation_named(self.activation)(self.linear1(x)))


class Detached(Plain):
    """``detach`` was left in a branch, from a look at its numbers: attention gives and never learns."""

    def out(self, joined: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.self_attn.out_proj(joined).detach()


class WritesIntoInput(PreNorm):
    """Rows of padding are set to 0 in the caller's own tensor."""

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        if valid_tokens is not None:
            x.data.masked_fill_(~valid_tokens[..., None], 0)
        return super().forward(x, valid_tokens)
