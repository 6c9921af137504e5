"""What torch ran: its layer has a second implementation for inference, and only the operations tell which one it was."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

FUSED = {"layer": "aten::_transformer_encoder_layer_fwd", "attention": "aten::_native_multi_head_attention"}

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else each profile prints the time of day; read when the first one starts


def profiled(call: Callable[[], object], **options: object) -> profile:
    """torch's profiler when ``call`` has run under it."""
    with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
        call()
    return profiler


def operations(call: Callable[[], object]) -> list[str]:
    """The operations of torch that ``call`` ran, as the profiler lists them: ``["aten::linear", …]``."""
    return [event.name for event in profiled(call).events()]


def fused(call: Callable[[], object]) -> str:
    """How much of torch's layer ``call`` ran as one operation: ``"layer"``, ``"attention"`` alone, or ``"nothing"``.

    Source: ``TransformerEncoderLayer.forward`` and ``MultiheadAttention.forward``, torch 2.13.
    """
    ran = operations(call)
    return next((part for part, operation in FUSED.items() if operation in ran), "nothing")


class Outcome(NamedTuple):
    """What a call gave: ``value``, or ``error`` as text; what it warned of, and how much of it ran as one operation."""

    value: Tensor | None
    error: str
    warnings: tuple[str, ...]
    fused: str


class Paths(NamedTuple):
    """One call on both paths."""

    ordinary: Outcome
    fast: Outcome


@contextmanager
def _every_warning() -> Iterator[None]:
    """Lets torch repeat what it warns of once only."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(before)


def outcome(call: Callable[[], Tensor]) -> Outcome:
    """Runs ``call`` and keeps what it did, its errors and warnings as text."""
    kept = [None, ""]

    def tried() -> None:
        try:
            kept[0] = call().detach()
        except Exception as refusal:
            kept[1] = f"{type(refusal).__name__}: {refusal}"

    with warnings.catch_warnings(record=True) as heard, _every_warning():
        warnings.simplefilter("always")
        part = fused(tried)
    return Outcome(*kept, tuple(dict.fromkeys(str(one.message) for one in heard)), part)


def both_paths(layer: nn.Module, x: Float[Tensor, "..."], **masks: object) -> Paths:
    """``layer(x, **masks)`` with autograd, which takes the ordinary path, and without, for the fast one.

    Whether the fast path was taken says ``fast.fused``.

    Args:
        layer: ``nn.TransformerEncoderLayer``, or an ``nn.TransformerEncoder``, in ``eval()``.
        x, masks: as the layer takes them.
    """
    with torch.enable_grad():
        ordinary = outcome(lambda: layer(x.detach().requires_grad_(), **masks))
    with torch.no_grad():
        return Paths(ordinary, outcome(lambda: layer(x, **masks)))
