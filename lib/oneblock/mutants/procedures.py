"""Mistakes that are no module: the right procedure and, below it, the wrong one, called alike."""

from collections.abc import Sequence
from statistics import median

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oneblock.orders import Trial, outcome, tuned
from oneblock.stored import pick


def predictions(model: nn.Module, inputs: Shaped[Tensor, "N ..."]) -> Float[Tensor, "N ..."]:
    """Right: ``eval()`` switches dropout off, ``inference_mode`` the record for a backward pass."""
    model.eval()
    with torch.inference_mode():
        return model(inputs)


def eval_only(model: nn.Module, inputs: Shaped[Tensor, "N ..."]) -> Float[Tensor, "N ..."]:
    """``eval()`` for ``no_grad``: the numbers are right, and the graph of each batch is kept as long as they are."""
    model.eval()
    return model(inputs)


def inference_only(model: nn.Module, inputs: Shaped[Tensor, "N ..."]) -> Float[Tensor, "N ..."]:
    """``inference_mode`` for ``eval()``: nothing is recorded, and dropout still falls."""
    with torch.inference_mode():
        return model(inputs)


def loss_of_tokens(
    logits: Float[Tensor, "N L C"], classes: Int[Tensor, "N L"], valid_tokens: Bool[Tensor, "N L"]
) -> Float[Tensor, ""]:
    """Right: the mean loss of real tokens, as :func:`oneblock.masks.token_loss` takes it."""
    return cross_entropy(logits[valid_tokens], classes[valid_tokens])


def loss_over_padding(
    logits: Float[Tensor, "N L C"], classes: Int[Tensor, "N L"], valid_tokens: Bool[Tensor, "N L"]
) -> Float[Tensor, ""]:
    """The mean loss of every position: padding is learned, too, and makes the mean look good."""
    return cross_entropy(logits.flatten(0, 1), classes.flatten())


def loss(logits: Float[Tensor, "N C"], classes: Int[Tensor, " N"]) -> Float[Tensor, ""]:
    """Right: ``cross_entropy`` takes logits and has the softmax inside."""
    return cross_entropy(logits, classes)


def softmax_before_loss(logits: Float[Tensor, "N C"], classes: Int[Tensor, " N"]) -> Float[Tensor, ""]:
    """The softmax twice: the loss cannot fall below ``log(1 + (C − 1)/e)``, however sure the model is."""
    return cross_entropy(logits.softmax(-1), classes)


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Shaped[Tensor, "N ..."], classes: Int[Tensor, " N"]
) -> float:
    """Right: the old gradient is forgotten first; :func:`oneblock.training.step` also clips the new one."""
    optimizer.zero_grad(set_to_none=True)
    loss = cross_entropy(model(inputs), classes)
    loss.backward()
    optimizer.step()
    return loss.item()


def step_without_forgetting(
    model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Shaped[Tensor, "N ..."], classes: Int[Tensor, " N"]
) -> float:
    """Without ``zero_grad``: the gradient of a batch is added to those of all batches before."""
    loss = cross_entropy(model(inputs), classes)
    loss.backward()
    optimizer.step()
    return loss.item()


def at_own_rates(trials: Sequence[Trial]) -> dict[str, float]:
    """Right: the median outcome of each structure at the learning rate that is best for it."""
    return {name: at_rate(trials, name, tuned(pick(trials, structure=name))) for name in structures(trials)}


def at_one_rate(trials: Sequence[Trial]) -> dict[str, float]:
    """The median outcome of each structure at the learning rate that is best for the first of them."""
    lr = tuned(pick(trials, structure=structures(trials)[0]))
    return {name: at_rate(trials, name, lr) for name in structures(trials)}


def at_rate(trials: Sequence[Trial], structure: str, lr: float) -> float:
    """The median outcome of a structure at a learning rate, in nats."""
    return median(outcome(one) for one in pick(trials, structure=structure, lr=lr))


def structures(trials: Sequence[Trial]) -> list[str]:
    """The structures that were tried, the first one first."""
    return list(dict.fromkeys(one.structure for one in trials))
