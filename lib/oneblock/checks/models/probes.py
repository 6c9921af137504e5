"""What the checks of a classifier have in common: texts that hide nothing, copies that may be spoilt, three ways to run."""

from copy import deepcopy
from functools import partial

import torch
from torch import Tensor, nn

from oneblock.checks.models.held import held, parameters
from oneblock.checks.models.model import Model
from oneblock.checks.probes import LENGTH, OTHER_LENGTH, Run, roughen, seed_all, set_rates


def length(model: Model) -> int:
    """L of the probes."""
    return min(LENGTH, model.L or LENGTH)


def longest(model: Model) -> int:
    """How far the probes are padded."""
    return min(OTHER_LENGTH, model.L or OTHER_LENGTH)


def texts(model: Model, lengths: tuple[int, ...] | None = None, seed: int = 0) -> Tensor:
    """``[N, L]`` of random ids, padded to the longest; if no lengths are given, three full texts."""
    lengths = lengths or (length(model),) * 3
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(model.V - 1, (len(lengths), max(lengths)), generator=draw)
    ids += ids >= model.padding
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return ids.where(real, model.padding).to(model.like.device)


def ragged(model: Model) -> tuple[int, ...]:
    """Lengths of three texts, one of them full."""
    L = length(model)
    return max(1, L - 2), L, min(2, L)


def padded(model: Model, token_ids: Tensor, L: int) -> Tensor:
    """The same texts, ``[N, L]``: cut, or followed by more padding."""
    return nn.functional.pad(token_ids, (0, L - token_ids.shape[1]), value=model.padding)


def copied(model: Model) -> Model:
    """The same, with a copy of the module."""
    return model.of(deepcopy(model.model))


def roughened(model: Model) -> Model:
    """A copy in which no γ is 1 and no β or bias is 0; matrices stay, unless they are all zeros."""
    rough = copied(model)
    roughen(parameters(rough.model))
    return rough


def quiet(model: Model) -> Model:
    """A copy in training with every dropout rate at 0, also in parts that torch does not know of."""
    silent = copied(model)
    for part in held(silent.model).values():
        set_rates(part, 0.0)
        part.train()
    return silent


def still(model: Model) -> Model:
    """A copy in eval, also of parts that torch does not know of."""
    silent = copied(model)
    for part in held(silent.model).values():
        part.eval()
    return silent


def widened(model: Model) -> Model:
    """A quiet copy in float64."""
    wide = quiet(model)
    for part in held(wide.model).values():
        part.double()
    return wide


def answer(model: Model, grad: bool, token_ids: Tensor, valid_tokens: Tensor | None = None, seed: int = 0) -> Tensor:
    """The logits, random numbers drawn from ``seed``; no graph comes out."""
    seed_all(seed)
    with torch.set_grad_enabled(grad):
        return model(token_ids, valid_tokens).detach()


def all_runs(model: Model) -> dict[str, Run]:
    """``run(token_ids, valid_tokens, seed)`` in training without dropout, in eval, and in eval without gradients."""
    silent = still(model)
    return {
        "train": partial(answer, quiet(model), True),
        "eval": partial(answer, silent, True),
        "eval, no_grad": partial(answer, silent, False),
    }


def steady_runs(model: Model) -> dict[str, Run]:
    """Those of :func:`all_runs` that answer the same whatever the random numbers: others can show no structure."""
    given = texts(model, ragged(model))
    return {name: run for name, run in all_runs(model).items() if torch.equal(run(given, seed=0), run(given, seed=1))}


def projection(logits: Tensor, seed: int = 0) -> Tensor:
    """A random tensor of the shape of the logits, for a scalar whose gradient is looked at."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(logits.shape, generator=draw, dtype=torch.float64).to(logits)


def tables(model: Model) -> list[nn.Embedding]:
    """The embeddings that are called with the token ids themselves."""
    token_ids, found = texts(model), []

    def keep(module: nn.Module, given: tuple) -> None:
        if given and given[0].shape == token_ids.shape and torch.equal(given[0], token_ids) and module not in found:
            found.append(module)

    for part in held(model.model).values():
        if isinstance(part, nn.Embedding):
            part.register_forward_pre_hook(keep)
    answer(model, False, token_ids)
    return found
