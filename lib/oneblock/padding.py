"""Padding invariance: nothing that is said of real tokens may depend on what fills the rest of the batch.

Two questions, asked of any callable of ``x`` and ``valid_tokens``. Refill the padding: shapes and arithmetic stay, so
every real number has to stay, to the last bit. Change the length: sums are then taken in another order, and real
numbers may move by rounding. The first question alone does not find a mean that divides by the padded length.

::

    padding_invariance(block, x, valid_tokens).holds
    padding_invariance(lambda x, valid: layer(x, src_key_padding_mask=~valid), x, valid_tokens).holds

``f`` runs in the mode in which it is: train or eval, with or without gradients. Modes, gradients and the state of the
random numbers stay as they were. Buffers that ``f`` itself updates, as BatchNorm does in training, are updated.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.masks import check_valid_tokens

LARGE = 1e4
MORE = 3
STEPS_OF_ROUNDING = 64
"""What another order of the sums may cost, in machine epsilons of the largest real number.

The largest that was seen is 3.1: blocks, stacks of six, PyTorch's layer on both its paths, means and heads, up to
``L = 512``, float32 and float64, with AVX-512, AVX2 and neither.
"""


@dataclass(frozen=True)
class PaddingInvariance:
    """How far the real number moved that moved farthest, by the name of each change; infinity where it became NaN."""

    refilled: dict[str, float]
    resized: dict[str, float]
    rounding: float

    @property
    def holds(self) -> bool:
        """Whether refilling moved nothing at all, and another length nothing beyond ``rounding``."""
        return not any(self.refilled.values()) and all(move <= self.rounding for move in self.resized.values())


def padding_invariance(
    f: Callable[[Tensor, Tensor], Tensor], x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"]
) -> PaddingInvariance:
    """``|f(x′) − f(x)|`` at real tokens, the largest, for batches ``x′`` of the same texts with other padding.

    Args:
        f: returns a row for each token, ``[N, L, ...]``, which is compared at real tokens, or numbers of each text,
            ``[N]`` or ``[N, C]``. Rows behind the last real token may be missing.
        x: ``[N, L, D]``.
        valid_tokens: ``[N, L]``, True for a real token; one position or more is padding.
    Returns:
        ``refilled``: padding of zeros, of random numbers and of large ones, around ±10000; each due to be 0.
        ``resized``: three positions of padding more, and each text alone, without any; due within ``rounding``.
    Raises:
        ArgumentError: ``valid_tokens`` breaks its contract or has no padding; ``f`` answers differently the second
            time, returns no such shape, or what is not finite for a real token.
    Source: a metamorphic test: Chen, Cheung, Yiu, *Metamorphic Testing*, 1998, arXiv:2002.12543.
    """
    with _random_numbers_kept(x):
        base = _base(f, x, valid_tokens)
        real = _real(base, valid_tokens)
        if not real.isfinite().all():
            raise ArgumentError("f", "finite at real tokens", real, "look for NaN or infinity in x")
        return PaddingInvariance(
            _refilled(f, x, valid_tokens, real),
            {f"{MORE} more": _longer(f, x, valid_tokens, real), "each alone": _alone(f, x, valid_tokens, base)},
            STEPS_OF_ROUNDING * torch.finfo(real.dtype).eps * real.abs().max().item(),
        )


def leak(
    f: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "N L D"],
    valid_tokens: Bool[Tensor, "N L"],
    padding: Float[Tensor, "*rows"] | float,
) -> Float[Tensor, "N *rest"]:
    """``|f(x′) − f(x)|``, where ``x′`` is ``x`` with the rows of padding replaced by ``padding``.

    Args:
        f, x, valid_tokens: as in :func:`padding_invariance`.
        padding: as in :func:`refill`.
    Returns:
        how far each position moved, ``[N, L]``, as far as its feature that moved farthest; or each logit, ``[N, C]``.
        A position of padding moves by itself: it is what was changed. Infinity where a number became NaN.
    Raises:
        ArgumentError: as in :func:`padding_invariance`, but for what is not finite.
    """
    with _random_numbers_kept(x):
        before = _base(f, x, valid_tokens)
        moves = _moves(before, _run(f, refill(x, valid_tokens, padding), valid_tokens))
    return moves if moves.ndim < 3 else moves.flatten(2).amax(2)


def refill(
    x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"], padding: Float[Tensor, "*rows"] | float
) -> Float[Tensor, "N L D"]:
    """``x`` with its rows of padding replaced; real rows are copied bit by bit.

    Args:
        padding: a number, or rows ``[D]``, ``[L, D]`` or ``[N, L, D]``; it may be infinite or NaN.
    Raises:
        ArgumentError: ``valid_tokens`` breaks its contract, or ``padding`` has another shape.
    """
    check_valid_tokens(valid_tokens, x)
    rows = torch.as_tensor(padding, dtype=x.dtype, device=x.device)
    if rows.shape != x.shape[3 - rows.ndim :]:
        due = f"a number, [D], [L, D] or [N, L, D] = {list(x.shape)}"
        raise ShapeError("padding", due, padding)
    return torch.where(valid_tokens[..., None], x, rows)


def _random_numbers_kept(x: Tensor) -> AbstractContextManager:
    return torch.random.fork_rng([x.device] if isinstance(x, Tensor) and x.is_cuda else [])


def _base(f: Callable, x: Tensor, valid_tokens: Tensor) -> Tensor:
    """What ``f`` says of ``x``, and says again."""
    check_valid_tokens(valid_tokens, x)
    if valid_tokens.all():
        raise ArgumentError("valid_tokens", "with a False, a position of padding", valid_tokens, "nothing could leak")
    base, again = _run(f, x, valid_tokens), _run(f, x, valid_tokens)
    if _farthest(_real(base, valid_tokens), _real(again, valid_tokens)):
        due = "a callable that answers the same twice"
        raise ArgumentError("f", due, type(f).__name__, "call eval() before, or set dropout to 0")
    return base


def _run(f: Callable, x: Tensor, valid_tokens: Tensor) -> Tensor:
    """A copy goes in, since some modules write into what they are given; no graph comes out."""
    y = f(x.detach().clone(), valid_tokens.clone())
    N, L = valid_tokens.shape
    due = f"a callable to floating [N, L, ...] or [N, C], here with N = {N} and L = {L}"
    if not isinstance(y, Tensor) or not y.is_floating_point():
        raise DtypeError("f", due, y)
    if y.ndim == 0 or len(y) != N:
        raise ShapeError("f", due, y)
    return y.detach()


def _real(y: Tensor, valid_tokens: Tensor) -> Tensor:
    """The numbers of real tokens, ``[tokens, ...]``; those of a text are real throughout."""
    if y.ndim < 3:
        return y
    N, L = valid_tokens.shape
    length = y.shape[1]
    if length > L or valid_tokens[:, length:].any():
        raise ShapeError("f", f"a callable to a row for each real token, here with N = {N} and L = {L}", y)
    return y[valid_tokens[:, :length]]


def _refilled(f: Callable, x: Tensor, valid_tokens: Tensor, real: Tensor) -> dict[str, float]:
    noise = torch.randn(2, *x.shape, generator=torch.Generator().manual_seed(0)).to(x)
    fillings = {"zeros": 0.0, "random": noise[0], "large": LARGE * noise[1]}
    answers = {name: _run(f, refill(x, valid_tokens, rows), valid_tokens) for name, rows in fillings.items()}
    return {name: _farthest(real, _real(y, valid_tokens)) for name, y in answers.items()}


def _longer(f: Callable, x: Tensor, valid_tokens: Tensor, real: Tensor) -> float:
    N, _, D = x.shape
    x = torch.cat([x, x.new_zeros(N, MORE, D)], dim=1)
    valid_tokens = torch.cat([valid_tokens, valid_tokens.new_zeros(N, MORE)], dim=1)
    return _farthest(real, _real(_run(f, x, valid_tokens), valid_tokens))


def _alone(f: Callable, x: Tensor, valid_tokens: Tensor, base: Tensor) -> float:
    farthest = 0.0
    for n, real in enumerate(valid_tokens):
        due, alone = _real(base[n : n + 1], real[None]), _run(f, x[n : n + 1, real], real[None, real])
        farthest = max(farthest, _farthest(due, _real(alone, real[None, real])))
    return farthest


def _farthest(before: Tensor, after: Tensor) -> float:
    return _moves(before, after).max().item()


def _moves(before: Tensor, after: Tensor) -> Tensor:
    """How far each number moved; what was NaN and is NaN did not move, what became NaN moved infinitely far."""
    if before.shape != after.shape:
        raise ShapeError("f", f"a callable to one shape for one batch, here {list(before.shape)}", after)
    same = (before == after) | (before.isnan() & after.isnan())
    return (after - before).abs().nan_to_num(torch.inf, torch.inf).masked_fill(same, 0)
