"""Learning: one plain loop, and one that can be stopped early, saved and resumed."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from math import inf, isnan
from numbers import Integral
from typing import NamedTuple

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oneblock.errors import ArgumentError, check_number, check_size


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
    check_number("lr", lr, "a finite number > 0", lambda number: 0 < number < inf)
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


class Epoch(NamedTuple):
    """Means over one pass: the losses in nats, the training loss while it learned, and the share that is right."""

    training_loss: float
    loss: float
    accuracy: float


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Shaped[Tensor, "N ..."], classes: Int[Tensor, " N"]
) -> float:
    """One training step: forget the old gradient, compute the new one, clip its norm to 1, move the parameters.

    Args:
        model: maps the inputs to logits ``[N, C]``.
    Returns:
        the loss before the step, in nats.
    Raises:
        ArgumentError: the gradient is not finite; the parameters are then as before.
    Source: Pascanu et al., *On the Difficulty of Training Recurrent Neural Networks*, 2013, arXiv:1211.5063.
    """
    optimizer.zero_grad(set_to_none=True)
    loss = cross_entropy(model(inputs), classes)
    loss.backward()
    try:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    except RuntimeError:
        hint = "the step was not taken: look at the batch, or lower the learning rate"
        raise ArgumentError("the gradient", f"finite, at a loss of {loss.item():g}", "NaN or ∞", hint) from None
    optimizer.step()
    return loss.item()


@torch.inference_mode()
def evaluate(model: nn.Module, inputs: Shaped[Tensor, "N ..."], classes: Int[Tensor, " N"]) -> tuple[float, float]:
    """The mean loss in nats and the share of right answers, without dropout; the mode of each part is put back."""
    modes = {part: part.training for part in model.modules()}
    logits = model.eval()(inputs)
    for part, training in modes.items():
        part.training = training
    return cross_entropy(logits, classes).item(), (logits.argmax(-1) == classes).double().mean().item()


class Training:
    """Epochs of :func:`step` with Adam, the training part shuffled anew for each, and the best state kept.

    ``history`` has an :class:`Epoch` for each pass. All that is random, the order and the dropout, is drawn from
    ``seed``; torch's own generator is left alone. :meth:`fit` goes on from the parameters of the last epoch, the first
    time from those that the model has here: what is changed in between is lost.

    Args:
        model: maps inputs to logits ``[N, C]``; it is trained in place.
        training, validation: inputs and classes.
        lr: the learning rate of the first epoch.
        decay: each epoch takes ``decay`` times the rate of the one before.
        batch: how many texts a step sees; the last one of an epoch may see fewer.
        patience: :meth:`fit` ends after so many epochs without a lower validation loss.
    Raises:
        ArgumentError: ``lr``, ``batch`` or ``patience`` is not above 0, ``decay`` is not in (0, 1].
    """

    def __init__(
        self,
        model: nn.Module,
        training: tuple[Shaped[Tensor, "N ..."], Int[Tensor, " N"]],
        validation: tuple[Shaped[Tensor, "M ..."], Int[Tensor, " M"]],
        lr: float,
        decay: float = 1.0,
        batch: int = 64,
        seed: int = 0,
        patience: int = 3,
    ) -> None:
        check_number("lr", lr, "a finite number > 0", lambda number: 0 < number < inf)
        check_number("decay", decay, "a number in (0, 1]", lambda number: 0 < number <= 1)
        check_size("batch", batch)
        check_size("patience", patience)
        self.model, self.training, self.validation = model, training, validation
        self.lr, self.decay, self.batch, self.patience = lr, decay, batch, patience
        self.optimizer = torch.optim.Adam(model.parameters(), lr)
        self.random = torch.Generator().manual_seed(seed).get_state()
        self.history: list[Epoch] = []
        self.last = self.best = deepcopy(model.state_dict())

    def fit(self, epochs: int, progress: Callable[[Iterable], Iterable] = iter) -> list[Epoch]:
        """Trains on until the history has so many epochs or the loss is stale; the model ends in its best state.

        ``progress`` is given the epochs to come and hands them on, one by one, as ``tqdm`` does.
        """
        self.model.load_state_dict(self.last)
        for _ in progress(range(len(self.history), epochs)):
            if not self.is_stale():
                self._epoch()
        self.model.load_state_dict(self.best)
        return self.history

    def is_stale(self) -> bool:
        """Whether none of the last ``patience`` epochs had the lowest validation loss so far."""
        losses = self._losses()
        return bool(losses) and len(losses) - 1 - losses.index(min(losses)) >= self.patience

    def _epoch(self) -> None:
        inputs, classes = self.training
        self.optimizer.param_groups[0]["lr"] = self.lr * self.decay ** len(self.history)
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.random)
            self.model.train()
            batches = torch.randperm(len(inputs)).split(self.batch)
            losses = [step(self.model, self.optimizer, inputs[b], classes[b]) * len(b) for b in batches]
            self.random = torch.get_rng_state()
        self.history.append(Epoch(sum(losses) / len(inputs), *evaluate(self.model, *self.validation)))
        self.last = deepcopy(self.model.state_dict())
        if self._losses()[-1] == min(self._losses()):
            self.best = self.last

    def _losses(self) -> list[float]:
        """The validation loss of each epoch; NaN, which is neither lower nor higher, counts as infinite."""
        return [inf if isnan(epoch.loss) else epoch.loss for epoch in self.history]

    def state_dict(self) -> dict:
        """All that another run needs to go on from here, bit for bit: ``torch.save`` writes it."""
        own = {name: getattr(self, name) for name in ("last", "best", "random")}
        return {**own, "optimizer": deepcopy(self.optimizer.state_dict()), "history": list(map(tuple, self.history))}

    def load_state_dict(self, state: dict) -> None:
        """Takes up what :meth:`state_dict` gave, as ``torch.load(path, weights_only=True)`` reads it."""
        self.optimizer.load_state_dict(deepcopy(state["optimizer"]))  # else Adam writes into the state that is given
        self.history = [Epoch(*epoch) for epoch in state["history"]]
        self.last, self.best, self.random = state["last"], state["best"], state["random"]
