"""A function that takes a loss: of logits, as a mean over real tokens, finite, with a gradient where it is due."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.probes import apart, rounding

L, C = 7, 5
LENGTHS = (5, 7, 2)
SURE, LARGE, MISSING = 30.0, 1e4, 0.1


@dataclass(frozen=True)
class Loss:
    """A function ``loss(logits, classes)`` of ``[N, C]``, or ``loss(logits, classes, valid_tokens)`` of ``[N, L, C]``.

    Args:
        loss: gives one number.
        per_token: whether it takes ``valid_tokens``; ``None``: three parameters without a default tell it.
        plain: whether it is to be the mean cross entropy, without class weights or label smoothing.
    """

    loss: Callable[..., Tensor]
    per_token: bool | None = None
    plain: bool = True

    def takes_tokens(self) -> bool:
        """Whether there is a class for each token, and a mask."""
        if self.per_token is not None:
            return self.per_token
        given = inspect.signature(self.loss).parameters.values()
        return sum(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in given) > 2

    def of(self, logits: Tensor, classes: Tensor, valid_tokens: Tensor) -> Tensor:
        """The loss of ``[N, L, C]``; a function of whole texts is given the real tokens as its texts."""
        if self.takes_tokens():
            return self.loss(logits.clone(), classes.clone(), valid_tokens)
        return self.loss(logits[valid_tokens], classes[valid_tokens])


def loss_padding(loss: Loss) -> Finding:
    """Other logits and classes at padding, and more of it, leave the loss as it is; and no gradient goes there."""
    if not loss.takes_tokens():
        return not_applicable("loss_padding")
    logits, classes, real = _given()
    other = logits.where(real[..., None], _random(1))
    turned = classes.where(real, (classes + 1) % C)
    wider = [torch.cat([one, one[:, :2]], 1) for one in (logits, classes)]
    more = torch.cat([real, torch.zeros_like(real[:, :2])], 1)
    due = loss.of(logits, classes, real)
    measured = {
        "other logits": apart(due, loss.of(other, classes, real)),
        "other classes": apart(due, loss.of(logits, turned, real)),
        "more padding": apart(due, loss.of(*wider, more)),
        "gradient at padding": _slope(loss, logits, classes, real)[~real].norm().item(),
    }
    return judged("loss_padding", measured, rounding(torch.float64))


def loss_of_logits(loss: Loss) -> Finding:
    """Sure and right, the loss is near 0; sure and wrong, the gradient is as large as it can be: a softmax before stops both.

    At a wrong answer the gradient of the mean cross entropy has the norm √2 for each token, over their number.
    """
    logits, classes, real = _given()
    right = SURE * torch.nn.functional.one_hot(classes, C).to(logits)
    slope = _slope(loss, right.roll(1, -1), classes, real)[real].norm(dim=-1) * real.sum() / 2**0.5
    measured = {
        "sure and right, the loss": abs(loss.of(right, classes, real).item()),
        "sure and wrong, missing of the gradient": 1 - slope.min().item(),
    }
    return judged("loss_of_logits", measured, MISSING)


def loss_mean(loss: Loss) -> Finding:
    """The batch twice has the loss of the batch, and the batch the mean of its texts, each as often as it has real tokens."""
    if not loss.plain:
        return not_applicable("loss_mean")
    logits, classes, real = _given()
    due = loss.of(logits, classes, real)
    twice = loss.of(*(torch.cat([one, one]) for one in (logits, classes, real)))
    texts = torch.stack([loss.of(logits[n : n + 1], classes[n : n + 1], real[n : n + 1]) for n in range(len(LENGTHS))])
    mean = (texts * real.sum(1)).sum() / real.sum()
    return judged("loss_mean", {"the batch twice": apart(due, twice), "text by text": apart(mean, due)}, rounding(logits.dtype))


def loss_parity(loss: Loss) -> Finding:
    """The loss and its gradient are those of torch's ``cross_entropy`` at the real tokens."""
    if not loss.plain:
        return not_applicable("loss_parity")
    logits, classes, real = _given()
    right = Loss(lambda rows, due, valid_tokens: cross_entropy(rows[valid_tokens], due[valid_tokens]))
    measured = {
        "loss": apart(right.of(logits, classes, real), loss.of(logits, classes, real)),
        "gradient": apart(_slope(right, logits, classes, real), _slope(loss, logits, classes, real)),
    }
    return judged("loss_parity", measured, rounding(logits.dtype))


def loss_finite(loss: Loss) -> Finding:
    """One finite number in the dtype of the logits, and finite gradients, however large the logits are."""
    measured = {}
    for dtype in (torch.float32, torch.float64):
        logits, classes, real = _given()
        for size in (1.0, LARGE):
            given = (size * logits).to(dtype)
            came, slope = loss.of(given, classes, real), _slope(loss, given, classes, real)
            fits = came.ndim == 0 and came.dtype == dtype and bool(came.isfinite())
            name = f"{str(dtype).removeprefix('torch.')}, logits × {size:g}"
            measured[name] = float(not fits) + float((~slope.isfinite()).sum())
    return judged("loss_finite", measured, 0.0)


def _given() -> tuple[Tensor, Tensor, Tensor]:
    """Logits, classes and a mask of three texts of 5, 7 and 2 tokens."""
    classes = torch.arange(len(LENGTHS) * L).view(len(LENGTHS), L) ** 2 % C
    return _random(0), classes, torch.arange(L) < torch.tensor(LENGTHS)[:, None]


def _random(seed: int) -> Tensor:
    return torch.randn(len(LENGTHS), L, C, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _slope(loss: Loss, logits: Tensor, classes: Tensor, real: Tensor) -> Tensor:
    at = logits.clone().requires_grad_()
    with torch.enable_grad():
        came = loss.of(at, classes, real)
    if not came.requires_grad:
        return torch.zeros_like(at)
    return torch.autograd.grad(came.sum(), at, materialize_grads=True)[0]
