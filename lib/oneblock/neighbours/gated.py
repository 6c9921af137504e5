"""The block with a gated network: another function inside each position, the same reading between them."""

from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.attention import MultiHeadAttention
from oneblock.blocks import first_sum, second_sum
from oneblock.ffn import SwiGLU
from oneblock.neighbours.frame import Frame
from oneblock.norms import LayerNorm


class GatedBlock(Frame):
    """``U = X + MHA(LN₁(X))``, ``Y = U + SwiGLU(LN₂(U))``.

    Args:
        D, H, F: model width, number of heads (a divisor of D), width of the gate and of what it lets through;
            :func:`oneblock.ffn.matched_width` gives the F of a plain block's parameter count.
        eps: ε of both norms.
    Called with and raises: as :class:`oneblock.neighbours.AttentionOnly`.
    Source: Shazeer, *GLU Variants Improve Transformer*, 2020, arXiv:2002.05202.
    """

    def __init__(self, D: int, H: int, F: int, eps: float = 1e-5) -> None:
        super().__init__(D)
        self.norm1, self.norm2 = LayerNorm(D, eps), LayerNorm(D, eps)
        self.self_attn = MultiHeadAttention(D, H)
        self.network = SwiGLU(D, F)

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = first_sum(x, self.self_attn(self.first_norm(x), valid_tokens))
        return second_sum(u, self.network(self.second_norm(u)))
