"""A record of named steps, made while the real code runs.

The library's functions call :func:`tap` on each tensor a reader should see. Outside :func:`record`
a tap only hands its tensor back; inside, the tensor is kept together with its formula and with the
tensors it was computed from. Nothing in a :class:`Trace` is typed beside the code.
"""

import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from oneblock.errors import ShapeError
from oneblock.notation import SYMBOLS


@dataclass(frozen=True)
class Step:
    """One named result: how it is written, and what it was computed from.

    ``reads`` maps the name the formula uses to the name the tensor has in the trace.
    ``formula`` is plain text: ``W₁x + b₁``. ``worked`` spells one element out. Its index letters are the
    lower-case axis letters, ``Σd⟨…⟩`` sums over one, ``#D`` is an axis' size:
    ``Σd⟨{W1[f,d]}·{x[d]}⟩ + {b1[f]}``.
    """

    name: str
    formula: str
    worked: str
    reads: dict[str, str]


@dataclass(frozen=True)
class Trace:
    """The steps of one run, in order, and every tensor by its name.

    ``trace["h"]`` is the tensor, ``trace.axes("h")`` its axis letters, ``trace.names`` the order.
    """

    steps: tuple[Step, ...]
    tensors: dict[str, Tensor]
    result: object = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise KeyError(f"no tensor is named {name!r} in this trace; it has {', '.join(self.tensors)}")
        return self.tensors[name]

    def step(self, name: str) -> Step:
        """The step that made a tensor."""
        return self.steps[self.names.index(name)]

    def axes(self, name: str) -> tuple[str, ...]:
        """The axis letters of a tensor, its leading ``N`` and ``L`` included."""
        own = SYMBOLS[local(name)].axes
        extra = self[name].ndim - len(own)
        return ("N", "L")[2 - extra :] + own if extra else own

    def at(self, *index: int) -> "Trace":
        """The same steps for one position: ``index`` picks from the leading axes, such as ``[n, l]``."""
        picked = {
            name: value[index] if self.axes(name)[: len(index)] == ("N", "L")[2 - len(index) :] else value
            for name, value in self.tensors.items()
        }
        return replace(self, tensors=picked)


def local(name: str) -> str:
    """The part of a name behind its scopes: ``norm.mean`` is a ``mean``."""
    return name.rpartition(".")[2]


def symbol_of(name: str) -> str:
    """How a tensor is written: its symbol, and its scope where it has one: ``y (second)``."""
    scopes, _, key = name.rpartition(".")
    return f"{SYMBOLS[key].text} ({scopes})" if scopes else SYMBOLS[key].text


class _Recorder:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.tensors: dict[str, Tensor] = {}
        self.scopes: list[str] = []
        self._originals: dict[str, object] = {}

    def name_of(self, key: str, value: object) -> str:
        """The name under which this very tensor is known; a tensor not seen before is a given.

        One given tensor may serve as two things, such as both biases; then it is named twice.
        """
        computed = {step.name for step in self.steps}
        for name, original in self._originals.items():
            if _same(original, value) and (name in computed or local(name) == key):
                return name
        return self.keep(key, value)

    def keep(self, key: str, value: object) -> str:
        name = ".".join([*self.scopes, key])
        if key not in SYMBOLS:
            raise KeyError(f"tap name {key!r} is not in oneblock.notation.SYMBOLS; declare its symbol and axes there")
        if name in self.tensors:
            raise KeyError(f"two tensors are named {name!r} in one trace; put one of them in a scope")
        tensor = value.detach().clone() if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
        if tensor.ndim - len(SYMBOLS[key].axes) not in (0, 1, 2):
            raise ShapeError(key, f"[..., {', '.join(SYMBOLS[key].axes)}] with at most [N, L] in front", tensor)
        self.tensors[name], self._originals[name] = tensor, value
        return name


def _same(one: object, other: object) -> bool:
    """One tensor is the same only as itself; numbers are the same when equal."""
    return one is other or (not isinstance(one, Tensor) and not isinstance(other, Tensor) and one == other)


_recorder: _Recorder | None = None


def record(function: Callable, *args: object, **kwargs: object) -> Trace:
    """Runs ``function`` and returns the trace of every :func:`tap` on the way.

    The trace's ``result`` is what the function returned. One recording at a time.
    """
    global _recorder
    if _recorder is not None:
        raise RuntimeError("record() is already recording; call it once, around the whole computation")
    _recorder = recorder = _Recorder()
    try:
        result = function(*args, **kwargs)
    finally:
        _recorder = None
    return Trace(tuple(recorder.steps), recorder.tensors, result)


@contextmanager
def scope(name: str):
    """Puts ``name.`` before the names tapped inside, so that one function can run twice in a trace."""
    if _recorder is None:
        yield
        return
    _recorder.scopes.append(name)
    try:
        yield
    finally:
        _recorder.scopes.pop()


def tap(name: str, value: Tensor, formula: str, worked: str = "", **reads: object) -> Tensor:
    """Hands ``value`` back unchanged; under :func:`record` it becomes the trace's next step.

    Args:
        name: a key of ``oneblock.notation.SYMBOLS``.
        formula: plain text; ``{x}`` becomes the symbol under which the tensor read as ``x`` is known.
        worked: the same for one element, see :class:`Step`.
        reads: the tensors and numbers ``value`` was computed from, under the names the formula uses.
    """
    if _recorder is None:
        return value
    in_order = sorted(reads, key=lambda key: formula.find("{" + key + "}"))  # as the formula names them
    known = {key: _recorder.name_of(key, reads[key]) for key in in_order}
    symbols = {key: symbol_of(full) for key, full in known.items()}
    worked = re.sub(r"\{(\w+)", lambda match: "{" + known[match[1]], worked)
    full = _recorder.keep(name, value)
    _recorder.steps.append(Step(full, formula.format(**symbols), worked, known))
    return value
