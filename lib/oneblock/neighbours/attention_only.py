"""A block without a feed-forward network."""

from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.attention import MultiHeadAttention
from oneblock.blocks import first_sum
from oneblock.neighbours.frame import Frame
from oneblock.norms import LayerNorm


class AttentionOnly(Frame):
    """``Y = X + MHA(LN(X))``: positions meet, and nothing is made of what they read.

    Args:
        D, H: model width and number of heads (a divisor of D).
        eps: ε of the norm.
    Called with:
        x: ``[N, L, D]``.
        valid_tokens: ``[N, L]``, bool; no position reads one that is ``False``.
    Raises:
        ArgumentError: naming the argument that breaks its contract; also where ``x`` is not finite.
    Source: Elhage et al., *A Mathematical Framework for Transformer Circuits*, 2021, which takes such layers apart.
    """

    def __init__(self, D: int, H: int, eps: float = 1e-5) -> None:
        super().__init__(D)
        self.norm1 = LayerNorm(D, eps)
        self.self_attn = MultiHeadAttention(D, H)

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        return first_sum(x, self.self_attn(self.first_norm(x), valid_tokens))
