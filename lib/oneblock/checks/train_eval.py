"""What do train() and eval() change, and what do they leave?"""

import torch
from torch import nn

from oneblock.checks.finding import Finding, judged
from oneblock.checks.probes import all_runs, answer, apart, copied, roughened, rounding, rows
from oneblock.checks.subject import Subject


def train_eval(subject: Subject) -> Finding:
    """One seed, one answer; in eval any seed, the same answer, with gradients and without, and that of train at rate 0."""
    rough = roughened(subject)
    x, runs, dropping = rows(subject), all_runs(rough), copied(rough)
    dropping.block.train()
    train = [answer(dropping, True, x, seed=seed) for seed in (0, 0, 1)]
    still = [runs["eval"](x, seed=seed) for seed in (0, 1)]
    measured = {
        "train, one seed twice": apart(train[0], train[1]),
        "eval, two seeds": apart(*still),
        "eval, no_grad, two seeds": apart(*(runs["eval, no_grad"](x, seed=seed) for seed in (0, 1))),
        "eval, with and without gradients": apart(still[0], runs["eval, no_grad"](x)),
        "dropout that never drops": float(_claims_dropout(rough.block) and torch.equal(train[0], train[2])),
    }
    if torch.equal(runs["train"](x, seed=0), runs["train"](x, seed=1)):  # a rate written into forward cannot be set
        measured["eval, and train at rate 0"] = apart(still[0], runs["train"](x))
    return judged("train_eval", measured, rounding(x.dtype))


def _claims_dropout(block: nn.Module) -> bool:
    """Whether a module says that it drops something."""
    modules = [module for module in block.modules() if isinstance(module, (nn.Dropout, nn.MultiheadAttention))]
    rates = [module.p if isinstance(module, nn.Dropout) else module.dropout for module in modules]
    return max(rates, default=0) > 0
