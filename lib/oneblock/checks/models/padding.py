"""Do the logits of a text depend on what padding is, or on how much of it there is?"""

from collections.abc import Iterator

import torch
from torch import Tensor

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import copied, length, longest, padded, roughened, steady_runs, tables, texts
from oneblock.checks.probes import Run, apart, each_mode, rounding
from oneblock.checks.sharing import two_names


def logits_padding(model: Model) -> Finding:
    """More padding, less, other ids in its place, and another row in the embedding: the logits stay."""
    L = length(model)
    if L < 3:
        return not_applicable("logits_padding")
    rough = roughened(model)
    token_ids = padded(model, texts(model, (L - 4 if L > 4 else 1, L - 2, min(2, L - 2))), L)
    other = _other_row(rough)
    runs = steady_runs(rough)
    others = steady_runs(other) if other else {}
    if not runs:
        return not_applicable("logits_padding")
    measured = each_mode(runs, lambda run: _moves(run, model, token_ids))
    measured |= {f"{mode}: other row for padding": apart(runs[mode](token_ids), run(token_ids)) for mode, run in others.items()}
    return judged("logits_padding", measured, rounding(rough.like.dtype))


def _moves(run: Run, model: Model, token_ids: Tensor) -> Iterator[tuple[str, float]]:
    logits, L = run(token_ids), token_ids.shape[1]
    yield "not finite", 0.0 if logits.isfinite().all() else torch.inf
    yield "less padding", apart(logits, run(padded(model, token_ids, L - 2)))
    if longest(model) > L:
        yield "more padding", apart(logits, run(padded(model, token_ids, longest(model))))
    if model.takes_mask:
        real = token_ids != model.padding
        other = texts(model, (L,) * len(token_ids), seed=1)
        yield "other ids for padding", apart(logits, run(token_ids.where(real, other), real))


def _other_row(model: Model) -> Model | None:
    """A copy with another row for padding in the embedding, unless the embedding is the head, too."""
    changed = copied(model)
    found = tables(changed)
    if not found or two_names(changed.model):
        return None
    with torch.no_grad():
        for table in found:
            table.weight[model.padding] = table.weight.roll(1, -1)[model.padding - 1] - table.weight[model.padding]
    return changed
