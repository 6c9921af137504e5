"""One form of message: the rule, what came, what to do."""

from torch import Tensor


def describe(value: object) -> str:
    """A value in few words: ``float32 [2, 6]`` for a tensor, its repr for anything else."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return repr(value)


class ArgumentError(ValueError):
    """An argument broke its contract. ``argument`` is its name."""

    def __init__(self, argument: str, due: str, came: object, hint: str = "") -> None:
        self.argument = argument
        message = f"{argument} must be {due}; got {describe(came)}"
        super().__init__(f"{message}; {hint}" if hint else message)


class ShapeError(ArgumentError):
    """A tensor's shape broke its contract."""


class DtypeError(ArgumentError, TypeError):
    """A tensor's dtype broke its contract."""
