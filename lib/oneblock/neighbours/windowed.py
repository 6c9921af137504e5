"""Attention that may read near positions only."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.blocks import PreNorm
from oneblock.errors import check_size


def windowed(L: int, reach: int) -> Bool[Tensor, "L L"]:
    """``may_read[i, j] = |i − j| ≤ reach``. For L = 4 and a reach of 1::

        [[True,  True,  False, False],
         [True,  True,  True,  False],
         [False, True,  True,  True ],
         [False, False, True,  True ]]

    Args:
        L: the number of positions; reach: how many of them to either side, both ≥ 1.
    Raises:
        ArgumentError: one of them is no whole number ≥ 1.
    Source: Beltagy, Peters, Cohan, *Longformer*, 2020, section 3.1, arXiv:2004.05150.
    """
    check_size("L", L)
    check_size("reach", reach)
    return torch.ones(L, L, dtype=torch.bool).tril(reach).triu(-reach)


class WindowedBlock(PreNorm):
    """:class:`oneblock.blocks.PreNorm` in which a position reads those at most ``reach`` away.

    The scores are all computed and most are masked away: the mask changes who reads whom, not what a dense kernel costs.

    Args:
        reach: in positions, to either side.
        D, H, F, options: as for ``PreNorm``.
    Called with and raises: as ``PreNorm``; also where padding leaves a position nothing to read within its reach.
    Source: as :func:`windowed`.
    """

    def __init__(self, D: int, H: int, F: int, reach: int, **options: object) -> None:
        super().__init__(D, H, F, **options)
        check_size("reach", reach)
        self.reach = reach

    def may_read(self, x: Float[Tensor, "N L D"]) -> Bool[Tensor, "L L"]:
        return windowed(x.shape[1], self.reach).to(x.device)
