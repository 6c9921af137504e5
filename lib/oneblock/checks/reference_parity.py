"""Is it the function that another module computes from the same parameters?"""

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.official_parity import gaps_to
from oneblock.checks.probes import batch, quiet, roughened, rounding
from oneblock.checks.subject import Subject


def reference_parity(subject: Subject) -> Finding:
    """The output and its gradient against a module of the reader's that is known to be right, the parameters copied.

    Two branches of a gate that are exchanged, another ε, a tanh GELU: from outside each is a block like any other, and
    only what it was to be tells that it is wrong.
    """
    if subject.reference is None:
        return not_applicable("reference_parity")
    rough = quiet(roughened(subject))
    right, given = quiet(subject.of(subject.reference)), batch(subject)
    right.block.load_state_dict(rough.block.state_dict())
    return judged("reference_parity", gaps_to(right, rough, given), rounding(given.x.dtype))
