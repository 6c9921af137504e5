"""Each check of a classifier fails on one that is broken in the way it looks for; all of these have the right shapes."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.checks import MODEL_CHECKS, diagnose_model, examine, model_of
from oneblock.checks.finding import CRASHED, FAILED, NOT_APPLICABLE, PASSED
from oneblock.classifier import Classifier
from oneblock.masks import masked_mean
from oneblock.mutants.catalogue import CLASSIFIER, MISTAKES

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

V, D, H, F = 13, 24, 4, 40
SIZES = {"V": V, "C": 5, "L": 11, "D": D, "H": H, "F": F, "K": 2}
CAUGHT = {
    "mean_over_padding": {"logits_padding"},
    "last_position": {"logits_padding"},
    "no_final_norm": {"final_norm"},
    "positions_per_text": {"texts_apart", "order_counts"},
    "positions_twice": set(),
    "one_block_k_times": {"parameters_own"},
    "blocks_in_a_list": {"parameters_registered", "model_modes", "logits_dtype"},
}


def failed(report):
    assert not any(finding.outcome == CRASHED for finding in report.findings), report.text
    return {finding.check for finding in report.findings if finding.outcome == FAILED}


@pytest.mark.parametrize("seed", range(0, 20, 8))
@pytest.mark.parametrize("name", CAUGHT)
def test_a_mistake_of_the_catalogue_is_caught_by_these_checks_and_no_other(name, seed):
    torch.manual_seed(seed)
    assert failed(diagnose_model(MISTAKES[name].build(D, H, F, dropout=0.1), V)) == CAUGHT[name]


@pytest.mark.parametrize("name", CAUGHT)
def test_beside_a_reference_every_mistake_is_caught(name):
    torch.manual_seed(0)
    wrong, right = MISTAKES[name].build(D, H, F), MISTAKES[name].build_right(D, H, F)
    found = diagnose_model(wrong, V, checks=[MODEL_CHECKS["logits_reference"]], reference=right)
    assert failed(found) == {"logits_reference"}, found.text


def test_every_classifier_of_the_catalogue_is_tried():
    assert set(CAUGHT) == {name for name, mistake in MISTAKES.items() if mistake.kind == CLASSIFIER}


class Mine(nn.Module):
    """A classifier as a reader may write it; each mistake overrides one method."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(V, D), nn.Parameter(torch.randn(11, D))
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(D, H, F, 0.1, batch_first=True, norm_first=True) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, 5)

    def rows(self, token_ids):
        return self.embedding(token_ids) + self.positions[: token_ids.shape[1]]

    def encode(self, x, valid_tokens):
        for block in self.blocks:
            x = block(x, src_key_padding_mask=~valid_tokens)
        return self.norm(x)

    def pool(self, rows, valid_tokens):
        return masked_mean(rows, valid_tokens[:, : rows.shape[1]])

    def forward(self, token_ids, valid_tokens):
        return self.head(self.pool(self.encode(self.rows(token_ids), valid_tokens), valid_tokens))


BROKEN = []


def breaks(check, run, **claims):
    """Marks a model as one on which the check has to fail, in the run that is named."""

    def keep(kind):
        BROKEN.append(pytest.param(check, run, kind, claims, id=f"{check}-{kind.__name__}"))
        return kind

    return keep


@breaks("logits_given", "rows that are probabilities")
class SoftmaxAtTheEnd(Mine):
    def forward(self, token_ids, valid_tokens):
        return super().forward(token_ids, valid_tokens).softmax(-1)


@breaks("logits_given", "N=1, L=7")
class SqueezesOneText(Mine):
    def forward(self, token_ids, valid_tokens):
        return super().forward(token_ids, valid_tokens).squeeze()


@breaks("logits_given", "N=3, L=7", C=4)
class OneClassMore(Mine):
    pass


@breaks("logits_given", "N=3, L=1")
class DividesByWhatIsLeft(Mine):
    def pool(self, rows, valid_tokens):
        return rows.sum(1) / (valid_tokens.sum(1, keepdim=True) - 1)


@breaks("logits_given", "ids written to")
class WritesIntoTheIds(Mine):
    def rows(self, token_ids):
        return super().rows(token_ids.remainder_(7))


@breaks("ids_refused", "id 13 taken")
class ClampsIds(Mine):
    def rows(self, token_ids):
        return super().rows(token_ids.clamp(max=V - 1))


@breaks("ids_refused", "id -1 taken")
class CountsIdsFromTheEnd(Mine):
    def rows(self, token_ids):
        return self.embedding.weight[token_ids] + self.positions[: token_ids.shape[1]]


@breaks("ids_refused", "12 tokens taken", L=11)
class CutsTexts(Mine):
    def forward(self, token_ids, valid_tokens):
        return super().forward(token_ids[:, :11], valid_tokens[:, :11])


@breaks("logits_padding", "other ids for padding")
class MaskForgotten(Mine):
    def encode(self, x, valid_tokens):
        return super().encode(x, torch.ones_like(valid_tokens))


@breaks("logits_padding", "more padding")
class DividesByTheLength(Mine):
    def pool(self, rows, valid_tokens):
        return rows.masked_fill(~valid_tokens[..., None], 0).mean(1)


@breaks("logits_padding", "less padding")
class CountsTheLength(Mine):
    def pool(self, rows, valid_tokens):
        return super().pool(rows, valid_tokens) + valid_tokens.shape[1]


@breaks("logits_padding", "other row for padding")
class RowOfPaddingIsAdded(Mine):
    def rows(self, token_ids):
        return super().rows(token_ids) + self.embedding(torch.zeros_like(token_ids))


@breaks("texts_apart", "text 0, alone")
@breaks("texts_apart", "text 0, others replaced")
class BatchSecond(Mine):
    def encode(self, x, valid_tokens):
        return self.norm(self.blocks[0](x.transpose(0, 1)).transpose(0, 1))


@breaks("texts_apart", "texts in another order")
class TextsAreNumbered(Mine):
    def rows(self, token_ids):
        return super().rows(token_ids) + self.positions[: len(token_ids), None]


@breaks("order_counts", "pairs of positions")
class NoPositions(Mine):
    def rows(self, token_ids):
        return self.embedding(token_ids)


@breaks("order_counts", "pairs of positions")
class TwoPositionsAreOne(Mine):
    def rows(self, token_ids):
        return self.embedding(token_ids) + self.positions[torch.arange(token_ids.shape[1]).clamp(max=5)]


@breaks("order_counts", "pairs of positions", ordered=False)
class OrderUnawares(Mine):
    pass


@breaks("final_norm", "branches × 1000")
class NormBeforeTheBlocks(Mine):
    def encode(self, x, valid_tokens):
        for block in self.blocks:
            x = block(self.norm(x), src_key_padding_mask=~valid_tokens)
        return x


@breaks("final_norm", "embeddings × 1000")
class NormAsABranch(Mine):
    def encode(self, x, valid_tokens):
        return x + super().encode(x, valid_tokens)


@breaks("parameters_registered", "parameters that nobody trains")
class NoParameter(Mine):
    def __init__(self):
        super().__init__()
        del self.positions
        self.positions = torch.randn(11, D, requires_grad=True)


@breaks("parameters_registered", "parts that eval() does not reach")
class DropoutInATable(Mine):
    def __init__(self):
        super().__init__()
        self.own = {"drop": [nn.Dropout(0.1)]}

    def rows(self, token_ids):
        return self.own["drop"][0](super().rows(token_ids))


@breaks("parameters_own", "modules called twice")
class OneNormTwice(Mine):
    def rows(self, token_ids):
        return self.norm(super().rows(token_ids))


@breaks("parameters_reached", "without a gradient")
class LastBlockForgotten(Mine):
    def encode(self, x, valid_tokens):
        return self.norm(self.blocks[0](x, src_key_padding_mask=~valid_tokens))


@breaks("parameters_reached", "without a gradient")
class EmbeddingDetached(Mine):
    def rows(self, token_ids):
        return super().rows(token_ids).detach()


@breaks("parameters_reached", "without a gradient")
class LastBlockTimesZero(Mine):
    def encode(self, x, valid_tokens):
        x = self.blocks[0](x, src_key_padding_mask=~valid_tokens)
        return self.norm(x + 0 * self.blocks[1](x, src_key_padding_mask=~valid_tokens))


@breaks("model_modes", "eval, two seeds")
class DropoutInEval(Mine):
    def pool(self, rows, valid_tokens):
        return functional.dropout(super().pool(rows, valid_tokens), 0.1)


@breaks("model_modes", "dropout that never drops")
class DropoutNeverCalled(Mine):
    def __init__(self):
        super().__init__()
        self.blocks, self.drop = nn.ModuleList(), nn.Dropout(0.1)


@breaks("model_modes", "eval, with and without gradients")
class ScaledWithoutGradients(Mine):
    def pool(self, rows, valid_tokens):
        return super().pool(rows, valid_tokens) * (1 if torch.is_grad_enabled() else 2)


@breaks("model_modes", "eval, and train at rate 0")
class NormOverTheBatch(Mine):
    def __init__(self):
        super().__init__()
        self.over = nn.BatchNorm1d(D)

    def pool(self, rows, valid_tokens):
        return self.over(super().pool(rows, valid_tokens))


@breaks("logits_dtype", "other dtype")
class AlwaysFloat32(Mine):
    def forward(self, token_ids, valid_tokens):
        return super().forward(token_ids, valid_tokens).float()


@breaks("logits_dtype", "operations in half precision")
class HalfInside(Mine):
    def pool(self, rows, valid_tokens):
        return super().pool(rows, valid_tokens).bfloat16().to(rows.dtype)


@breaks("logits_dtype", "float32 against float64")
class LargeNumbersCancel(Mine):
    def pool(self, rows, valid_tokens):
        return super().pool(rows, valid_tokens) + 1e4 - 1e4


@breaks("logits_dtype", "refuses float64")
class PositionsOfAFixedDtype(Mine):
    def encode(self, x, valid_tokens):
        return super().encode(x.float(), valid_tokens)


@breaks("logits_reference", "gradients", reference=Mine())
class RightAndDetached(Mine):
    def rows(self, token_ids):
        return super().rows(token_ids).detach()


@breaks("logits_reference", "logits", reference=Mine())
class OtherScale(Mine):
    def rows(self, token_ids):
        return super().rows(token_ids) * 2


@breaks("logits_reference", "keys that differ", reference=Mine())
class OnePartMore(Mine):
    def __init__(self):
        super().__init__()
        self.more = nn.Linear(D, D)


@pytest.mark.parametrize("check, run, kind, claims", BROKEN)
def test_a_check_fails_on_what_it_looks_for(check, run, kind, claims):
    torch.manual_seed(0)
    finding = examine(model_of(kind(), V, **claims), MODEL_CHECKS[check])
    assert finding.outcome == FAILED, finding
    assert any(name.endswith(run) and not value <= finding.threshold for name, value in finding.measured.items()), finding


@pytest.mark.parametrize("check", MODEL_CHECKS)
def test_every_check_has_a_model_on_which_it_fails_and_passes_the_one_that_is_right(check):
    assert check in {case.values[0] for case in BROKEN}
    torch.manual_seed(0)
    claims = {"reference": Mine(), "L": 11, "C": 5}
    assert examine(model_of(Mine(), V, **claims), MODEL_CHECKS[check]).outcome == PASSED


def test_a_model_that_cannot_run_since_a_part_stayed_behind_is_told_which():
    left = MISTAKES["blocks_in_a_list"].build(D, H, F).double()
    report = diagnose_model(left, V)
    assert report["texts_apart"].outcome == CRASHED and "must be float64" in report["texts_apart"].note
    assert report["parameters_registered"].outcome == FAILED
    assert report["parameters_registered"].note.startswith("blocks.") and report["parameters_registered"].note.endswith(" more")


def test_what_needs_ids_or_norms_or_a_claim_is_not_applicable_without():
    few = diagnose_model(Classifier(**SIZES | {"V": 5}), 5, shared=True)
    assert {one.check for one in few.findings if one.outcome == NOT_APPLICABLE} == {"order_counts", "parameters_own", "logits_reference"}
    assert few.ok, few.text


def test_of_shared_parameters_the_first_names_are_told():
    found = diagnose_model(MISTAKES["one_block_k_times"].build(D, H, F), V, checks=[MODEL_CHECKS["parameters_own"]])
    assert "blocks.0.self_attn.in_proj_weight = blocks.1.self_attn.in_proj_weight" in found.text and ", and 9 more; " in found.text
