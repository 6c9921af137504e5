"""Dropout that stays on, is left out at a site, or falls on the sum."""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import dropout

from oneblock.blocks import PreNorm, first_sum, second_sum
from oneblock.mutants.plain import Plain


class DropoutAlwaysOn(Plain):
    """The function ``dropout``, which does not know that the module is in ``eval()`` unless told."""

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        a = dropout(self.phi(self.linear1(x)), self.dropout_hidden.p)
        return self.dropout_z(self.linear2(a))


class DropoutSitesMerged(Plain):
    """One dropout at the end of the network for the two, inside and at its end: no hidden number is ever dropped."""

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        a = self.phi(self.linear1(x))
        return self.dropout_z(self.linear2(a))


class DropoutOnTheSum(PreNorm):
    """``Dropout(X + MHA(…))``: the residual is dropped with the increment, and what is kept is scaled up."""

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = self.dropout_attended(first_sum(x, self.self_attn(self.first_norm(x), valid_tokens)))
        return second_sum(u, self.process(self.second_norm(u)))
