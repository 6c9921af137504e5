"""Where does dropout act? Told by the shapes of the random tensors that torch draws, however dropout is called."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # torch has no public way to see each operation

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.official_parity import claims_to_be_official
from oneblock.checks.parts import find, switch_off
from oneblock.checks.probes import answer, apart, copied, length, roughened, rounding, rows, set_rates
from oneblock.checks.subject import Subject

RATE = 0.25
WEIGHTS, HIDDEN, OUTPUT = "attention weights", "FFN hidden", "branch output"
OFFICIAL = {WEIGHTS: 1, HIDDEN: 1, OUTPUT: 2}


class _Drawn(TorchDispatchMode):
    """Keeps the shape of every tensor that is drawn at random."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[torch.Size] = []

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> object:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags:
            first = next((value for value in (result, *args) if isinstance(value, Tensor)), None)
            self.shapes += [] if first is None else [first.shape]
        return result


def dropout_sites(subject: Subject) -> Finding:
    """No dropout on the skip: branches off, a block in training moves nothing by chance. And the sites of torch's layer.

    The second is asked of blocks whose parameters are those of torch's layer.
    """
    dropping = roughened(subject)
    set_rates(dropping.block, RATE)
    dropping.block.train()
    sites = drawn_at(dropping)
    if not sites:
        return not_applicable("dropout_sites")
    measured = {"chance on the skip": _on_the_skip(dropping)} if find(subject.block, subject.D).has_branches else {}
    if claims_to_be_official(subject.block, subject.D):
        measured |= {f"too few or many: {name}": abs(sites.get(name, 0) - due) for name, due in OFFICIAL.items()}
    note = ", ".join(f"{count} × {name}" for name, count in sites.items())
    return judged("dropout_sites", measured, rounding(subject.like.dtype), note) if measured else not_applicable("dropout_sites", note)


def drawn_at(subject: Subject) -> dict[str, int]:
    """How often dropout draws at each site in one forward pass."""
    L, x, counts = length(subject), rows(subject), {}
    with _Drawn() as drawn:
        answer(subject, True, x)
    for shape in drawn.shapes:
        ends = {(L, L): WEIGHTS}.get(tuple(shape[-2:])) or (OUTPUT if shape[-1] == subject.D else HIDDEN)
        counts[ends] = counts.get(ends, 0) + 1
    return counts


def _on_the_skip(subject: Subject) -> float:
    silent, x = copied(subject), rows(subject)
    found = find(silent.block, silent.D)
    switch_off(silent.block, (*found.attention_last, *found.ffn_last))
    return apart(*(answer(silent, True, x, seed=seed) for seed in (0, 1)))
