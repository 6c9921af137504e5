"""Which map ends the attention, which the feed-forward network, which module is a norm: told by what they do.

Nothing is found where two answers are possible.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from oneblock.checks.bench import Bench
from oneblock.checks.probes import apart, rounding, rows
from oneblock.checks.subject import Subject

REPLACED = 2
"""Tokens that differ between the two inputs: the first of the first text and the last of the second."""
NORMED, MOVED = 1e-3, 1e-2
"""A norm gives the same for three times its input, but for ε; and something else for its opposite."""


class Effects:
    """The effects of a block's maps, one run a question.

    Args:
        subject: the block; a copy is looked at.
    """

    def __init__(self, subject: Subject) -> None:
        self.bench, self.D = Bench(subject), subject.D
        self.x, self.changed = rows(subject), rows(subject)
        other = rows(subject, seed=1)
        self.changed[0, 0], self.changed[1, -1] = other[0, 0], other[1, -1]
        self.y = self.bench.run(self.x)
        self.seen = dict(self.bench.seen)
        self.maps = [name for name in self.seen if name in self.bench.maps]

    def attention_last(self) -> tuple[str, ...]:
        """The map to D that is given rows of several tokens, and without which no row depends on another token.

        If that holds of several, it is the first, as long as the others have work to do without it: they end later
        sublayers. Else they may be one chain, and none is found. Nor is one whose work begins behind the mixing: it ends
        another sublayer, and the attention is not to be seen.
        """
        moved = self.bench.run(self.changed)
        after = dict(self.bench.seen)
        if not self._mixes(self.y, moved):
            return ()
        mixed = [name for name in self.maps if self._mixes(self.seen[name].given, after[name].given)]
        ending = [name for name in self._to_width(mixed) if not self._mixes(self._without(name), self._without(name, x=self.changed))]
        chained = any(not self._works_without(ending[0], other) for other in ending[1:])
        return tuple(ending[:1]) if ending and not chained and not {*self.inside(tuple(ending[:1]))} & {*mixed} else ()

    def inside(self, last: tuple[str, ...]) -> tuple[str, ...]:
        """The maps that act through the maps ``last`` only."""
        return tuple(name for name in self.maps if name not in last and self._same(self._without(*last), self._without(*last, name)))

    def ffn_last(self, attention_last: tuple[str, ...], outside: Sequence[str]) -> tuple[str, ...]:
        """The map to D, of those ``outside`` the attention, without which no other of them does anything."""
        ending = []
        for name in self._to_width(outside):
            off = self._without(*attention_last, name)
            others = (other for other in outside if other != name)
            if all(self._same(off, self._without(*attention_last, name, other)) for other in others):
                ending.append(name)
        return tuple(ending[-1:])

    def taking_rows(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those that are given rows of D."""
        return tuple(name for name in names if self.seen[name].given.shape[-1] == self.D)

    def norms(self) -> tuple[str, ...]:
        """Modules without maps that take rows of D and give the same for three times as much, but not for the opposite."""
        return tuple(name for name, seen in self.seen.items() if name not in self.maps and self._norms(name, seen.given))

    def _norms(self, name: str, x: Tensor) -> bool:
        module = self.bench.modules[name]
        if x.shape[-1] != self.D or self.seen[name].gave.shape != x.shape:
            return False
        try:
            with torch.no_grad():
                y, thrice, opposite = module(x), module(3 * x), module(-x)
        except Exception:  # it takes more than its input
            return False
        return apart(y, thrice) < NORMED and apart(y, opposite) > MOVED

    def _to_width(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if self.seen[name].gave.shape[-1] == self.D]

    def _without(self, *off: str, x: Tensor | None = None) -> Tensor:
        return self.bench.run(self.x if x is None else x, off=off)

    def _works_without(self, off: str, name: str) -> bool:
        """Whether what ``name`` is given still depends on the tokens, with ``off`` at 0."""
        self._without(off)
        before = self.bench.seen[name].given
        self._without(off, x=self.changed)
        return not self._same(before, self.bench.seen[name].given)

    def _same(self, before: Tensor, after: Tensor) -> bool:
        return apart(before, after) <= rounding(before.dtype)

    def _mixes(self, before: Tensor, after: Tensor) -> bool:
        """Whether more rows moved than the tokens that were replaced account for, however the rows are laid out."""
        if before.shape != after.shape:
            return True
        before, after = before.flatten(0, -2), after.flatten(0, -2)
        stays = (after - before).abs().amax(-1) <= rounding(before.dtype) * before.abs().max()
        tokens = self.x.shape[0] * self.x.shape[1]
        return (~stays).sum().item() > REPLACED * len(before) / tokens
