"""One block, run by torch's kernels, written out, exported, compiled: the same numbers, and the same refusals."""

import re

import pytest
import torch
from torch import nn

from oneblock.blocks import PostNorm, PreNorm
from oneblock.checks.operations import operations
from oneblock.errors import ArgumentError
from oneblock.memory import kept, nbytes
from oneblock.norms import LayerNorm, RMSNorm
from oneblock.trace import record

N, L, D, H, F = 2, 5, 6, 3, 11
VALID = torch.tensor([[True, True, True, False, False], [True] * L])
both = pytest.mark.parametrize("kind, norm_first", [(PreNorm, True), (PostNorm, False)])


def names(function, *args):
    """Of torch's operations that ``function`` runs."""
    return {operation.name.split(".")[1] for operation in operations(lambda: function(*args))}


@both
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", torch.tanh])
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_the_kernels_give_what_the_formulas_give_even_in_what_dropout_draws(fixed, kind, norm_first, activation, rate):
    block, x = kind(D, H, F, activation, dropout=rate).double(), fixed(N, L, D)
    results = []
    for run in (block, lambda *args: record(block, *args).result):
        torch.manual_seed(0)
        results.append(run(x, VALID))
    torch.testing.assert_close(*results, atol=1e-13, rtol=0)


@both
def test_a_recording_runs_the_formulas_and_an_ordinary_run_the_kernels(fixed, kind, norm_first):
    block, x = kind(D, H, F), fixed(N, L, D, dtype=torch.float32)
    fused = {"native_layer_norm", "_scaled_dot_product_flash_attention_for_cpu", "gelu"}
    assert names(block, x) >= fused
    assert not names(record, block, x) & fused and names(record, block, x) >= {"_softmax", "sqrt", "erf"}


@pytest.mark.parametrize("norm, kernel", [(LayerNorm, "native_layer_norm"), (RMSNorm, "rsqrt")])
def test_a_norm_runs_the_kernel_unless_recorded(fixed, norm, kernel):
    module, x = norm(D), fixed(N, L, D, dtype=torch.float32)
    assert kernel in names(module, x) and kernel not in names(record, module, x)


@both
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_a_block_keeps_no_more_for_its_backward_pass_than_torchs_layer(kind, norm_first, rate):
    ours = kind(64, 4, 256, dropout=rate)
    options = {"dropout": rate, "activation": "gelu", "batch_first": True, "norm_first": norm_first}
    theirs, x = nn.TransformerEncoderLayer(64, 4, 256, **options), torch.randn(3, 128, 64, requires_grad=True)
    mine, due = (nbytes(kept(layer, x)) for layer in (ours, theirs))
    written_out = nbytes(kept(lambda_module(lambda x: record(ours, x).result), x))
    assert mine <= due < written_out


def lambda_module(function):
    """A module without parameters, for what only takes modules."""
    module = nn.Module()
    module.forward = function
    return module


@both
def test_a_number_that_is_none_is_refused_and_its_place_named(fixed, kind, norm_first):
    block, x = kind(D, H, F).double(), fixed(N, L, D)
    x[1, 3, 2], x[1, 4, 0] = torch.nan, torch.inf
    due = "x must be finite; got float64 [2, 5, 6] with 2 non-finite, the first nan at [1, 3, 2]; the scores would"
    with pytest.raises(ArgumentError, match=f"^{re.escape(due)}"):
        block(x)
    with pytest.raises(ArgumentError, match="a mask does not stop it$"):
        block(x, torch.tensor([[True] * L, [True, True, True, False, False]]))


@both
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_exported_block_gives_the_same_for_another_batch_and_another_length(fixed, kind, norm_first):
    block, x = kind(D, H, F).double().eval(), fixed(N, L, D)
    axes = {0: torch.export.Dim("N"), 1: torch.export.Dim("L")}
    exported = torch.export.export(block, (x, VALID), dynamic_shapes=(axes, axes)).module()
    assert torch.equal(exported(x, VALID), block(x, VALID))
    longer, valid = fixed(3, 7, D), torch.arange(7) < torch.tensor([[7], [2], [4]])
    torch.testing.assert_close(exported(longer, valid), block(longer, valid), atol=1e-14, rtol=0)
