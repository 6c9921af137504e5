"""The residual sum."""

from jaxtyping import Float
from torch import Tensor

from oneblock.errors import ShapeError, check_dtype, check_tensor
from oneblock.trace import tap


def residual(x: Float[Tensor, "*N D"], increment: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
    """``y = x + Δ``, element by element: the row itself and what a branch adds to it.

    Args:
        x, increment: both ``[..., D]``, the very same shape and, but under autocast, dtype.
    Raises:
        ShapeError: the shapes differ. torch would stretch a width of 1 to D, and a missing ``N`` or ``L``
            to the whole batch, without a word.
        DtypeError: one of them is not a floating tensor, or the dtypes differ. Under autocast they may: there a
            branch comes back in half precision, and torch takes the sum in the wider dtype.
    Source: He, Zhang, Ren, Sun, *Deep Residual Learning*, 2015, arXiv:1512.03385.
    """
    check_tensor("x", x, "... D")
    check_tensor("increment", increment, "...")
    if increment.shape != x.shape:
        due = f"floating {list(x.shape)}, the shape of x"
        raise ShapeError("increment", due, increment, "the sum is element by element; project the branch back to D")
    check_dtype("increment", increment, x, hint="a sum of two would have the dtype of the wider; cast one of them")
    return tap("y", x + increment, "{x} + {increment}", "{x[d]} + {increment[d]}", x=x, increment=increment)
