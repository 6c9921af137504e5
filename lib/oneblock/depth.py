"""What depth does to a fresh stack of blocks: gradients, sizes, and how alike the tokens become.

Nothing is trained here. A stack meets one batch of random rows and one loss, forward and backward once, in float64
so that all machines agree in the digits shown. :func:`measure` is one run, :func:`summarise` takes it over seeds::

    measure("Post-LN", K=8).gradient
    summarise("Post-LN", K=8).curves["gradient"]

``book/data/depth_study.py`` stores the summaries of a larger study; read them with :mod:`oneblock.stored`::

    post = pick(load("data/depth_study.json", Summary), structure="Post-LN", init="Xavier", loss=TEXT)
    slope([one.K for one in post], [one.curves["ffn_gradient"][-1][1] for one in post])
"""

from collections.abc import Callable, Iterable, Sequence
from math import log
from statistics import linear_regression, median
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from oneblock.errors import check_tensor
from oneblock.stacks import INITS, Stack, cut_branches, drawn_in_float64, named, scale_branches, stack
from oneblock.trace import Trace, record

TEXT, TOKEN = "one class a text", "one class a token"


class Sizes(NamedTuple):
    """Batch, sequence length, width, heads, width inside the FFN, classes."""

    N: int = 4
    L: int = 16
    D: int = 64
    H: int = 4
    F: int = 256
    C: int = 10


SIZES = Sizes()


class Task(NamedTuple):
    """Rows from N(0, 1), a fixed random head from N(0, 1/D), a random class for each token."""

    x: Float[Tensor, "N L D"]
    head: Float[Tensor, "C D"]
    classes: Int[Tensor, "N L"]


def task(seed: int, sizes: Sizes = SIZES) -> Task:
    """The rows, head and classes of a seed."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(sizes.N, sizes.L, sizes.D, generator=draw, dtype=torch.float64)
    head = torch.randn(sizes.C, sizes.D, generator=draw, dtype=torch.float64) / sizes.D**0.5
    return Task(x, head, torch.randint(sizes.C, (sizes.N, sizes.L), generator=draw))


def _of_the_mean(rows: Tensor, given: Task) -> Tensor:
    """The rows of a text are averaged and get one class, its first; all rows get the same gradient."""
    return cross_entropy(rows.mean(dim=1) @ given.head.mT, given.classes[:, 0])


def _of_each_token(rows: Tensor, given: Task) -> Tensor:
    """Each token gets a class of its own, as in language modelling, and so a gradient of its own."""
    return cross_entropy((rows @ given.head.mT).flatten(0, 1), given.classes.flatten())


LOSSES: dict[str, Callable[[Tensor, Task], Tensor]] = {TEXT: _of_the_mean, TOKEN: _of_each_token}


class Depth(NamedTuple):
    """What one run shows.

    At the K + 1 boundaries, where block k + 1 reads ``x_k`` and the last block writes ``x_K``:

    - gradient: ``‖∂loss/∂x_k‖``, over all of ``[N, L, D]``;
    - skip: the same when no gradient passes a branch: what is left is the path of the explicit I;
    - rms: the size of the residual stream, ``√mean(x_k²)``;
    - alike: the mean cosine between two positions of one text, :func:`alike`.

    Of the K blocks:

    - attention_ratio, ffn_ratio: ``‖branch‖ / ‖what it is added to‖``;
    - ffn_gradient: ``‖∂loss/∂W₂‖``.

    The loss is in nats.
    """

    gradient: list[float]
    skip: list[float]
    rms: list[float]
    alike: list[float]
    attention_ratio: list[float]
    ffn_ratio: list[float]
    ffn_gradient: list[float]
    loss: float


def measure(
    structure: str,
    K: int,
    init: str = "PyTorch's default",
    loss: str = TEXT,
    seed: int = 0,
    scale: float = 1.0,
    sizes: Sizes = SIZES,
) -> Depth:
    """One forward and one backward pass through a fresh stack, and one more backward past its branches.

    Args:
        structure, init: keys of ``STRUCTURES`` and ``INITS`` in ``oneblock.stacks``; loss: a key of ``LOSSES``.
        K: how many blocks.
        seed: fixes the parameters and the task; torch's own seed is left alone.
        scale: multiplies the last projection of every branch, after ``init``.
    Raises:
        ArgumentError: a name does not exist, K is not a whole number ≥ 1, the scale is negative or not finite.
    Source: the gradient of the last W₂ is that of theorem 1 in Xiong et al., 2020, arXiv:2002.04745.
    """
    start, loss_of, given = named("init", init, INITS), named("loss", loss, LOSSES), task(seed, sizes)
    with drawn_in_float64(seed):
        deep = stack(structure, K, sizes.D, sizes.H, sizes.F)
        start(deep)
    scale_branches(deep, scale)
    traces, stream, value = _run(deep, given, loss_of)
    ffn_gradient = [block.linear2.weight.grad.norm().item() for block in deep.blocks]
    cut_branches(deep)
    _, past_the_branches, _ = _run(deep, given, loss_of)
    return Depth(
        gradient=[x.grad.norm().item() for x in stream],
        skip=[x.grad.norm().item() for x in past_the_branches],
        rms=[x.detach().square().mean().sqrt().item() for x in stream],
        alike=[alike(x.detach()) for x in stream],
        attention_ratio=[_ratio(trace, "sum1.y") for trace in traces],
        ffn_ratio=[_ratio(trace, "sum2.y") for trace in traces],
        ffn_gradient=ffn_gradient,
        loss=value,
    )


def alike(x: Float[Tensor, "N L D"]) -> float:
    """The mean of ``cos(x_i, x_j)`` over the pairs ``i ≠ j`` of each text: at 1 all its tokens point one way.

    Args:
        x: ``[N, L, D]``, L at least 2.
    Raises:
        ArgumentError: ``x`` is not a floating ``[N, L, D]``.
    Source: Dong, Cordonnier, Loukas, *Attention is Not All You Need*, 2021, arXiv:2103.03404, on why they come to.
    """
    check_tensor("x", x, "N L D")
    L, directions = x.shape[1], normalize(x, dim=-1)
    cosines = directions @ directions.mT
    return ((cosines.sum(dim=(1, 2)) - L) / (L * (L - 1))).mean().item()


class Summary(NamedTuple):
    """Several seeds of one kind of run: each number of :class:`Depth` as ``[smallest, median, largest]``.

    ``curves[name][i]`` belongs to the boundary ``at[i]``, five evenly spaced ones (or all of fewer), 0 and K among
    them. A curve over blocks starts at ``at[1]``: it has, at ``i − 1``, the block that ends at ``at[i]``. A curve's
    last number is the last block's or the output's.
    """

    structure: str
    init: str
    loss: str
    K: int
    seeds: int
    at: list[int]
    curves: dict[str, list[list[float]]]


def summarise(
    structure: str,
    K: int,
    init: str = "PyTorch's default",
    loss: str = TEXT,
    seeds: Iterable[int] = range(5),
    sizes: Sizes = SIZES,
) -> Summary:
    """:func:`measure` for each seed; arguments and errors are the same."""
    runs = [measure(structure, K, init, loss, seed, sizes=sizes) for seed in seeds]
    at = list(range(0, K + 1, max(1, K // 4)))
    curves = {}
    for name, values in zip(Depth._fields[:-1], zip(*(run[:-1] for run in runs), strict=True), strict=True):
        shift = K + 1 - len(values[0])  # 1 for a curve over blocks
        curves[name] = [spread(run[k - shift] for run in values) for k in at[shift:]]
    return Summary(structure, init, loss, K, len(runs), at, curves)


def spread(values: Iterable[float]) -> list[float]:
    """``[smallest, median, largest]``."""
    values = sorted(values)
    return [values[0], median(values), values[-1]]


def slope(depths: Sequence[int], values: Sequence[float]) -> float:
    """The exponent p of the best line ``log(value) = p·log(K) + constant``; at −0.5 values fall as 1/√K."""
    return linear_regression([log(K) for K in depths], [log(value) for value in values]).slope


def _run(
    deep: Stack, given: Task, loss_of: Callable[[Tensor, Task], Tensor]
) -> tuple[list[Trace], list[Tensor], float]:
    """Forward and backward: a trace of each block, and the stream at the boundaries, with gradients."""
    traces, stream = [], [given.x.clone().requires_grad_()]
    for block in deep.blocks:
        traces.append(record(block, stream[-1]))
        stream.append(traces[-1].result)
        stream[-1].retain_grad()
    loss = loss_of(deep.final(stream[-1]), given)
    loss.backward()
    return traces, stream, loss.item()


def _ratio(trace: Trace, total: str) -> float:
    """``‖branch‖ / ‖what it is added to‖`` of one residual sum."""
    reads = trace.step(total).reads
    return (trace[reads["increment"]].norm() / trace[reads["x"]].norm()).item()
