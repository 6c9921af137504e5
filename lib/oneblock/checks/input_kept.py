"""Does the block leave its input as it was?"""

import torch

from oneblock.checks.finding import Finding, judged
from oneblock.checks.probes import batch, roughened, seed_all
from oneblock.checks.subject import Subject


def input_kept(subject: Subject) -> Finding:
    """``x`` and ``valid_tokens`` are, to the last bit, the same after the call, in all three modes."""
    measured = {}
    for mode, training, grad in (("train", True, True), ("eval", False, True), ("eval, no_grad", False, False)):
        one, given = roughened(subject), batch(subject)
        one.block.train(training)
        x, valid_tokens = given.x.clone(), given.valid_tokens.clone()
        seed_all(0)
        with torch.set_grad_enabled(grad):
            one.call(one.block, x, valid_tokens if one.takes_mask else None)
        measured[mode] = float(not (torch.equal(x, given.x) and torch.equal(valid_tokens, given.valid_tokens)))
    return judged("input_kept", measured, 0.0)
