"""What do train() and eval() change, and what do they leave?"""

import torch

from oneblock.checks.finding import Finding, judged
from oneblock.checks.models.model import Model
from oneblock.checks.models.probes import answer, copied, quiet, roughened, texts
from oneblock.checks.probes import apart, rates, rounding
from oneblock.checks.train_eval import RATE


def model_modes(model: Model) -> Finding:
    """One seed, one answer; in eval any seed, the same answer, with gradients and without, and that of train at rate 0."""
    rough = roughened(model)
    token_ids, dropping, resting = texts(rough), copied(rough), copied(rough)  # full: padding is another check
    dropping.model.train()
    resting.model.eval()  # as a reader would: parts that torch does not know of are not reached
    claimed = [(module, name) for module, name in rates(dropping.model) if getattr(module, name) > 0]
    for module, name in claimed:
        setattr(module, name, RATE)
    train = [answer(dropping, True, token_ids, seed=seed) for seed in (0, 0, 1)]
    rest = [answer(resting, grad, token_ids, seed=seed) for grad, seed in ((True, 0), (True, 1), (False, 0), (False, 1))]
    still = [answer(quiet(rough), True, token_ids, seed=seed) for seed in (0, 1)]
    measured = {
        "train, one seed twice": apart(train[0], train[1]),
        "eval, two seeds": apart(rest[0], rest[1]),
        "eval, no_grad, two seeds": apart(rest[2], rest[3]),
        "eval, with and without gradients": apart(rest[0], rest[2]),
        "dropout that never drops": float(bool(claimed) and torch.equal(train[0], train[2])),
    }
    if torch.equal(*still):  # a rate written into forward cannot be set
        measured["eval, and train at rate 0"] = apart(rest[0], still[0])
    return judged("model_modes", measured, rounding(rough.like.dtype))
