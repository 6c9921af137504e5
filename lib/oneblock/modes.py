"""What kind of run this is: an ordinary one, one that ``torch.func`` transforms, one that a compiler follows."""

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack  # torch.func has no public way to ask


def transformed() -> bool:
    """Whether a transform of ``torch.func`` is under way, such as ``vmap`` or ``jacrev``."""
    return peek_interpreter_stack() is not None


def values_can_be_read(x: Tensor) -> bool:
    """Whether the numbers of ``x`` may decide what Python does next: not where they stand for many, or are not there."""
    return not (transformed() or torch.compiler.is_compiling() or x.is_meta)
