"""Our blocks against PyTorch's layer, in one run: how many times as long, and how many times as much memory.

    make benchmark

Both hold the same parameters and get the same x in turn, so that a busy machine slows both. A figure is the median
over rounds of ours divided by theirs; below 1 ours is the faster, or the smaller. Nothing is asserted here: times
depend on the machine. What must not depend on it, the bytes kept for the backward pass, is a test.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from oneblock.blocks import Parts, PostNorm, PreNorm
from oneblock.memory import peak

# N, L, D, H, F: from a learner's example to the first Transformer's own size.
SIZES = [(1, 4, 8, 2, 16), (16, 12, 32, 4, 128), (8, 128, 128, 4, 512), (4, 256, 256, 8, 1024), (8, 512, 512, 8, 2048)]
ORDERS: dict[type[Parts], bool] = {PreNorm: True, PostNorm: False}  # and norm_first
HEAD = "order     N,L,D,H,F          dropout  mask  pass                 time  peak memory"


def pair(kind: type[Parts], D: int, H: int, F: int, rate: float) -> tuple[nn.Module, nn.Module]:
    """Ours and PyTorch's, with the same parameters."""
    ours = kind(D, H, F, "gelu", dropout=rate)
    options = {"dropout": rate, "activation": "gelu", "batch_first": True, "norm_first": ORDERS[kind]}
    theirs = nn.TransformerEncoderLayer(D, H, F, **options)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def masks(valid: Tensor | None) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """What follows x: ours is told which tokens are real, PyTorch's, behind ``src_mask``, which are padding."""
    return ([], []) if valid is None else ([valid], [None, ~valid])


def forward(layer: nn.Module, x: Tensor, *mask: Tensor | None) -> None:
    layer(x, *mask)


def training_step(layer: nn.Module, x: Tensor, *mask: Tensor | None) -> None:
    torch.autograd.grad(layer(x, *mask).sum(), list(layer.parameters()))


def inference(layer: nn.Module, x: Tensor, *mask: Tensor | None) -> None:
    """PyTorch's layer takes its fast path here: in eval mode, without gradients."""
    with torch.inference_mode():
        layer(x, *mask)


PASSES: dict[str, tuple[bool, Callable[..., None]]] = {
    "forward": (True, forward),
    "forward + backward": (True, training_step),
    "eval, fast path": (False, inference),
}


def ratios(ours: Callable, theirs: Callable, rounds: int) -> tuple[float, float]:
    """Ours over theirs: the median of the times, taken in turn, and the peak bytes."""
    timers = [Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads()) for run in (ours, theirs)]
    peaks = []
    for run in (ours, theirs):
        run()
        peaks.append(peak(run))
    number = max(1, round(0.05 / timers[1].timeit(2).mean))
    times = [[timer.timeit(number).mean for timer in timers] for _ in range(rounds)]
    return statistics.median(mine / due for mine, due in times), peaks[0] / peaks[1]


def lines(sizes: list[tuple[int, ...]], rounds: int) -> Iterator[str]:
    for kind in ORDERS:
        for size in sizes:
            N, L, D, H, F = size
            x = torch.randn(N, L, D)
            valid = torch.arange(L) < torch.linspace(1, L, N).long()[:, None]
            for rate, masked in [(0.0, False), (0.0, True), (0.1, False)]:
                ours, theirs = pair(kind, D, H, F, rate)
                mask, padding = masks(valid if masked else None)
                for name, (training, step) in PASSES.items():
                    ours.train(training), theirs.train(training)
                    mine = lambda: step(ours, x, *mask)  # noqa: B023, E731
                    due = lambda: step(theirs, x, *padding)  # noqa: B023, E731
                    time, memory = ratios(mine, due, rounds)
                    setting = f"{kind.__name__:9} {','.join(map(str, size)):18} {rate:7}  {'yes' if masked else 'no':4}"
                    yield f"{setting}  {name:18} {time:6.2f} {memory:12.2f}"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--sizes", type=int, default=len(SIZES), help="how many of the sizes, smallest first")
    chosen = options.parse_args()
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads: ours / theirs", HEAD, sep="\n")
    for line in lines(SIZES[: chosen.sizes], chosen.rounds):
        print(line, flush=True)
