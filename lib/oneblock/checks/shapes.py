"""Does the width stay D at every point, but inside the feed-forward network?"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from oneblock.checks.finding import Finding, judged
from oneblock.checks.found import Found
from oneblock.checks.parts import find
from oneblock.checks.probes import Run, all_runs, copied, each_mode, length, rows
from oneblock.checks.subject import Subject


def shapes(subject: Subject) -> Finding:
    """The output has the shape of the input for every N and L, and each norm, attention and branch ends in D."""
    L = length(subject)
    lengths = [L] if subject.L else [1, L, 2 * L]
    sizes = [(N, length) for N in (1, 3) for length in lengths]

    def wrong(run: Run) -> Iterator[tuple[str, float]]:
        for N, length in sizes:
            yield f"N={N}, L={length}", float(not _fits(run, rows(subject, N, length)))

    inside = _inside(copied(subject), find(subject))
    odd = [f"{name} {list(shape)}" for name, shape in inside.items() if shape[-1] != subject.D]
    measured = each_mode(all_runs(subject), wrong) | {"parts that do not end in D": float(len(odd))}
    return judged("shapes", measured, 0.0, ", ".join(odd))


def _fits(run: Run, x: Tensor) -> bool:
    """Whether the block takes this size and keeps it; one that refuses it does not."""
    try:
        return run(x).shape == x.shape
    except Exception:
        return False


def _inside(subject: Subject, found: Found) -> dict[str, torch.Size]:
    """What each part that has to end in D gives, as hooks see it."""
    seen: dict[str, torch.Size] = {}

    def keep(name: str) -> object:
        def hook(module: nn.Module, given: tuple, result: object) -> None:
            first = result[0] if isinstance(result, tuple) else result
            if isinstance(first, Tensor):
                seen[name] = first.shape

        return hook

    for name in (*found.norms, *found.attentions):
        subject.block.get_submodule(name).register_forward_hook(keep(name))
    subject.block.train()
    subject(rows(subject))
    return seen
