"""What a reader gets who misreads a step: the wrong tensor, computed from the same trace.

``MISREADINGS[step][mistake]`` takes the trace and the step. A mistake's name is the key of its
sentence in ``words``.
"""

from collections.abc import Callable
from inspect import signature

from torch import Tensor

from oneblock.trace import Step, Trace, local


def misread(trace: Trace, step: Step) -> dict[str, Tensor]:
    """The wrong results for one step, by the mistake that leads to each."""
    wrong = {}
    for mistake, rule in MISREADINGS.get(local(step.name), {}).items():
        result = rule(trace, step)
        if result is not None and result.shape == trace[step.name].shape:
            wrong[mistake] = result
    return wrong


def _on_reads(rule: Callable) -> Callable:
    """Lets a rule name the tensors it needs of those that the step read: ``lambda x, increment: x - increment``.

    Where the step read no such tensor the rule does not apply, unless its parameter has a default.
    """
    parameters = signature(rule).parameters.values()

    def on_step(trace: Trace, step: Step) -> Tensor | None:
        if any(p.name not in step.reads and p.default is p.empty for p in parameters):
            return None
        return rule(**{p.name: trace[step.reads[p.name]] for p in parameters if p.name in step.reads})

    return on_step


def _activation_forgotten(trace: Trace, step: Step) -> Tensor | None:
    """h sent straight through W₂; only where this step's input came from an activation of h."""
    before = step.reads.get("a")
    if before not in trace.names or "h" not in trace.step(before).reads:
        return None
    h = trace[trace.step(before).reads["h"]]
    bias = trace[step.reads["b2"]] if "b2" in step.reads else 0
    return h @ trace[step.reads["W2"]].mT + bias


def _padding_summed(trace: Trace, step: Step) -> Tensor | None:
    """The sum over the rows as they came, before those of padding were replaced; of one picked row there is none."""
    rows = trace[trace.step(step.reads["kept"]).reads["rows"]]
    return rows.sum(-2) if rows.ndim > 1 else None


def _by_length(trace: Trace, step: Step) -> Tensor:
    """The sum divided by all positions."""
    kept = trace[trace.step(step.reads["total"]).reads["kept"]]
    return trace[step.reads["total"]] / kept.shape[-2]


def _transposed(W: Tensor, x: Tensor, b: Tensor | int) -> Tensor | None:
    return x @ W + b if W.shape[0] == W.shape[1] else None


MISREADINGS: dict[str, dict[str, Callable]] = {
    "h": {
        "transposed": _on_reads(lambda W1, x, b1=0: _transposed(W1, x, b1)),
        "no_bias": _on_reads(lambda W1, x, b1: x @ W1.mT),
    },
    "a": {
        "no_activation": _on_reads(lambda h: h),
        "absolute": _on_reads(lambda h: h.abs()),
        "relu_chosen": _on_reads(lambda h: h.relu()),
    },
    "z": {
        "activation_forgotten": _activation_forgotten,
        "transposed": _on_reads(lambda W2, a, b2=0: _transposed(W2, a, b2)),
        "no_bias": _on_reads(lambda W2, a, b2: a @ W2.mT),
    },
    "y": {
        "no_residual": _on_reads(lambda x, increment: increment),
        "subtracted": _on_reads(lambda x, increment: x - increment),
        "no_increment": _on_reads(lambda x, increment: x),
    },
    "mean": {"not_divided": _on_reads(lambda x: x.sum(-1, keepdim=True))},
    "centred": {"reversed": lambda trace, step: -trace[step.name]},
    "squares": {
        "not_squared": _on_reads(lambda centred: centred),
        "doubled": _on_reads(lambda centred: 2 * centred),
    },
    "variance": {
        "n_minus_one": _on_reads(lambda squares: squares.sum(-1, keepdim=True) / (squares.shape[-1] - 1)),
        "not_divided": _on_reads(lambda squares: squares.sum(-1, keepdim=True)),
        "rooted": _on_reads(lambda squares: squares.mean(-1, keepdim=True).sqrt()),
    },
    "std": {
        "no_root": _on_reads(lambda variance, eps: variance + eps),
        "eps_outside": _on_reads(lambda variance, eps: variance.sqrt() + eps),
    },
    "normed": {"by_variance": _on_reads(lambda centred, std: centred / std.square())},
    "mean_square": {
        "not_divided": _on_reads(lambda x_squares: x_squares.sum(-1, keepdim=True)),
        "rooted": _on_reads(lambda x_squares: x_squares.mean(-1, keepdim=True).sqrt()),
    },
    "rms": {
        "no_root": _on_reads(lambda mean_square, eps: mean_square + eps),
        "eps_outside": _on_reads(lambda mean_square, eps: mean_square.sqrt() + eps),
    },
    "silu": {
        "sigmoid_only": _on_reads(lambda gate: gate.sigmoid()),
        "relu_instead": _on_reads(lambda gate: gate.relu()),
    },
    "gated": {
        "added": _on_reads(lambda silu, up: silu + up),
        "only_content": _on_reads(lambda silu, up: up),
    },
    "total": {"padding_summed": _padding_summed},
    "count": {"padding_counted": _on_reads(lambda w: w.new_full(w.sum(-2).shape, w.shape[-2]))},
    "pooled": {
        "not_averaged": _on_reads(lambda total: total),
        "by_length": _by_length,
    },
}
