"""Every closed form against the real modules: their parameters, and the products that torch's counter sees."""

from fractions import Fraction
from inspect import signature
from math import ceil, floor
from random import Random

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from oneblock import costs
from oneblock.errors import ArgumentError
from oneblock.ffn import FFN, SwiGLU
from oneblock.norms import LayerNorm, RMSNorm


def sizes(count, seed=0):
    """Random D, F, H, L; D is a multiple of H."""
    random = Random(seed)
    for _ in range(count):
        H = random.randint(1, 5)
        yield H * random.randint(1, 7), random.randint(1, 40), H, random.randint(1, 30)


SIZES = list(sizes(8))
COMMON = (512, 2048, 8, 512)


def numel(module):
    return sum(p.numel() for p in module.parameters())


def counted(module, *inputs, **options):
    """What torch's counter counts, with attention spelt out in matrix products so that it sees them."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        module(*inputs, **options)
    return counter.get_total_flops()


# Parameters.


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("D, F, H, L", SIZES)
def test_the_parameters_are_those_of_the_modules(D, F, H, L, bias):
    assert costs.attention_parameters(D, bias) == numel(nn.MultiheadAttention(D, H, bias=bias))
    assert costs.ffn_parameters(D, F, bias) == numel(FFN(D, F, bias=bias))
    assert costs.gated_ffn_parameters(D, F, bias) == numel(SwiGLU(D, F, bias=bias))
    assert costs.norm_parameters(D, bias) == numel(nn.LayerNorm(D, bias=bias))
    assert costs.block_parameters(D, F, bias) == numel(nn.TransformerEncoderLayer(D, H, F, bias=bias))


def test_a_layer_norm_has_two_numbers_for_each_feature_and_an_rms_norm_one():
    assert costs.norm_parameters(7) == numel(LayerNorm(7)) == 14
    assert costs.norm_parameters(7, bias=False) == numel(RMSNorm(7)) == 7


@pytest.mark.parametrize("expert, per_expert", [(FFN, costs.ffn_parameters), (SwiGLU, costs.gated_ffn_parameters)])
def test_a_mixture_owns_all_experts_and_a_token_meets_a_few(mixture, expert, per_expert):
    D, F, experts, active = 3, 11, 5, 2
    module = mixture(D, [expert(D, F) for _ in range(experts)], active)
    assert costs.moe_parameters(D, experts, per_expert(D, F)) == numel(module)
    module(torch.ones(1, 1, D)).sum().backward()
    used = [e for e in module.experts if any(p.grad is not None and p.grad.any() for p in e.parameters())]
    assert len(used) == active
    met = numel(module.router) + sum(map(numel, used))
    assert costs.active_moe_parameters(D, experts, per_expert(D, F), active) == met


@pytest.mark.parametrize("D", [1, 7, 512])
def test_an_ffn_four_times_as_wide_has_twice_the_weights_of_attention(D):
    assert costs.ffn_parameters(D, 4 * D, bias=False) == 8 * D**2
    assert costs.attention_parameters(D, bias=False) == 4 * D**2


# Operations.


@pytest.mark.parametrize("D, F, H, L", [*SIZES, COMMON])
def test_the_operations_are_those_that_torch_counts(fixed, D, F, H, L):
    x = fixed(1, L, D, dtype=torch.float32)
    attention = nn.MultiheadAttention(D, H, batch_first=True)
    assert costs.attention_flops(D, L) == counted(attention, x, x, x, need_weights=False)
    assert costs.ffn_flops(D, F, L) == counted(FFN(D, F), x)
    assert costs.gated_ffn_flops(D, F, L) == counted(SwiGLU(D, F), x)
    layer = nn.TransformerEncoderLayer(D, H, F, batch_first=True)
    assert costs.attention_flops(D, L) + costs.ffn_flops(D, F, L) == counted(layer, x)


@pytest.mark.parametrize("D, F, H, L", SIZES)
def test_projections_and_scores_are_counted_apart(fixed, D, F, H, L):
    heads = fixed(1, H, L, D // H)
    scores_and_sum = counted(nn.functional.scaled_dot_product_attention, heads, heads, heads)
    assert 2 * costs.score_flops(D, L) == scores_and_sum
    assert costs.score_flops(D, L) == counted(lambda: heads @ heads.mT)
    maps = nn.ModuleList(nn.Linear(D, D) for _ in range(4))
    assert costs.projection_flops(D, L) == counted(lambda: [linear(heads.view(L, D).float()) for linear in maps])


@pytest.mark.parametrize("active", [1, 2, 5])
def test_a_mixture_computes_its_router_and_the_active_experts(fixed, mixture, active):
    D, F, L, experts = 3, 11, 7, 5
    module = mixture(D, [FFN(D, F) for _ in range(experts)], active)
    due = costs.moe_flops(D, L, experts, costs.ffn_flops(D, F, L), active)
    assert counted(module, fixed(1, L, D, dtype=torch.float32)) == due


def test_a_batch_costs_as_many_times_and_a_backward_pass_twice_the_forward(fixed):
    N, (D, F, H, L) = 3, (10, 23, 2, 7)
    layer, x = nn.TransformerEncoderLayer(D, H, F, batch_first=True), fixed(N, L, D, dtype=torch.float32)
    forward = N * (costs.attention_flops(D, L) + costs.ffn_flops(D, F, L))
    assert counted(layer, x) == forward
    assert counted(lambda: layer(x.requires_grad_()).sum().backward()) == 3 * forward


@pytest.mark.parametrize("L", [1, 2, 7])
def test_a_causal_mask_leaves_the_pairs_that_tril_leaves(L):
    assert costs.pairs(L) == torch.ones(L, L).sum()
    assert costs.pairs(L, causal=True) == torch.ones(L, L).tril().sum()
    assert costs.score_elements(3, L, causal=True) == torch.ones(3, L, L).tril().sum()
    assert costs.score_flops(5, L, causal=True) == 2 * 5 * torch.ones(L, L).tril().sum()


def test_dense_code_computes_all_pairs_under_a_causal_mask(fixed):
    heads = fixed(1, 2, 7, 3)
    causal = counted(nn.functional.scaled_dot_product_attention, heads, heads, heads, is_causal=True)
    assert causal == 2 * costs.score_flops(6, 7) > 2 * costs.score_flops(6, 7, causal=True)


# What torch's counter does not see.


def test_torchs_counter_does_not_see_the_fused_kernel_on_cpu(fixed):
    D, F, H, L = 10, 23, 2, 7
    x = fixed(1, L, D, dtype=torch.float32)
    layer = nn.TransformerEncoderLayer(D, H, F, dropout=0.0, batch_first=True)
    with FlopCounterMode(display=False) as counter:
        layer(x)
    whole = costs.attention_flops(D, L) + costs.ffn_flops(D, F, L)
    assert counter.get_total_flops() == whole - 2 * costs.score_flops(D, L)


def test_torchs_counter_sees_nothing_of_the_inference_path(fixed):
    layer, x = nn.TransformerEncoderLayer(10, 2, 23, batch_first=True).eval(), fixed(1, 7, 10, dtype=torch.float32)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(x)
    assert counter.get_total_flops() == 0


# Elements.


@pytest.mark.parametrize("D, F, H, L", SIZES)
def test_the_elements_are_those_of_the_tensors(fixed, D, F, H, L):
    x, heads = fixed(L, D, dtype=torch.float32), fixed(H, L, D // H)
    assert costs.score_elements(H, L) == (heads @ heads.mT).numel()
    assert costs.hidden_elements(F, L) == FFN(D, F).linear1(x).numel()
    gated = SwiGLU(D, F)
    assert costs.hidden_elements(F, L, gated=True) == gated.gate_proj(x).numel() + gated.up_proj(x).numel()


def test_the_numbers_of_a_common_size():
    D, F, H, L = COMMON
    assert costs.ffn_parameters(D, F, bias=False) == 2_097_152
    assert costs.attention_parameters(D, bias=False) == 1_048_576
    assert costs.score_elements(H, L) == 2_097_152 and costs.score_elements(H, 2 * L) == 8_388_608


# Crossovers: the two sides just below, at and just above.

FFN_FLOPS = {False: costs.ffn_flops, True: costs.gated_ffn_flops}
OVERTAKE = {
    "scores": lambda D, F, H, gated, causal: (
        costs.scores_overtake_ffn(F, gated, causal),
        lambda L: costs.score_flops(D, L, causal) - FFN_FLOPS[gated](D, F, L),
    ),
    "mixing": lambda D, F, H, gated, causal: (
        costs.mixing_overtakes_ffn(F, gated, causal),
        lambda L: 2 * costs.score_flops(D, L, causal) - FFN_FLOPS[gated](D, F, L),
    ),
    "attention": lambda D, F, H, gated, causal: (
        costs.attention_overtakes_ffn(D, F, gated, causal),
        lambda L: costs.attention_flops(D, L, causal) - FFN_FLOPS[gated](D, F, L),
    ),
    "elements": lambda D, F, H, gated, causal: (
        costs.elements_overtake_hidden(F, H, gated, causal),
        lambda L: costs.score_elements(H, L, causal) - costs.hidden_elements(F, L, gated),
    ),
}


@pytest.mark.parametrize("causal", [False, True], ids=["all pairs", "causal"])
@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("what", OVERTAKE)
def test_the_sides_change_places_at_the_crossover(what, gated, causal):
    for D, F, H, _ in [*SIZES, COMMON, (7, 61, 1, 0), (4, 97, 2, 0)]:
        crossing, excess = OVERTAKE[what](D, F, H, gated, causal)
        for L in {1, max(1, ceil(crossing) - 1), max(1, floor(crossing)), max(1, ceil(crossing)), floor(crossing) + 1}:
            if L >= 1:
                assert (excess(L) > 0) == (L > crossing) and (excess(L) == 0) == (L == crossing)


@pytest.mark.parametrize(
    "crossing, due",
    [
        (costs.scores_overtake_ffn(2048), 4096),
        (costs.scores_overtake_ffn(2048, gated=True), 6144),
        (costs.scores_overtake_ffn(2048, causal=True), 8191),
        (costs.mixing_overtakes_ffn(2048), 2048),
        (costs.mixing_overtakes_ffn(5, gated=True), Fraction(15, 2)),
        (costs.mixing_overtakes_ffn(2048, gated=True, causal=True), 6143),
        (costs.attention_overtakes_ffn(512, 2048), 1024),
        (costs.attention_overtakes_ffn(512, 2048, gated=True), 2048),
        (costs.attention_overtakes_ffn(512, 2048, causal=True), 2047),
        (costs.elements_overtake_hidden(2048, 8), 256),
        (costs.elements_overtake_hidden(7, 3), Fraction(7, 3)),
        (costs.elements_overtake_hidden(2048, 8, gated=True, causal=True), 1023),
    ],
)
def test_the_crossovers_of_a_common_size(crossing, due):
    assert crossing == due


FORMULAS = [formula for name, formula in vars(costs).items() if getattr(formula, "__module__", "") == costs.__name__]
FORMULAS = [formula for formula in FORMULAS if not formula.__name__.startswith("_")]


@pytest.mark.usefixtures("as_readers_run_it")
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_sizes_are_whole_and_positive_and_flags_true_or_false(formula):
    flags = {name for name, parameter in signature(formula).parameters.items() if parameter.default != parameter.empty}
    sizes = set(signature(formula).parameters) - flags
    good = dict.fromkeys(sizes, 3)
    assert formula(**good) is not None and flags <= {"bias", "causal", "gated"}
    for name in sizes:
        for odd in (0, -2, 2.0, True, "3"):
            with pytest.raises(ArgumentError, match=rf"^{name} must be a whole number ≥ 1; got"):
                formula(**good | {name: odd})
    for name in flags:
        with pytest.raises(ArgumentError, match=rf"^{name} must be True or False; got 2"):
            formula(**good, **{name: 2})
