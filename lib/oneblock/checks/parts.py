"""Which submodule is the norm, the attention, the feed-forward network: as told, by what it does, or by type and name."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from oneblock.checks.bench import WHOLE
from oneblock.checks.effects import Effects
from oneblock.checks.found import Found
from oneblock.checks.guard import guard
from oneblock.checks.subject import Subject, names_of

ATTENTION, NORM = re.compile(r"attn|attention", re.I), re.compile(r"norm", re.I)


def find(subject: Subject) -> Found:
    """The parts of a block: as the subject names them, by effect, by type and name, in this order, or not at all."""
    if subject.parts is not None:
        return subject.parts
    by_name = _by_name(subject)
    try:
        return _by_effect(subject, by_name)
    except Exception:  # the block cannot be run, as the checks will say
        return by_name


def with_parts(subject: Subject) -> Subject:
    """The subject with what :func:`find` finds, so that no check has to look again; its block is left as it was."""
    with guard(subject.block), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replace(subject, parts=find(subject))


def _by_name(subject: Subject) -> Found:
    named, D = dict(subject.block.named_modules(remove_duplicate=False)), subject.D
    attentions = _outermost([name for name, module in named.items() if name and _attends(name, module, D)])
    last = [_last(named, attention, D) for attention in attentions]
    free = _left([name for name, module in named.items() if isinstance(module, nn.Linear)], attentions)
    found = Found(
        _outermost([name for name, module in named.items() if name and _norms(module, D)]),
        attentions,
        attentions,
        tuple(last) if None not in last else (),
        tuple(name for name in free if named[name].in_features == D),
        tuple(name for name in free if named[name].out_features == D),
    )
    return _as_told(subject, found)


def _by_effect(subject: Subject, by_name: Found) -> Found:
    effects = Effects(subject)
    known = any(isinstance(subject.block.get_submodule(name), WHOLE) for name in by_name.attentions)
    last = names_of(subject.attention_out) or (() if known else effects.attention_last()) or by_name.attention_last
    inside = _left(effects.inside(last), by_name.attentions) if last else ()
    taken = (*by_name.attentions, *inside, *last)
    free = _left(effects.maps, taken)
    found = replace(
        by_name,
        norms=_outermost(_in_order(subject.block, (*by_name.norms, *effects.norms()))),
        attention_inside=(*by_name.attentions, *inside),
        attention_last=last,
        ffn_first=_in_order(subject.block, (*_left(by_name.ffn_first, taken), *effects.taking_rows(free))),
        ffn_last=(effects.ffn_last(last, free) if last else ()) or _left(by_name.ffn_last, taken),
    )
    return _as_told(subject, found)


def _as_told(subject: Subject, found: Found) -> Found:
    """With the names that the subject gives in place of what was found."""
    told = {"norms": subject.norms, "attention_last": subject.attention_out, "ffn_last": subject.ffn_out}
    return replace(found, **{part: names_of(names) for part, names in told.items() if names})


def _attends(name: str, module: nn.Module, D: int) -> bool:
    """By type or name; one map alone only if it ends in D, as the map to q, k and v in one does not."""
    if isinstance(module, WHOLE):
        return True
    if isinstance(module, nn.Linear) and module.out_features != D:
        return False
    spoken = ATTENTION.search(type(module).__name__) or ATTENTION.search(name.rpartition(".")[2])
    return bool(spoken) and type(module) is not nn.ModuleList and any(isinstance(part, nn.Linear) for part in module.modules())


def _norms(module: nn.Module, D: int) -> bool:
    """A norm over rows of D, or over more axes; those of a head's width or the FFN's are none of these."""
    if not NORM.search(type(module).__name__) or any(isinstance(part, nn.Linear) for part in module.modules()):
        return False
    return all(parameter.numel() == D or (parameter.numel() > D and parameter.ndim > 1) for parameter in module.parameters())


def _in_order(block: nn.Module, names: tuple[str, ...]) -> tuple[str, ...]:
    """Each once, as the block holds them."""
    return tuple(name for name, _ in block.named_modules(remove_duplicate=False) if name in names)


def _outermost(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if not any(name != other and _within(name, other) for other in names))


def _left(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """Those that are not inside one of the modules ``taken``."""
    return tuple(name for name in names if not any(_within(name, other) for other in taken))


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
