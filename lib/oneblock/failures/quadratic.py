"""What a longer text costs: bytes and time of attention with its scores written out, of the fused kernel, of an FFN.

Each way takes rows ``[1, L, D]``. Bytes are exact; ``book/data/quadratic_study.py`` stores times of one machine::

    costs = load("data/quadratic_study.json", Cost)
    doubling(costs, "scores written out", "seconds")
"""

from collections.abc import Callable, Sequence
from time import process_time
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from oneblock.attention import attention
from oneblock.errors import check_size
from oneblock.ffn import FFN
from oneblock.memory import kept, nbytes, peak
from oneblock.stacks import named

D, H = 64, 4


class Heads(nn.Module):
    """``mix = attend(q, k, v)`` with q, k and v the rows themselves, in H = 4 heads: attention without its projections."""

    def __init__(self, attend: Callable[..., Tensor]) -> None:
        super().__init__()
        self.attend = attend

    def forward(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N H L E"]:
        heads = x.unflatten(-1, (H, -1)).transpose(1, 2)
        return self.attend(heads, heads, heads)


WAYS: dict[str, Callable[[], nn.Module]] = {
    "scores written out": lambda: Heads(attention),
    "fused kernel": lambda: Heads(scaled_dot_product_attention),
    "FFN, F = 4D": lambda: FFN(D, 4 * D),
}


def rows(L: int) -> Float[Tensor, "1 L D"]:
    """Random rows in float32, as some layer below would give them: with a gradient."""
    check_size("L", L)
    return torch.randn(1, L, D, generator=torch.Generator().manual_seed(0), dtype=torch.float32).requires_grad_()


def kept_bytes(way: str, L: int) -> int:
    """What a way keeps for its backward pass, its parameters apart.

    Args:
        way: a key of ``WAYS``.
    Raises:
        ArgumentError: there is no such way, or L is not a whole number ≥ 1.
    Source: :func:`oneblock.memory.kept`.
    """
    return nbytes(kept(named("way", way, WAYS)().float(), rows(L)))


def peak_bytes(way: str, L: int) -> int:
    """The most bytes that a way holds at once when it runs without gradients. Arguments and errors as above."""
    module, x = named("way", way, WAYS)().float(), rows(L).detach()
    with torch.no_grad():
        return peak(lambda: module(x))


def seconds(way: str, L: int, repeats: int = 5) -> float:
    """The shortest of some runs, without gradients, in seconds of this process: what others do on the machine counts less."""
    module, x = named("way", way, WAYS)().float(), rows(L).detach()
    return min(_once(module, x) for _ in range(repeats + 1))


@torch.no_grad()
def _once(module: nn.Module, x: Tensor) -> float:
    start = process_time()
    module(x)
    return process_time() - start


class Cost(NamedTuple):
    """One way at one length."""

    way: str
    L: int
    kept: int
    peak: int
    seconds: float


def cost(way: str, L: int) -> Cost:
    """All three measures."""
    return Cost(way, L, kept_bytes(way, L), peak_bytes(way, L), seconds(way, L))


def doubling(costs: Sequence[Cost], way: str, what: str) -> list[float]:
    """By which factor a measure grows from each length to the next, which is twice as long, in order."""
    values = [getattr(one, what) for one in sorted(costs, key=lambda one: one.L) if one.way == way]
    return [after / before for before, after in zip(values, values[1:], strict=False)]
