"""The parts of a block, by the names of its submodules."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """Names of submodules; empty where nothing was recognised.

    ``attentions`` are whole modules, and ``attention_inside`` is all that acts through ``attention_last`` only: these
    modules, or the maps to q, k and v. ``attention_last`` and ``ffn_last`` are the linear maps that end a branch;
    ``ffn_first`` those that open one.
    """

    norms: tuple[str, ...] = ()
    attentions: tuple[str, ...] = ()
    attention_inside: tuple[str, ...] = ()
    attention_last: tuple[str, ...] = ()
    ffn_first: tuple[str, ...] = ()
    ffn_last: tuple[str, ...] = ()

    @property
    def has_branches(self) -> bool:
        """Whether both branches can be switched off."""
        return bool(self.attention_last and self.ffn_last)
