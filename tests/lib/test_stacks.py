import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from oneblock.errors import ArgumentError
from oneblock.stacks import (
    INITS,
    STRUCTURES,
    cut_branches,
    drawn_in_float64,
    scale_branches,
    shrink_branches,
    stack,
    xavier,
)

pytestmark = pytest.mark.usefixtures("as_readers_run_it")
D, H, F = 10, 5, 7


def norm(x, layer):
    return nn.functional.layer_norm(x, (D,), layer.weight, layer.bias)


def attend(x, block):
    mha = nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64)
    mha.load_state_dict(block.self_attn.state_dict())
    return mha(x, x, x)[0]


def process(x, block):
    return block.linear2(torch.relu(block.linear1(x)))


def pre(x, block):
    x = x + attend(norm(x, block.norm1), block)
    return x + process(norm(x, block.norm2), block)


def post(x, block):
    x = norm(x + attend(x, block), block.norm1)
    return norm(x + process(x, block), block.norm2)


def half_way(x, block):
    x = x + attend(norm(x, block.norm1), block)
    return norm(x + process(x, block), block.norm2)


WRITTEN_OUT = {
    "Pre-LN": (pre, True),
    "Pre-LN, no final LN": (pre, False),
    "Post-LN": (post, False),
    "second norm after the sum": (half_way, False),
}


def noisy(deep):
    """Other values everywhere, so that no γ is 1 and no bias 0."""
    torch.manual_seed(5)
    for parameter in deep.parameters():
        nn.init.normal_(parameter, std=0.5)
    return deep.double()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_stack_is_its_blocks_one_after_another_and_the_final_norm(structure, fixed):
    deep, x = noisy(stack(structure, 3, D, H, F)), fixed(2, 3, D)
    step, ends_with_a_norm = WRITTEN_OUT[structure]
    due = step(step(step(x, deep.blocks[0]), deep.blocks[1]), deep.blocks[2])
    due = norm(due, deep.final) if ends_with_a_norm else due
    torch.testing.assert_close(deep(x), due, rtol=0, atol=1e-12)


def test_every_structure_is_written_out_above():
    assert list(WRITTEN_OUT) == list(STRUCTURES)


def test_no_two_blocks_start_alike():
    matrices = [block.linear1.weight for block in stack("Post-LN", 5, D, H, F).blocks]
    assert not any(torch.equal(one, other) for one, other in pairwise(matrices))


def test_untouched_first_values_are_pytorchs():
    torch.manual_seed(7)
    deep = stack("Post-LN", 2, D, H, F)
    INITS["PyTorch's default"](deep)
    torch.manual_seed(7)
    layers = [nn.TransformerEncoderLayer(D, H, F, batch_first=True) for _ in range(2)]
    for block, layer in zip(deep.blocks, layers, strict=True):
        for name, parameter in layer.state_dict().items():
            assert torch.equal(block.state_dict()[name], parameter)


def test_xavier_gives_each_matrix_its_own_variance_and_no_bias():
    deep = stack("Pre-LN", 2, 40, 5, 70)
    xavier(deep)
    for block in deep.blocks:
        square = [*block.self_attn.in_proj_weight.chunk(3), block.self_attn.out_proj.weight]
        for matrix in (*square, block.linear1.weight, block.linear2.weight):
            bound = math.sqrt(6 / sum(matrix.shape))
            assert 0.97 * bound < matrix.abs().max() <= bound
            assert matrix.var().item() == pytest.approx(2 / sum(matrix.shape), rel=0.1)
        biases = [p for name, p in block.named_parameters() if name.endswith("bias")]
        assert len(biases) == 6 and not any(bias.any() for bias in biases)
        assert all(norm.weight.eq(1).all() for norm in (block.norm1, block.norm2, deep.final))


def test_scaling_multiplies_what_each_branch_adds_and_nothing_else(fixed):
    plain, scaled = noisy(stack("Pre-LN", 2, D, H, F)), noisy(stack("Pre-LN", 2, D, H, F))
    scale_branches(scaled, 0.3)
    x = fixed(2, 3, D)
    for one, other in zip(plain.blocks, scaled.blocks, strict=True):
        torch.testing.assert_close(0.3 * one.attend(x, None), other.attend(x, None))
        torch.testing.assert_close(0.3 * one.process(x), other.process(x))
        assert torch.equal(one.first_norm(x), other.first_norm(x))
        assert torch.equal(one.second_norm(x), other.second_norm(x))


def test_shrinking_divides_by_the_root_of_the_number_of_branches(fixed):
    plain, shrunk = noisy(stack("Pre-LN", 3, D, H, F)), noisy(stack("Pre-LN", 3, D, H, F))
    shrink_branches(shrunk)
    x = fixed(2, 3, D)
    torch.testing.assert_close(plain.blocks[2].process(x), shrunk.blocks[2].process(x) * 6**0.5)


def test_at_scale_0_a_pre_ln_block_is_the_identity(fixed):
    deep, x = noisy(stack("Pre-LN, no final LN", 3, D, H, F)), fixed(2, 3, D)
    scale_branches(deep, 0)
    assert torch.equal(deep(x), x)


def test_cut_branches_add_as_before_but_pass_no_gradient(fixed):
    whole, cut = noisy(stack("Pre-LN, no final LN", 2, D, H, F)), noisy(stack("Pre-LN, no final LN", 2, D, H, F))
    cut_branches(cut)
    x = fixed(2, 3, D).requires_grad_()
    torch.testing.assert_close(cut(x), whole(x))
    upstream = fixed(2, 3, D, seed=1)
    cut(x).backward(upstream)
    assert torch.equal(x.grad, upstream)


def test_first_values_are_drawn_in_float64_and_torchs_own_seed_and_dtype_stay():
    before = torch.random.get_rng_state()
    drawn = []
    for seed in (5, 5, 6):
        with drawn_in_float64(seed):
            drawn.append(stack("Pre-LN", 1, D, H, F).blocks[0].linear1.weight)
    assert drawn[0].dtype == torch.float64 and torch.equal(*drawn[:2]) and not torch.equal(*drawn[1:])
    assert torch.equal(before, torch.random.get_rng_state()) and torch.get_default_dtype() == torch.float32


def test_an_unknown_structure_is_refused():
    due = r"^structure must be one of Pre-LN; Pre-LN, no final LN; Post-LN; second norm after the sum; got 'Sandwich'"
    with pytest.raises(ArgumentError, match=due):
        stack("Sandwich", 2, D, H, F)


@pytest.mark.parametrize("K", [0, -1, 1.5, True])
def test_a_depth_that_counts_no_blocks_is_refused(K):
    with pytest.raises(ArgumentError, match=r"^K must be a whole number ≥ 1; got "):
        stack("Pre-LN", K, D, H, F)


@pytest.mark.parametrize("factor", [-0.1, math.inf, math.nan])
def test_a_scale_that_is_none_is_refused(factor):
    with pytest.raises(ArgumentError, match=r"^factor must be a finite number ≥ 0; got "):
        scale_branches(stack("Pre-LN", 1, D, H, F), factor)
