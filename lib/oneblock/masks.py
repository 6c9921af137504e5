"""Which tokens are real."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.errors import ArgumentError, DtypeError, ShapeError, check_tensor


def check_valid_tokens(valid_tokens: Bool[Tensor, "N L"], x: Float[Tensor, "N L D"]) -> None:
    """Refuses a mask that does not say of each token of ``x`` whether it is real, ``True``, or padding.

    Two texts of 2 and 3 tokens, padded to 4::

        [[True, True, False, False],
         [True, True, True,  False]]

    Args:
        valid_tokens: ``[N, L]``, bool.
        x: ``[N, L, D]``, the rows it speaks of.
    Raises:
        DtypeError, ShapeError: ``valid_tokens`` is not bool, or not ``[N, L]``.
        ArgumentError: a text has no real token, so that there is nothing to attend to or to average.
    """
    check_tensor("x", x, "N L D")
    due = f"bool [N, L] = {list(x.shape[:2])}"
    hint = "compare your ids with the padding id"
    if not isinstance(valid_tokens, Tensor) or valid_tokens.dtype != torch.bool:
        raise DtypeError("valid_tokens", due, valid_tokens, hint)
    if valid_tokens.shape != x.shape[:2]:
        raise ShapeError("valid_tokens", due, valid_tokens, hint)
    empty = (~valid_tokens.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        due += " with a True in every row"
        raise ArgumentError("valid_tokens", due, valid_tokens, f"rows {empty} are all padding; drop those texts")
