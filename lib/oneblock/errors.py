"""One form of message: the rule, what came, what to do.

The checks read types, shapes and Python numbers: they cost nothing beside the arithmetic and hold under
``torch.func``. A NaN inside a tensor therefore passes through a function, as in torch. Values are read in few
places only: of the masks ``valid_tokens`` and ``may_read``, where a row without a True would give NaN; of ids and
classes, which torch would turn down without a name; of a block's ``x``, where NaN at one position would reach all; and
by :mod:`oneblock.dependency`, to which it would look like a contact. Where values cannot be read, under ``torch.func``
and ``torch.export``, all but the last are left out.
"""

import reprlib
from collections.abc import Callable
from math import inf
from numbers import Integral, Real

import torch
from torch import Tensor

from oneblock.modes import values_can_be_read

ONE_DTYPE = "bring the module and its input to one dtype"


def describe(value: object) -> str:
    """A value in few words: ``float32 [2, 6]`` for a tensor, a short repr for anything else."""
    if isinstance(value, Tensor) and not _is_dense(value):
        return f"a {'nested' if value.is_nested else 'sparse'} tensor"
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, Described):
        return value
    return reprlib.repr(value)


class Described(str):
    """What came, in words that :func:`describe` takes as they are."""


class ArgumentError(ValueError):
    """An argument broke its contract. ``argument`` is its name."""

    def __init__(self, argument: str, due: str, came: object, hint: str = "") -> None:
        self.argument = argument
        message = f"{argument} must be {due}; got {describe(came)}"
        super().__init__(f"{message}; {hint}" if hint else message)


class ShapeError(ArgumentError):
    """A tensor's shape broke its contract."""


class DtypeError(ArgumentError, TypeError):
    """A value is no tensor, or a tensor of the wrong dtype."""


def check_tensor(argument: str, value: object, axes: str, hint: str = "", **sizes: int) -> None:
    """Refuses all but a floating tensor with these axes, none of the named ones empty.

    ``axes`` is written as in a signature: ``"... D"`` or ``"F D"``. ``sizes`` fixes some of them.
    """
    if not isinstance(value, Tensor) or not value.is_floating_point():
        hint = "convert it with .float(); token ids need an embedding first"
        raise DtypeError(argument, _due(axes, sizes), value, hint)
    if not _is_dense(value):
        raise ShapeError(argument, _due(axes, sizes), value, "make it dense, with padding, by to_padded_tensor() or to_dense()")
    letters = axes.removeprefix("... ").split() if axes != "..." else []
    further = value.ndim - len(letters)
    own = dict(zip(letters, value.shape[further:], strict=True)) if further >= 0 else None
    if own is None or (further and "..." not in axes) or any(own[letter] != size for letter, size in sizes.items()):
        raise ShapeError(argument, _due(axes, sizes), value, hint)
    if 0 in own.values():
        due = f"{_due(axes, sizes)} with no axis of size 0"
        raise ShapeError(argument, due, value, "look where it was cut to nothing")


def _is_dense(value: Tensor) -> bool:
    """Whether every row is there and as long as the others."""
    return value.layout == torch.strided and not value.is_nested


def _due(axes: str, sizes: dict[str, int]) -> str:
    letters = axes.split()
    due = f"floating [{', '.join(letters)}]"
    return f"{due} = [{', '.join(str(sizes.get(letter, letter)) for letter in letters)}]" if sizes else due


def check_finite(argument: str, value: Tensor, hint: str = "") -> None:
    """Refuses NaN and infinity, and names the first place of one; of a tensor whose values cannot be read, nothing."""
    if not values_can_be_read(value) or value.isfinite().all():
        return
    odd = ~value.isfinite()
    first = odd.nonzero()[0].tolist()
    came = f"{describe(value)} with {odd.sum().item()} non-finite, the first {value[tuple(first)].item()} at {first}"
    raise ArgumentError(argument, "finite", Described(came), hint)


def check_dtype(argument: str, value: Tensor, x: Tensor, of: str = "x", hint: str = ONE_DTYPE) -> None:
    """Refuses a tensor of another dtype than ``x``; under autocast torch itself brings the two together."""
    if value.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
        raise DtypeError(argument, f"{str(x.dtype).removeprefix('torch.')}, the dtype of {of}", value, hint)


def check_device(argument: str, value: Tensor, x: Tensor, of: str) -> None:
    """Refuses a tensor on another device than ``x``, which the message calls ``of``."""
    if value.device != x.device:
        came = Described(f"{describe(value)} on {value.device}")
        raise ArgumentError(argument, f"on {x.device}, the device of {of}", came, "move it there with .to()")


def check_number(argument: str, value: object, due: str, valid: Callable[[Real], bool]) -> None:
    """Refuses all but a real number (``True`` is none) that is ``valid``."""
    if isinstance(value, bool) or not isinstance(value, Real) or not valid(value):
        raise ArgumentError(argument, due, value)


def check_eps(eps: object) -> None:
    """Refuses a negative, infinite or NaN ε: each would spoil every number of the output."""
    check_number("eps", eps, "a finite number ≥ 0", lambda number: 0 <= number < inf)


def check_size(argument: str, size: object) -> None:
    """Refuses an axis size that is no positive whole number."""
    check_number(argument, size, "a whole number ≥ 1", lambda number: isinstance(number, Integral) and number >= 1)


def check_flag(argument: str, flag: object) -> None:
    """Refuses a switch that is neither ``True`` nor ``False``."""
    if not isinstance(flag, bool):
        raise ArgumentError(argument, "True or False", flag)


def check_probability(argument: str, p: object) -> None:
    """Refuses a dropout rate outside ``[0, 1)``; at 1 nothing would be left."""
    check_number(argument, p, "a number in [0, 1)", lambda number: 0 <= number < 1)
