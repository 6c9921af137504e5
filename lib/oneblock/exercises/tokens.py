"""Exercises on texts of unequal length: the mean, the shares of attention, and a test that padding does not leak."""

from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor

from oneblock.attention import attention
from oneblock.blocks import PreNorm
from oneblock.exercises.exercise import Exercise, numbers
from oneblock.masks import masked_mean
from oneblock.padding import leak

LENGTHS = 3, 5, 1


def _valid_tokens() -> Tensor:
    """Texts of 3, 5 and 1 tokens, padded to 7."""
    return torch.arange(7) < torch.tensor(LENGTHS)[:, None]


def _mean_cases() -> dict[str, tuple]:
    rows, valid_tokens = numbers(3, 7, 5), _valid_tokens()
    nan = rows.masked_fill(~valid_tokens[..., None], float("nan"))
    return {
        "texts of 3, 5 and 1 tokens": (rows, valid_tokens),
        "float32": (rows.float(), valid_tokens),
        "no padding": (rows, torch.ones_like(valid_tokens)),
        "NaN in the padding": (nan, valid_tokens),
    }


def _counts(valid_tokens: Tensor) -> Tensor:
    return valid_tokens.sum(1, keepdim=True)


def _times(rows: Tensor, valid_tokens: Tensor) -> Tensor:
    return (rows * valid_tokens[..., None]).sum(1)


MASKED_MEAN = Exercise(
    "rows valid_tokens",
    masked_mean,
    _mean_cases,
    {
        "by_length": lambda rows, valid: _times(rows, valid) / rows.shape[1],
        "padding_summed": lambda rows, valid: rows.sum(1) / _counts(valid),
        "not_averaged": _times,
        "plain_mean": lambda rows, valid: rows.mean(1),
        "mask_inverted": lambda rows, valid: _times(rows, ~valid) / _counts(~valid),
        "nan_times_zero": lambda rows, valid: _times(rows, valid) / _counts(valid),
    },
)


def _softmax_cases() -> dict[str, tuple]:
    scores, valid_tokens = 2 * numbers(3, 7, 7), _valid_tokens()
    high = scores.masked_fill(~valid_tokens[:, None, :], 1000.0)
    return {
        "texts of 3, 5 and 1 tokens": (scores, valid_tokens),
        "float32": (scores.float(), valid_tokens),
        "no padding": (scores, torch.ones_like(valid_tokens)),
        "high scores at padding": (high, valid_tokens),
    }


def _shares(scores: Tensor, valid_tokens: Tensor) -> Tensor:
    """The library's shares: keys and values that are 1 in one place each make attention show them."""
    L = scores.shape[-1]
    ones = torch.eye(L, dtype=scores.dtype).expand_as(scores)[:, None]
    return attention(scores[:, None] * sqrt(L), ones, ones, valid_tokens)[:, 0]


def _without(scores: Tensor, valid_tokens: Tensor, fill: float = -torch.inf) -> Tensor:
    return scores.masked_fill(~valid_tokens[:, None, :], fill)


MASKED_SOFTMAX = Exercise(
    "scores valid_tokens",
    _shares,
    _softmax_cases,
    {
        "unmasked": lambda scores, valid: scores.softmax(-1),
        "masked_late": lambda scores, valid: scores.softmax(-1) * valid[:, None, :],
        "filled_with_zero": lambda scores, valid: _without(scores, valid, 0.0).softmax(-1),
        "mask_inverted": lambda scores, valid: _without(scores, ~valid).softmax(-1),
        "over_readers": lambda scores, valid: _without(scores, valid).softmax(-2),
        "readers_masked": lambda scores, valid: scores.masked_fill(~valid[..., None], -torch.inf).softmax(-1),
    },
)


class _Blind:
    """A block that was never told of the padding."""

    def __init__(self, block: PreNorm) -> None:
        self.block = block

    def __call__(self, x: Tensor, valid_tokens: Tensor) -> Tensor:
        return self.block(x)


def _block() -> PreNorm:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return PreNorm(6, 2, 11).double().eval()


def _move_cases() -> dict[str, tuple]:
    rest = numbers(3, 7, 6), _valid_tokens(), 3 * numbers(3, 7, 6, seed=1)
    return {"a block that leaks": (_Blind(_block()), *rest), "a block that does not": (_block(), *rest)}


def _move(f: Callable, x: Tensor, valid_tokens: Tensor, other: Tensor) -> Tensor:
    return leak(f, x, valid_tokens, other)[valid_tokens].max()


def _moved(f: Callable, x: Tensor, valid_tokens: Tensor, kept: Tensor, other: Tensor) -> Tensor:
    return f(x.where(kept[..., None], other), valid_tokens) - f(x, valid_tokens)


PADDING_MOVE = Exercise(
    "f x valid_tokens other",
    _move,
    _move_cases,
    {
        "padding_compared": lambda f, x, valid, other: _moved(f, x, valid, valid, other).abs().max(),
        "real_replaced": lambda f, x, valid, other: _moved(f, x, valid, ~valid, other)[valid].abs().max(),
        "sign_kept": lambda f, x, valid, other: _moved(f, x, valid, valid, other)[valid].max(),
        "everything_replaced": lambda f, x, valid, other: (f(other, valid) - f(x, valid))[valid].abs().max(),
    },
)
