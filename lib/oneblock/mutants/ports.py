"""Blocks that take another model's parameters and do something else with them."""

from collections.abc import Iterable

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from oneblock.blocks import PreNorm
from oneblock.mutants.plain import Plain


class TanhGelu(PreNorm):
    """The tanh form of GELU for parameters that were learned with the exact one."""

    def __init__(self, D: int, H: int, F: int, **options: object) -> None:
        super().__init__(D, H, F, **{**options, "activation": "gelu_tanh"})


class OtherEps(PreNorm):
    """ε = 10⁻¹², BERT's, for parameters that were learned with 10⁻⁵."""

    def __init__(self, D: int, H: int, F: int, **options: object) -> None:
        super().__init__(D, H, F, **{**options, "eps": 1e-12})


class KeysFirst(Plain):
    """``in_proj_weight`` read as K, Q, V where it holds Q, K, V: every score moves to the other side of the diagonal."""

    def project(self, x: Float[Tensor, "N L D"]) -> Iterable[Float[Tensor, "N L D"]]:
        k, q, v = super().project(x)
        return q, k, v


class OutputTransposed(Plain):
    """``W_Oᵀ`` for ``W_O``: a weight stored ``[in, out]``, which fits since it is square."""

    def out(self, joined: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return linear(joined, self.self_attn.out_proj.weight.T, self.self_attn.out_proj.bias)
