"""Are the parameters known to torch, each part's its own, and is each one learned?"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from oneblock.checks.finding import Finding, judged, listed, not_applicable
from oneblock.checks.gradients import BATCHES, KEY_BIAS
from oneblock.checks.models.held import held, hidden, parameters
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import projection, quiet, ragged, roughened, texts
from oneblock.checks.probes import seed_all
from oneblock.checks.sharing import judged_alone


def parameters_registered(model: Model) -> Finding:
    """What computes is what ``parameters()`` gives: the optimizer, the state dict, ``to()`` and ``eval()`` see nothing else.

    Seen in the graph of the logits, and by the attributes that hold modules.
    """
    learner, called = quiet(model), {}
    for name, part in hidden(learner.model).items():
        part.register_forward_hook(lambda *_, name=name: called.setdefault(name))
    known = {id(parameter) for parameter in learner.model.parameters()}
    names = {id(parameter): name for name, parameter in _named(learner.model)}
    missed = [names.get(id(leaf), f"a tensor {list(leaf.shape)}") for leaf in _used(learner) if id(leaf) not in known]
    measured = {"parameters that nobody trains": float(len(missed)), "parts that eval() does not reach": float(len(called))}
    return judged("parameters_registered", measured, 0.0, listed(missed or list(called)))


def parameters_own(model: Model) -> Finding:
    """No parameter has two names, and no part with parameters is called twice, unless that is claimed."""
    if model.shared or not any(True for _ in model.model.parameters()):
        return not_applicable("parameters_own")
    silent = quiet(model)
    return judged_alone("parameters_own", silent.model, lambda: silent(texts(silent)))


def parameters_reached(model: Model) -> Finding:
    """Every parameter gets a gradient from a random projection of the logits."""
    learner = quiet(roughened(model))
    learning = {name: value.requires_grad_() for name, value in learner.model.named_parameters() if value.is_floating_point()}
    reached: set[str] = set()
    for seed in range(BATCHES):
        reached |= _reached(learner, learning, seed)
    missed = [name for name in learning if name not in reached and not KEY_BIAS.search(name)]
    return judged("parameters_reached", {"without a gradient": float(len(missed))}, 0.0, listed(missed))


def _reached(model: Model, learning: dict[str, Tensor], seed: int) -> set[str]:
    seed_all(seed)
    with torch.enable_grad():
        logits = model(texts(model, ragged(model), seed))
        loss = (logits * projection(logits, seed)).sum()
    if not loss.requires_grad:
        return set()
    slopes = torch.autograd.grad(loss, list(learning.values()), allow_unused=True)
    return {name for name, slope in zip(learning, slopes, strict=True) if slope is not None and slope.any()}


def _used(model: Model) -> list[Tensor]:
    """What the logits are computed from; of a model that cannot run, as where a part stayed behind, all that it holds."""
    for parameter in parameters(model.model):
        parameter.requires_grad_(parameter.is_floating_point())
    try:
        with torch.enable_grad():
            return _leaves(model(texts(model)))
    except Exception:
        return list(parameters(model.model))


def _leaves(logits: Tensor) -> list[Tensor]:
    """The tensors in which the graph of the logits ends."""
    found, waiting, seen = [], [logits.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting += [following for following, _ in node.next_functions]
    return found


def _named(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, part in held(module).items():
        for own, parameter in part.named_parameters(recurse=False):
            yield f"{name}.{own}".lstrip("."), parameter
