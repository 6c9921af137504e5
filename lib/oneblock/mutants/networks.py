"""Feed-forward networks that mix positions, have one matrix for two, no activation, or the wrong gate."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from oneblock.blocks import PreNorm
from oneblock.ffn import SwiGLU
from oneblock.mutants.plain import Plain


class ConvolutionOverTokens(Plain):
    """W₁ as a convolution of width 3 over the positions: each row's network reads its neighbours, masked or not."""

    def __init__(self, D: int, H: int, F: int, **options: object) -> None:
        super().__init__(D, H, F, **options)
        self.linear1 = nn.Conv1d(D, F, 3, padding=1, bias=self.linear1.bias is not None)

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        a = self.dropout_hidden(self.phi(self.linear1(x.mT).mT))
        return self.dropout_z(self.linear2(a))


class ChannelsByView(Plain):
    """``view`` to ``[N, D, L]`` and back, for a layer that wants the features first: its rows are cut out of the whole text."""

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        N, L, D = x.shape
        a = self.dropout_hidden(self.phi(self.linear1(x.reshape(N, D, L).mT)))
        return self.dropout_z(self.linear2(a)).mT.reshape(N, L, D)


class OneMatrixForBoth(Plain):
    """``z = W₁ᵀ φ(W₁x + b₁) + b₂``: W₂ is there and never used."""

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        a = self.dropout_hidden(self.phi(self.linear1(x)))
        return self.dropout_z(linear(a, self.linear1.weight.T, self.linear2.bias))


class NoActivation(Plain):
    """``z = W₂(W₁x + b₁) + b₂``: two maps in a row are one."""

    def phi(self, h: Float[Tensor, "N L F"]) -> Float[Tensor, "N L F"]:
        return h


class Gated(PreNorm):
    """Right: a block with ``z = W_down (SiLU(W_gate x) ⊙ W_up x)`` for its network."""

    def __init__(self, D: int, H: int, F: int, **options: object) -> None:
        super().__init__(D, H, F, **options)
        del self.linear1, self.linear2
        self.network = SwiGLU(D, F)

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return self.dropout_z(self.network(x))


class GateAndUpSwapped(Gated):
    """``SiLU(W_up x) ⊙ W_gate x``: what should decide is carried, what should be carried decides."""

    def process(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        gate, up = self.network.up_proj(x), self.network.gate_proj(x)
        return self.dropout_z(self.network.down_proj(nn.functional.silu(gate) * up))
