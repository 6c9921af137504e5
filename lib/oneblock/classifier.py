"""From token ids to a class: embedding, positions, K blocks, a final norm, a mean, a linear map."""

from math import isfinite

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from oneblock.blocks import PreNorm
from oneblock.errors import ArgumentError, DtypeError, ShapeError, check_number, check_size, check_tensor
from oneblock.masks import masked_mean
from oneblock.modes import values_can_be_read
from oneblock.names import valid
from oneblock.norms import LayerNorm
from oneblock.trace import Trace, given, record, scope, tap


class Classifier(nn.Module):
    """``logits = W mean(LN(Block_K(… Block_1(Embedding(ids) + P)))) + b``, the mean over real tokens only.

    A loss is taken on the logits: ``cross_entropy`` has the softmax inside.

    Args:
        V, C: sizes of the vocabulary, id 0 being padding, and of the set of classes.
        L: how many positions there are; a text may have fewer.
        D, H, F, K: model width, heads, width inside the feed-forward networks, number of Pre-LN blocks.
        dropout: the rate in the blocks.
        scale: standard deviation of the first embeddings and positions.
    Called with:
        token_ids: int64 ``[N, L]``; each row has one id or more that is not padding.
    Returns:
        logits ``[N, C]``.
    Raises:
        ArgumentError: naming the argument that breaks its contract.
    Source: the mean over tokens: Reimers, Gurevych, *Sentence-BERT*, 2019, section 3, arXiv:1908.10084; learned
        positions: Devlin et al., *BERT*, 2019, arXiv:1810.04805, whose deviation 0.02 is the default of ``scale``.
    """

    def __init__(
        self, V: int, C: int, L: int, D: int, H: int, F: int, K: int, dropout: float = 0.0, scale: float = 0.02
    ) -> None:
        super().__init__()
        for name, size in {"V": V, "C": C, "L": L, "D": D, "K": K}.items():
            check_size(name, size)
        check_number("scale", scale, "a finite number > 0", lambda number: number > 0 and isfinite(number))
        self.embedding = nn.Embedding(V, D)
        self.positions = nn.Parameter(scale * torch.randn(L, D))
        self.blocks = nn.ModuleList(PreNorm(D, H, F, dropout=dropout) for _ in range(K))
        self.norm = LayerNorm(D)
        self.head = nn.Linear(D, C)
        self.embedding.weight.data.mul_(scale)

    def forward(self, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N C"]:
        return self.from_rows(self.rows(token_ids), valid(token_ids))

    def rows(self, token_ids: Int[Tensor, "N L"]) -> Float[Tensor, "N L D"]:
        """``X = Embedding(ids) + P``, the first L of the positions. Padding gets a row too."""
        self._check_ids(token_ids)
        ids, P = given("token_ids", token_ids), given("P", self.positions[: token_ids.shape[1]])
        embedded = tap("embedded", self.embedding(ids), "Embedding({token_ids})", token_ids=ids)
        return tap("X", embedded + P, "{embedded} + {P}", embedded=embedded, P=P)

    def from_rows(self, x: Float[Tensor, "N L D"], valid_tokens: Bool[Tensor, "N L"]) -> Float[Tensor, "N C"]:
        """The logits for rows ``X`` of the reader's own: what padding holds can be replaced here."""
        for k, block in enumerate(self.blocks, start=1):
            with scope(f"block{k}"):
                x = block(x, valid_tokens)
        with scope("final"):
            normed = self.norm(x)
        pooled, W, b = masked_mean(normed, valid_tokens), self.head.weight, self.head.bias
        return tap("logits", self.head(pooled), "{W_C} {pooled} + {b_C}", WORKED, W_C=W, pooled=pooled, b_C=b)

    def _check_ids(self, token_ids: Tensor) -> None:
        L, V = len(self.positions), self.embedding.num_embeddings
        due = f"int64 [N, L] with L at most {L}"
        if not isinstance(token_ids, Tensor) or token_ids.dtype != torch.int64:
            raise DtypeError("token_ids", due, token_ids, "a vocabulary's encode() gives them")
        if token_ids.ndim != 2 or not 0 < token_ids.shape[1] <= L:
            raise ShapeError("token_ids", due, token_ids, "there are no more positions, and one text is a batch of one")
        if values_can_be_read(token_ids) and not ((token_ids >= 0) & (token_ids < V)).all():
            wrong = token_ids[(token_ids < 0) | (token_ids >= V)].unique().tolist()
            raise ArgumentError("token_ids", f"from 0 to {V - 1}, as V = {V}", wrong)


WORKED = "Σd⟨{W_C[c,d]}·{pooled[d]}⟩ + {b_C[c]}"
SHARE = "exp({logits[c]}) / (Σc⟨exp({logits[c]})⟩)"


def probabilities(logits: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
    """``p = softmax(logits)``: for a reader to look at, not for the loss."""
    check_tensor("logits", logits, "N C")
    return tap("probabilities", logits.softmax(-1), "softmax({logits})", SHARE, logits=logits)


def classified(classifier: Classifier, token_ids: Int[Tensor, "N L"]) -> Trace:
    """The trace of a whole run, from the ids to the probabilities; block k is in the scope ``blockk``."""
    return record(lambda: probabilities(classifier(token_ids)))


def stages(K: int) -> dict[str, tuple[str, str]]:
    """The stops of a :func:`oneblock.tour.tour` through the trace of K blocks."""
    stops = {"token_ids": ("token_ids", ""), "P": ("P", "")}
    stops |= {"embedded": ("embedded", "Embedding({token_ids})"), "X": ("X", "{embedded} + {P}")}
    before = "X"
    for k in range(1, K + 1):
        stops[f"block{k}.Y_block"] = (f"block{k}.sum2.y", f"Block({{{before}}})")
        before = f"block{k}.Y_block"
    stops |= {"Y_normed": ("final.ln", f"LN({{{before}}})"), "pooled_row": ("pooled", "mean of real rows of {Y_normed}")}
    return stops | {"logits": ("logits", "W_C {pooled_row} + b_C"), "probabilities": ("probabilities", "softmax({logits})")}
