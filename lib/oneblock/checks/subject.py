"""A block as the checks see it: ``[N, L, D]`` in and out, and a mask whose True means a real token."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from oneblock.checks.found import Found
from oneblock.errors import ArgumentError, ShapeError, check_size

Call = Callable[[nn.Module, Tensor, Tensor | None], Tensor]
MEANINGS = ("real", "padding", "additive")
AXES = ("N L", "N 1 1 L", "N 1 L L")
KNOWN = {"valid_tokens": "real", "src_key_padding_mask": "padding", "key_padding_mask": "padding"}
AMBIGUOUS = ("mask", "attention_mask", "attn_mask", "padding_mask", "src_mask")
WIDTHS = ("D", "d_model", "embed_dim", "hidden_size", "dim", "n_embd", "width")
PARTS = ("attention_out", "ffn_out", "norms")
HEADS = ("H", "num_heads", "nhead", "n_heads", "n_head", "heads", "num_attention_heads")


@dataclass(frozen=True)
class Adapter:
    """``call(block, x, valid_tokens)`` for a block of another convention.

    Args:
        mask: what the block's mask says: ``"real"``: True is a real token; ``"padding"``: True is padding;
            ``"additive"``: 0 at real tokens and −∞ at padding; ``None``: it takes none.
        argument: the name under which the mask is handed over; ``None``: as the second argument.
        axes: of the mask: ``"N L"``, ``"N 1 1 L"`` or ``"N 1 L L"``.
        batch_first: whether the block takes ``[N, L, D]``; ``[L, N, D]`` otherwise.
    """

    mask: str | None = None
    argument: str | None = None
    axes: str = "N L"
    batch_first: bool = True

    def __post_init__(self) -> None:
        if self.mask is not None and self.mask not in MEANINGS:
            raise ArgumentError("mask", f"None or one of {', '.join(MEANINGS)}", self.mask)
        if self.axes not in AXES:
            raise ArgumentError("axes", f"one of {'; '.join(AXES)}", self.axes)

    def __call__(self, block: nn.Module, x: Tensor, valid_tokens: Tensor | None) -> Tensor:
        rows = x if self.batch_first else x.transpose(0, 1)
        if valid_tokens is None or self.mask is None:
            y = _first(block(rows))
        elif self.argument is None:
            y = _first(block(rows, self._converted(x, valid_tokens)))
        else:
            y = _first(block(rows, **{self.argument: self._converted(x, valid_tokens)}))
        return y if self.batch_first else y.transpose(0, 1)

    def _converted(self, x: Tensor, valid_tokens: Tensor) -> Tensor:
        mask = valid_tokens if self.mask == "real" else ~valid_tokens
        if self.mask == "additive":
            mask = torch.zeros_like(valid_tokens, dtype=x.dtype).masked_fill(mask, -torch.inf)
        N, L = valid_tokens.shape
        return {"N L": mask, "N 1 1 L": mask[:, None, None], "N 1 L L": mask[:, None, None].expand(N, 1, L, L)}[self.axes]


@dataclass(frozen=True)
class Subject:
    """A module, how it is called, and what is claimed of it.

    Args:
        block: any module; nothing done to it outlasts a check.
        D: the width of a row.
        call: ``call(block, x, valid_tokens)`` gives ``[N, L, D]``, or a tuple that begins with it.
        takes_mask: whether ``valid_tokens`` reaches the block; of an :class:`Adapter` it is known, of a function it has
            to be said.
        L: the one length that the block takes, if it is built for one.
        H: the number of heads, if no submodule tells it.
        causal: whether no position may read a later one.
        positions: whether the block itself tells positions apart, as with rotary positions.
        logits: ``logits(block, x, valid_tokens)`` gives ``[N, C]``; without it a masked mean and a linear head.
        reference: a module that is known to compute what ``block`` is to compute, with the same state dict and call.
        attention_out, ffn_out: names of the linear maps that end the attention and the FFN, where they are not found.
        norms: names of the norms, in the order of computation.
        parts: what was found in the block, if it has been looked for; else each check looks for itself.
    """

    block: nn.Module
    D: int
    call: Call
    takes_mask: bool = False
    L: int | None = None
    H: int | None = None
    causal: bool = False
    positions: bool = False
    logits: Call | None = None
    reference: nn.Module | None = None
    attention_out: str | Sequence[str] = ()
    ffn_out: str | Sequence[str] = ()
    norms: str | Sequence[str] = ()
    parts: Found | None = None

    def __call__(self, x: Tensor, valid_tokens: Tensor | None = None) -> Tensor:
        """The block's rows for a copy of ``x``; the mask only if the block takes one."""
        y = _first(self.call(self.block, x.clone(), valid_tokens if self.takes_mask else None))
        if not isinstance(y, Tensor):
            raise ShapeError("block", f"a module that returns a tensor {list(x.shape)}", type(y).__name__)
        return y

    def of(self, block: nn.Module) -> "Subject":
        """The same claims of another module."""
        return replace(self, block=block)

    @property
    def like(self) -> Tensor:
        """An empty tensor on the block's device and of its dtype."""
        return like(self.block)

    @property
    def heads(self) -> int | None:
        """H as it was given, or as the first submodule that has it tells it."""
        return self.H or _attribute(self.block, HEADS)


def subject_of(block: nn.Module | Subject, D: int | None = None, call: Call | None = None, **claims: object) -> Subject:
    """A :class:`Subject`, its width and its call found out where they are not given.

    Args:
        block: a module; a ready subject is returned as it is.
        D: needed where no attribute such as ``D`` or ``embed_dim`` tells it.
        call: an :class:`Adapter`, or a function; needed where the name of the mask does not tell its meaning.
        claims: the other fields of a subject.
    Raises:
        ArgumentError: the width is not known, the block's mask may mean the one as well as the other, or a part is
            named that the block does not have.
    """
    if isinstance(block, Subject):
        return block
    if not isinstance(block, nn.Module):
        raise ArgumentError("block", "a torch module", block, "call the factory, and give what it returns")
    D = D or _attribute(block, WIDTHS)
    if D is None:
        raise ArgumentError("D", "the width of a row", D, "nothing in the block tells it: give D=…")
    check_size("D", D)
    call = call or adapter_for(block)
    takes_mask = claims.pop("takes_mask", call.mask is not None if isinstance(call, Adapter) else False)
    subject = Subject(block, D, call, takes_mask, **claims)
    for part in PARTS:
        _check_names(part, getattr(subject, part), block)
    return subject


def names_of(part: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as several."""
    return (part,) if isinstance(part, str) else tuple(part)


def _check_names(part: str, names: str | Sequence[str], block: nn.Module) -> None:
    """Refuses a name that is none of a submodule; maps, which are to be switched off, have parameters."""
    modules = [(name, module) for name, module in block.named_modules(remove_duplicate=False) if name]
    known = [name for name, module in modules if part == "norms" or any(True for _ in module.parameters())]
    odd = [name for name in names_of(names) if name not in known]
    if odd:
        due = "names of submodules" if part == "norms" else "names of maps with parameters"
        raise ArgumentError(part, due, odd, f"there are: {', '.join(known)}")


def like(module: nn.Module) -> Tensor:
    """An empty tensor on a module's device and of its dtype."""
    floating = (t for t in (*module.parameters(), *module.buffers()) if t.is_floating_point())
    return next(floating, torch.empty(0)).detach().new_empty(0)


def adapter_for(block: nn.Module) -> Adapter:
    """The adapter that the names in ``block.forward`` speak for."""
    batch_first = getattr(getattr(block, "self_attn", None), "batch_first", True)
    names = list(inspect.signature(block.forward).parameters)
    for name, meaning in KNOWN.items():
        if name in names:
            return Adapter(meaning, name, batch_first=batch_first)
    unclear = [name for name in names if name in AMBIGUOUS]
    if unclear:
        due = "an Adapter that says what the block's mask means"
        raise ArgumentError("call", due, unclear, "Adapter('real', name), 'padding' or 'additive', or Adapter() for no mask; on the command line, --mask")
    return Adapter(batch_first=batch_first)


def _attribute(block: nn.Module, names: tuple[str, ...]) -> int | None:
    values = (getattr(module, name, None) for module in block.modules() for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)


def _first(result: object) -> object:
    return result[0] if isinstance(result, (tuple, list)) and result else result
