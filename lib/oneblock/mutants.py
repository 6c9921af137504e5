"""Blocks with the right shapes and the wrong structure."""

from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.blocks import Parts, first_sum, second_sum


class NormAfterSum(Parts):
    """``U = X + Dropout(MHA(LN₁(X)))``, ``Y = LN₂(U + Dropout(FFN(U)))``: neither Pre-LN nor Post-LN.

    The first norm has moved into its branch, the second still stands after its sum: what is left when a
    Post-LN block is turned into a Pre-LN block half way. A state dict of either fits.
    """

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = first_sum(x, self.attend(self.first_norm(x), valid_tokens))
        return self.second_norm(second_sum(u, self.process(u)))
