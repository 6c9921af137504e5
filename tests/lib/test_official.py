"""Blocks and torch's layers, each turned into the other: the same numbers, the same options, nothing shared."""

import re
from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from oneblock.blocks import PostNorm, PreNorm
from oneblock.errors import ArgumentError
from oneblock.fast_path import fused
from oneblock.mutants import NormAfterSum
from oneblock.norms import RMSNorm
from oneblock.official import from_official, to_official

N, L, D, H, F = 2, 5, 6, 3, 11
VALID = torch.tensor([[True, True, True, False, False], [True] * L])
KINDS = {PreNorm: True, PostNorm: False}  # and torch's norm_first
TANH_GELU = partial(functional.gelu, approximate="tanh")
both_kinds = pytest.mark.parametrize("kind", KINDS)


def moved(module, fixed, dtype=torch.float64):
    """The same in every run, no parameter at its start."""
    module = module.to(dtype)
    for seed, (name, parameter) in enumerate(module.named_parameters(), start=1):
        start = 1 if name.startswith("norm") and name.endswith("weight") else 0
        parameter.data = fixed(*parameter.shape, seed=seed, dtype=dtype) / 2 + start
    return module


def layer_of(fixed, H=H, **options):
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True} | options
    return moved(nn.TransformerEncoderLayer(D, H, F, **options), fixed)


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", torch.tanh])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@both_kinds
def test_a_layer_made_of_a_block_gives_its_numbers(fixed, kind, batch_first, bias, activation):
    block, x = moved(kind(D, H, F, activation, bias=bias), fixed), fixed(N, L, D)
    layer = to_official(block, batch_first)
    given = x if batch_first else x.transpose(0, 1)
    y = layer(given, src_key_padding_mask=~VALID)
    y = y if batch_first else y.transpose(0, 1)
    torch.testing.assert_close(y[VALID], block(x, VALID)[VALID], atol=1e-12, rtol=0)


ACTIVATIONS = {
    "relu": ["relu", nn.ReLU(), nn.ReLU(inplace=True), functional.relu],
    "gelu": ["gelu", nn.GELU(), functional.gelu],
    "gelu_tanh": [nn.GELU("tanh")],
    "silu": [functional.silu, nn.SiLU()],
}
NAMED = [(name, given) for name, forms in ACTIVATIONS.items() for given in forms]


@pytest.mark.parametrize("name, given", NAMED, ids=[f"{name}-{k}" for k, (name, _) in enumerate(NAMED)])
@both_kinds
def test_a_block_made_of_a_layer_gives_its_numbers_and_knows_the_activation_by_name(fixed, kind, name, given):
    layer, x = layer_of(fixed, norm_first=KINDS[kind], activation=deepcopy(given)), fixed(N, L, D)
    block = from_official(layer)
    assert type(block) is kind and block.activation == name
    torch.testing.assert_close(block(x), layer(x), atol=1e-12, rtol=0)


@pytest.mark.parametrize("phi", [torch.tanh, TANH_GELU, nn.ELU(0.3)], ids=["tanh", "partial", "ELU"])
def test_a_callable_goes_both_ways_as_it_is(fixed, phi):
    layer, x = layer_of(fixed, activation=phi), fixed(N, L, D)
    block = from_official(layer)
    again = to_official(block)
    torch.testing.assert_close(block(x), layer(x), atol=1e-12, rtol=0)
    torch.testing.assert_close(again(x), layer(x), atol=1e-12, rtol=0)


def test_an_activation_with_parameters_is_copied(fixed):
    layer, x = layer_of(fixed, activation=nn.PReLU()), fixed(N, L, D)
    block = from_official(layer)
    before = block(x)
    torch.testing.assert_close(before, layer(x), atol=1e-12, rtol=0)
    layer.activation.weight.data += 1
    assert torch.equal(block(x), before) and not torch.allclose(layer(x), before)
    again = to_official(block)
    block.activation.weight.data += 1
    torch.testing.assert_close(again(x), before, atol=1e-12, rtol=0)


def test_the_tanh_gelu_stays_what_it_is_where_torch_would_turn_it_into_the_exact_one(fixed):
    block, x = moved(PreNorm(D, 2, F, "gelu_tanh"), fixed).eval(), fixed(N, L, D)
    layer = to_official(block)
    with torch.no_grad():
        assert fused(lambda: layer(x)) != "layer"
        torch.testing.assert_close(layer(x), block(x), atol=1e-12, rtol=0)


@both_kinds
def test_nothing_is_shared(fixed, kind):
    block, x = moved(kind(D, H, F), fixed), fixed(N, L, D)
    layer = to_official(block)
    back, due = from_official(layer), block(x)
    for one in (layer, back):
        assert {p.data_ptr() for p in one.parameters()}.isdisjoint(p.data_ptr() for p in block.parameters())
    assert {p.data_ptr() for p in back.parameters()}.isdisjoint(p.data_ptr() for p in layer.parameters())
    for parameter in layer.parameters():
        parameter.data.zero_()
    assert torch.equal(block(x), due) and torch.equal(back(x), due)


@both_kinds
def test_every_option_goes_both_ways(fixed, kind):
    block = kind(D, H, F, "relu").to(torch.float32).eval()
    sites = [block.self_attn.dropout, block.dropout_hidden, block.dropout_attended, block.dropout_z]
    for site, p in zip(sites, (0.1, 0.2, 0.3, 0.4), strict=True):
        site.p = p
    block.norm1.eps, block.norm2.eps = 1e-3, 1e-2
    block.linear1.weight.requires_grad_(False)
    layer = to_official(block)
    assert layer.norm_first is KINDS[kind] and layer.activation is functional.relu and layer.self_attn.num_heads == H
    assert [layer.self_attn.dropout, layer.dropout.p, layer.dropout1.p, layer.dropout2.p] == [0.1, 0.2, 0.3, 0.4]
    assert (layer.norm1.eps, layer.norm2.eps) == (1e-3, 1e-2) and layer.self_attn.batch_first and not layer.training
    assert {p.dtype for p in layer.parameters()} == {torch.float32}
    assert [name for name, p in layer.named_parameters() if not p.requires_grad] == ["linear1.weight"]
    back = from_official(layer)
    sites = [back.self_attn.dropout, back.dropout_hidden, back.dropout_attended, back.dropout_z]
    assert [site.p for site in sites] == [0.1, 0.2, 0.3, 0.4] and back.self_attn.H == H
    assert (back.norm1.eps, back.norm2.eps) == (1e-3, 1e-2) and not back.training and back.activation == "relu"
    assert [name for name, p in back.named_parameters() if not p.requires_grad] == ["linear1.weight"]


def test_a_copy_takes_no_random_numbers(fixed):
    state = torch.get_rng_state()
    from_official(to_official(moved(PreNorm(D, H, F), fixed)))
    fresh = torch.get_rng_state()
    torch.set_rng_state(state)
    moved(PreNorm(D, H, F), fixed)
    assert torch.equal(torch.get_rng_state(), fresh)


def refused(convert, module, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        convert(module)


def test_a_block_of_another_structure_has_no_counterpart(as_readers_run_it):
    due = "block must be a PreNorm or a PostNorm, and no derived class; got 'NormAfterSum'"
    refused(to_official, NormAfterSum(D, H, F), f"{due}; what only resembles it may compute something else")


def test_a_replaced_norm_has_no_counterpart():
    block = PreNorm(D, H, F)
    block.norm2 = RMSNorm(D)
    refused(to_official, block, "block.norm2 must be a LayerNorm, and no derived class; got 'RMSNorm'")
    layer = to_official(PostNorm(D, H, F, bias=False))
    layer.norm1 = nn.RMSNorm(D)
    refused(from_official, layer, "layer.norm1 must be a LayerNorm, and no derived class; got 'RMSNorm'")


def test_a_weight_that_is_computed_has_no_counterpart():
    layer = to_official(PreNorm(D, H, F))
    parametrizations.weight_norm(layer.linear1)
    refused(from_official, layer, "layer.linear1 must be a Linear, and no derived class; got 'ParametrizedLinear'")


def test_a_derived_layer_has_no_counterpart(as_readers_run_it):
    class Other(nn.TransformerEncoderLayer):
        pass

    due = "layer must be a TransformerEncoderLayer, and no derived class; got 'Other'"
    refused(from_official, Other(D, H, F), due)


def test_attention_with_more_than_ours_has_no_counterpart():
    layer = to_official(PreNorm(D, H, F))
    layer.self_attn = nn.MultiheadAttention(D, H, add_zero_attn=True, batch_first=True)
    refused(from_official, layer, "layer.self_attn.add_zero_attn must be False; got True")
    layer.self_attn = nn.MultiheadAttention(D, H, add_bias_kv=True, batch_first=True)
    extra = "['self_attn.bias_k', 'self_attn.bias_v']"
    refused(from_official, layer, f"layer must be of the parameters that its class makes; got {extra}; these are missing")
    layer.self_attn = nn.MultiheadAttention(D, H, kdim=D + 1, vdim=D, batch_first=True)
    refused(from_official, layer, "layer must be of the parameters that its class makes")


def test_an_activation_that_is_none_has_no_counterpart(as_readers_run_it):
    layer = to_official(PreNorm(D, H, F))
    layer.activation = 3
    refused(from_official, layer, "activation must be one of relu, gelu, gelu_tanh, silu, or a callable; got 3")
