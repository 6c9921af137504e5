"""What a classifier has to beat: the commonest class, and a bag of words."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oneblock.errors import check_number
from oneblock.names import PADDING


def majority(classes: Int[Tensor, " N"]) -> int:
    """The commonest class; of several, the first."""
    return classes.bincount().argmax().item()


def bag_of_words(token_ids: Int[Tensor, "N L"], V: int) -> Float[Tensor, "N V"]:
    """``counts[n, v]``: how often word v stands in text n. The order of the words is lost, padding not counted.

    Args:
        token_ids: ``[N, L]``.
        V: the size of the vocabulary.
    Returns:
        ``[N, V]``, floating.
    """
    counts = torch.zeros(len(token_ids), V)
    counts.scatter_add_(1, token_ids, torch.ones(token_ids.shape))
    counts[:, PADDING] = 0
    return counts


def logistic_regression(
    counts: Float[Tensor, "N V"], classes: Int[Tensor, " N"], C: int, penalty: float = 0.0, steps: int = 60
) -> nn.Linear:
    """``logits = W counts + b`` with the least ``cross_entropy(logits, classes) + penalty · Σ W²``.

    The problem is convex: L-BFGS from ``W = 0`` approaches the one minimum, whatever the seed. A word that no
    text of the training part has keeps the weight 0.

    Args:
        counts, classes: ``[N, V]`` and ``[N]``.
        C: how many classes there are.
        penalty: how much a large weight costs; what is best is found on the validation part.
        steps: iterations of L-BFGS, at most.
    Returns:
        the linear map ``[N, V] → [N, C]``.
    Raises:
        ArgumentError: ``penalty`` is negative.
    Source: Bishop, *Pattern Recognition and Machine Learning*, 2006, section 4.3.4.
    """
    check_number("penalty", penalty, "a number ≥ 0", lambda number: number >= 0)
    linear = nn.Linear(counts.shape[1], C, dtype=counts.dtype)
    nn.init.zeros_(linear.weight), nn.init.zeros_(linear.bias)
    optimizer = torch.optim.LBFGS(linear.parameters(), max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(linear(counts), classes) + penalty * linear.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return linear
