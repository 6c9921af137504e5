"""Padding and what it costs: a mask hides it from the result and leaves it in the bill.

Texts of different lengths are computed as a rectangle, padded to the longest; one behind the other in one long row,
packed; or as a nested tensor of torch. Operations are those of :mod:`oneblock.costs`.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pad_sequence
from torch.utils.flop_counter import FlopCounterMode

from oneblock.blocks import PreNorm, first_sum, second_sum
from oneblock.costs import attention_flops, ffn_flops
from oneblock.errors import ArgumentError, check_size


def padding_share(lengths: Sequence[int]) -> float:
    """``1 − Σ n / (N · max n)``: how much of the rectangle is padding.

    Raises:
        ArgumentError: there is no text, or a length is not a whole number ≥ 1.
    """
    _check_lengths(lengths)
    return 1 - sum(lengths) / (len(lengths) * max(lengths))


def block_flops(D: int, F: int, L: int) -> int:
    """What one block computes for one sequence: ``8LD² + 4L²D + 4LDF``, matrix products only."""
    return attention_flops(D, L) + ffn_flops(D, F, L)


def padded_flops(lengths: Sequence[int], D: int, F: int) -> int:
    """N times the longest text. No mask is among the arguments: dense products are computed whatever it says.

    Raises:
        ArgumentError: as :func:`padding_share`, or a width is not a whole number ≥ 1.
    """
    _check_lengths(lengths)
    return len(lengths) * block_flops(D, F, max(lengths))


def packed_flops(lengths: Sequence[int], D: int, F: int) -> int:
    """One row of ``Σ n`` positions. Projections and FFN meet each real token once; dense scores meet all pairs of all texts."""
    _check_lengths(lengths)
    return block_flops(D, F, sum(lengths))


def needed_flops(lengths: Sequence[int], D: int, F: int) -> int:
    """Each text alone: what a kernel for variable lengths is left with."""
    _check_lengths(lengths)
    return sum(block_flops(D, F, n) for n in lengths)


def counted_flops(call: Callable[[], object]) -> int:
    """What torch's counter counts while ``call`` runs, with attention by matrix products: it does not see the fused kernel.

    Source: ``torch.utils.flop_counter``.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def padded(texts: Sequence[Float[Tensor, "_ D"]]) -> tuple[Float[Tensor, "N L D"], Bool[Tensor, "N L"]]:
    """The rectangle, and ``valid_tokens``."""
    lengths = torch.tensor([len(text) for text in texts])
    return pad_sequence(list(texts), batch_first=True), torch.arange(lengths.max()) < lengths[:, None]


def packed(texts: Sequence[Float[Tensor, "_ D"]]) -> tuple[Float[Tensor, "1 L D"], Bool[Tensor, "L L"]]:
    """All texts in one row, and who may read whom: True where two positions belong to one text.

    ::

        two texts, of 2 and of 1 token:   1 1 0
                                          1 1 0
                                          0 0 1
    """
    text_of = torch.arange(len(texts)).repeat_interleave(torch.tensor([len(text) for text in texts]))
    return torch.cat(list(texts))[None], text_of[:, None] == text_of


def packed_block(
    block: PreNorm, x: Float[Tensor, "1 L D"], may_read: Bool[Tensor, "L L"]
) -> Float[Tensor, "1 L D"]:
    """The equation of :class:`oneblock.blocks.PreNorm` with a mask ``[L, L]``; in ``eval()``."""
    u = first_sum(x, block.self_attn(block.first_norm(x), may_read=may_read))
    return second_sum(u, block.process(block.second_norm(u)))


def by_length(lengths: Sequence[int], batch: int) -> list[list[int]]:
    """Batches of texts of like length: sorted, then cut, so that each is padded to a longest one near by.

    Raises:
        ArgumentError: as :func:`padding_share`, or ``batch`` is not a whole number ≥ 1.
    """
    _check_lengths(lengths)
    check_size("batch", batch)
    ordered = sorted(lengths)
    return [ordered[start : start + batch] for start in range(0, len(ordered), batch)]


def _check_lengths(lengths: Sequence[int]) -> None:
    if not lengths:
        raise ArgumentError("lengths", "of one text or more", lengths)
    for n in lengths:
        check_size("lengths", n)
