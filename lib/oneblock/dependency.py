"""What reads what: which outputs move when one input cell moves, from the derivatives that autograd computes.

A zero is a statement about one input ``x``: a ReLU that is off there hides what it reads elsewhere. Take several
``x``, or :func:`reach` over them, before saying "never".
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.errors import ArgumentError, ShapeError, check_tensor
from oneblock.jacobians import jacobian
from oneblock.masks import check_valid_tokens

ROWS = "a module from [N, L, D] to [N, L, D]"


@dataclass(frozen=True)
class Reach:
    """Who moves whom, over everything else: entry ``[i, j]`` is True where output i moves with input j."""

    features: Bool[Tensor, "D D"]
    positions: Bool[Tensor, "L L"]
    sequences: Bool[Tensor, "N N"]

    @property
    def crosses(self) -> tuple[str, ...]:
        """The axes along which something moves something else."""
        return tuple(name for name, table in vars(self).items() if _off_diagonal(table).any())


def dependency(
    f: Callable, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None
) -> Float[Tensor, "N L D N L D"]:
    """``∂f(x)[n,i,r] / ∂x[m,j,s]`` for every pair of cells: the whole Jacobian, by reverse mode.

    What ``f`` does under ``torch.no_grad()`` or behind ``.detach()`` leaves no trace: its dependence comes out as 0.

    Args:
        f: any callable from ``[N, L, D]`` to ``[N, L, D]``; it is called as ``f(x)`` or ``f(x, valid_tokens)``. Of
            one that draws random numbers, as dropout in training, this is the Jacobian of a single draw.
        x: ``[N, L, D]``, finite.
        valid_tokens: ``[N, L]``, handed on to ``f`` if given.
    Returns:
        ``[N, L, D, N, L, D]``: the output's cell, then the input's.
    Raises:
        ArgumentError: ``x`` or ``valid_tokens`` breaks its contract, or ``f`` returns another shape or has a
            derivative at ``x`` that is not finite: NaN would look like a contact.
    """
    return _finite(jacobian(_of_rows(f, x, valid_tokens), x).detach())


def moved(
    f: Callable,
    x: Float[Tensor, "N L D"],
    cell: tuple[int, int, int] | list[int],
    valid_tokens: Bool[Tensor, "N L"] | None = None,
) -> Float[Tensor, "N L D"]:
    """``∂f(x) / ∂x[cell]``: how far each output cell moves for each small step of one input cell, by forward mode.

    Forward mode sees through ``torch.no_grad()``, but not through ``.detach()``.

    Args:
        cell: ``(n, i, r)``: sequence, position, feature, from 0.
        f, x, valid_tokens: as in :func:`dependency`, of which this is one column.
    Returns:
        ``[N, L, D]``; a cell that does not depend on ``cell`` has exactly 0.
    Raises:
        ArgumentError: as in :func:`dependency`; or ``cell`` is none of ``x``.
    """
    rows = _of_rows(f, x, valid_tokens)
    _check_cell(cell, x)
    touch = torch.zeros_like(x)
    touch[tuple(cell)] = 1
    return _finite(torch.func.jvp(rows, (x,), (touch,))[1].detach())


def reach(f: Callable, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"] | None = None) -> Reach:
    """Which features, positions and sequences of the output move with which of the input.

    Args, Raises: as in :func:`dependency`, and like it of a single draw and blind behind ``.detach()``.
    """
    moves = dependency(f, x, valid_tokens) != 0
    pairs = {"features": (2, 5), "positions": (1, 4), "sequences": (0, 3)}
    others = {name: [axis for axis in range(6) if axis not in kept] for name, kept in pairs.items()}
    return Reach(**{name: moves.sum(dim=axes).bool() for name, axes in others.items()})


def _of_rows(f: Callable, x: Tensor, valid_tokens: Tensor | None) -> Callable[[Tensor], Tensor]:
    """``f`` with its mask, held to returning the shape it got."""
    check_tensor("x", x, "N L D")
    if not x.isfinite().all():
        raise ArgumentError("x", "finite throughout", x, "where x is infinite or NaN, a derivative says nothing")
    if valid_tokens is not None:
        check_valid_tokens(valid_tokens, x)

    def rows(x: Tensor) -> Tensor:
        given = (x.clone(),) if valid_tokens is None else (x.clone(), valid_tokens)
        y = f(*given)  # a copy: some modules write into what they are given
        if not isinstance(y, Tensor) or y.shape != x.shape:
            raise ShapeError("f", f"{ROWS}, here {list(x.shape)}", y)
        return y

    return rows


def _check_cell(cell: object, x: Tensor) -> None:
    """A list of places is fine; a bool is no place."""
    whole = isinstance(cell, (tuple, list)) and len(cell) == 3 and all(type(place) is int for place in cell)
    if not whole or not all(0 <= place < size for place, size in zip(cell, x.shape, strict=True)):
        raise ArgumentError("cell", f"(n, i, r) within {list(x.shape)}, from 0", cell)


def _finite(derivatives: Tensor) -> Tensor:
    if not derivatives.isfinite().all():
        raise ArgumentError("f", "a module with finite derivatives at x", derivatives, "one of them is infinite or NaN")
    return derivatives


def _off_diagonal(table: Tensor) -> Tensor:
    return table & ~torch.eye(len(table), dtype=torch.bool)
