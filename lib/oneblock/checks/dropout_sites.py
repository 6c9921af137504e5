"""Where does dropout act? Told by the shapes of the random tensors that torch draws, however dropout is called."""

from collections import Counter

from oneblock.checks.bench import switch_off
from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.official_parity import claims_to_be_official
from oneblock.checks.operations import ATTENTION, Operation, operations
from oneblock.checks.parts import find
from oneblock.checks.probes import answer, apart, copied, length, roughened, rounding, rows, set_rates
from oneblock.checks.subject import Subject

RATE = 0.25
WEIGHTS, HIDDEN, OUTPUT = "attention weights", "FFN hidden", "branch output"
OFFICIAL = {WEIGHTS: 1, HIDDEN: 1, OUTPUT: 2}


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
    measured = {"chance on the skip": _on_the_skip(dropping)} if find(subject).has_branches else {}
    if claims_to_be_official(subject.block, subject.D):
        measured |= {f"too few or many: {name}": abs(sites.get(name, 0) - due) for name, due in OFFICIAL.items()}
    note = ", ".join(f"{count} × {name}" for name, count in sites.items())
    return judged("dropout_sites", measured, rounding(subject.like.dtype), note) if measured else not_applicable("dropout_sites", note)


def drawn_at(subject: Subject) -> dict[str, int]:
    """How often dropout draws at each site in one forward pass."""
    x = rows(subject)
    drawn = [operation for operation in operations(lambda: answer(subject, True, x)) if operation.random]
    return dict(Counter(_site(operation, length(subject), subject.D) for operation in drawn))


def _site(drawn: Operation, L: int, D: int) -> str:
    if ATTENTION in drawn.name or tuple(drawn.shape[-2:]) == (L, L):
        return WEIGHTS
    return OUTPUT if drawn.shape[-1] == D else HIDDEN


def _on_the_skip(subject: Subject) -> float:
    silent, x = copied(subject), rows(subject)
    found = find(silent)
    switch_off(silent.block, (*found.attention_last, *found.ffn_last))
    return apart(*(answer(silent, True, x, seed=seed) for seed in (0, 1)))
