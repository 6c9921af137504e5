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
TORCHS = 1e-6
"""What ``clip_grad_norm_`` adds to the norm that it divides by."""
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
        batches: two of them; of token ids, which cannot be made larger or NaN, less can be told.
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
    inputs, classes = step.batches[0]
    sizes = SIZES if inputs.is_floating_point() else {"the": 1}
    measured = {f"{name} gradient": _gap(step, size * inputs, classes) for name, size in sizes.items()}
    return judged("step_follows", measured, _threshold(step))


def step_moves(step: Step) -> Finding:
    """Every parameter that has a gradient has moved; one that is frozen has not. The model is still in training."""
    model, optimizer = step.learner()
    frozen = next(model.parameters()).requires_grad_(False)
    start = deepcopy(model)
    due = {name for name, slope in _slopes(start, *step.batches[0]).items() if slope.any()}
    step.step(model, optimizer, *step.batches[0])
    moved = {name for name, value in model.named_parameters() if not torch.equal(value, start.get_parameter(name))}
    woken = [name for name, value in model.named_parameters() if value is frozen and name in moved]
    measured = {"parameters that stayed": float(len(due - moved)), "frozen ones that moved": float(len(woken))}
    measured["out of training"] = float(not model.training)
    return judged("step_moves", measured, 0.0, listed([*sorted(due - moved), *woken]))


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
    if not step.refuses or not step.batches[0][0].is_floating_point():
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


def _gap(step: Step, inputs: Tensor, classes: Tensor) -> float:
    model, optimizer = step.learner()
    start = deepcopy(model)
    step.step(model, optimizer, inputs, classes)
    slope = torch.cat([one.flatten() for one in _slopes(start, inputs, classes).values()])
    share = min(1.0, step.clip / (slope.norm().item() + TORCHS)) if step.clip else 1.0
    return apart(-LR * share * slope, _moved(start, model))


def _slopes(model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean cross entropy, 0 where a parameter has none."""
    learning = {name: value for name, value in model.named_parameters() if value.requires_grad}
    with torch.enable_grad():
        loss = cross_entropy(model(inputs), classes)
    slopes = torch.autograd.grad(loss, list(learning.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(learning, slopes, strict=True))


def _flat(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def _moved(start: nn.Module, model: nn.Module) -> Tensor:
    return _flat(model) - _flat(start)


def _threshold(step: Step) -> float:
    """A step is the difference of two parameters, which are ten or a hundred times as large."""
    return 100 * rounding(_flat(step.model).dtype)
