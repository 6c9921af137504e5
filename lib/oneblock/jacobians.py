"""Jacobians in closed form: the matrix of all derivatives, written out and not differentiated by a program.

Row ``i``, column ``j`` is ``∂(output i)/∂(input j)``, so the Jacobian of ``g(f(x))`` is ``J_g(f(x)) @ J_f(x)``:
what acts first stands on the right. Each function takes one row; ``torch.vmap`` takes it over many.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from oneblock.errors import ArgumentError, ShapeError, check_eps, check_tensor
from oneblock.norms import layer_norm
from oneblock.precision import widened
from oneblock.slopes import SLOPES

ONE_ROW = "a Jacobian is taken at one row; torch.vmap goes over the rows of a batch"


def jacobian(f: Callable[[Tensor], Tensor], x: Float[Tensor, "*input"]) -> Float[Tensor, "..."]:
    """``∂f(x)[i] / ∂x[j]`` of any callable, by automatic differentiation: what the closed forms are held to.

    Args:
        f: a function or a module; one that draws random numbers, as dropout in training, has no Jacobian.
        x: any shape.
    Returns:
        ``[*output, *input]``: the axes of ``f(x)``, then those of ``x``; ``[D, D]`` for a row.
    Raises:
        DtypeError: ``x`` is not a floating tensor.
    Source: ``torch.func.jacrev``.
    """
    check_tensor("x", x, "...")
    return torch.func.jacrev(f)(x)


def layer_norm_jacobian(
    x: Float[Tensor, " D"], gamma: Float[Tensor, " D"] | None = None, eps: float = 1e-5
) -> Float[Tensor, "D D"]:
    """``J_LN = diag(γ) (I − 11ᵀ/D − x̂x̂ᵀ/D) / s``, with ``s = √(σ² + ε)`` and ``x̂ = (x − μ)/s``.

    β drops out. By γ the derivative is ``diag(x̂)``, by β it is ``I``.

    Two directions are bent. Along ``1``, all ones, nothing passes: a common shift is invisible. Along the
    centred row ``x − μ`` the factor is ``ε/s³``, 0 for ``ε = 0``: a common stretch is invisible. All other
    directions are divided by ``s``. So without a 0 in γ the rank is ``D − 1``, and ``D − 2`` where ``ε = 0``.
    It is symmetric where γ is one number throughout. At ``D = 2`` and ``ε = 0`` no direction is left: it is 0.

    Args:
        x: ``[D]``; gamma: ``[D]``, ``None`` means 1.
        eps: ε, in the unit of ``x²``. A constant row with ``ε = 0`` gives NaN.
    Returns:
        ``[D, D]``, in the unit ``1/x``. Half precision is computed in float32 and rounded once, as the norm is.
    Raises:
        ArgumentError: naming the argument, for a tensor that is not floating ``[D]``, or a bad ε.
    Source: derived here; the operation is that of Ba, Kiros, Hinton, 2016, arXiv:1607.06450.
    """
    _check(x, gamma, eps)
    wide, D = widened(x), x.shape[-1]
    centred = wide - wide.mean()
    s = (centred.square().mean() + eps).sqrt()
    x_hat = centred / s
    J = (_unit(wide) - 1 / D - torch.outer(x_hat, x_hat) / D) / s
    return (J if gamma is None else gamma[:, None] * J).to(x.dtype)


def rms_norm_jacobian(
    x: Float[Tensor, " D"], gamma: Float[Tensor, " D"] | None = None, eps: float | None = None
) -> Float[Tensor, "D D"]:
    """``J_RMS = diag(γ) (I − x̂x̂ᵀ/D) / rms``, with ``rms = √(mean(x²) + ε)`` and ``x̂ = x/rms``.

    One direction is bent: along ``x`` the factor is ``ε/rms³``, 0 for ``ε = 0``. All others are divided by
    ``rms``, a common shift too. So without a 0 in γ the rank is ``D``, and ``D − 1`` where ``ε = 0``.

    Args:
        x: ``[D]``; gamma: ``[D]``, ``None`` means 1.
        eps: ε, in the unit of ``x²``; ``None`` is that of :func:`oneblock.norms.rms_norm`. A row of zeros with
            ``ε = 0`` gives NaN.
    Returns:
        ``[D, D]``, in the unit ``1/x``.
    Raises:
        ArgumentError: as in :func:`layer_norm_jacobian`.
    Source: derived here; the operation is that of Zhang, Sennrich, 2019, arXiv:1910.07467.
    """
    check_tensor("x", x, "D", ONE_ROW)
    wide, D = widened(x), x.shape[-1]
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    _check(x, gamma, eps)
    rms = (wide.square().mean() + eps).sqrt()
    x_hat = wide / rms
    J = (_unit(wide) - torch.outer(x_hat, x_hat) / D) / rms
    return (J if gamma is None else gamma[:, None] * J).to(x.dtype)


def softmax_jacobian(weights: Float[Tensor, " L"]) -> Float[Tensor, "L L"]:
    """``diag(α) − ααᵀ`` by the scores, where ``weights`` is ``α = softmax(scores)``.

    Symmetric; all ones are in its null space, since a common shift of the scores changes no weight. The rank is
    one less than the number of weights above 0: a weight of 0, as behind a mask, has a row and a column of zeros.

    Args:
        weights: ``[L]``, which softmax has made: not the scores.
    Returns:
        ``[L, L]``.
    Raises:
        ArgumentError: ``weights`` is not floating ``[L]``.
    Source: derived here.
    """
    check_tensor("weights", weights, "L", ONE_ROW)
    return torch.diag(weights) - torch.outer(weights, weights)


def ffn_jacobian(
    x: Float[Tensor, " D"],
    W1: Float[Tensor, "F D"],
    b1: Float[Tensor, " F"],
    W2: Float[Tensor, "D F"],
    activation: str = "relu",
) -> Float[Tensor, "D D"]:
    """``J_FFN = W₂ diag(φ′(W₁x + b₁)) W₁``; b₂ drops out.

    Args:
        x: ``[D]``; W1, b1: ``[F, D]`` and ``[F]``; W2: ``[D, F]``.
        activation: the name of φ in ``oneblock.activations.ACTIVATIONS``.
    Returns:
        ``[D, D]``, of rank ``F`` at most.
    Raises:
        ArgumentError: naming the argument, for a tensor that is not floating or whose sizes do not fit, or an
            activation that does not exist.
    Source: derived here; the operation is :func:`oneblock.ffn.ffn`.
    """
    check_tensor("x", x, "D", ONE_ROW)
    check_tensor("W1", W1, "F D", D=x.shape[-1])
    check_tensor("b1", b1, "F", F=W1.shape[0])
    check_tensor("W2", W2, "D F", D=x.shape[-1], F=W1.shape[0])
    if activation not in SLOPES:
        raise ArgumentError("activation", f"one of {', '.join(SLOPES)}", activation)
    slopes = SLOPES[activation](W1 @ x + b1)
    return W2 @ (slopes[:, None] * W1)


def pre_ln_factors(
    S: Callable[[Tensor], Tensor],
    x: Float[Tensor, " D"],
    gamma: Float[Tensor, " D"] | None = None,
    beta: Float[Tensor, " D"] | None = None,
    eps: float = 1e-5,
) -> tuple[Float[Tensor, "D D"], Float[Tensor, "D D"]]:
    """``J_S(LN(x))`` and ``J_LN(x)``: what a Pre-LN sublayer's Jacobian is made of, each at its own place.

    Args:
        S: the sublayer, from ``[D]`` to ``[D]``: any function or module.
        x, gamma, beta, eps: as in :func:`oneblock.norms.layer_norm`. β moves the place where S is met.
    Returns:
        Two matrices ``[D, D]``, for :func:`pre_ln_jacobian`.
    Raises:
        ArgumentError: as in :func:`layer_norm_jacobian`, or ``S`` gives anything but one row ``[D]``.
    Source: derived here, by the chain rule.
    """
    J_LN = layer_norm_jacobian(x, gamma, eps)
    return jacobian(_row_to_row(S), layer_norm(x, gamma, beta, eps)), J_LN


def post_ln_factors(
    S: Callable[[Tensor], Tensor],
    x: Float[Tensor, " D"],
    gamma: Float[Tensor, " D"] | None = None,
    eps: float = 1e-5,
) -> tuple[Float[Tensor, "D D"], Float[Tensor, "D D"]]:
    """``J_LN(x + S(x))`` and ``J_S(x)``: what a Post-LN sublayer's Jacobian is made of, each at its own place.

    Args, returns, raises and source: as in :func:`pre_ln_factors`. β comes after everything and drops out.
    """
    check_tensor("x", x, "D", ONE_ROW)
    S = _row_to_row(S)
    return layer_norm_jacobian(x + S(x), gamma, eps), jacobian(S, x)


def pre_ln_jacobian(J_S: Float[Tensor, "D D"], J_LN: Float[Tensor, "D D"]) -> Float[Tensor, "D D"]:
    """``∂y/∂x = I + J_S(LN(x)) J_LN(x)`` for ``y = x + S(LN(x))``: the ``I`` crosses neither norm nor sublayer.

    It is no lower bound: the product may be ``−I`` in some direction. Only along ``1``, where ``J_LN`` is 0, does
    the ``I`` always stand alone.

    Args:
        J_S, J_LN: ``[D, D]``, as :func:`pre_ln_factors` returns them.
    Returns:
        ``[D, D]``.
    Raises:
        ArgumentError: they are not square floating matrices of one size.
    Source: Xiong et al., *On Layer Normalization in the Transformer Architecture*, 2020, arXiv:2002.04745.
    """
    _check_pair(J_S=J_S, J_LN=J_LN)
    return _unit(J_S) + J_S @ J_LN


def post_ln_jacobian(J_LN: Float[Tensor, "D D"], J_S: Float[Tensor, "D D"]) -> Float[Tensor, "D D"]:
    """``∂y/∂x = J_LN(x + S(x)) (I + J_S(x))`` for ``y = LN(x + S(x))``: every path crosses the norm.

    So it is never invertible: its rank is that of ``J_LN`` at most.

    Args, returns, raises and source: as in :func:`pre_ln_jacobian`, from :func:`post_ln_factors`.
    """
    _check_pair(J_LN=J_LN, J_S=J_S)
    return J_LN @ (_unit(J_S) + J_S)


def _row_to_row(S: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """``S``, held to returning the shape it got."""

    def checked(x: Tensor) -> Tensor:
        y = S(x)
        if not isinstance(y, Tensor) or y.shape != x.shape:
            raise ShapeError("S", f"a sublayer from [D] to [D], here {list(x.shape)}", y)
        return y

    return checked


def _unit(like: Tensor) -> Tensor:
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def _check(x: Tensor, gamma: Tensor | None, eps: float) -> None:
    check_tensor("x", x, "D", ONE_ROW)
    check_eps(eps)
    if gamma is not None:
        check_tensor("gamma", gamma, "D", D=x.shape[-1])


def _check_pair(**factors: Tensor) -> None:
    """Refuses two matrices that are not square and of one size."""
    for name, J in factors.items():
        check_tensor(name, J, "D D")
    D = next(iter(factors.values())).shape[-1]
    for name, J in factors.items():
        if list(J.shape) != [D, D]:
            raise ShapeError(name, f"floating [D, D] = {[D, D]}", J, "a sublayer takes D features and gives D")
