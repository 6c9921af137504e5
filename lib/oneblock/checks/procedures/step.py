"""A function that takes a training step: by the gradient of its own batch, of the right size, and of nothing else."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oneblock.checks.finding import Finding, judged, listed, not_applicable
from oneblock.checks.probes import apart, rounding, seed_all

LR = 0.1
SIZES = {"small": 0.1, "large": 30.0}
"""Times the inputs: the norm of the gradient is then below 1, or far above."""


def learner() -> nn.Module:
    """A network without chance in it, ``[N, 5] → [N, 3]``, in float64."""
    with torch.random.fork_rng(devices=[]):
        seed_all(0)
        return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).double()


def batches() -> list[tuple[Tensor, Tensor]]:
    """Two batches, ``[11, 5]`` and classes."""
    draw = torch.Generator().manual_seed(1)
    inputs = torch.randn(2, 11, 5, generator=draw, dtype=torch.float64)
    return [(one, torch.randint(3, (11,), generator=draw)) for one in inputs]


@dataclass(frozen=True)
class Step:
    """A function, and what is claimed of it.

    Args:
        step: ``step(model, optimizer, inputs, classes)``, the classes for logits ``[N, C]``.
        clip: the largest norm of a gradient that it follows, if it clips.
        refuses: whether a batch that gives NaN leaves the parameters alone, with an error or without.
        model: one that takes the batches, and in which nothing is left to chance; a small one by default.
        batches: two of them.
    """

    step: Callable[[nn.Module, torch.optim.Optimizer, Tensor, Tensor], object]
    clip: float | None = None
    refuses: bool = False
    model: nn.Module = field(default_factory=learner)
    batches: list[tuple[Tensor, Tensor]] = field(default_factory=batches)

    def learner(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        """A copy of the model in training, and plain SGD for it."""
        model = deepcopy(self.model).train()
        return model, torch.optim.SGD(model.parameters(), LR)


def step_forgets(step: Step) -> Finding:
    """The second step is the same whether somebody else forgets the first gradient in between or not."""
    (own, optimizer), (wiped, other) = step.learner(), step.learner()
    for model, rule in ((own, optimizer), (wiped, other)):
        step.step(model, rule, *step.batches[0])
    wiped.zero_grad(set_to_none=True)
    start = deepcopy(own)
    for model, rule in ((own, optimizer), (wiped, other)):
        step.step(model, rule, *step.batches[1])
    due, came = _moved(start, wiped), _moved(start, own)
    return judged("step_forgets", {"second step": apart(due, came)}, _threshold(step))


def step_follows(step: Step) -> Finding:
    """Of plain SGD a step is ``−lr`` times the gradient of the mean cross entropy, shortened to ``clip`` if it is claimed.

    Tried with a small gradient and with a large one: a step that clips unsaid follows the small one alone.
    """
    measured = {}
    for name, size in SIZES.items():
        inputs, classes = size * step.batches[0][0], step.batches[0][1]
        model, optimizer = step.learner()
        start = deepcopy(model)
        slope = _slope(start, inputs, classes)
        share = min(1.0, step.clip / (slope.norm().item() + 1e-6)) if step.clip else 1.0
        step.step(model, optimizer, inputs, classes)
        measured[f"{name} gradient"] = apart(-LR * share * slope, _moved(start, model))
    return judged("step_follows", measured, _threshold(step))


def step_moves(step: Step) -> Finding:
    """Every parameter that has a gradient has moved; one that is frozen has not. The mode is what it was."""
    model, optimizer = step.learner()
    frozen = next(model.parameters()).requires_grad_(False)
    start = deepcopy(model)
    step.step(model, optimizer, *step.batches[0])
    same = [name for name, value in model.named_parameters() if torch.equal(value, start.get_parameter(name))]
    still = [name for name, value in model.named_parameters() if value is not frozen and name in same]
    woken = [name for name, value in model.named_parameters() if value is frozen and name not in same]
    measured = {"parameters that stayed": float(len(still)), "frozen ones that moved": float(len(woken)), "out of training": float(not model.training)}
    return judged("step_moves", measured, 0.0, listed([*still, *woken]))


def step_reports(step: Step) -> Finding:
    """What it returns is the loss before the step, without a graph: kept in a list, graphs fill the memory."""
    model, optimizer = step.learner()
    with torch.no_grad():
        due = cross_entropy(model(step.batches[0][0]), step.batches[0][1])
    came = step.step(model, optimizer, *step.batches[0])
    if not isinstance(came, (float, Tensor)):
        return not_applicable("step_reports")
    value = torch.as_tensor(came, dtype=due.dtype).detach()
    measured = {"loss before the step": apart(due, value), "with a graph": float(isinstance(came, Tensor) and came.requires_grad)}
    return judged("step_reports", measured, _threshold(step))


def step_refuses(step: Step) -> Finding:
    """A batch that gives NaN leaves every parameter as it was, if that is claimed."""
    if not step.refuses:
        return not_applicable("step_refuses")
    model, optimizer = step.learner()
    start = deepcopy(model)
    inputs = step.batches[0][0].clone()
    inputs[0, 0] = torch.nan
    try:
        step.step(model, optimizer, inputs, step.batches[0][1])
    except Exception:
        pass  # to raise is the best of the ways to refuse
    return judged("step_refuses", {"moved by NaN": float(not torch.equal(_flat(start), _flat(model)))}, 0.0)


def _slope(model: nn.Module, inputs: Tensor, classes: Tensor) -> Tensor:
    with torch.enable_grad():
        loss = cross_entropy(model(inputs), classes)
    slopes = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([slope.flatten() for slope in slopes])


def _flat(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def _moved(start: nn.Module, model: nn.Module) -> Tensor:
    return _flat(model) - _flat(start)


def _threshold(step: Step) -> float:
    """A step is the difference of two parameters, which are ten or a hundred times as large."""
    return 100 * rounding(_flat(step.model).dtype)
