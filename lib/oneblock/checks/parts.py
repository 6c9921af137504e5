"""Which submodule is the norm, the attention, the feed-forward network: by type and name, or not at all."""

import re
from dataclasses import dataclass

import torch
from torch import nn

from oneblock.attention import MultiHeadAttention

ATTENTION, NORM = re.compile(r"attn|attention", re.I), re.compile(r"norm", re.I)


@dataclass(frozen=True)
class Found:
    """Names of submodules; empty where nothing was recognised.

    ``attention_last`` and ``ffn_last`` are the linear maps that end a branch; ``ffn_first`` those that open one.
    """

    norms: tuple[str, ...]
    attentions: tuple[str, ...]
    attention_last: tuple[str, ...]
    ffn_first: tuple[str, ...]
    ffn_last: tuple[str, ...]

    @property
    def has_branches(self) -> bool:
        """Whether both branches can be switched off."""
        return bool(self.attention_last and self.ffn_last)


def find(block: nn.Module, D: int) -> Found:
    """The parts of a block of width D."""
    named = dict(block.named_modules(remove_duplicate=False))
    attentions = _outermost([name for name, module in named.items() if name and _attends(name, module)])
    inside = [name for name in named if any(_within(name, attention) for attention in attentions)]
    linears = [name for name, module in named.items() if isinstance(module, nn.Linear)]
    last = [_last(named, attention, D) for attention in attentions]
    free = [name for name in linears if name not in inside]
    return Found(
        tuple(name for name, module in named.items() if name and _norms(module, D)),
        tuple(attentions),
        tuple(last) if None not in last else (),
        tuple(name for name in free if named[name].in_features == D),
        tuple(name for name in free if named[name].out_features == D),
    )


def switch_off(block: nn.Module, names: tuple[str, ...]) -> None:
    """Sets weight and bias of these linear maps to 0."""
    with torch.no_grad():
        for name in names:
            for parameter in block.get_submodule(name).parameters():
                parameter.zero_()


def _attends(name: str, module: nn.Module) -> bool:
    if isinstance(module, (nn.MultiheadAttention, MultiHeadAttention)):
        return True
    spoken = ATTENTION.search(type(module).__name__) or ATTENTION.search(name.rpartition(".")[2])
    return bool(spoken) and any(isinstance(part, nn.Linear) for part in module.modules())


def _norms(module: nn.Module, D: int) -> bool:
    """A norm over rows of D, or over more; norms of single heads are none of these."""
    if not NORM.search(type(module).__name__) or any(True for _ in module.children()):
        return False
    return all(parameter.numel() >= D for parameter in module.parameters())


def _outermost(names: list[str]) -> list[str]:
    return [name for name in names if not any(name != other and _within(name, other) for other in names)]


def _within(name: str, outer: str) -> bool:
    return name == outer or name.startswith(f"{outer}.")


def _last(named: dict[str, nn.Module], attention: str, D: int) -> str | None:
    """The last linear map back to D inside an attention."""
    fitting = [
        name
        for name, module in named.items()
        if _within(name, attention) and isinstance(module, nn.Linear) and module.out_features == D
    ]
    return fitting[-1] if fitting else None
