"""Does a text's answer depend on the texts beside it?"""

from collections.abc import Iterator

import torch

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import roughened, steady_runs, texts
from oneblock.checks.probes import Run, apart, each_mode, rounding


def texts_apart(model: Model) -> Finding:
    """The logits of a text stay when the other texts are replaced, when there are none, and in another order of texts."""
    rough = roughened(model)
    token_ids, other = texts(rough), texts(rough, seed=1)
    turned = torch.arange(len(token_ids)).roll(1)

    def moves(run: Run) -> Iterator[tuple[str, float]]:
        logits = run(token_ids)
        yield "texts in another order", apart(logits[turned], run(token_ids[turned]))
        for n in range(len(token_ids)):
            changed = other.clone()
            changed[n] = token_ids[n]
            yield f"text {n}, others replaced", apart(logits[n : n + 1], run(changed)[n : n + 1])
            yield f"text {n}, alone", apart(logits[n : n + 1], run(token_ids[n : n + 1]))

    runs = steady_runs(rough)
    return judged("texts_apart", each_mode(runs, moves), rounding(rough.like.dtype)) if runs else not_applicable("texts_apart")
