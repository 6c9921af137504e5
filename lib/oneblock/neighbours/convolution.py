"""A convolution where a Transformer block has attention."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from oneblock.blocks import first_sum, second_sum
from oneblock.errors import ArgumentError, check_size, check_tensor
from oneblock.ffn import FFN
from oneblock.masks import check_valid_tokens
from oneblock.neighbours.frame import Frame
from oneblock.norms import LayerNorm


class Convolution(nn.Module):
    """``conv_{i,r} = Σ_o w_{r,o} x_{i+o,r} + b_r`` over the offsets ``|o| ≤ width//2``; beyond the ends x is 0.

    Each feature has weights of its own and no feature meets another (a depthwise convolution). The weights belong to
    the offset: they are learned, and do not ask what stands there. Padding counts as 0, as what lies beyond the end does.

    Args:
        D: features; width: how many positions one output reads, an odd number.
    Called with:
        x: ``[N, L, D]``; valid_tokens: ``[N, L]``, bool.
    Raises:
        ArgumentError: ``width`` is even, or another argument breaks its contract.
    Source: Wu et al., *Pay Less Attention with Lightweight and Dynamic Convolutions*, 2019, section 2, arXiv:1901.10430.
    """

    def __init__(self, D: int, width: int) -> None:
        super().__init__()
        check_size("width", width)
        if width % 2 == 0:
            raise ArgumentError("width", "an odd number", width, "a window has its own position in the middle")
        self.conv = nn.Conv1d(D, D, width, padding=width // 2, groups=D)

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        check_tensor("x", x, "N L D", D=self.conv.in_channels)
        if valid_tokens is not None:
            check_valid_tokens(valid_tokens, x)
            x = x.masked_fill(~valid_tokens[..., None], 0)
        return self.conv(x.mT).mT


class ConvolutionBlock(Frame):
    """``U = X + Conv(LN₁(X))``, ``Y = U + FFN(LN₂(U))``, with a depthwise :class:`Convolution` along the positions.

    Args:
        D, F: model width, width inside the feed-forward network.
        width: how many positions one output reads, an odd number.
        eps: ε of both norms.
    Called with:
        x: ``[N, L, D]``.
        valid_tokens: ``[N, L]``, bool; a real position sees 0 where one is ``False``.
    Raises:
        ArgumentError: naming the argument that breaks its contract; also where ``x`` is not finite.
    Source: Liu et al., *A ConvNet for the 2020s*, 2022, section 2, arXiv:2201.03545, there for images and with one sum.
    """

    def __init__(self, D: int, F: int, width: int, eps: float = 1e-5) -> None:
        super().__init__(D)
        self.norm1, self.norm2 = LayerNorm(D, eps), LayerNorm(D, eps)
        self.convolution = Convolution(D, width)
        self.network = FFN(D, F, "gelu")

    def forward(
        self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
    ) -> Float[Tensor, "N L D"]:
        self.enter(x)
        u = first_sum(x, self.convolution(self.first_norm(x), valid_tokens))
        return second_sum(u, self.network(self.second_norm(u)))
