"""A comparison of structures by trials: does each get its own best learning rate, and was that rate looked for?

Of two numbers, one a structure, nothing can be told from outside. What can: the function that makes them out of a table of
trials, with a table whose answer is known; and the table itself, which shows where the search ended.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oneblock.checks.finding import Finding, judged, listed, not_applicable
from oneblock.orders import Trial, tuned
from oneblock.stored import pick

BEST = {"Pre-LN": 0.03, "Post-LN": 0.003}
RATES = (0.1, 0.03, 0.01, 0.003, 0.001)


@dataclass(frozen=True)
class Comparison:
    """What compares, and what it compares.

    Args:
        compare: ``compare(trials)`` gives the outcome of each structure, in nats; smaller is better.
        trials: the table, of one depth and one warm-up.
    """

    compare: Callable[[Sequence[Trial]], dict[str, float]] | None = None
    trials: Sequence[Trial] = ()


def comparison_rates(comparison: Comparison) -> Finding:
    """In a table of our own the best rates are tenfold apart: each structure is to be judged at its own, in either order."""
    if comparison.compare is None:
        return not_applicable("comparison_rates")
    measured = {}
    for names in (list(BEST), list(BEST)[::-1]):
        came = comparison.compare([_trial(name, lr, seed) for name in names for lr in RATES for seed in range(3)])
        measured |= {f"{name}, {names[0]} first": abs(came[name] - _outcome(name, BEST[name], 1)) for name in names}
    return judged("comparison_rates", measured, 1e-9)


def comparison_edge(comparison: Comparison) -> Finding:
    """The best rate of each structure is neither the smallest nor the largest that was tried: beyond it may lie a better."""
    if not comparison.trials:
        return not_applicable("comparison_edge")
    edges = []
    for name in _structures(comparison.trials):
        own = pick(comparison.trials, structure=name)
        rates = sorted({one.lr for one in own})
        if tuned(own) in (rates[0], rates[-1]):
            edges.append(f"{name} at {tuned(own):g}")
    return judged("comparison_edge", {"structures best at an edge": float(len(edges))}, 0.0, listed(edges))


def comparison_effort(comparison: Comparison) -> Finding:
    """Each structure has had the same rates, as often, for as many steps, from the same seeds."""
    if not comparison.trials:
        return not_applicable("comparison_effort")
    tried = {name: _effort(pick(comparison.trials, structure=name)) for name in _structures(comparison.trials)}
    first = next(iter(tried.values()))
    measured = {name: float(((first - own) + (own - first)).total()) for name, own in tried.items()}
    return judged("comparison_effort", measured, 0.0)


def _effort(trials: Sequence[Trial]) -> Counter:
    return Counter((one.K, one.lr, one.warmup, one.seed, len(one.losses)) for one in trials)


def _structures(trials: Sequence[Trial]) -> list[str]:
    return list(dict.fromkeys(one.structure for one in trials))


def _trial(name: str, lr: float, seed: int) -> Trial:
    return Trial(name, 6, lr, 0, seed, [2.0, _outcome(name, lr, seed)])


def _outcome(name: str, lr: float, seed: int) -> float:
    """The farther from the best rate, the worse; the median of three seeds is that of seed 1."""
    steps = abs(RATES.index(lr) - RATES.index(BEST[name]))
    return 0.2 + 0.4 * steps + 0.01 * (seed - 1)
