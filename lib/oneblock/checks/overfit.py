"""Can the block learn at all, through both its halves?"""

from math import log

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from oneblock.checks.finding import Finding, judged
from oneblock.checks.probes import quiet, rows, seed_all
from oneblock.checks.subject import Subject

SAMPLES, STEPS, LR = 4, 100, 3e-3
NEAR_ZERO = log(SAMPLES) / 10


def overfit(subject: Subject) -> Finding:
    """Four fixed texts get four classes, which a frozen random head reads at their last token: the loss must go to 0.

    The last tokens are alike, so that attention has to fetch the difference and the block, not the head, to learn it.
    """
    learner, x = quiet(subject), rows(subject, SAMPLES, seed=2)
    x[:, -1] = x[0, -1]
    draw = torch.Generator().manual_seed(3)
    head = (torch.randn(SAMPLES, subject.D, generator=draw, dtype=torch.float64) / subject.D**0.5).to(x)
    loss, steps = _learned(learner, x, head)
    return judged("overfit", {f"loss after {steps} steps": loss}, NEAR_ZERO, f"{log(SAMPLES):.3f} is chance")


def _learned(learner: Subject, x: Tensor, head: Tensor) -> tuple[float, int]:
    """The last loss, and after how many steps it was reached."""
    learning = [parameter.requires_grad_() for parameter in learner.block.parameters() if parameter.is_floating_point()]
    optimizer, classes = torch.optim.Adam(learning or [x], LR), torch.arange(SAMPLES, device=x.device)
    for step in range(STEPS):
        seed_all(step)
        with torch.enable_grad():
            loss = cross_entropy(learner(x)[:, -1] @ head.T, classes)
        if not loss > NEAR_ZERO or not loss.requires_grad:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), step
