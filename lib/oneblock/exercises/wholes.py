"""Exercises on whole blocks, on their costs and on learning."""

from collections.abc import Callable
from functools import partial
from itertools import repeat

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oneblock.blocks import PostNorm, PreNorm
from oneblock.costs import attention_overtakes_ffn
from oneblock.exercises.exercise import Exercise, numbers
from oneblock.training import train

STEPS, RATE = 3, 0.1


def _made(make: Callable, *sizes: int) -> nn.Module:
    """A module with the same parameters each time, none of which has a special value."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = make(*sizes).double()
    for seed, parameter in enumerate(module.parameters()):
        parameter.data += numbers(*parameter.shape, seed=seed) / 2
    return module


def _parts(order: type) -> dict[str, tuple]:
    block = _made(order, 6, 2, 11).eval()
    parts = block.first_norm, partial(block.attend, valid_tokens=None), block.second_norm, block.process
    return {"a batch": (numbers(2, 5, 6), *parts), "other rows": (3 * numbers(3, 4, 6, seed=1), *parts)}


def _by_the_block(x: Tensor, norm1: Callable, *parts: Callable) -> Tensor:
    """What the block says whose parts are given."""
    return norm1.__self__(x)


def _with(branch: Callable, row: Tensor) -> Tensor:
    return row + branch(row)


def _pre(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    u = x + attend(norm1(x))
    return u + process(norm2(u))


def _post(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    u = norm1(x + attend(x))
    return norm2(u + process(u))


def _normed_residual(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    n = norm1(x)
    m = norm2(n + attend(n))
    return m + process(m)


def _branches_normed(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    u = x + norm1(attend(x))
    return u + norm2(process(u))


def _both_read_x(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    return x + attend(norm1(x)) + process(norm2(x))


def _second_sum_from_x(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    return x + process(norm2(x + attend(norm1(x))))


def _half_way(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    u = x + attend(norm1(x))
    return norm2(u + process(u))


def _one_norm(x: Tensor, norm1: Callable, attend: Callable, norm2: Callable, process: Callable) -> Tensor:
    return _pre(x, norm1, attend, norm1, process)


PRE_NORM = Exercise(
    "x norm1 attend norm2 process",
    _by_the_block,
    partial(_parts, PreNorm),
    {
        "norm_after_sum": _post,
        "half_way": _half_way,
        "one_norm": _one_norm,
        "normed_residual": _normed_residual,
        "both_read_x": _both_read_x,
        "second_sum_from_x": _second_sum_from_x,
        "no_residuals": lambda x, norm1, attend, norm2, process: process(norm2(attend(norm1(x)))),
        "no_first_residual": lambda x, norm1, attend, norm2, process: _with(lambda u: process(norm2(u)), attend(norm1(x))),
        "no_second_residual": lambda x, norm1, attend, norm2, process: process(norm2(x + attend(norm1(x)))),
    },
)
POST_NORM = Exercise(
    "x norm1 attend norm2 process",
    _by_the_block,
    partial(_parts, PostNorm),
    {
        "norm_before_branch": _pre,
        "half_way": _half_way,
        "branches_normed": _branches_normed,
        "no_residuals": lambda x, norm1, attend, norm2, process: norm2(process(norm1(attend(x)))),
        "no_first_residual": lambda x, norm1, attend, norm2, process: norm2(_with(process, norm1(attend(x)))),
        "no_second_residual": lambda x, norm1, attend, norm2, process: norm2(process(norm1(x + attend(x)))),
    },
)

CROSSOVER = Exercise(
    "D F",
    lambda D, F: float(attention_overtakes_ffn(D, F)),
    lambda: {"D = 10, F = 70": (10, 70), "D = 64, F = 256": (64, 256), "D = 512, F = 2048": (512, 2048)},
    {
        "mixing_only": lambda D, F: F,
        "scores_only": lambda D, F: 2 * F,
        "sum_left_out": lambda D, F: 2 * F - 4 * D,
        "one_projection": lambda D, F: F - D / 2,
        "ffn_once": lambda D, F: F / 2 - 2 * D,
    },
)


def _step_case() -> dict[str, tuple]:
    model = _made(nn.Linear, 5, 3)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    return {"the parameters after three steps": (model, optimizer, numbers(11, 5), torch.arange(11) % 3)}


def _parameters(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def _trained(model: nn.Module, optimizer: object, inputs: Tensor, classes: Tensor) -> Tensor:
    train(model, repeat((inputs, classes), STEPS), RATE)
    return _parameters(model)


def _after_steps(function: Callable, model: nn.Module, optimizer: object, inputs: Tensor, classes: Tensor) -> Tensor | None:
    """The parameters after a few calls; nothing where nothing was returned."""
    losses = [function(model, optimizer, inputs, classes) for _ in range(STEPS)]
    return None if None in losses else _parameters(model)


def _in_order(*order: str, head: Callable = lambda logits: logits) -> Callable:
    """A step that does these things, in this order, and takes the loss of what ``head`` makes of the logits."""

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, classes: Tensor) -> float:
        loss = cross_entropy(head(model(inputs)), classes)
        deeds = {"forget": optimizer.zero_grad, "backward": loss.backward, "move": optimizer.step}
        for deed in order:
            deeds[deed]()
        return loss.item()

    return step


TRAINING_STEP = Exercise(
    "model optimizer inputs classes",
    _trained,
    _step_case,
    {
        "never_forgets": _in_order("backward", "move"),
        "moves_first": _in_order("move", "forget", "backward"),
        "forgets_too_late": _in_order("backward", "forget", "move"),
        "never_moves": _in_order("forget", "backward"),
        "softmax_twice": _in_order("forget", "backward", "move", head=lambda logits: logits.softmax(-1)),
    },
    _after_steps,
)
