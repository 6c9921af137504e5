"""Both orders against ``torch.nn.TransformerEncoderLayer``, in value and gradient, and what their traces name."""

import re
from itertools import product

import pytest
import torch
from torch import nn

from oneblock.blocks import PostNorm, PreNorm
from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.trace import record

N, L, D, H, F = 2, 5, 6, 3, 11
BLOCKS = {PreNorm: True, PostNorm: False}  # and torch's norm_first
VALID = torch.tensor([[True, True, True, False, False], [True] * L])
NORM = ["mean", "centred", "squares", "variance", "std", "normed", "ln"]
ATTENTION = ["q", "k", "v", "scores", "masked_scores", "weights", "mixed", "joined", "attended"]
ORDER = {
    PreNorm: [*(f"norm1.{s}" for s in NORM), *ATTENTION, "sum1.y", *(f"norm2.{s}" for s in NORM), "h", "a", "z", "sum2.y"],
    PostNorm: [*ATTENTION, "sum1.y", *(f"norm1.{s}" for s in NORM), "h", "a", "z", "sum2.y", *(f"norm2.{s}" for s in NORM)],
}


def fill(module, fixed):
    """No parameter at its start value, each of the size a fresh one has; γ around 1."""
    for seed, (name, parameter) in enumerate(module.named_parameters(), start=1):
        spread = fixed(*parameter.shape, seed=seed) / 2
        parameter.data = (spread + (name.startswith("norm") and name.endswith("weight"))).to(parameter.dtype)
    return module


def torchs(fixed, norm_first, activation="gelu", bias=True, dtype=torch.float64):
    options = {"dim_feedforward": F, "dropout": 0.0, "activation": activation, "bias": bias}
    layer = nn.TransformerEncoderLayer(D, H, **options, batch_first=True, norm_first=norm_first, dtype=dtype)
    return fill(layer, fixed)


@pytest.fixture(params=BLOCKS, ids=lambda block: block.__name__)
def block(request, fixed):
    return fill(request.param(D, H, F).double(), fixed)


def value_and_gradients(run, block, x, real, upstream, **mask):
    row = x.clone().requires_grad_()
    value = run(block, row, **mask)[real]
    names = ["x", *(name for name, _ in block.named_parameters())]
    gradients = torch.autograd.grad(value, [row, *block.parameters()], upstream[real])
    return {"value": value.detach(), **dict(zip(names, gradients, strict=True))}


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 2e-6)], ids=["float64", "float32"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.functional.silu], ids=["relu", "gelu", "a callable"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_it_is_torchs_layer_in_value_and_gradient(fixed, run, kind, activation, bias, padded, dtype, tolerance):
    theirs = torchs(fixed, BLOCKS[kind], activation, bias, dtype)
    ours = kind(D, H, F, activation, bias=bias).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    x, upstream, real = fixed(N, L, D, dtype=dtype), fixed(N, L, D, seed=99, dtype=dtype), VALID if padded else VALID | True
    mine = value_and_gradients(run, ours, x, real, upstream, **({"valid_tokens": VALID} if padded else {}))
    due = value_and_gradients(nn.Module.__call__, theirs, x, real, upstream, **({"src_key_padding_mask": ~VALID} if padded else {}))
    assert mine.keys() == due.keys()
    for name in due:
        message = lambda m, n=name: f"{n}: {m}"  # noqa: E731
        torch.testing.assert_close(mine[name], due[name], atol=tolerance, rtol=tolerance, msg=message)


@pytest.mark.parametrize("kind", BLOCKS)
def test_both_norms_have_the_epsilon_that_is_given(fixed, run, kind):
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "layer_norm_eps": 0.1}
    theirs = fill(nn.TransformerEncoderLayer(D, H, F, **options, norm_first=BLOCKS[kind]).double(), fixed)
    ours, x = kind(D, H, F, eps=0.1).double(), fixed(N, L, D)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(run(ours, x), theirs(x), atol=1e-12, rtol=0)
    assert (ours(x) - fill(kind(D, H, F).double(), fixed)(x)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", BLOCKS)
def test_under_autocast_a_block_keeps_its_stream_in_float32_and_stays_close(fixed, kind):
    block, x = fill(kind(D, H, F), fixed), fixed(N, L, D, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = block(x)
    assert y.dtype == torch.float32 and not torch.equal(y, block(x))
    torch.testing.assert_close(y, block(x), atol=0.1, rtol=0)


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("bias", [True, False])
def test_one_seed_gives_ours_and_torchs_the_same_first_values(kind, bias):
    torch.manual_seed(0)
    ours = kind(D, H, F, bias=bias).state_dict()
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(D, H, F, bias=bias).state_dict()
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_one_state_dict_fits_both_orders_and_gives_other_numbers(fixed):
    pre, post = fill(PreNorm(D, H, F).double(), fixed), PostNorm(D, H, F).double()
    post.load_state_dict(pre.state_dict())
    x = fixed(N, L, D)
    assert pre(x).shape == post(x).shape == x.shape
    assert (pre(x) - post(x)).abs().max() > 0.1
    pre.load_state_dict(post.state_dict())


# The equations, from the trace.


def test_each_norm_opens_its_branch_in_pre_norm(fixed):
    trace = record(fill(PreNorm(D, H, F).double(), fixed), fixed(N, L, D), VALID)
    assert trace.step("norm1.mean").reads == {"x": "x"} and trace.step("q").reads["x"] == "norm1.ln"
    assert trace.step("sum1.y").reads == {"x": "x", "increment": "attended"}
    assert trace.step("norm2.mean").reads == {"x": "sum1.y"} and trace.step("h").reads["x"] == "norm2.ln"
    assert trace.step("sum2.y").reads == {"x": "sum1.y", "increment": "z"}
    assert torch.equal(trace.result, trace["x"] + trace["attended"] + trace["z"])


def test_each_norm_closes_its_sum_in_post_norm(fixed):
    trace = record(fill(PostNorm(D, H, F).double(), fixed), fixed(N, L, D), VALID)
    assert trace.step("q").reads["x"] == "x" and trace.step("sum1.y").reads == {"x": "x", "increment": "attended"}
    assert trace.step("norm1.mean").reads == {"x": "sum1.y"} and trace.step("h").reads["x"] == "norm1.ln"
    assert trace.step("sum2.y").reads == {"x": "norm1.ln", "increment": "z"}
    assert trace.step("norm2.mean").reads == {"x": "sum2.y"} and torch.equal(trace.result, trace["norm2.ln"])


@pytest.mark.parametrize("kind", BLOCKS)
def test_the_steps_and_their_order(fixed, kind):
    block = kind(D, H, F, dropout=0.5).double()
    x = fixed(N, L, D)
    assert list(record(block.eval(), x, VALID).names) == ORDER[kind]
    without_mask = [name for name in ORDER[kind] if name != "masked_scores"]
    assert list(record(block, x).names) == without_mask
    in_training = [name for name in record(block.train(), x, VALID).names if name not in ORDER[kind]]
    assert in_training == ["weights_dropped", "attended_dropped", "a_dropped", "z_dropped"]
    assert list(record(kind(D, H, F).double().train(), x, VALID).names) == ORDER[kind]


def test_a_position_can_be_followed_through_the_whole_block(fixed, block):
    x = fixed(N, L, D)
    row = record(block, x, VALID).at(0, 1)
    assert torch.equal(row["x"], x[0, 1])
    assert row["sum2.y"].shape == (D,) and row["weights"].shape == (H, L) and row["h"].shape == (F,)


# Dropout.


@pytest.mark.parametrize("kind", BLOCKS)
def test_dropout_acts_at_three_kinds_of_sites_in_training_only(fixed, kind):
    block, x = kind(D, H, F, dropout=0.25).double(), fixed(7, 31, D)
    assert torch.equal(block.eval()(x), block(x))
    torch.manual_seed(0)
    trace = record(block.train(), x)
    for before, after in [("weights", "weights_dropped"), ("attended", "attended_dropped"), ("a", "a_dropped"), ("z", "z_dropped")]:
        kept = trace[after] != 0
        assert 0.7 < kept.double().mean() < 0.8, after
        torch.testing.assert_close(trace[after][kept], trace[before][kept] / 0.75, atol=1e-12, rtol=0)
    assert trace.step("sum1.y").reads["increment"] == "attended_dropped"
    assert trace.step("sum2.y").reads["increment"] == "z_dropped"
    assert trace.step("mixed").reads["weights"] == "weights_dropped"


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize(
    "site, step",
    [
        ("self_attn.dropout", "weights_dropped"),
        ("dropout_attended", "attended_dropped"),
        ("dropout_hidden", "a_dropped"),
        ("dropout_z", "z_dropped"),
    ],
)
def test_each_site_has_a_rate_of_its_own(fixed, kind, site, step):
    block, x = kind(D, H, F).double(), fixed(N, L, D)
    block.get_submodule(site).p = 0.5
    assert [name for name in record(block, x, VALID).names if name not in ORDER[kind]] == [step]
    assert not torch.equal(block(x), block(x))


@pytest.mark.parametrize("kind", BLOCKS)
def test_each_dropout_goes_by_its_own_mode(fixed, run, kind):
    """Two recipes: training without dropout, and the mean over runs of eval with it (Monte Carlo dropout)."""
    block, x = kind(D, H, F, dropout=0.5).double(), fixed(N, L, D)
    sites = [part for part in block.modules() if isinstance(part, nn.Dropout)]
    due = run(block.eval(), x)
    block.train()
    for site in sites:
        site.eval()
    assert len(sites) == 4 and torch.equal(run(block, x), due)
    for only in sites:
        block.eval()
        only.train()
        assert not torch.equal(run(block, x), run(block, x))


def test_the_sites_draw_independently(fixed):
    torch.manual_seed(0)
    trace = record(PreNorm(D, H, D, dropout=0.5).double(), fixed(7, 31, D))
    sites = [trace[name] != 0 for name in ("attended_dropped", "a_dropped", "z_dropped")]
    for one, other in [(0, 1), (1, 2), (0, 2)]:
        assert 0.4 < (sites[one] == sites[other]).double().mean() < 0.6


# Contracts and torch.func.


def test_padding_is_not_read_and_its_own_rows_are_computed(fixed, block):
    x = fixed(N, L, D)
    other = torch.where(VALID[..., None], x, fixed(N, L, D, seed=5))
    y = block(x, VALID)
    assert torch.equal(y[VALID], block(other, VALID)[VALID]) and not torch.equal(y[~VALID], block(other, VALID)[~VALID])
    assert y[~VALID].abs().min() > 0


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.usefixtures("as_readers_run_it")
def test_broken_contracts_are_named(fixed, kind):
    for arguments, due in [
        ((6, 4, 11), "H must be a divisor of D = 6; got 4; each head takes D/H features; fitting are 1, 2, 3, 6"),
        ((6, 3, 0), "F must be a whole number ≥ 1; got 0"),
        ((6, 3, 11, "tanh"), "activation must be one of"),
        ((6, 3, 11, "gelu", 0.1, 1e-6), "bias must be True or False; got 1e-06"),
        ((6, 3, 11, "gelu", 1.0), "dropout must be a number in [0, 1); got 1.0"),
        ((6, 3, 11, "gelu", 0.0, True, -1e-5), "eps must be a finite number ≥ 0; got -1e-05"),
    ]:
        with pytest.raises(ArgumentError, match=f"^{re.escape(due)}"):
            kind(*arguments)
    block = kind(D, H, F).double()
    for nothing in (None, [[[1.0] * 6]]):
        with pytest.raises(DtypeError, match=r"^x must be floating \[N, L, D\] = \[N, L, 6\]; got (None|\[\[\[1.0)"):
            block(nothing)
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\] = \[N, L, 6\]; got float64 \[2, 5, 7\]"):
        block(fixed(2, 5, 7))
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\] = \[N, L, 6\]; got float64 \[5, 6\]; add a batch"):
        block(fixed(5, 6))
    with pytest.raises(DtypeError, match=r"^(in_proj_)?weight must be float32, the dtype of x; got float64"):
        block(fixed(N, L, D).float())
    with pytest.raises(ArgumentError, match=r"^valid_tokens must be .*; rows \[0\] are all padding"):
        block(fixed(N, L, D), VALID & torch.tensor([[False], [True]]))


def test_it_works_under_torch_func_and_passes_finite_differences(fixed, block):
    x = fixed(N, L, D)
    torch.testing.assert_close(torch.func.jacrev(block)(x), torch.func.jacfwd(block)(x), atol=1e-12, rtol=0)
    assert torch.autograd.gradcheck(lambda rows: block(rows, VALID), x.requires_grad_())


@pytest.mark.parametrize("n", range(N))
def test_the_batch_is_a_stack_of_independent_sequences(fixed, block, n):
    x = fixed(N, L, D)
    alone = block(x[n : n + 1], VALID[n : n + 1])
    torch.testing.assert_close(block(x, VALID)[n : n + 1], alone, atol=1e-14, rtol=0)


def test_positions_are_interchangeable(fixed, block):
    x, order = fixed(N, L, D), torch.tensor([3, 0, 4, 2, 1])
    torch.testing.assert_close(block(x)[:, order], block(x[:, order]), atol=1e-14, rtol=0)


def test_every_parameter_matters(fixed, block):
    """All but the key's bias: it adds the same to every score of a row, and softmax does not see that."""
    x = fixed(N, L, D)
    before = block(x)
    for name, parameter in block.named_parameters():
        for part, piece in product(range(3), [D]) if "in_proj" in name else [(0, len(parameter))]:
            place = slice(part * piece, (part + 1) * piece)
            kept = parameter.data.clone()
            parameter.data[place] += fixed(*parameter.data[place].shape, seed=7)
            unseen = name == "self_attn.in_proj_bias" and part == 1
            assert torch.allclose(block(x), before, atol=1e-12) == unseen, (name, part)
            parameter.data = kept
