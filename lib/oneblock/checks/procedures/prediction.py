"""A function that predicts: are its answers those of eval, without a graph, and is the model afterwards as it was?"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from oneblock.checks.finding import Finding, judged, listed
from oneblock.checks.probes import apart, rounding, seed_all


def sample_model() -> nn.Module:
    """A network in which the mode matters: BatchNorm and dropout, ``[N, 5] → [N, 3]``."""
    with torch.random.fork_rng(devices=[]):
        seed_all(0)
        return nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Dropout(0.5), nn.Linear(7, 3)).float()


def sample_inputs() -> Tensor:
    """``[11, 5]``"""
    return torch.randn(11, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64).float()


@dataclass(frozen=True)
class Prediction:
    """A function, and the model that it is tried with.

    Args:
        predict: ``predict(model, inputs)`` gives the model's answer to the inputs.
        model: one in which train and eval differ; a small one by default.
        inputs: what the model takes.
    """

    predict: Callable[[nn.Module, Tensor], Tensor]
    model: nn.Module = field(default_factory=sample_model)
    inputs: Tensor = field(default_factory=sample_inputs)

    def training(self) -> nn.Module:
        """A copy of the model in training, its first part in eval, as a frozen one is."""
        model = deepcopy(self.model).train()
        for first in list(model.children())[:1]:
            first.eval()
        return model

    def answer(self, model: nn.Module, seed: int = 0) -> Tensor:
        """What is predicted, the random numbers drawn from ``seed``."""
        seed_all(seed)
        with torch.enable_grad():
            return self.predict(model, self.inputs.clone())


def prediction_repeats(prediction: Prediction) -> Finding:
    """A model that was in training answers the same twice, and what it answers in eval."""
    with torch.no_grad():
        due = deepcopy(prediction.model).eval()(prediction.inputs.clone())
    first, second = (prediction.answer(prediction.training(), seed).detach() for seed in (0, 1))
    measured = {"two seeds": apart(first, second), "against eval": apart(due, first)}
    return judged("prediction_repeats", measured, rounding(due.dtype))


def prediction_free(prediction: Prediction) -> Finding:
    """No graph hangs on the answer, and no gradient has come to the parameters."""
    model = prediction.training()
    answer = prediction.answer(model)
    measured = {
        "answer with a graph": float(answer.requires_grad),
        "parameters with a gradient": float(sum(parameter.grad is not None for parameter in model.parameters())),
    }
    return judged("prediction_free", measured, 0.0)


def prediction_keeps(prediction: Prediction) -> Finding:
    """Parameters and buffers are the same afterwards; ``requires_grad`` and the mode of torch are, too."""
    model = prediction.training()
    before, learning = deepcopy(model.state_dict()), [parameter.requires_grad for parameter in model.parameters()]
    seed_all(0)
    with torch.enable_grad():
        prediction.predict(model, prediction.inputs.clone())
        recording = torch.is_grad_enabled()
    changed = [name for name, value in model.state_dict().items() if not torch.equal(value, before[name])]
    frozen = learning != [parameter.requires_grad for parameter in model.parameters()]
    measured = {"tensors that changed": float(len(changed))}
    measured |= {"requires_grad changed": float(frozen), "gradients off": float(not recording)}
    return judged("prediction_keeps", measured, 0.0, listed(changed))


def prediction_mode(prediction: Prediction) -> Finding:
    """Each part is in the mode in which it was, or all are in eval: ``train()`` at the end would wake a frozen part."""
    model = prediction.training()
    before = [part.training for part in model.modules()]
    prediction.answer(model)
    after = [part.training for part in model.modules()]
    odd = sum(was != now for was, now in zip(before, after, strict=True)) if any(after) else 0
    return judged("prediction_mode", {"parts in another mode": float(odd)}, 0.0)
