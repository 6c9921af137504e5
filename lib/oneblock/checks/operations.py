"""Which operations of torch a call runs, however the block spells them."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # torch offers nothing else that sees each operation


ATTENTION = "scaled_dot_product"


class Operation(NamedTuple):
    """Its name in torch, whether it drew random numbers, and what it gave."""

    name: str
    random: bool
    shape: torch.Size
    dtype: torch.dtype


def operations(call: Callable[[], object]) -> list[Operation]:
    """The operations of ``call`` that give a tensor, in order."""
    with _Watch() as watch:
        call()
    return watch.seen


class _Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Operation] = []

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> object:
        result = func(*args, **(kwargs or {}))
        first = next((value for value in (result if isinstance(result, tuple) else (result,)) if isinstance(value, Tensor)), None)
        if first is not None:
            self.seen.append(Operation(str(func), _draws(func, args), first.shape, first.dtype))
        return result


def _draws(func: Callable, args: tuple) -> bool:
    """Fused attention may draw, and does where its rate, the one number among its arguments, is above 0."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    return ATTENTION not in str(func) or any(isinstance(value, float) and value > 0 for value in args)
