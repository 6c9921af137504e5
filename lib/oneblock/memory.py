"""What a layer keeps between its forward and its backward pass: measured, and in closed form.

The backward pass needs numbers of the forward pass again, and autograd keeps them until then. Counted are
the tensors that autograd saves, each storage once, parameters apart. A layer's own input is among them, its
output is not. The closed forms count elements and hold for PyTorch's layers on CPU in training; times 4 they
are bytes in float32. ``N`` sequences of ``L`` positions, ``H`` heads.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from oneblock.errors import ArgumentError
from oneblock.fast_path import profiled

# Elements of size [N, L, D] and of size [N, H, L, L] that each way through attention keeps.
ROWS = {"fused": 5, "math": 7, "weights": 6}


def kept(module: nn.Module, *inputs: Tensor, **options: object) -> list[Tensor]:
    """The tensors that ``module(*inputs, **options)`` keeps for its backward pass, one for each storage.

    A tensor may be a view of its storage: :func:`nbytes` counts the storage, as memory does.
    """
    parameters = {p.untyped_storage().data_ptr() for p in module.parameters()}
    storages = {}

    def keep(tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address not in parameters:
            storages.setdefault(address, tensor)  # held here, so that no address is given away twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        module(*inputs, **options)
    return list(storages.values())


def peak(run: Callable[[], object]) -> int:
    """The most bytes that ``run()`` holds at once beyond those held before, by what torch's CPU allocator gives out.

    What a kernel takes for itself counts, which :func:`kept` cannot see. Let go of old gradients before.
    Source: the memory events of ``torch.profiler``.
    """
    profile = profiled(run, profile_memory=True)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text("utf-8"))["traceEvents"]
    taken = [event["args"]["Bytes"] for event in events if event.get("name") == "[memory]"]
    return max(itertools.accumulate(taken), default=0)


def nbytes(tensors: list[Tensor]) -> int:
    """The bytes of the tensors' storages."""
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


def attention_kept(D: int, H: int, L: int, N: int = 1, kernel: str = "fused", dropout: bool = False) -> int:
    """What ``nn.MultiheadAttention`` keeps, by the way its scores take.

    ====================  ======================================  =================
    ``kernel``            chosen when                             elements
    ====================  ======================================  =================
    ``"fused"``           no dropout, no weights asked for        ``5NLD + NHL``
    ``"math"``            dropout on CPU, or by ``sdpa_kernel``   ``7NLD + NHL²``
    ``"weights"``         ``need_weights=True``                   ``6NLD + NHL²``
    ====================  ======================================  =================

    The fused kernel keeps one number for each row of scores and computes the row again in the backward pass.
    With dropout the others keep three squares, not one: the weights, the mask and the masked weights.

    Raises:
        ArgumentError: there is no such kernel, or it is ``"fused"`` with dropout, which on CPU there is not.
    """
    if kernel not in ROWS or (kernel == "fused" and dropout):
        due = "'math' or 'weights', with dropout on CPU" if dropout else f"one of {', '.join(ROWS)}"
        raise ArgumentError("kernel", due, kernel)
    squares = H * L if kernel == "fused" else H * L * L * (3 if dropout else 1)
    return N * (ROWS[kernel] * L * D + squares)


def ffn_kept(D: int, F: int, L: int, N: int = 1, activation: str = "relu", dropout: bool = False) -> int:
    """The input and the hidden numbers: ``NLD + NLF`` with ReLU, ``NLD + 2NLF`` with others.

    ReLU's backward pass reads its result, which the second map keeps anyway; the others read their input.
    With dropout ``NLD + 3NLF``: its mask and the masked numbers beside what the activation keeps.
    """
    copies = 3 if dropout else 1 if activation == "relu" else 2
    return N * L * (D + copies * F)


def gated_ffn_kept(D: int, F: int, L: int, N: int = 1) -> int:
    """Input, gate, activated gate, content and product: ``NLD + 4NLF``."""
    return N * L * (D + 4 * F)


def moe_kept(D: int, F: int, L: int, experts: int, active: int, N: int = 1) -> int:
    """``NL(D + experts + active · (3D + F + 1))``, the whole numbers of the routing tables apart.

    The input and the router's probabilities, and for each chosen expert, with ReLU: the row gathered for it,
    the hidden numbers, what it gives, the weight this gets, and the weighted row that ``index_add`` keeps.
    """
    return N * L * (D + experts + active * (3 * D + F + 1))


def norm_kept(D: int, L: int, N: int = 1) -> int:
    """The input of ``nn.LayerNorm``, a mean and a deviation for each row: ``NL(D + 2)``."""
    return N * L * (D + 2)


def layer_kept(
    D: int, F: int, H: int, L: int, N: int = 1, kernel: str = "fused", activation: str = "relu", dropout: bool = False
) -> int:
    """What ``nn.TransformerEncoderLayer`` keeps: the sum of its parts, and a mask for each branch with dropout.

    Fused, with ReLU and without dropout: ``N(8LD + LF + HL + 4L)``. With dropout: ``N(12LD + 3LF + 3HL² + 4L)``.
    Both orders of norm and sum keep as much.
    """
    parts = attention_kept(D, H, L, N, kernel, dropout) + ffn_kept(D, F, L, N, activation, dropout)
    return parts + 2 * norm_kept(D, L, N) + (2 * N * L * D if dropout else 0)

