"""The slopes of the activations: each one's derivative, number by number."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from oneblock.errors import check_tensor


def relu_slope(h: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 above 0, else 0; at the kink, where there is no derivative, 0 as in torch.

    Args:
        h: any shape; the result has the same shape and dtype.
    Raises:
        DtypeError: ``h`` is not a floating tensor.
    Source: here and below, the derivative of the function of ``oneblock.activations``, by hand.
    """
    check_tensor("h", h, "...")
    return (h > 0).to(h.dtype)


def gelu_slope(h: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``Φ(h) + h·Φ′(h)``, where ``Φ′`` is the bell curve ``exp(−h²/2) / √(2π)``.

    Shapes and raises: as :func:`relu_slope`.
    """
    check_tensor("h", h, "...")
    bell = torch.exp(-h.square() / 2) / math.sqrt(2 * math.pi)
    return (1 + torch.erf(h / math.sqrt(2))) / 2 + h * bell


def gelu_tanh_slope(h: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``(1 + t)/2 + h·(1 − t²)·u′/2``, with ``t = tanh(u)`` and ``u = √(2/π)·(h + 0.044715·h³)``.

    Shapes and raises: as :func:`relu_slope`.
    """
    check_tensor("h", h, "...")
    c = math.sqrt(2 / math.pi)
    t = torch.tanh(c * (h + 0.044715 * h**3))
    return (1 + t) / 2 + h * (1 - t.square()) * c * (1 + 3 * 0.044715 * h.square()) / 2


def silu_slope(h: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``s·(1 + h·(1 − s))``, with ``s = sigmoid(h)``.

    Shapes and raises: as :func:`relu_slope`.
    """
    check_tensor("h", h, "...")
    s = torch.sigmoid(h)
    return s * (1 + h * (1 - s))


SLOPES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": relu_slope,
    "gelu": gelu_slope,
    "gelu_tanh": gelu_tanh_slope,
    "silu": silu_slope,
}
"""The derivative of each of ``oneblock.activations.ACTIVATIONS``, number by number: a Jacobian's diagonal."""
