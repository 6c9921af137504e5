"""A block in which no position reads a later one, and which therefore can run one position at a time."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from oneblock.blocks import PreNorm, first_sum, second_sum
from oneblock.errors import ShapeError, check_size
from oneblock.neighbours.reading import KeysValues, keys_values, read


def causal(L: int) -> Bool[Tensor, "L L"]:
    """``may_read[i, j] = (j ≤ i)``. For L = 3::

        [[True, False, False],
         [True, True,  False],
         [True, True,  True ]]

    Args:
        L: the number of positions, ≥ 1.
    Raises:
        ArgumentError: ``L`` is no whole number ≥ 1.
    Source: Vaswani et al., *Attention Is All You Need*, 2017, section 3.2.3, arXiv:1706.03762.
    """
    check_size("L", L)
    return torch.ones(L, L, dtype=torch.bool).tril()


class CausalBlock(PreNorm):
    """:class:`oneblock.blocks.PreNorm` in which position i reads positions j ≤ i: the block of a decoder-only model.

    Parameters, arguments, call and errors are those of ``PreNorm``. Padding has to stand behind the real tokens: a
    first position that is padding leaves nothing to read.

    Source: Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019;
        ``torch.nn.TransformerEncoderLayer(norm_first=True, batch_first=True)`` with a causal ``src_mask``.
    """

    def may_read(self, x: Float[Tensor, "N L D"]) -> Bool[Tensor, "L L"]:
        return causal(x.shape[1]).to(x.device)

    def next(
        self, x: Float[Tensor, "N 1 D"], past: KeysValues | None = None
    ) -> tuple[Float[Tensor, "N 1 D"], KeysValues]:
        """The block's row at one more position, and what all rows so far hand over: the past of the next call.

        As rows arrive one by one, this gives what ``forward`` gives for all at once, and no row is computed twice.

        Args:
            x: ``[N, 1, D]``, the next row of each sequence; no padding.
            past: what the call before returned; ``None`` at the first position.
        Raises:
            ShapeError: ``x`` is not one row of each sequence, or ``past`` is of another number of them.
        Source: Shazeer, *Fast Transformer Decoding*, 2019, section 2.4, arXiv:1911.02150.
        """
        self.enter(x)
        attended, past = self._read_next(self.first_norm(x), past)
        u = first_sum(x, self.dropout_attended(attended))
        return second_sum(u, self.process(self.second_norm(u))), past

    def _read_next(self, row: Tensor, past: KeysValues | None) -> tuple[Tensor, KeysValues]:
        """What the newest row reads of all so far, itself included."""
        if row.shape[1] != 1:
            raise ShapeError("x", f"floating [N, 1, D] = {[len(row), 1, self.D]}", row, "one position at a time")
        if past is not None and len(past.k) != len(row):
            raise ShapeError("past", f"of {len(row)} sequences, as x", past.k, "start anew with past=None")
        own = keys_values(self.self_attn, row)
        past = own if past is None else past.followed_by(own)
        return read(self.self_attn, row, past), past
