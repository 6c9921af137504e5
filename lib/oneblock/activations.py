"""Activations, each from elementary operations, one number at a time."""

import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from oneblock.errors import ArgumentError, check_tensor
from oneblock.precision import widened
from oneblock.trace import written_out


def relu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``max(x, 0)``; at the kink the slope is 0, as in torch.

    Args:
        x: any shape; the result has the same shape and dtype.
    Raises:
        DtypeError: ``x`` is not a floating tensor.
    Source: Nair, Hinton, *Rectified Linear Units Improve Restricted Boltzmann Machines*, 2010.
    """
    check_tensor("x", x, "...")
    # Not x * (x > 0): minus infinity would give NaN.
    return torch.where(x <= 0, 0, x)


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``x · Φ(x)`` with the normal distribution ``Φ(x) = (1 + erf(x/√2)) / 2``, exactly.

    Shapes and raises: as :func:`relu`. Half precision is computed in float32 and rounded once.
    Source: Hendrycks, Gimpel, *Gaussian Error Linear Units*, 2016, arXiv:1606.08415.
    """
    check_tensor("x", x, "...")
    wide = widened(x)
    return (wide * (1 + torch.erf(wide / math.sqrt(2))) / 2).to(x.dtype)


def gelu_tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``x · (1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2``, which stays within 0.0005 of :func:`gelu`.

    Shapes and raises: as :func:`relu`. Half precision is computed in float32 and rounded once.
    Source: the same paper, section 2.
    """
    check_tensor("x", x, "...")
    wide = widened(x)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    return (wide * (1 + torch.tanh(inner)) / 2).to(x.dtype)


def silu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """``x · sigmoid(x)``; it bends negative numbers towards 0 and deletes none.

    Shapes and raises: as :func:`relu`. Half precision is computed in float32 and rounded once.
    Source: Elfwing, Uchibe, Doya, 2017, arXiv:1702.03118; Ramachandran, Zoph, Le, 2017,
        arXiv:1710.05941, who call it Swish.
    """
    check_tensor("x", x, "...")
    wide = widened(x)
    # Not 1 / (1 + exp(-x)): where exp overflows its gradient is NaN.
    return (wide * torch.sigmoid(wide)).to(x.dtype)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
}


KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}
"""The same, each as one kernel of torch."""

Activation = str | Callable[[Tensor], Tensor]


def activation_named(activation: Activation) -> Callable[[Tensor], Tensor]:
    """φ by its name: its formula, or torch's kernel where nothing is :func:`~oneblock.trace.written_out`. A callable is φ itself.

    Raises:
        ArgumentError: there is none of this name; the message lists those there are.
    """
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return (ACTIVATIONS if written_out() else KERNELS)[activation]
    if not callable(activation):
        raise ArgumentError("activation", f"one of {', '.join(ACTIVATIONS)}, or a callable", activation)
    return activation
