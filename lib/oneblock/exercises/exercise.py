"""What a coding exercise is: the library's answer, the cases it is compared in, and the mistakes it knows."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor


def called(function: Callable, *given: object) -> object:
    """What the reader's function returns."""
    return function(*given)


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Args:
        arguments: the names of what a function is given, with spaces between.
        due: what is due for what is given.
        cases: makes what is given, by each case's name; the first one tells the mistakes apart.
        wrong: by a mistake's name, a key of ``exercises.mistakes`` or ``misreadings`` in ``words``, who makes it.
        run: how a function is called, where that is not simply with what is given.
    """

    arguments: str
    due: Callable
    cases: Callable[[], dict[str, tuple]]
    wrong: dict[str, Callable] = field(default_factory=dict)
    run: Callable = called


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Between −1 and 1, without pattern and always the same."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=torch.float64).mul(2).sub(1).to(dtype)


def several(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """A tensor for each shape."""
    return tuple(numbers(*shape, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes))
