"""Fresh stacks of blocks: where the norms stand, and the first values of the parameters."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from oneblock.blocks import Parts, PostNorm, PreNorm
from oneblock.errors import ArgumentError, check_number, check_size
from oneblock.mutants import NormAfterSum
from oneblock.norms import LayerNorm


T = TypeVar("T")


class Stack(nn.Module):
    """``final(Block_K(… Block_1(x)))``: K blocks, each with parameters of its own.

    ``nn.TransformerEncoder`` copies one layer K times, so that there all layers start equal.

    Args:
        blocks: modules ``[N, L, D] → [N, L, D]``, the first one first.
        final: what stands behind the last: a LayerNorm, or ``nn.Identity()``.
    """

    def __init__(self, blocks: Iterable[Parts], final: nn.Module) -> None:
        super().__init__()
        self.blocks, self.final = nn.ModuleList(blocks), final

    def forward(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        for block in self.blocks:
            x = block(x)
        return self.final(x)


def _no_norm(D: int) -> nn.Module:
    return nn.Identity()


# Where the norms stand: in the block, and behind the last one.
STRUCTURES: dict[str, tuple[type[Parts], Callable[[int], nn.Module]]] = {
    "Pre-LN": (PreNorm, LayerNorm),
    "Pre-LN, no final LN": (PreNorm, _no_norm),
    "Post-LN": (PostNorm, _no_norm),
    "second norm after the sum": (NormAfterSum, _no_norm),
}


def stack(structure: str, K: int, D: int, H: int, F: int) -> Stack:
    """K fresh blocks with ReLU in one of the ``STRUCTURES``, each drawn anew, as PyTorch starts them.

    Raises:
        ArgumentError: there is no such structure, K is not a whole number ≥ 1, a width that a block refuses.
    """
    block, final = named("structure", structure, STRUCTURES)
    check_size("K", K)
    return Stack([block(D, H, F, activation="relu") for _ in range(K)], final(D))


def xavier(deep: Stack) -> None:
    """Every matrix uniform with variance ``2 / (fan_in + fan_out)``, W_Q, W_K and W_V each by itself; biases 0.

    Source: Glorot, Bengio, *Understanding the Difficulty of Training Deep Feedforward Neural Networks*, 2010; the
        initialisation of Xiong et al., 2020, arXiv:2002.04745, there from a normal distribution.
    """
    for name, parameter in deep.blocks.named_parameters():
        if parameter.ndim == 2:
            for matrix in parameter.data.chunk(3 if "in_proj" in name else 1):
                nn.init.xavier_uniform_(matrix)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


def scale_branches(deep: Stack, factor: float) -> None:
    """Multiplies the last projection of every branch, weight and bias: at 0 a Pre-LN block is the identity.

    Raises:
        ArgumentError: ``factor`` is negative or not finite.
    """
    check_number("factor", factor, "a finite number ≥ 0", lambda number: 0 <= number < inf)
    for block in deep.blocks:
        for last in (block.self_attn.out_proj, block.linear2):
            last.weight.data.mul_(factor)
            last.bias.data.mul_(factor)


def shrink_branches(deep: Stack) -> None:
    """:func:`scale_branches` by ``1/√(2K)``, one over the root of the number of branches.

    Source: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019, section 2.3.
    """
    scale_branches(deep, (2 * len(deep.blocks)) ** -0.5)


def _as_built(deep: Stack) -> None:
    """PyTorch's own first values."""


INITS: dict[str, Callable[[Stack], None]] = {
    "PyTorch's default": _as_built,
    "Xavier": xavier,
    "branches / √(2K)": shrink_branches,
}


@contextmanager
def drawn_in_float64(seed: int) -> Iterator[None]:
    """Draws first values from ``seed``, in float64; torch's own seed and dtype are left alone.

    In float32 they would differ in their last bit from one kind of CPU to another.
    """
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


def cut_branches(deep: Stack) -> None:
    """From now on no gradient passes a branch: what flows back keeps to the residual path and the norms on it."""
    for block in deep.blocks:
        block.attend, block.process = _without_gradient(block.attend), _without_gradient(block.process)


def _without_gradient(branch: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *args: branch(*args).detach()


def named(argument: str, name: object, table: dict[str, T]) -> T:
    """``table[name]``; an :class:`~oneblock.errors.ArgumentError` lists the names there are."""
    if not isinstance(name, str) or name not in table:
        raise ArgumentError(argument, f"one of {'; '.join(table)}", name)
    return table[name]
