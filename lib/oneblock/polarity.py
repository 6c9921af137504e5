"""A task that needs both halves of a block: one word's polarity, which another word may turn round.

"the film was so good ." is praise, and so is "we think not bad .". Whether a sentence is praise is the exclusive
or of two features, which stand in two words. It is read at the full stop, which carries neither of them.
"""

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from oneblock.attention import MultiHeadAttention
from oneblock.blocks import PreNorm
from oneblock.errors import ArgumentError, check_size
from oneblock.ffn import FFN
from oneblock.norms import LayerNorm
from oneblock.residual import residual
from oneblock.trace import record
from oneblock.training import train

POLARITY = ("bad", "good")
FLAG = ("not", "so")
FILLERS = ("the", "film", "was", "we", "think", "and")
WORDS = (*POLARITY, *FLAG, *FILLERS, ".")
L = 7


def sentences(fours: int, seed: int) -> tuple[Int[Tensor, "N L"], Int[Tensor, " N"]]:
    """``4 · fours`` sentences of L = 7 words, as indices into ``WORDS``, and whether each is praise, 1, or not, 0.

    Four in a row are alike but for their two feature words: not bad (1), not good (0), so bad (0), so good (1).
    Fillers and the two places are drawn anew for each four. Of every four, one feature alone decides nothing.

    Raises:
        ArgumentError: ``fours`` is not a whole number ≥ 1.
    """
    check_size("fours", fours)
    draw = torch.Generator().manual_seed(seed)
    token_ids = torch.randint(len(POLARITY + FLAG), len(WORDS) - 1, (fours, L), generator=draw)
    token_ids[:, -1] = WORDS.index(".")
    places = torch.rand(fours, L - 1, generator=draw, dtype=torch.float32).argsort(dim=1)[:, :2].repeat_interleave(4, dim=0)
    polarity, flag = torch.tensor([0, 1, 0, 1]).repeat(fours), torch.tensor([0, 0, 1, 1]).repeat(fours)
    features = torch.stack([polarity, len(POLARITY) + flag], dim=1)
    return token_ids.repeat_interleave(4, dim=0).scatter(1, places, features), (polarity == flag).long()


def spoken(token_ids: Int[Tensor, " L"]) -> str:
    """A sentence in words."""
    return " ".join(WORDS[token] for token in token_ids)


class AttentionHalf(nn.Module):
    """``y = x + MHA(LN(x))``: a Pre-LN block without its feed-forward half."""

    def __init__(self, D: int, H: int) -> None:
        super().__init__()
        self.norm1, self.self_attn = LayerNorm(D), MultiHeadAttention(D, H)

    def forward(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return residual(x, self.self_attn(self.norm1(x)))


class FFNHalf(nn.Module):
    """``y = x + FFN(LN(x))``: a Pre-LN block without its attention half."""

    def __init__(self, D: int, F: int) -> None:
        super().__init__()
        self.norm2, self.ffn = LayerNorm(D), FFN(D, F)

    def forward(self, x: Float[Tensor, "N L D"]) -> Float[Tensor, "N L D"]:
        return residual(x, self.ffn(self.norm2(x)))


def full_stop(rows: Float[Tensor, "N L D"]) -> Float[Tensor, "N D"]:
    """The row of the last token."""
    return rows[:, -1]


def mean_row(rows: Float[Tensor, "N L D"]) -> Float[Tensor, "N D"]:
    """The mean of all rows."""
    return rows.mean(dim=1)


class Reader(nn.Module):
    """``logits = W read(block(Embedding(token_ids))) + b``: words in, two logits out, one layer between.

    The head is linear and no norm stands before it, so that nothing but ``block`` can combine the two features.
    There are no positions: the order of the words means nothing here. Embeddings start small, with a deviation of
    0.1, so that what a branch adds is not drowned by the row it is added to.

    Args:
        D: the width of a row.
        block: ``[N, L, D] → [N, L, D]``.
        read: ``[N, L, D] → [N, D]``.
    """

    def __init__(self, D: int, block: nn.Module, read: Callable[[Tensor], Tensor] = full_stop) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), D)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.block, self.read = block, read
        self.head = nn.Linear(D, 2)

    def forward(self, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N 2"]:
        return self.head(self.read(self.block(self.embedding(token_ids))))


# Equal budgets: each learns the same number of parameters, within 1 %.
HALVES_AND_WHOLE: dict[str, Callable[[], Reader]] = {
    "attention only": lambda: Reader(22, AttentionHalf(22, H=1)),
    "FFN only": lambda: Reader(16, FFNHalf(16, F=64)),
    "the whole block": lambda: Reader(16, PreNorm(16, H=1, F=30, activation="relu")),
}
WAYS_AROUND: dict[str, Callable[[], Reader]] = {
    "attention only, two heads": lambda: Reader(22, AttentionHalf(22, H=2)),
    "attention only, mean of all rows": lambda: Reader(22, AttentionHalf(22, H=1), mean_row),
    "FFN only, mean of all rows": lambda: Reader(16, FFNHalf(16, F=64), mean_row),
}


class Score(NamedTuple):
    """Shares of new sentences: how many are right, and of how many fours all four are."""

    sentences: float
    fours: float


def score(reader: Reader, seed: int, fours: int = 64) -> Score:
    """How a reader does on sentences drawn with ``seed``."""
    token_ids, praise = sentences(fours, seed)
    with torch.inference_mode():
        right = (reader(token_ids).argmax(dim=-1) == praise).view(fours, 4)
    return Score(right.float().mean().item(), right.all(dim=1).float().mean().item())


def learned(build: Callable[[], Reader], seed: int, lr: float = 5e-3, steps: int = 150) -> Reader:
    """A new reader after ``steps`` steps on 16 fours; ``seed`` fixes its first values and its sentences.

    Source: the loop is :func:`oneblock.training.train`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        reader = build()
    train(reader, repeat(sentences(16, seed), steps), lr)
    return reader


def scores(build: Callable[[], Reader], seeds: Iterable[int] = range(5)) -> list[Score]:
    """One reader learned for each seed, scored on sentences it has not seen."""
    return [score(learned(build, seed), seed=1000 + seed) for seed in seeds]


def votes(reader: Reader, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N L"]:
    """``vote_j = exp(s_j) · t_j``: what each word says for praise, where one attention head reads at the full stop.

    The difference of the two logits is ``Σ_j α_j t_j``, ``α = softmax(s)``: the sentence is called praise just if
    its votes sum to more than 0. The asker is always the full stop, so a vote depends on its own word alone. Then
    no weights are right on all of a four: right are ``good + so > 0``, ``bad + not > 0``, ``good + not < 0`` and
    ``bad + so < 0``, each plus the fillers' votes; the first two and the last two have the same sum.

    Raises:
        ArgumentError: ``reader`` has no lone attention of one head, read at the full stop.
    """
    block = reader.block
    if not isinstance(block, AttentionHalf) or block.self_attn.H > 1 or reader.read is not full_stop:
        raise ArgumentError("reader", "attention only, with one head, read at the full stop", reader)
    x = reader.embedding(token_ids)
    trace = record(block.self_attn, block.norm1(x))
    asked, v = trace["scores"][:, 0, -1], trace["v"][:, 0]
    rows = x[:, -1:] + block.self_attn.out_proj(v)  # the full stop's row, if it read word j alone
    logits = reader.head(rows)
    return (asked.exp() * (logits[..., 1] - logits[..., 0])).detach()
