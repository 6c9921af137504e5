"""Each port is wrong in the way that is told of it, and agrees with the right one where it hides."""

import torch

from oneblock.blocks import PreNorm
from oneblock.mutants import ports
from oneblock.mutants.plain import Plain

N, L, D, H = 2, 5, 21, 3
VALID = torch.tensor([[True, True, True, False, False], [True, True, True, True, False]])


def test_the_tanh_form_is_another_function_and_hides_from_a_coarse_tolerance(fixed, alike):
    wrong, right = alike(ports.TanhGelu, PreNorm)
    x = fixed(N, L, D)
    apart = (wrong.process(x) - right.process(x)).abs().max()
    assert 1e-5 < apart < 5e-4 * right.linear2.weight.abs().sum(1).max()
    as_named, _ = alike(PreNorm, PreNorm, activation="gelu_tanh")
    assert torch.equal(wrong(x), as_named(x))


def test_another_epsilon_shows_in_small_rows(fixed, alike):
    wrong, right = alike(ports.OtherEps, PreNorm)
    x = 1e-5 * fixed(N, L, D)
    beta = right.norm1.bias
    assert ((wrong.norm1(x) - beta).norm() / (right.norm1(x) - beta).norm()) > 100


def test_another_epsilon_hides_where_the_variance_is_large(fixed, alike):
    wrong, right = alike(ports.OtherEps, PreNorm)
    torch.testing.assert_close(wrong(100 * fixed(N, L, D)), right(100 * fixed(N, L, D)), atol=1e-6, rtol=0)


def exchange(block):
    for stored in (block.self_attn.in_proj_weight, block.self_attn.in_proj_bias):
        q, k, v = stored.data.chunk(3)
        stored.data = torch.cat([k, q, v])


def test_keys_first_turns_the_scores_round(fixed, alike):
    wrong, right = alike(ports.KeysFirst, Plain)
    x = fixed(N, L, D)
    scores = [block.scores(*[block.split(part) for part in block.project(x)][:2]) for block in (wrong, right)]
    torch.testing.assert_close(scores[0], scores[1].mT, atol=1e-12, rtol=0)
    assert (wrong(x, VALID) - right(x, VALID)).abs().max() > 0.01
    exchange(right)
    torch.testing.assert_close(wrong(x, VALID), right(x, VALID), atol=1e-12, rtol=0)


def test_keys_first_hides_where_queries_and_keys_have_one_weight(fixed, alike):
    wrong, right = alike(ports.KeysFirst, Plain)
    for block in (wrong, right):
        for stored in (block.self_attn.in_proj_weight, block.self_attn.in_proj_bias):
            stored.data[D : 2 * D] = stored.data[:D]
    torch.testing.assert_close(wrong(fixed(N, L, D), VALID), right(fixed(N, L, D), VALID), atol=1e-12, rtol=0)


def test_an_output_weight_turned_round_is_the_right_block_with_it_turned_back(fixed, alike):
    wrong, right = alike(ports.OutputTransposed, Plain)
    x = fixed(N, L, D)
    assert (wrong(x, VALID) - right(x, VALID)).abs().max() > 0.1
    right.self_attn.out_proj.weight.data = right.self_attn.out_proj.weight.data.T
    torch.testing.assert_close(wrong(x, VALID), right(x, VALID), atol=1e-12, rtol=0)


def test_an_output_weight_turned_round_hides_where_it_is_symmetric(fixed, alike):
    wrong, right = alike(ports.OutputTransposed, Plain)
    for block in (wrong, right):
        weight = block.self_attn.out_proj.weight.data
        block.self_attn.out_proj.weight.data = weight + weight.T
    torch.testing.assert_close(wrong(fixed(N, L, D), VALID), right(fixed(N, L, D), VALID), atol=1e-12, rtol=0)
