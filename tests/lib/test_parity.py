"""The comparison with torch's layer: it finds nothing where nothing is wrong, and each mistake in its own sublayer."""

import re
from math import inf

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu, silu

from oneblock.blocks import PostNorm, PreNorm
from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.fast_path import fused
from oneblock.official import from_official, to_official
from oneblock.parity import Difference, Parity, parity

N, L, D, H, F = 2, 5, 6, 3, 11
VALID = torch.tensor([[True, True, True, False, False], [True] * L])
BOUND = {torch.float64: 1e-12, torch.float32: 2e-6}
NETWORK = ["linear1", "activation", "linear2"]
ORDER = {
    True: ["norm1", "self_attn", "sum1", "norm2", *NETWORK, "sum2"],
    False: ["self_attn", "sum1", "norm1", *NETWORK, "sum2", "norm2"],
}
both_orders = pytest.mark.parametrize("norm_first", [True, False], ids=["Pre-LN", "Post-LN"])


@pytest.fixture
def torchs(fixed):
    def layer(norm_first=True, dtype=torch.float64, **options):
        options = {"dropout": 0.0, "activation": "gelu", "batch_first": True} | options
        made = nn.TransformerEncoderLayer(D, H, F, norm_first=norm_first, dtype=dtype, **options)
        for seed, (name, parameter) in enumerate(made.named_parameters(), start=1):
            start = 1 if name.startswith("norm") and name.endswith("weight") else 0
            parameter.data = fixed(*parameter.shape, seed=seed, dtype=dtype) / 2 + start
        return made

    return layer


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", BOUND, ids=str)
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("batch_first", [True, False], ids=["NLD", "LND"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("activation", ["relu", "gelu", silu, torch.tanh], ids=["relu", "gelu", "silu", "tanh"])
@both_orders
def test_block_and_layer_agree(torchs, fixed, norm_first, activation, bias, batch_first, padded, dtype, training):
    options = {"activation": activation, "bias": bias, "batch_first": batch_first}
    layer = torchs(norm_first, dtype, **options).train(training)
    found = parity(from_official(layer), layer, fixed(N, L, D, dtype=dtype), VALID if padded else None)
    assert found.largest <= BOUND[dtype]


@both_orders
def test_every_sublayer_and_every_gradient_is_compared(torchs, fixed, norm_first):
    layer = torchs(norm_first)
    found = parity(from_official(layer), layer, fixed(N, L, D))
    assert [one.sublayer for one in found.values] == ORDER[norm_first]
    assert [one.tensor for one in found.gradients] == ["x", *(name for name, _ in layer.named_parameters())]
    assert list(found.by_sublayer()) == ["x", *ORDER[norm_first]]


BROKEN = {
    "norm1": "norm1.weight",
    "self_attn": "self_attn.in_proj_weight",
    "norm2": "norm2.bias",
    "linear1": "linear1.bias",
    "linear2": "linear2.weight",
}


@pytest.mark.parametrize("sublayer", BROKEN)
@both_orders
def test_a_changed_parameter_shows_in_its_sublayer_first(torchs, fixed, norm_first, sublayer):
    layer = torchs(norm_first)
    block = from_official(layer)
    layer.get_parameter(BROKEN[sublayer]).data.flatten()[0] += 1
    found = parity(block, layer, fixed(N, L, D), VALID)
    assert [one.sublayer for one in found.values if one.relative > 1e-12][0] == sublayer
    assert found.output.relative > 1e-3


@both_orders
def test_another_activation_shows_behind_it_only(torchs, fixed, norm_first):
    layer = torchs(norm_first)
    block = from_official(layer)
    layer.activation = silu
    found = parity(block, layer, fixed(N, L, D))
    order = ORDER[norm_first]
    assert [one.sublayer for one in found.values if one.relative > 1e-12] == order[order.index("activation") :]


@both_orders
def test_one_changed_bias_moves_the_values_by_just_that(torchs, fixed, norm_first):
    layer = torchs(norm_first)
    block = from_official(layer)
    layer.linear2.bias.data[3] += 0.25
    z, total = (one for one in parity(block, layer, fixed(N, L, D)).values if one.sublayer in ("linear2", "sum2"))
    assert z.absolute == pytest.approx(0.25, abs=1e-12) and total.absolute == pytest.approx(0.25, abs=1e-12)


def test_relative_is_by_the_largest_number_of_torchs_tensor(torchs, fixed):
    layer, x = torchs(), fixed(N, L, D)
    block = from_official(layer)
    layer.linear2.bias.data[3] += 25
    total = parity(block, layer, x).values[-1]
    assert total.relative == pytest.approx(25 / layer(x).abs().max().item(), rel=1e-12)


def test_gradients_are_those_of_a_sum_that_is_linear_in_the_output(torchs, fixed):
    layer = torchs()
    block = from_official(layer)
    layer.linear2.bias.data[3] += 0.25  # the last thing that is added: no slope depends on it
    found = parity(block, layer, fixed(N, L, D))
    assert found.output.absolute > 0.2 and max(one.relative for one in found.gradients) < 1e-12


class _SteeperBackward(torch.autograd.Function):
    """SiLU, with twice its slope in the backward pass."""

    @staticmethod
    def forward(ctx, h):
        ctx.save_for_backward(h)
        return silu(h)

    @staticmethod
    def backward(ctx, upstream):
        (h,) = ctx.saved_tensors
        share = h.sigmoid()
        return 2 * upstream * (share + h * share * (1 - share))


@both_orders
def test_exact_values_with_a_wrong_gradient_are_seen(torchs, fixed, norm_first):
    layer = torchs(norm_first, activation=silu)
    block = from_official(layer)
    layer.activation = _SteeperBackward.apply
    found = parity(block, layer, fixed(N, L, D))
    assert max(one.relative for one in (*found.values, found.output)) < 1e-12
    apart = {one.tensor for one in found.gradients if one.relative > 1e-3}
    assert {"linear1.weight", "linear1.bias", "x"} <= apart
    assert apart.isdisjoint({"linear2.weight", "linear2.bias"})


@both_orders
def test_a_cut_gradient_counts_as_zero(torchs, fixed, norm_first):
    layer = torchs(norm_first, activation=silu)
    block = from_official(layer)
    block.activation = lambda h: silu(h.detach())
    found = parity(block, layer, fixed(N, L, D))
    assert max(one.relative for one in found.values) < 1e-12
    assert found.by_sublayer()["linear1"][1] == 1 and found.by_sublayer()["linear2"][1] < 1e-12


@both_orders
def test_what_stands_at_padding_is_not_compared(torchs, fixed, norm_first):
    layer, x = torchs(norm_first), fixed(N, L, D)
    block = from_official(layer)
    block.activation = lambda h: gelu(h) + (~VALID)[..., None]
    assert parity(block, layer, x, VALID).largest < 1e-12
    assert parity(block, layer, x).largest > 1e-3


def test_the_largest_difference_is_that_of_all():
    small, large = Difference("norm1", "norm1.weight", 0.0, 0.25), Difference("norm1", "norm1.ln", 0.0, 0.5)
    for k in range(3):
        values, output, gradients = (large if k == place else small for place in range(3))
        assert Parity((small, values), output, (small, gradients)).largest == 0.5
    assert Parity((small, large), small, (large, small)).by_sublayer()["norm1"] == (0.5, 0.5)


def test_the_output_is_that_of_an_ordinary_call(torchs, fixed):
    layer, x = torchs(), fixed(N, L, D)
    block = from_official(layer)
    block.linear2.bias.data += 0.5
    due = (block(x, VALID) - layer(x, src_key_padding_mask=~VALID))[VALID].abs().max().item()
    assert parity(block, layer, x, VALID).output.absolute == pytest.approx(due, rel=1e-12)


def test_nan_is_infinitely_far(torchs, fixed):
    layer = torchs()
    block = from_official(layer)
    layer.linear2.bias.data[0] = torch.nan
    found = parity(block, layer, fixed(N, L, D))
    assert found.largest == found.output.relative == inf


def test_an_activation_that_writes_into_its_input_is_seen_apart_from_it(torchs, fixed):
    layer = torchs(activation=nn.ReLU(inplace=True))
    assert parity(from_official(layer), layer, fixed(N, L, D)).largest < 1e-12


def test_nothing_is_left_changed(torchs, fixed):
    layer, x = torchs(), fixed(N, L, D)
    block, before = from_official(layer), x.clone()
    state = {name: value.clone() for name, value in layer.state_dict().items()}
    parity(block, layer, x, VALID)
    assert torch.equal(x, before) and not x.requires_grad
    assert all(torch.equal(value, state[name]) for module in (layer, block) for name, value in module.state_dict().items())
    assert all(p.grad is None for module in (layer, block) for p in module.parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in layer.modules())


def test_it_compares_frozen_modules_under_no_grad(torchs, fixed):
    layer = torchs().eval().requires_grad_(False)
    block = from_official(layer)
    with torch.no_grad():
        found = parity(block, layer, fixed(N, L, D))
    assert found.largest < 1e-12 and len(found.gradients) == 13


def refused(block, layer, x, message, error=ArgumentError, valid_tokens=None):
    with pytest.raises(error, match=re.escape(message)):
        parity(block, layer, x, valid_tokens)


@both_orders
def test_two_orders_are_not_compared(torchs, fixed, norm_first):
    block = from_official(torchs(not norm_first))
    due = f"{not norm_first}, the order of a {type(block).__name__}; got {norm_first}"
    refused(block, torchs(norm_first), fixed(N, L, D), f"layer.norm_first must be {due}")


def test_sizes_and_biases_have_to_agree(torchs, fixed):
    wider = to_official(PreNorm(D, H, F + 2).double())
    message = "layer must be of the parameters and shapes of the block; got ['linear1.bias', 'linear1.weight', 'linear2.weight']"
    refused(from_official(torchs()), wider, fixed(N, L, D), message)
    refused(from_official(torchs()), torchs(bias=False), fixed(N, L, D), "these differ")


def test_dropout_has_to_be_off(torchs, fixed):
    layer, x = torchs(dropout=0.25), fixed(N, L, D)
    block = from_official(layer)
    refused(block, layer, x, "block must be without dropout; got [0.25, 0.25, 0.25, 0.25]; set each rate to 0, or call eval()")
    refused(block.eval(), layer, x, "layer must be without dropout")
    assert parity(block, layer.eval(), x).largest < 1e-12
    only_of_the_weights = torchs()
    only_of_the_weights.self_attn.dropout = 0.25
    refused(from_official(torchs()), only_of_the_weights, x, "layer must be without dropout; got [0.25, 0.0, 0.0, 0.0]")


def test_dropout_of_a_part_in_training_is_found_though_the_whole_is_in_eval(torchs, fixed):
    x, rates = fixed(N, L, D), "must be without dropout; got [0.25]"
    block, layer = (made.eval() for made in (from_official(torchs(dropout=0.25)), torchs(dropout=0.25)))
    block.dropout_z.train()
    refused(block, layer, x, f"block {rates}")
    layer.self_attn.train()
    refused(block.eval(), layer, x, f"layer {rates}")
    for part in layer.eval().train().modules():
        part.training = not isinstance(part, (nn.Dropout, nn.MultiheadAttention))
    assert parity(block, layer, x).largest < 1e-12


def test_an_x_that_is_no_tensor_is_refused_as_the_block_does(torchs, fixed, as_readers_run_it):
    refused(from_official(torchs()), torchs(), None, "x must be floating [N, L, D]", DtypeError)


def test_other_classes_are_refused(torchs, fixed, as_readers_run_it):
    layer, x = torchs(), fixed(N, L, D)
    refused(nn.Linear(D, D), layer, x, "block must be a PreNorm or a PostNorm, and no derived class; got 'Linear'")
    refused(from_official(layer), nn.Linear(D, D), x, "layer must be a TransformerEncoderLayer, and no derived class")


def test_a_wrong_mask_is_refused_as_the_block_does(torchs, fixed, as_readers_run_it):
    layer, x = torchs(), fixed(N, L, D)
    refused(from_official(layer), layer, x, "valid_tokens must be bool [N, L]", ShapeError, VALID[:, :3])


def test_the_gradients_are_of_a_projection_that_a_last_norm_does_not_flatten(fixed):
    """The sum of what a norm gives is 0, whatever x; of its gradient only rounding would be compared."""
    block = PostNorm(D, H, F).double()
    found = parity(block, to_official(block), fixed(N, L, D))
    assert found.largest < 1e-12


def test_torchs_layer_is_seen_on_its_ordinary_path_where_autograd_is_off(fixed):
    block, x = PreNorm(D, 2, F).double().eval(), fixed(N, L, D)
    layer = to_official(block)
    with torch.no_grad():
        assert fused(lambda: layer(x)) == "layer" and fused(lambda: parity(block, layer, x)) == "nothing"
