"""A copy of a block on a bench: what goes into each map and what comes out, with any of them switched off."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from oneblock.attention import MultiHeadAttention
from oneblock.checks.probes import answer, quiet, roughened
from oneblock.checks.subject import Subject

WHOLE = (nn.MultiheadAttention, MultiHeadAttention)
"""Attentions whose maps torch reads without calling them: they are known by their type, and not seen on the bench."""


class Seen(NamedTuple):
    """What a module was given and what it gave."""

    given: Tensor
    gave: Tensor


class Bench:
    """A roughened copy without dropout.

    Args:
        subject: the block; a copy is looked at.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = quiet(roughened(subject))
        named = self.subject.block.named_modules()
        self.modules = {name: module for name, module in named if name and not any(True for _ in module.children())}
        self.maps = [name for name, module in self.modules.items() if is_map(module)]
        self.seen: dict[str, Seen] = {}
        for name, module in self.modules.items():
            module.register_forward_hook(partial(self._keep, name))

    def run(self, x: Tensor, valid_tokens: Tensor | None = None, off: Sequence[str] = ()) -> Tensor:
        """The block's rows with weight and bias of the maps ``off`` at 0; ``seen`` holds what else there was, in order."""
        self.seen.clear()
        with switched_off(self.subject.block, off):
            return answer(self.subject, False, x, valid_tokens)

    def _keep(self, name: str, module: nn.Module, given: tuple, result: object) -> None:
        if given and isinstance(given[0], Tensor) and isinstance(result, Tensor):
            self.seen[name] = Seen(given[0].detach().clone(), result.detach().clone())


def is_map(module: nn.Module) -> bool:
    """Whether it is a linear map of rows: a module, not an embedding, whose one matrix is its weight."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, (nn.Embedding, nn.EmbeddingBag))


def switch_off(block: nn.Module, names: Sequence[str]) -> None:
    """Sets weight and bias of these linear maps to 0."""
    with torch.no_grad():
        for name in names:
            for parameter in block.get_submodule(name).parameters():
                parameter.zero_()


@contextmanager
def switched_off(block: nn.Module, names: Sequence[str]) -> Iterator[None]:
    """Weight and bias of these maps are 0 inside, and afterwards what they were."""
    parameters = [parameter for name in names for parameter in block.get_submodule(name).parameters()]
    kept = [parameter.detach().clone() for parameter in parameters]
    switch_off(block, names)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, kept, strict=True):
                parameter.copy_(value)
