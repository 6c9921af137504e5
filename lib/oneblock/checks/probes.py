"""What the checks have in common: inputs that hide nothing, copies that may be spoilt, three ways to run."""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from oneblock.checks.subject import Subject
from oneblock.padding import STEPS_OF_ROUNDING
from oneblock.parity import distance

Run = Callable[..., Tensor]
LENGTH, OTHER_LENGTH = 7, 11


@dataclass(frozen=True)
class Batch:
    """Three texts of ragged lengths, one of them full; N, L and D differ."""

    x: Tensor
    valid_tokens: Tensor


def length(subject: Subject) -> int:
    """L of the probes: the subject's own, or a prime that is not D."""
    return subject.L or (LENGTH if subject.D != LENGTH else OTHER_LENGTH)


def rows(subject: Subject, N: int = 3, L: int | None = None, seed: int = 0) -> Tensor:
    """``[N, L, D]`` of random rows, in every direction and each with a mean of its own."""
    draw = torch.Generator().manual_seed(seed)
    shape = (N, L or length(subject), subject.D)
    x = torch.randn(shape, generator=draw, dtype=torch.float64)
    return (x + torch.randn(*shape[:2], 1, generator=draw, dtype=torch.float64) / 2).to(subject.like)


def batch(subject: Subject, seed: int = 0) -> Batch:
    """Texts of L, L − 2 and 2 tokens."""
    L = length(subject)
    lengths = torch.tensor([[max(1, L - 2)], [L], [min(2, L)]])
    return Batch(rows(subject, seed=seed), (torch.arange(L) < lengths).to(subject.like.device))


def copied(subject: Subject) -> Subject:
    """The same, with a copy of the block."""
    return subject.of(deepcopy(subject.block))


def roughened(subject: Subject) -> Subject:
    """A copy in which no γ is 1 and no β or bias is 0; matrices stay, unless they are all zeros."""
    rough = copied(subject)
    roughen(rough.block.parameters())
    return rough


def roughen(parameters: Iterable[Tensor]) -> None:
    """Moves each vector, and fills each matrix of zeros, at random."""
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in filter(Tensor.is_floating_point, parameters):
            noise = torch.randn(parameter.shape, generator=draw, dtype=torch.float64).to(parameter)
            if parameter.ndim < 2:
                parameter += 0.3 * noise
            elif not parameter.any():
                parameter.copy_(noise / parameter.shape[-1] ** 0.5)


def rates(block: nn.Module) -> list[tuple[nn.Module, str]]:
    """Where a submodule keeps a dropout rate: ``nn.Dropout`` as ``p``, others as a number of their own."""
    return [
        (module, name)
        for module in block.modules()
        for name, value in vars(module).items()
        if type(value) in (float, int) and ("drop" in name.lower() or (name == "p" and "Drop" in type(module).__name__))
    ]


def set_rates(block: nn.Module, rate: float) -> None:
    """Sets every one of the :func:`rates`."""
    for module, name in rates(block):
        setattr(module, name, rate)


def quiet(subject: Subject) -> Subject:
    """A copy in training mode with every dropout rate at 0."""
    silent = copied(subject)
    set_rates(silent.block, 0.0)
    silent.block.train()
    return silent


def seed_all(seed: int) -> None:
    """``torch.manual_seed`` without what it does for devices that are not in use, which takes longer than a small block."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def answer(subject: Subject, grad: bool, x: Tensor, valid_tokens: Tensor | None = None, seed: int = 0) -> Tensor:
    """What the block says, its random numbers drawn from ``seed``; no graph comes out."""
    seed_all(seed)
    with torch.set_grad_enabled(grad):
        return subject(x.detach().requires_grad_(grad), valid_tokens).detach()


def all_runs(subject: Subject) -> dict[str, Run]:
    """``run(x, valid_tokens, seed)`` in training without dropout, in eval, and in eval without gradients."""
    still = copied(subject)
    still.block.eval()
    return {
        "train": partial(answer, quiet(subject), True),
        "eval": partial(answer, still, True),
        "eval, no_grad": partial(answer, still, False),
    }


def steady_runs(subject: Subject) -> dict[str, Run]:
    """Those of :func:`all_runs` that answer the same whatever the random numbers, if only NaN: others can show no structure."""
    given = (one := batch(subject)).x, one.valid_tokens
    return {name: run for name, run in all_runs(subject).items() if _alike(run(*given, seed=0), run(*given, seed=1))}


def _alike(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def apart(due: Tensor, came: Tensor) -> float:
    """``max |came − due| / max |due|``; infinite where a number became NaN or a shape differs."""
    if due.shape != came.shape:
        return torch.inf
    if not due.numel():
        return 0.0
    return distance(due, came)[1]


def rounding(dtype: torch.dtype) -> float:
    """What another order of the sums may cost, relative to the largest number."""
    return STEPS_OF_ROUNDING * torch.finfo(dtype).eps


def others(index: int, size: int) -> list[int]:
    """All places but one."""
    return [place for place in range(size) if place != index]


def each_mode(runs: dict[str, Run], measure: Callable[[Run], Iterator[tuple[str, float]]]) -> dict[str, float]:
    """Every number that ``measure`` takes of every run, under both names."""
    return {f"{mode}: {name}": value for mode, run in runs.items() for name, value in measure(run)}
