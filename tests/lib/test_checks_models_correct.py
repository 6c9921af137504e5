"""No check accuses a classifier that is right, whoever wrote it and whatever its first values."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.blocks import PreNorm
from oneblock.checks import diagnose_model
from oneblock.checks.finding import NOT_APPLICABLE, PASSED
from oneblock.classifier import Classifier
from oneblock.masks import masked_mean
from oneblock.mutants.classifiers import PlainClassifier

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

V, C, D, H, F, K = 17, 3, 24, 4, 40, 2
SIZES = {"V": V, "C": C, "D": D, "H": H, "F": F, "K": K}


class Encoder(nn.Module):
    """torch's own encoder, in either order; the mask under torch's name."""

    def __init__(self, norm_first):
        super().__init__()
        self.words, self.places = nn.Embedding(V, D, padding_idx=0), nn.Embedding(11, D)
        layer = nn.TransformerEncoderLayer(D, H, F, dropout=0.1, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, K, nn.LayerNorm(D) if norm_first else None, enable_nested_tensor=not norm_first)
        self.head = nn.Linear(D, C)

    def forward(self, token_ids, src_key_padding_mask):
        L = token_ids.shape[1]
        rows = self.words(token_ids) + self.places(torch.arange(L))
        rows = self.encoder(rows, src_key_padding_mask=src_key_padding_mask)
        real = ~src_key_padding_mask[:, : rows.shape[1], None]
        return self.head((rows * real).sum(1) / real.sum(1))


class ReadsTheFirst(nn.Module):
    """As BERT does: a norm on the embeddings, Post-LN, the first row through a tanh; its padding is 1."""

    def __init__(self):
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(V, D, padding_idx=1), nn.Embedding(11, D)
        self.LayerNorm, self.dropout = nn.LayerNorm(D), nn.Dropout(0.1)
        self.layer = nn.ModuleList(nn.TransformerEncoderLayer(D, H, F, 0.1, "gelu", batch_first=True) for _ in range(K))
        self.pooler, self.classifier = nn.Linear(D, D), nn.Linear(D, C)

    def forward(self, input_ids, attention_mask):
        places = torch.arange(input_ids.shape[1])
        rows = self.dropout(self.LayerNorm(self.word_embeddings(input_ids) + self.position_embeddings(places)))
        for layer in self.layer:
            rows = layer(rows, src_key_padding_mask=attention_mask == 0)
        return SimpleNamespace(logits=self.classifier(self.dropout(self.pooler(rows[:, 0]).tanh())))


class CausalReadsTheLast(nn.Module):
    """As GPT does: no mask for padding, which stands behind; sines for positions, in a buffer; the last real row."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        angles = torch.arange(11)[:, None] * torch.exp(-math.log(1e4) * torch.arange(0, D, 2) / D)
        self.register_buffer("sines", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(D, H, F, 0.1, batch_first=True, norm_first=True) for _ in range(K))
        self.final, self.head = nn.LayerNorm(D), nn.Linear(D, C, bias=False)

    def forward(self, token_ids):
        L = token_ids.shape[1]
        rows, later = self.embedding(token_ids) + self.sines[:L], torch.ones(L, L, dtype=torch.bool).triu(1)
        for layer in self.layers:
            rows = layer(rows, src_mask=later)
        last = (token_ids != 0).sum(1) - 1
        return self.head(self.final(rows[torch.arange(len(rows)), last])), rows


class OneBlockOnPurpose(nn.Module):
    """As ALBERT does: K times the same block."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(V, D), nn.Parameter(torch.zeros(11, D))
        self.block, self.norm, self.head = PreNorm(D, H, F, dropout=0.1), nn.LayerNorm(D), nn.Linear(D, C)

    def forward(self, token_ids, valid_tokens):
        rows = self.embedding(token_ids) + self.positions[: token_ids.shape[1]]
        for _ in range(K):
            rows = self.block(rows, valid_tokens)
        return self.head(masked_mean(self.norm(rows), valid_tokens))


class Bag(nn.Module):
    """The mean of the words: no order, no norm."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(V, D, padding_idx=0)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(D, C))

    def forward(self, token_ids):
        return self.head(self.bag(token_ids))


class Recurrent(nn.Module):
    """A GRU over the real tokens alone."""

    def __init__(self):
        super().__init__()
        self.embedding, self.gru, self.head = nn.Embedding(V, D), nn.GRU(D, F, batch_first=True), nn.Linear(F, C)

    def forward(self, token_ids, valid_tokens):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(token_ids), valid_tokens.sum(1), True, False)
        return self.head(self.gru(packed)[1][-1])


class Convolution(nn.Module):
    """Trigrams; padding is 0 before and left out of the maximum after. It has no position, and an order all the same."""

    def __init__(self):
        super().__init__()
        self.embedding, self.near = nn.Embedding(V, D), nn.Conv1d(D, F, 3, padding=1)
        self.norm, self.head = nn.LayerNorm(F), nn.Linear(F, C)

    def forward(self, token_ids, valid_tokens):
        rows = self.embedding(token_ids).masked_fill(~valid_tokens[..., None], 0)
        found = functional.gelu(self.near(rows.mT)).mT
        return self.head(self.norm(found.masked_fill(~valid_tokens[..., None], -torch.inf).amax(1)))


BERT = {"padding": 1, "L": 11, "C": C}
KINDS = {
    "Classifier": (lambda: Classifier(**SIZES, L=11, dropout=0.1), {"L": 11}),
    "Classifier of short texts": (lambda: Classifier(**SIZES, L=5), {"L": 5}),
    "PlainClassifier": (lambda: PlainClassifier(**SIZES, L=19), {"reference": Classifier(**SIZES, L=19)}),
    "torch's encoder, norm first": (lambda: Encoder(True), {}),
    "torch's encoder, norm last": (lambda: Encoder(False), {"C": C}),
    "reads the first": (ReadsTheFirst, BERT),
    "causal, reads the last": (CausalReadsTheLast, {}),
    "one block on purpose": (OneBlockOnPurpose, {"shared": True}),
    "bag of words": (Bag, {"ordered": False}),
    "recurrent": (Recurrent, {}),
    "convolution": (Convolution, {}),
}
SKIPPED = {
    "one block on purpose": {"parameters_own"},
    "bag of words": {"final_norm"},
    "recurrent": {"final_norm"},
}


@pytest.mark.parametrize("seed, kind", [(seed, kind) for seed in range(20) for kind in list(KINDS)[seed % 4 :: 4]])
def test_a_classifier_that_is_right_passes_every_check(seed, kind):
    make, claims = KINDS[kind]
    torch.manual_seed(seed)
    dtype = (torch.float32, torch.float64)[seed // 4 % 2]
    report = diagnose_model(make().to(dtype), V, **claims)
    due = SKIPPED.get(kind, set()) | (set() if "reference" in claims else {"logits_reference"})
    outcomes = {finding.check: finding.outcome for finding in report.findings}
    assert outcomes == {check: NOT_APPLICABLE if check in due else PASSED for check in outcomes}, report.text
