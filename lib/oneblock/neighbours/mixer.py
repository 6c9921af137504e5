"""The MLP-Mixer: the same small network once over the features and once, on its side, over the positions."""

from jaxtyping import Float
from torch import Tensor

from oneblock.blocks import first_sum, second_sum
from oneblock.errors import ShapeError, check_size
from oneblock.ffn import FFN
from oneblock.neighbours.frame import Frame
from oneblock.norms import LayerNorm
from oneblock.trace import scope

ONE_LENGTH = "its weights belong to positions: cut, or fill up, to that length. It takes no mask, so what fills up is read"


class MixerBlock(Frame):
    """``U = X + (FFN_L(LN₁(X)ᵀ))ᵀ``, ``Y = U + FFN_D(LN₂(U))``: ``FFN_L`` takes the L numbers of one feature as its row.

    Args:
        L: how many positions, once and for all.
        D: model width.
        F_L, F: width inside ``FFN_L`` and inside ``FFN_D``.
        eps: ε of both norms.
    Called with:
        x: ``[N, L, D]``.
    Raises:
        ArgumentError: naming the argument that breaks its contract; also where ``x`` is not finite or has another length.
    Source: Tolstikhin et al., *MLP-Mixer: An all-MLP Architecture for Vision*, 2021, section 2, arXiv:2105.01601.
    """

    def __init__(self, L: int, D: int, F_L: int, F: int, eps: float = 1e-5) -> None:
        super().__init__(D)
        check_size("L", L)
        check_size("F_L", F_L)
        self.L = L
        self.norm1, self.norm2 = LayerNorm(D, eps), LayerNorm(D, eps)
        self.over_positions, self.over_features = FFN(L, F_L, "gelu"), FFN(D, F, "gelu")

    def forward(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        self._enter(x)
        u = first_sum(x, self.mix(self.first_norm(x)))
        return second_sum(u, self.over_features(self.second_norm(u)))

    @scope("positions")
    def mix(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        """``FFN_L`` of each feature's column; the columns are the rows of ``xᵀ``."""
        return self.over_positions(x.mT).mT

    def _enter(self, x: Tensor) -> None:
        self.enter(x)
        if x.shape[1] != self.L:
            raise ShapeError("x", f"floating [N, L, D] = {[len(x), self.L, self.D]}", x, ONE_LENGTH)
