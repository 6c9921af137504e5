"""Does the head see rows of one scale, however large the sum in the blocks has become?"""

import torch
from torch import nn

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.models.held import held
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import answer, copied, quiet, roughened, tables, texts
from oneblock.checks.parts import ATTENTION, NORM

GROWN, BOUND = 1e3, 10.0
"""Without a final norm the logits grow about as much as the rows, a thousandfold; with one, 3 at most was measured."""


def final_norm(model: Model) -> Finding:
    """The rows that enter the blocks, or what the branches add to them, a thousand times larger: the logits stay of their size.

    Asked of models that have norms. A Post-LN block ends in one; after Pre-LN blocks it has to be there.
    """
    rough = quiet(roughened(model))
    if not any(NORM.search(type(part).__name__) for part in held(rough.model).values()):
        return not_applicable("final_norm")
    size = _size(rough)
    grown = {"embeddings": _grown_tables(rough), "branches": _grown_branches(rough)}
    measured = {f"{name} × {GROWN:g}": _size(one) / size for name, one in grown.items() if one is not None}
    return judged("final_norm", measured, BOUND) if measured else not_applicable("final_norm")


def _size(model: Model) -> float:
    return answer(model, False, texts(model)).norm().item()


def _grown_tables(model: Model) -> Model | None:
    large = copied(model)
    found = tables(large)
    return _multiplied(large, found) if found else None


def _grown_branches(model: Model) -> Model | None:
    large = copied(model)
    inside = [part for D in {table.embedding_dim for table in tables(large)} for part in _maps_to(large.model, D)]
    return _multiplied(large, inside) if inside else None


def _maps_to(model: nn.Module, D: int) -> list[nn.Module]:
    """The maps back to D in the blocks, the modules that hold an attention: a map of the head is none of these."""
    paths = [name.rpartition(".") for name, _ in model.named_modules()]
    blocks = tuple(f"{block}." for block, _, own in paths if block and ATTENTION.search(own))
    inside = [part for name, part in model.named_modules() if name.startswith(blocks)]
    return [part for part in inside if isinstance(part, nn.Linear) and part.out_features == D]


def _multiplied(model: Model, parts: list[nn.Module]) -> Model:
    with torch.no_grad():
        for parameter in {parameter for part in parts for parameter in part.parameters()}:
            parameter *= GROWN
    return model
