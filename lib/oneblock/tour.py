"""A block in a few stops: the results a reader should see first, out of the trace of a whole run."""

import re
from dataclasses import replace

from oneblock.errors import ArgumentError
from oneblock.trace import Step, Trace, symbol_of

NAMED = re.compile(r"\{([\w.]+)\}")

# Each stop's name, the name of its result in a block's trace, and how it comes from the stops before it.
PRE_NORM = {
    "X": ("x", ""),
    "X_normed": ("norm1.ln", "LN₁({X})"),
    "A": ("attended", "MHA({X_normed})"),
    "U": ("sum1.y", "{X} + {A}"),
    "Z": ("z", "FFN(LN₂({U}))"),
    "Y": ("sum2.y", "{U} + {Z}"),
}


def tour(trace: Trace, stops: dict[str, tuple[str, str]] = PRE_NORM) -> Trace:
    """A trace of the stops alone, each under its own name: the same tensors, no computation.

    Args:
        trace: what ``record(block, x)`` returned, or one sequence of it, ``.pick(n=0)``.
        stops: for each, in order, its name, a key of ``oneblock.notation.SYMBOLS``; the name of the result in
            ``trace``; and a formula in which ``{X}`` becomes a stop's symbol. An empty formula marks a given.
    Raises:
        ArgumentError: a formula leaves out a stop that its result was computed from, or names another; or the
            run dropped numbers between the stops, so that the formulas would not hold.
    """
    dropped = [name for name in trace.names if name.endswith("_dropped")]
    if dropped:
        raise ArgumentError("trace", "of a run without dropout", dropped, "call the block's eval() before")
    name_of = {result: name for name, (result, _) in stops.items()}
    tensors = {name: trace[result] for name, (result, _) in stops.items()}
    steps = []
    for name, (result, formula) in stops.items():
        named, due = NAMED.findall(formula), _nearest(trace, result, name_of)
        if formula and set(named) != due:
            raise ArgumentError(f"stops[{name!r}]", f"a formula of {', '.join(sorted(due))}", formula)
        if formula:
            text = NAMED.sub(lambda read: symbol_of(read[1]), formula)
            steps.append(Step(name, text, "", {read: read for read in named}))
    return replace(trace, steps=tuple(steps), tensors=tensors)


def _nearest(trace: Trace, result: str, name_of: dict[str, str]) -> set[str]:
    """The stops that one meets first on all ways back from a result."""
    if result not in trace.names:
        return set()
    reads = trace.step(result).reads.values()
    return set().union(*({name_of[read]} if read in name_of else _nearest(trace, read, name_of) for read in reads))
