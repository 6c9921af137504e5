"""Is it the function that another classifier computes from the same parameters?"""

import torch
from torch import Tensor

from oneblock.checks.finding import Finding, judged, listed, not_applicable
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import projection, quiet, ragged, roughened, texts
from oneblock.checks.probes import apart, rounding, seed_all


def logits_reference(model: Model) -> Finding:
    """The logits and the gradients of all parameters against a module that is known to be right, the parameters copied.

    Positions added twice are positions of another size: only what the model was to be tells that it is wrong.
    """
    if model.reference is None:
        return not_applicable("logits_reference")
    own, right = quiet(roughened(model)), quiet(model.of(model.reference))
    right.model.to(own.like)
    odd = right.model.load_state_dict(own.model.state_dict(), strict=False)
    keys = [*odd.missing_keys, *odd.unexpected_keys]
    measured = {"keys that differ": float(len(keys))}
    if not keys:
        (logits, slopes), (due, due_slopes) = _answers(own), _answers(right)
        measured |= {"logits": apart(due, logits), "gradients": apart(due_slopes, slopes)}
    return judged("logits_reference", measured, rounding(own.like.dtype), listed(keys))


def _answers(model: Model) -> tuple[Tensor, Tensor]:
    """The logits, and the gradients of a random projection of them in one row, in the order of the names."""
    learning = [value.requires_grad_() for _, value in sorted(model.model.named_parameters()) if value.is_floating_point()]
    seed_all(0)
    with torch.enable_grad():
        logits = model(texts(model, ragged(model)))
        loss = (logits * projection(logits)).sum()
    slopes = torch.autograd.grad(loss, learning, allow_unused=True, materialize_grads=True) if loss.requires_grad else []
    return logits.detach(), torch.cat([logits.new_empty(0), *(slope.flatten() for slope in slopes)]).detach()
