"""Each check fails on a block that is broken in the way it looks for; all of these have the right shapes."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.attention import MultiHeadAttention
from oneblock.blocks import Parts, PreNorm
from oneblock.checks import CHECKS, examine, subject_of
from oneblock.checks.finding import FAILED
from oneblock.masks import masked_mean
from oneblock.mutants import NormAfterSum

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

D, H, F = 12, 2, 20


class Reader(nn.Module):
    """A Pre-LN block as a reader may write it; each mistake overrides one method."""

    def __init__(self, batch_first=True):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn = nn.MultiheadAttention(D, H, dropout=0.1, batch_first=batch_first)
        self.fc1, self.fc2, self.drop = nn.Linear(D, F), nn.Linear(F, D), nn.Dropout(0.1)

    def read(self, x, valid_tokens):
        ignored = None if valid_tokens is None else ~valid_tokens
        return self.drop(self.attn(x, x, x, key_padding_mask=ignored, need_weights=False)[0])

    def process(self, x):
        return self.drop(self.fc2(functional.gelu(self.fc1(x))))

    def forward(self, x, valid_tokens=None):
        u = x + self.read(self.norm1(x), valid_tokens)
        return u + self.process(self.norm2(u))


BROKEN = []


def claims(check):
    """What is said of a block besides, where the check needs it."""
    return {"reference": Reader()} if check == "reference_parity" else {}


def breaks(*checks):
    """Marks a block as one on which each of these checks has to fail."""

    def keep(kind):
        BROKEN.extend((check, kind) for check in checks)
        return kind

    return keep


@breaks("overfit", "gradient_reach")
class BranchesUnderNoGrad(Reader):
    def read(self, x, valid_tokens):
        return super().read(x, valid_tokens).detach()

    def process(self, x):
        return super().process(x).detach()


@breaks("shapes")
class NormOverLengthAndWidth(Reader):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm([7, D])


@breaks("shapes")
class AttentionOfWidthOne(Reader):
    """The sum stretches it over all features without a word."""

    def __init__(self):
        super().__init__()
        self.attn = nn.Sequential(nn.Linear(D, D), nn.Linear(D, 1))

    def read(self, x, valid_tokens):
        return self.attn(x)


@breaks("shapes")
class HiddenWidthComesOut(Reader):
    def forward(self, x, valid_tokens=None):
        return self.fc1(x)


@breaks("padding_leak")
class MaskForgotten(Reader):
    def read(self, x, valid_tokens):
        return super().read(x, None)


@breaks("padding_leak")
class MaskInverted(Reader):
    def read(self, x, valid_tokens):
        ignored = None if valid_tokens is None or valid_tokens.all() else valid_tokens & ~valid_tokens.all(1, keepdim=True)
        return self.attn(x, x, x, key_padding_mask=ignored)[0]


@breaks("padding_leak")
class NothingButNaNWherePaddingIs(Reader):
    """As a softmax over the queries gives, where a column is masked; without padding all is well."""

    def read(self, x, valid_tokens):
        full = torch.ones(len(x), dtype=torch.bool) if valid_tokens is None else valid_tokens.all(1)
        return super().read(x, None).masked_fill(~full[:, None, None], torch.nan)


class WeaklyMasked(MultiHeadAttention):
    """−10000 where −∞ is due."""

    def forward(self, x, valid_tokens=None, may_read=None):
        q, k, v = (part.unflatten(-1, (H, -1)).transpose(1, 2) for part in functional.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1))
        fill = None if valid_tokens is None else -1e4 * (~valid_tokens)[:, None, None].to(x)
        return self.out_proj(functional.scaled_dot_product_attention(q, k, v, fill).transpose(1, 2).flatten(2))


@breaks("padding_leak")
class MaskTooWeak(PreNorm):
    def __init__(self):
        super().__init__(D, H, F)
        self.self_attn = WeaklyMasked(D, H)


class NormAfterEachBranch(Reader):
    """Right in itself: the norms close the branches."""

    def forward(self, x, valid_tokens=None):
        u = x + self.norm1(self.read(x, valid_tokens))
        return u + self.norm2(self.process(u))


@breaks("sublayers_off", "gradient_agrees")
class NormAfterEachBranchAndTheSkipDetached(NormAfterEachBranch):
    def forward(self, x, valid_tokens=None):
        return super().forward(x, valid_tokens) - x + x.detach()


@breaks("sublayers_off")
class NormAfterEachBranchAndTheSkipHalved(NormAfterEachBranch):
    def forward(self, x, valid_tokens=None):
        return super().forward(x, valid_tokens) - x / 2


@breaks("sublayers_off")
class NoAttentionResidual(Reader):
    def forward(self, x, valid_tokens=None):
        u = self.read(self.norm1(x), valid_tokens)
        return u + self.process(self.norm2(u))


@breaks("sublayers_off")
class ResidualFromTheNormedRow(Reader):
    def forward(self, x, valid_tokens=None):
        row = self.norm1(x)
        u = row + self.read(row, valid_tokens)
        row = self.norm2(u)
        return row + self.process(row)


@breaks("sublayers_off")
class HalfPostNorm(Reader):
    def forward(self, x, valid_tokens=None):
        row = self.norm1(x)
        return self.norm2((u := row + self.read(row, valid_tokens)) + self.process(u))


@breaks("sublayers_off")
class LastNormInsideTheSum(Reader):
    def forward(self, x, valid_tokens=None):
        u = self.norm1(x + self.read(x, valid_tokens))
        return self.norm2(u) + self.process(u)


@breaks("sublayers_off", "gradient_agrees", "depth_gradient")
class DetachedSkip(Reader):
    def forward(self, x, valid_tokens=None):
        return x.detach() + super().forward(x, valid_tokens) - x


@breaks("sublayers_off", "official_parity")
class ThirdStructure(NormAfterSum):
    def __init__(self):
        super().__init__(D, H, F)


@breaks("residual_ratio")
class LargeFirstValues(Reader):
    def __init__(self):
        super().__init__()
        self.fc2.weight.data *= 200


@breaks("depth_gradient")
class NoResidualAtAll(Reader):
    def forward(self, x, valid_tokens=None):
        return self.process(self.norm2(self.read(self.norm1(x), valid_tokens)))


@breaks("train_eval")
class DropoutInEval(Reader):
    def process(self, x):
        return functional.dropout(super().process(x), 0.1)


@breaks("train_eval")
class DropoutNeverCalled(Reader):
    def __init__(self):
        super().__init__()
        self.attn.dropout = 0.0

    def read(self, x, valid_tokens):
        return self.attn(x, x, x)[0]

    def process(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class Unscaled(MultiHeadAttention):
    def forward(self, x, valid_tokens=None, may_read=None):
        q, k, v = (part.unflatten(-1, (H, -1)).transpose(1, 2) for part in functional.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1))
        readable = None if valid_tokens is None else valid_tokens[:, None, None]
        mixed = functional.scaled_dot_product_attention(q, k, v, readable, scale=1.0)
        return self.out_proj(mixed.transpose(1, 2).flatten(2))


@breaks("official_parity")
class NoRootOfWidth(PreNorm):
    def __init__(self):
        super().__init__(D, H, F)
        self.self_attn = Unscaled(D, H)


@breaks("reference_parity")
class OtherActivation(Reader):
    def process(self, x):
        return self.drop(self.fc2(functional.gelu(self.fc1(x), approximate="tanh")))


@breaks("batch_independence", "overfit", "causality")
class BatchSecond(Reader):
    def __init__(self):
        super().__init__(batch_first=False)

    def read(self, x, valid_tokens):
        return self.attn(x, x, x)[0]


@breaks("permutation_equivariance", "token_independence")
class Convolution(Reader):
    def __init__(self):
        super().__init__()
        self.near = nn.Conv1d(F, F, 3, padding=1)

    def process(self, x):
        return self.fc2(functional.gelu(self.near(self.fc1(x).mT).mT))


@breaks("causality")
class CausalUnawares(Reader):
    def read(self, x, valid_tokens):
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.attn(x, x, x, attn_mask=later)[0]


@breaks("norm_axes", "token_independence")
class NormOverPositions(Reader):
    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + self.eps).sqrt() * self.weight + self.bias

    def __init__(self):
        super().__init__()
        self.norm2 = self.LayerNorm(D)


@breaks("norm_axes", "nonfinite")
class UnbiasedDeviation(Reader):
    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * self.weight + self.bias

    def __init__(self):
        super().__init__()
        self.norm1 = self.LayerNorm(D)


@breaks("nonfinite")
class EpsOutsideTheRoot(Reader):
    """Finite everywhere; but at a constant row the slope of the root is infinite."""

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False).sqrt() + self.eps) * self.weight

    def __init__(self):
        super().__init__()
        self.norm1 = self.LayerNorm(D)


@breaks("dropout_sites")
class DropoutAfterTheSum(Reader):
    def forward(self, x, valid_tokens=None):
        return self.drop(super().forward(x, valid_tokens))


@breaks("dropout_sites")
class OneSiteForgotten(Parts):
    def __init__(self):
        super().__init__(D, H, F, dropout=0.1)

    def forward(self, x, valid_tokens=None):
        u = x + self.self_attn(self.norm1(x), valid_tokens)
        return u + self.process(self.norm2(u))


@breaks("parameter_sharing")
class OneGammaForBoth(Reader):
    def __init__(self):
        super().__init__()
        self.norm2.weight = self.norm1.weight


@breaks("parameter_sharing")
class OneNormTwice(Reader):
    def __init__(self):
        super().__init__()
        self.norm2 = self.norm1


@breaks("parameter_sharing")
class OneNormCalledTwice(Reader):
    def forward(self, x, valid_tokens=None):
        u = x + self.read(self.norm1(x), valid_tokens)
        return u + self.process(self.norm1(u))


@breaks("gradient_reach")
class NormNeverCalled(Reader):
    def forward(self, x, valid_tokens=None):
        u = x + self.read(self.norm1(x), valid_tokens)
        return u + self.process(u)


@breaks("dtypes")
class HalfInside(Reader):
    def process(self, x):
        return super().process(x.bfloat16().to(x.dtype))


@breaks("dtypes")
class AlwaysFloat32(Reader):
    def forward(self, x, valid_tokens=None):
        return super().forward(x, valid_tokens).float()


@breaks("input_kept")
class WritesIntoItsInput(Reader):
    def forward(self, x, valid_tokens=None):
        rows = x.detach()
        rows += self.read(self.norm1(rows), valid_tokens)
        return rows + self.process(self.norm2(rows))


@pytest.mark.parametrize("check, kind", BROKEN, ids=[f"{check}-{kind.__name__}" for check, kind in BROKEN])
def test_a_check_fails_on_what_it_looks_for(check, kind):
    torch.manual_seed(0)
    finding = examine(subject_of(kind(), D, **claims(check)), CHECKS[check])
    assert finding.outcome == FAILED, finding
    assert not finding.worst[1] <= finding.threshold


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_has_a_block_on_which_it_fails_and_passes_the_block_that_is_right(check):
    assert check in {name for name, _ in BROKEN}
    torch.manual_seed(0)
    assert examine(subject_of(Reader(), D, **claims(check)), CHECKS[check]).outcome == "passed"


@pytest.mark.parametrize("pool, outcome", [(lambda rows, valid: masked_mean(rows, valid), "passed"), (lambda rows, _: rows.mean(1), FAILED)])
def test_logits_of_the_readers_own_are_held_to_the_padding_too(pool, outcome):
    def logits(block, x, valid_tokens):
        return pool(block(x, valid_tokens), valid_tokens)

    finding = examine(subject_of(Reader(), D, logits=logits), CHECKS["padding_leak"])
    assert finding.outcome == outcome and "eval, logits: random" in finding.measured
