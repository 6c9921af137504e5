"""Long addition: an exact algorithm, learned from sums of up to 8 digits and asked for longer ones.

Two numbers stand in columns, the last digit first. The digit below a column needs the carry, and a carry can run
through as many columns as there are: 999…9 + 1. ``book/data/addition_study.py`` stores the trials::

    trials = load("data/addition_study.json", Trial)
    pick(trials, positions="sinusoids", nines=0.1)
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from oneblock.errors import check_probability, check_size
from oneblock.failures.positions import LearnedRows, NoPlaces, Sinusoids
from oneblock.stacks import drawn_in_float64, named, stack
from oneblock.training import train

D, H, F, K = 32, 4, 64, 2
LONGEST, MOST = 8, 32
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24)
SPAN, STEPS, BATCH, LR, WARMUP = 100, 2500, 64, 0.003, 100

POSITIONS: dict[str, Callable[[], nn.Module]] = {
    "learned": lambda: LearnedRows(D, MOST),
    "learned, from any place": lambda: LearnedRows(D, MOST),
    "sinusoids": lambda: Sinusoids(D),
    "none": lambda: NoPlaces(D),
}


def columns(N: int, n: int, nines: float, draw: torch.Generator) -> Int[Tensor, "N n 2"]:
    """N pairs of random numbers of n digits, the last digit first.

    Args:
        nines: how many columns, as a share, are made to sum up to 9, through which a carry passes. Of the others, random
            digits, a tenth do so anyway.
    Raises:
        ArgumentError: a size is not a whole number ≥ 1, ``nines`` is not in [0, 1).
    """
    check_size("N", N)
    check_size("n", n)
    check_probability("nines", nines)
    a, b = torch.randint(10, (2, N, n), generator=draw)
    passing = torch.rand(N, n, generator=draw, dtype=torch.float64) < nines
    return torch.stack([a, torch.where(passing, 9 - a, b)], dim=-1)


def added(digits: Int[Tensor, "N n 2"]) -> Int[Tensor, "N n"]:
    """The sum's last n digits, by the algorithm that is taught in school: from column to column, with a carry."""
    carry, result = torch.zeros(len(digits), dtype=torch.int64), []
    for column in digits.sum(-1).unbind(1):
        result.append((column + carry) % 10)
        carry = (column + carry) // 10
    return torch.stack(result, dim=1)


def run_of_nines(N: int, c: int, draw: torch.Generator, n: int = LONGEST) -> Int[Tensor, "N n 2"]:
    """Sums in which a carry is born in the first column and runs through just c columns of nines.

    Behind them, if there are columns left, comes one that sums up to less than 9, and then random digits.
    """
    digits = columns(N, n, 0.0, draw)
    digits[:, 0] = torch.tensor([5, 7])
    digits[:, 1 : c + 1, 1] = 9 - digits[:, 1 : c + 1, 0]
    digits[:, c + 1 : c + 2] = digits[:, c + 1 : c + 2] % 5
    return digits


def placed(digits: Int[Tensor, "N n 2"], first: Int[Tensor, " N"]) -> Int[Tensor, "N n 3"]:
    """The columns, each with its place as a third number, counted on from ``first``."""
    places = first[:, None] + torch.arange(digits.shape[1])
    return torch.cat([digits, places[..., None]], dim=-1)


def exercises(steps: int, nines: float, any_place: bool, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of 64 sums of one length, from 1 to 8 digits; with ``any_place`` each sum begins anywhere in the 32 rows."""
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        n = torch.randint(1, LONGEST + 1, (), generator=draw).item()
        digits = columns(BATCH, n, nines, draw)
        first = torch.randint(MOST - n + 1, (BATCH,), generator=draw)
        yield placed(digits, first * any_place), added(digits)


class Adder(nn.Module):
    """``logits = W Stack(A[a] + B[b] + P) + c``: two digits and a place in, ten logits out, in every column.

    Two Pre-LN blocks without a mask: every column may read all others.

    Args:
        positions: ``[N, n] → [N, n, D]``.
    """

    def __init__(self, positions: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.positions = nn.Embedding(10, D), nn.Embedding(10, D), positions
        self.deep, self.head = stack("Pre-LN", K, D, H, F), nn.Linear(D, 10)

    def forward(self, columns: Int[Tensor, "N n 3"]) -> Float[Tensor, "N n 10"]:
        a, b, places = columns.unbind(-1)
        return self.head(self.deep(self.first(a) + self.second(b) + self.positions(places)))


class Trial(NamedTuple):
    """One adder. ``losses`` are means over 100 steps each, in nats a column.

    ``digits[i]`` and ``sums[i]`` are the shares of right digits and of sums that are right throughout, at ``LENGTHS[i]``
    digits; ``runs[c]`` is that of whole sums of 8 digits with a carry through c nines.
    """

    positions: str
    nines: float
    seed: int
    losses: list[float]
    digits: list[float]
    sums: list[float]
    runs: list[float]


def trial(positions: str, nines: float, seed: int, steps: int = STEPS) -> Trial:
    """Trains an adder in float64 on :func:`exercises` and asks it for 512 new sums of each kind.

    Args:
        positions: a key of ``POSITIONS``.
        steps: a multiple of 100.
    Raises:
        ArgumentError: there are no such positions.
    Source: the question is that of Nogueira, Jiang, Lin, *Investigating the Limitations of Transformers with Simple
        Arithmetic Tasks*, 2021, arXiv:2102.13019.
    """
    build = named("positions", positions, POSITIONS)
    with drawn_in_float64(seed):
        adder = Adder(build())
    losses = train(adder, exercises(steps, nines, positions == "learned, from any place", seed), LR, WARMUP)
    spans = [sum(losses[start : start + SPAN]) / SPAN for start in range(0, steps, SPAN)]
    draw = torch.Generator().manual_seed(1000 + seed)
    by_length = [right(adder, columns(512, n, nines, draw)) for n in LENGTHS]
    runs = [right(adder, run_of_nines(512, c, draw))[1] for c in range(LONGEST)]
    return Trial(positions, nines, seed, spans, *map(list, zip(*by_length, strict=True)), runs)


@torch.inference_mode()
def right(adder: nn.Module, digits: Int[Tensor, "N n 2"]) -> tuple[float, float]:
    """The share of right digits, and of sums that are right in every digit, counted from place 0."""
    given = adder(placed(digits, torch.zeros(len(digits), dtype=torch.int64))).argmax(-1)
    hits = (given == added(digits)).double()
    return hits.mean().item(), hits.amin(1).mean().item()
