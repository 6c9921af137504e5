"""Is each position told from every other, if the order of the tokens is to count?"""

from itertools import combinations

import torch
from torch import Tensor

from oneblock.checks.finding import Finding, judged, listed, not_applicable
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import answer, length, roughened, widened
from oneblock.checks.probes import apart, rounding


def order_counts(model: Model) -> Finding:
    """Two tokens change places: if the order counts the logits move, for every pair; if not, they stay. In float64.

    Counted are the pairs of positions for which it is the other way.
    """
    L = length(model)
    if model.V < L + 1 or L < 2 or model.like.device.type == "mps":
        return not_applicable("order_counts")
    wide = widened(roughened(model))
    token_ids = (torch.arange(L) + (torch.arange(L) >= model.padding)).to(wide.like.device)[None]
    logits = answer(wide, False, token_ids)
    wrong = []
    for i, j in combinations(range(L), 2):
        move = apart(logits, answer(wide, False, _exchanged(token_ids, i, j)))
        if (move > rounding(torch.float64)) != model.ordered:
            wrong.append(f"{i} and {j}")
    return judged("order_counts", {"pairs of positions": float(len(wrong))}, 0.0, listed(wrong))


def _exchanged(token_ids: Tensor, i: int, j: int) -> Tensor:
    order = list(range(token_ids.shape[1]))
    order[i], order[j] = j, i
    return token_ids[:, order]
