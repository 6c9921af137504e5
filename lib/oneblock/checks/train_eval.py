"""What do train() and eval() change, and what do they leave?"""

import torch

from oneblock.checks.finding import Finding, judged
from oneblock.checks.probes import all_runs, answer, apart, copied, rates, roughened, rounding, rows
from oneblock.checks.subject import Subject

RATE = 0.25


def train_eval(subject: Subject) -> Finding:
    """One seed, one answer; in eval any seed, the same answer, with gradients and without, and that of train at rate 0."""
    rough = roughened(subject)
    x, runs, dropping = rows(subject), all_runs(rough), copied(rough)
    dropping.block.train()
    claimed = [(module, name) for module, name in rates(dropping.block) if getattr(module, name) > 0]
    for module, name in claimed:
        setattr(module, name, RATE)  # a small rate may drop nothing twice
    train = [answer(dropping, True, x, seed=seed) for seed in (0, 0, 1)]
    still = [runs["eval"](x, seed=seed) for seed in (0, 1)]
    measured = {
        "train, one seed twice": apart(train[0], train[1]),
        "eval, two seeds": apart(*still),
        "eval, no_grad, two seeds": apart(*(runs["eval, no_grad"](x, seed=seed) for seed in (0, 1))),
        "eval, with and without gradients": apart(still[0], runs["eval, no_grad"](x)),
        "dropout that never drops": float(bool(claimed) and torch.equal(train[0], train[2])),
    }
    if torch.equal(runs["train"](x, seed=0), runs["train"](x, seed=1)):  # a rate written into forward cannot be set
        measured["eval, and train at rate 0"] = apart(still[0], runs["train"](x))
    return judged("train_eval", measured, rounding(x.dtype))
