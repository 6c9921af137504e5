"""What a comparison of blocks is made of, asked of the modules themselves."""

import inspect
from collections.abc import Callable

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from oneblock.errors import ShapeError


def parameters(module: nn.Module) -> int:
    """How many numbers a module learns."""
    return sum(parameter.numel() for parameter in module.parameters())


def flops(call: Callable[[], object]) -> int:
    """The floating-point operations of every matrix product and convolution that ``call`` runs, a multiply-add as 2.

    Attention is spelt out in products for it: torch's counter does not know the fused kernel of a CPU, and counts 0.
    Source: ``torch.utils.flop_counter``.
    """
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def takes_mask(block: nn.Module) -> bool:
    """Whether ``forward`` has a place for ``valid_tokens``."""
    return "valid_tokens" in inspect.signature(block.forward).parameters


def needs_length(block: nn.Module, L: int, D: int) -> bool:
    """Whether a block that takes L positions turns L + 1 down."""
    block(torch.zeros(1, L, D))
    try:
        block(torch.zeros(1, L + 1, D))
    except ShapeError:
        return True
    return False


def pattern(reads: Bool[Tensor, "L L"]) -> str:
    """Who reads whom in one word: ``"itself"``, ``"all"``, ``"earlier"`` (and itself), ``"near"``, or else ``"other"``.

    Args:
        reads: ``[i, j]`` is True where output i moves with input j, as ``reach(block, x).positions``.
    """
    L = len(reads)
    whole = torch.ones(L, L, dtype=torch.bool)
    bands = [whole.tril(reach).triu(-reach) for reach in range(1, L - 1)]
    if any(torch.equal(reads, band) for band in bands):
        return "near"
    known = {"itself": whole.tril().triu(), "all": whole, "earlier": whole.tril()}
    return next((name for name, table in known.items() if torch.equal(reads, table)), "other")
