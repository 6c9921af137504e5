"""Learning: one plain loop."""

from collections.abc import Iterable
from numbers import Integral

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oneblock.errors import check_number


def train(
    model: nn.Module,
    batches: Iterable[tuple[Shaped[Tensor, "N ..."], Int[Tensor, "N ..."]]],
    lr: float,
    warmup: int = 0,
) -> list[float]:
    """One step of Adam on each batch: ``θ ← θ − lr · Adam(∂ cross_entropy(model(inputs), classes) / ∂θ)``.

    With ``warmup`` steps of warm-up, step ``t = 1, 2, …`` takes ``lr · min(1, t / warmup)``. The gradient is not
    clipped. One batch, many times: ``itertools.repeat((inputs, classes), steps)``.

    Args:
        model: maps the inputs to logits ``[..., C]``; it is trained in place.
        batches: pairs of inputs and classes; classes have the shape of the logits without ``C``.
        lr: the learning rate, per step.
        warmup: in steps; 0 means the whole learning rate from the first step on.
    Returns:
        the loss of each step, in nats, taken before the step changed the model.
    Raises:
        ArgumentError: ``lr`` is not positive, ``warmup`` is negative or no whole number.
    Source: Kingma, Ba, *Adam*, 2014, arXiv:1412.6980; the warm-up: Vaswani et al., 2017, section 5.3.
    """
    check_number("lr", lr, "a number > 0", lambda number: number > 0)
    check_number("warmup", warmup, "a whole number ≥ 0", lambda number: isinstance(number, Integral) and number >= 0)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    losses = []
    for step, (inputs, classes) in enumerate(batches, start=1):
        optimizer.param_groups[0]["lr"] = lr * min(1.0, step / warmup) if warmup else lr
        loss = cross_entropy(model(inputs).flatten(0, -2), classes.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
