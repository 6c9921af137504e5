"""A classifier as the checks see it: token ids in, logits ``[N, C]`` out."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor, nn

from oneblock.checks.subject import AMBIGUOUS, KNOWN, like
from oneblock.errors import ArgumentError, ShapeError, check_size

Call = Callable[[nn.Module, Tensor, Tensor], Tensor]
MEANINGS = ("real", "padding", "ones")
OF_IDS = KNOWN | {"attention_mask": "ones"}


@dataclass(frozen=True)
class IdsAdapter:
    """``call(model, token_ids, valid_tokens)`` for a classifier that is called as a module.

    Args:
        mask: what the model's mask says: ``"real"``: True is a real token; ``"padding"``: True is padding; ``"ones"``: the
            number 1 is a real token and 0 padding; ``None``: it takes none, and knows padding by its id.
        argument: the name under which the mask is handed over; ``None``: as the second argument.
    """

    mask: str | None = None
    argument: str | None = None

    def __post_init__(self) -> None:
        if self.mask is not None and self.mask not in MEANINGS:
            raise ArgumentError("mask", f"None or one of {', '.join(MEANINGS)}", self.mask)

    def __call__(self, model: nn.Module, token_ids: Tensor, valid_tokens: Tensor) -> object:
        if self.mask is None:
            return model(token_ids)
        mask = {"real": valid_tokens, "padding": ~valid_tokens, "ones": valid_tokens.long()}[self.mask]
        return model(token_ids, mask) if self.argument is None else model(token_ids, **{self.argument: mask})


@dataclass(frozen=True)
class Model:
    """A classifier, how it is called, and what is claimed of it.

    Args:
        model: any module; nothing done to it outlasts a check.
        V: how many token ids there are, from 0 to V − 1.
        call: ``call(model, token_ids, valid_tokens)`` gives logits ``[N, C]``, a tuple that begins with them, or
            something that has them as ``logits``.
        takes_mask: whether ``valid_tokens`` reaches the model; if not, it knows padding by its id. Of an
            :class:`IdsAdapter` it is known, of a function it has to be said. A model that takes a mask and also looks
            for the id, as for the last token of a text, does not take one in this sense: say ``False``.
        padding: the id of padding, which stands behind a text.
        L: the longest text that the model takes; without it the checks try 11 tokens at most.
        C: the number of classes; without it that of the first logits.
        ordered: whether the order of the tokens counts.
        shared: whether parts are one on purpose, such as K layers with the parameters of one.
        reference: a module that is known to compute what ``model`` is to compute, with the same state dict and call.
    """

    model: nn.Module
    V: int
    call: Call
    takes_mask: bool = False
    padding: int = 0
    L: int | None = None
    C: int | None = None
    ordered: bool = True
    shared: bool = False
    reference: nn.Module | None = None

    def __call__(self, token_ids: Tensor, valid_tokens: Tensor | None = None) -> Tensor:
        """The logits for a copy of the ids; where no mask is given, all but the padding id is real."""
        real = token_ids != self.padding if valid_tokens is None else valid_tokens
        logits = _logits(self.call(self.model, token_ids.clone(), real))
        if not isinstance(logits, Tensor):
            raise ShapeError("model", "a module that returns logits [N, C]", type(logits).__name__)
        return logits

    def of(self, model: nn.Module) -> "Model":
        """The same claims of another module."""
        return replace(self, model=model)

    @property
    def like(self) -> Tensor:
        """An empty tensor on the model's device and of its dtype."""
        return like(self.model)


def model_of(model: nn.Module | Model, V: int | None = None, call: Call | None = None, **claims: object) -> Model:
    """A :class:`Model`, its call found out where it is not given.

    Args:
        model: a module; a ready :class:`Model` is returned as it is.
        V: the number of token ids.
        call: an :class:`IdsAdapter`, or a function; needed where the name of the mask does not tell its meaning.
        claims: the other fields of a :class:`Model`.
    Raises:
        ArgumentError: V is no size, or the model's mask may mean the one as well as the other.
    """
    if isinstance(model, Model):
        return model
    if not isinstance(model, nn.Module):
        raise ArgumentError("model", "a torch module", model, "call the factory, and give what it returns")
    check_size("V", V)
    call = call or ids_adapter_for(model)
    takes_mask = claims.pop("takes_mask", call.mask is not None if isinstance(call, IdsAdapter) else False)
    return Model(model, V, call, takes_mask, **claims)


def ids_adapter_for(model: nn.Module) -> IdsAdapter:
    """The adapter that the names in ``model.forward`` speak for."""
    names = list(inspect.signature(model.forward).parameters)
    for name, meaning in OF_IDS.items():
        if name in names:
            return IdsAdapter(meaning, name)
    unclear = [name for name in names if name in AMBIGUOUS]
    if unclear:
        due = "an IdsAdapter that says what the model's mask means"
        raise ArgumentError("call", due, unclear, "IdsAdapter('real', name), 'padding' or 'ones', or IdsAdapter() for no mask")
    return IdsAdapter()


def _logits(result: object) -> object:
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    return getattr(first, "logits", first)
