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

from oneblock.errors import ArgumentError, ShapeError
from oneblock.modes import transformed
from oneblock.notation import SYMBOLS


@dataclass(frozen=True)
class Step:
    """One named result: how it is written, and what it was computed from.

    ``reads`` maps the name the formula uses to the name the tensor has in the trace.
    ``formula`` is plain text: ``W₁x + b₁``. ``worked`` spells one element out. Its index letters are the
    lower-case axis letters, ``Σd⟨…⟩`` sums over one, ``#D`` is an axis' size:
    ``Σd⟨{W1[f,d]}·{x[d]}⟩ + {b1[f]}``. Letters of axes of which one place was picked are passed over.
    """

    name: str
    formula: str
    worked: str
    reads: dict[str, str]


@dataclass(frozen=True)
class Trace:
    """The steps of one run, in order, and every tensor by its name.

    ``trace["h"]`` is the tensor, ``trace.axes("h")`` its axis letters, ``trace.names`` the order.
    ``picked`` are the letters of the axes of which :meth:`pick` kept one place.
    """

    steps: tuple[Step, ...]
    tensors: dict[str, Tensor]
    result: object = None
    picked: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise KeyError(f"no tensor is named {name!r} in this trace; it has {', '.join(self.tensors)}")
        return self.tensors[name]

    def step(self, name: str) -> Step:
        """The step that made a tensor."""
        if name not in self.names:
            raise KeyError(f"no step is named {name!r} in this trace; it has {', '.join(self.names)}")
        return self.steps[self.names.index(name)]

    def axes(self, name: str) -> tuple[str, ...]:
        """The axis letters of a tensor, its leading ``N`` and ``L`` included."""
        return tuple("L" if letter == "j" else letter.upper() for letter in self.letters(name))

    def letters(self, name: str) -> tuple[str, ...]:
        """The letter that a formula uses along each axis: ``("n", "l", "d")``; ``j`` where a position is read."""
        symbol = SYMBOLS[local(name)]
        letters = [axis.lower() for axis in (*symbol.leading, *symbol.axes) if axis.lower() not in self.picked]
        return tuple(letters[len(letters) - self[name].ndim :])

    def at(self, *index: int) -> "Trace":
        """The same steps for one position ``[n, l]``, or ``[l]`` where there is no batch.

        Keys, values and masks stay whole: one position reads those of all.
        """
        if len(index) > 2:
            raise ArgumentError("index", "(n, l), or (l) where there is no batch", index, "pick() takes other axes")
        return self.pick(**dict(zip("nl"[2 - len(index) :], index, strict=True)))

    def pick(self, **index: int) -> "Trace":
        """The same steps for one place of each axis named by its letter: ``pick(n=0, l=2, h=1)``."""
        known = {letter for name in self.tensors for letter in self.letters(name)}
        if not known >= set(index):
            raise KeyError(f"no tensor has the axes {sorted(set(index) - known)}; there are {sorted(known)}")
        places = {name: tuple(index.get(letter, slice(None)) for letter in self.letters(name)) for name in self.tensors}
        tensors = {name: value[places[name]] for name, value in self.tensors.items()}
        return replace(self, tensors=tensors, picked=self.picked | set(index))


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

        One given tensor may serve as two things, such as both biases; then it is named twice. A number
        is known in its scope only: two norms may have the same ε.
        """
        if not isinstance(value, Tensor):
            here = self.scoped(key)
            return here if self._originals.get(here) == value else self.keep(key, value)
        computed = {step.name for step in self.steps}
        for name, original in reversed(self._originals.items()):  # the latest: φ may hand its own input back
            if original is value and (name in computed or local(name) == key):
                return name
        return self.keep(key, value)

    def scoped(self, key: str) -> str:
        return ".".join([*self.scopes, key])

    def keep(self, key: str, value: object) -> str:
        name = self.scoped(key)
        if key not in SYMBOLS:
            raise KeyError(f"tap name {key!r} is not in oneblock.notation.SYMBOLS; declare its symbol and axes there")
        if name in self.tensors:
            raise KeyError(f"two tensors are named {name!r} in one trace; put one of them in a scope")
        tensor = value.detach().clone() if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
        own, leading = SYMBOLS[key].axes, SYMBOLS[key].leading
        if not 0 <= tensor.ndim - len(own) <= len(leading):
            raise ShapeError(key, f"[..., {', '.join(own)}] with at most [{', '.join(leading)}] in front", tensor)
        self.tensors[name], self._originals[name] = tensor, value
        return name


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


def written_out() -> bool:
    """Whether modules run their formulas step by step, or else torch's kernels, which give the same numbers faster.

    Steps are for :func:`record` to keep, and for the transforms of ``torch.func``, of whose derivatives the fused
    kernels lack some.
    """
    return _recorder is not None or transformed()


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


def given(name: str, value: Tensor) -> Tensor:
    """Hands ``value`` back; under :func:`record` it is named here, and not in the scope that reads it first."""
    if _recorder is not None:
        _recorder.name_of(name, value)
    return value


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
