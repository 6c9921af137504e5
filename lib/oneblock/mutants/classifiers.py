"""Classifiers with a wrong mean, positions that do not say where, or blocks that are not there for the optimizer."""

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from oneblock.classifier import Classifier


class PlainClassifier(Classifier):
    """Computes what :class:`~oneblock.classifier.Classifier` does, with its parameters; only the taps are missing."""

    def rows(self, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N L D"]:
        self._check_ids(token_ids)
        return self.embedding(token_ids) + self.positions[: token_ids.shape[1]]

    def from_rows(self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N C"]:
        for block in self.blocks:
            x = block(x, valid_tokens)
        return self.head(self.pooled(self.norm(x), valid_tokens))

    def pooled(self, rows: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N D"]:
        real = valid_tokens[..., None]
        return rows.masked_fill(~real, 0).sum(1) / real.sum(1)


class MeanOverPadding(PlainClassifier):
    """The mean over all positions: attention masks padding, the mean counts it."""

    def pooled(self, rows: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N D"]:
        return rows.mean(1)


class LastPosition(PlainClassifier):
    """The row at ``[:, -1]`` for the text: in a padded batch that is padding."""

    def pooled(self, rows: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N D"]:
        return rows[:, -1]


class NoFinalNorm(Classifier):
    """Nothing after the last block: the sum of all increments goes to the mean and the head as large as it is."""

    def __init__(self, *sizes: int, **options: float) -> None:
        super().__init__(*sizes, **options)
        self.norm = nn.Identity()


class PositionsPerText(PlainClassifier):
    """Row n of P for all of text n: P is sliced by N where L is due. It runs while N is at most P's length."""

    def rows(self, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N L D"]:
        self._check_ids(token_ids)
        return self.embedding(token_ids) + self.positions[: token_ids.shape[0], None]


class PositionsTwice(PlainClassifier):
    """P is added with the embedding, and by the first layer once more."""

    def rows(self, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N L D"]:
        return super().rows(token_ids) + self.positions[: token_ids.shape[1]]


class OneBlockKTimes(Classifier):
    """``[block] * K``: K names for one block."""

    def __init__(self, *sizes: int, **options: float) -> None:
        super().__init__(*sizes, **options)
        self.blocks = nn.ModuleList([self.blocks[0]] * len(self.blocks))


class BlocksInAList(Classifier):
    """A Python list for ``nn.ModuleList``: neither the optimizer nor ``eval()``, ``double()`` or a state dict sees them."""

    def __init__(self, *sizes: int, **options: float) -> None:
        super().__init__(*sizes, **options)
        blocks = list(self.blocks)
        del self.blocks
        self.blocks = blocks
