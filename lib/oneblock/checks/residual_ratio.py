"""How large is what a branch adds, beside what it is added to?"""

from oneblock.checks.finding import Finding, judged, not_applicable
from oneblock.checks.parts import find
from oneblock.checks.probes import quiet, rows
from oneblock.checks.subject import Subject
from oneblock.checks.sublayers import PRE, added, order_of

TENS = 10.0


def residual_ratio(subject: Subject) -> Finding:
    """``‖S(LN x)‖ / ‖x‖`` of either branch of a Pre-LN block as it stands, on rows of about unit size."""
    still, x = quiet(subject), rows(subject)
    found = find(still)
    if not found.has_branches or order_of(subject) != PRE:
        return not_applicable("residual_ratio")
    steps = {"attention": added(still, found.ffn_last, x), "FFN": added(still, found.attention_last, x)}
    return judged("residual_ratio", {name: (step.norm() / x.norm()).item() for name, step in steps.items()}, TENS)
