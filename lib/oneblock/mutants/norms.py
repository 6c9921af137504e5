"""Norms over the wrong numbers, of the wrong kind, or in the wrong place."""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import layer_norm

from oneblock.blocks import Parts, PreNorm, first_sum, second_sum
from oneblock.mutants.plain import Plain
from oneblock.norms import rms_norm
from oneblock.norms_pitfalls import across_tokens, eps_outside_root, unbiased_deviation


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


class OneNormTwice(PreNorm):
    """``norm2`` is ``norm1``: one γ and one β for both. Of a loaded state dict the second norm's numbers stay."""

    def __init__(self, D: int, H: int, F: int, **options: object) -> None:
        super().__init__(D, H, F, **options)
        self.norm2 = self.norm1


class NormOverTokens(Plain):
    """μ and σ of each feature over the positions, where each position's over the features are due."""

    def normed(self, x: Float[Tensor, "N L D"], eps: float) -> Float[Tensor, "N L D"]:
        return across_tokens(x, eps)


class NormOverText(Plain):
    """One μ and one σ for all of a text, ``[L, D]``: the shape given to the norm was that of the text."""

    def normed(self, x: Float[Tensor, "N L D"], eps: float) -> Float[Tensor, "N L D"]:
        return layer_norm(x, x.shape[1:], eps=eps)


class NormOverBatch(Plain):
    """One μ and one σ for the whole batch: a mean without an axis."""

    def normed(self, x: Float[Tensor, "N L D"], eps: float) -> Float[Tensor, "N L D"]:
        return layer_norm(x, x.shape, eps=eps)


class UnbiasedVariance(Plain):
    """The squares divided by ``D − 1``, as ``Tensor.var`` does unless told otherwise."""

    def normed(self, x: Float[Tensor, "N L D"], eps: float) -> Float[Tensor, "N L D"]:
        return unbiased_deviation(x, eps)


class EpsOutsideRoot(Plain):
    """``σ + ε`` for ``√(σ² + ε)``."""

    def normed(self, x: Float[Tensor, "N L D"], eps: float) -> Float[Tensor, "N L D"]:
        return eps_outside_root(x, eps)


class RMSForLayerNorm(Plain):
    """RMSNorm, which leaves the mean in, where LayerNorm is due; β is still added.

    The reverse was found in llama.cpp, where it had gone unseen since the mean was about 0:
    https://github.com/ggml-org/llama.cpp/issues/173.
    """

    def normed(self, x: Float[Tensor, "N L D"], eps: float) -> Float[Tensor, "N L D"]:
        return rms_norm(x, eps=eps)
