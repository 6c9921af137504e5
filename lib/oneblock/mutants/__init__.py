"""Blocks with the right shapes and the wrong structure, each beside the right one that it stems from."""

from oneblock.mutants.norms import NormAfterSum

__all__ = ["NormAfterSum"]
