"""Ways to tell a row its place, and what each has to say of a place that no training text had."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from oneblock.errors import ArgumentError, check_size

BASE = 10_000.0


class LearnedRows(nn.Module):
    """``P_p = W[p]``: a learned row for each of ``most`` places.

    The gradient reaches the rows of the places that were met. The others stay as they were drawn.

    Called with:
        places: int64 ``[..., L]``, each from 0 to ``most − 1``.
    Returns:
        ``[..., L, D]``.
    Raises:
        ArgumentError: a place has no row.
    Source: Devlin et al., *BERT*, 2019, arXiv:1810.04805.
    """

    def __init__(self, D: int, most: int) -> None:
        super().__init__()
        check_size("D", D)
        check_size("most", most)
        self.table = nn.Embedding(most, D)

    def forward(self, places: Int[Tensor, "*N L"]) -> Float[Tensor, "*N L D"]:
        most, farthest = self.table.num_embeddings, places.max().item()
        if farthest >= most:
            due = f"from 0 to {most - 1}, as there are {most} rows"
            raise ArgumentError("places", due, farthest, "cut the text, or learn more rows")
        return self.table(places)


class Sinusoids(nn.Module):
    """``P_p = [sin(p ω_0), cos(p ω_0), sin(p ω_1), …]`` with ``ω_k = 10000^(−2k/D)``: a row for every place there is.

    Called with:
        places: int64 ``[..., L]``.
    Returns:
        ``[..., L, D]``, each number from −1 to 1; nothing is learned.
    Raises:
        ArgumentError: D is odd.
    Source: Vaswani et al., *Attention Is All You Need*, 2017, section 3.5, arXiv:1706.03762.
    """

    def __init__(self, D: int) -> None:
        super().__init__()
        check_size("D", D)
        if D % 2:
            raise ArgumentError("D", "even, a sine and a cosine for each frequency", D)
        self.register_buffer("omega", BASE ** -(torch.arange(0, D, 2, dtype=torch.float64) / D).to(torch.get_default_dtype()))

    def forward(self, places: Int[Tensor, "*N L"]) -> Float[Tensor, "*N L D"]:
        angles = places[..., None] * self.omega
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class NoPlaces(nn.Module):
    """``P_p = 0``: attention without positions reads a text as a bag of rows.

    Called with:
        places: int64 ``[..., L]``.
    Returns:
        ``[..., L, D]`` of zeros.
    """

    def __init__(self, D: int) -> None:
        super().__init__()
        check_size("D", D)
        self.D = D

    def forward(self, places: Int[Tensor, "*N L"]) -> Float[Tensor, "*N L D"]:
        return torch.zeros(*places.shape, self.D)
