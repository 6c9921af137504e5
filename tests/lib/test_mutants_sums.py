"""Each wrong sum is wrong in the way that is told of it, and agrees with the right one where it hides."""

import pytest
import torch
from torch.nn.functional import layer_norm

from oneblock.blocks import PreNorm
from oneblock.mutants import sums
from oneblock.mutants.plain import Plain
from oneblock.residual import residual

N, L, D = 2, 5, 21
VALID = torch.tensor([[True, True, True, False, False], [True, True, True, True, False]])


def silence(*maps):
    for one in maps:
        one.weight.data.zero_()
        one.bias.data.zero_()


def fresh(norm):
    norm.weight.data.fill_(1.0)
    norm.bias.data.zero_()


def test_without_the_residual_a_row_keeps_nothing_but_what_it_read(fixed, alike):
    wrong, right = alike(sums.NoAttentionResidual, PreNorm)
    for block in (wrong, right):
        silence(block.self_attn.out_proj)
    y = wrong(fixed(N, L, D), VALID)
    assert (y - y[:1, :1]).abs().max() < 1e-12
    torch.testing.assert_close(y[0, 0], right(torch.zeros(1, 1, D, dtype=torch.float64))[0, 0], atol=1e-12, rtol=0)


def test_a_residual_from_the_normed_row_forgets_mean_and_size_of_its_input(fixed, alike):
    wrong, right = alike(sums.ResidualFromNormed, PreNorm, eps=0.0)
    x = fixed(N, L, D)
    torch.testing.assert_close(wrong(3 * x + 2, VALID), wrong(x, VALID), atol=1e-12, rtol=0)
    difference = right(3 * x + 2, VALID) - right(x, VALID)
    assert difference.abs().max() > 2


def test_a_residual_from_the_normed_row_hides_in_a_fresh_silent_block_of_normed_rows(fixed, alike):
    wrong, right = alike(sums.ResidualFromNormed, PreNorm)
    for block in (wrong, right):
        fresh(block.norm1)
        fresh(block.norm2)
        silence(block.self_attn.out_proj)
    x = layer_norm(fixed(N, L, D), (D,))
    torch.testing.assert_close(wrong(x), right(x), atol=1e-3, rtol=0)


def test_a_scaled_residual_halves_what_comes_in_and_its_gradient(fixed, alike):
    wrong, _ = alike(sums.ResidualScaled, PreNorm)
    silence(wrong.self_attn.out_proj, wrong.linear2)
    x = fixed(N, L, D).requires_grad_()
    y = wrong(x, VALID)
    torch.testing.assert_close(y, x / 2, atol=1e-12, rtol=0)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.full_like(x, 0.5), atol=1e-12, rtol=0)


def test_a_scaled_residual_hides_behind_a_norm_while_the_branches_are_silent(fixed, alike):
    wrong, right = alike(sums.ResidualScaled, PreNorm)
    x = fixed(N, L, D)
    after = [layer_norm(block(x), (D,), eps=0.0) for block in (wrong, right)]
    assert (after[0] - after[1]).abs().max() > 0.1
    for block in (wrong, right):
        silence(block.self_attn.out_proj, block.linear2)
    after = [layer_norm(block(x), (D,), eps=0.0) for block in (wrong, right)]
    torch.testing.assert_close(*after, atol=1e-12, rtol=0)


def test_without_the_projection_back_one_number_is_stretched_over_all_features(fixed, alike):
    wrong, right = alike(sums.NoProjectionBack, PreNorm)
    silence(right.linear2)
    x = fixed(N, L, D)
    u = right(x, VALID)
    increment = wrong(x, VALID) - u
    assert increment.abs().max() > 0.1 and (increment - increment[..., :1]).abs().max() < 1e-12
    after = [layer_norm(y, (D,), eps=0.0) for y in (wrong(x, VALID), u)]
    torch.testing.assert_close(*after, atol=1e-12, rtol=0)


@pytest.mark.usefixtures("as_readers_run_it")
def test_the_sum_of_the_library_refuses_that_number(fixed, alike):
    wrong, _ = alike(sums.NoProjectionBack, PreNorm)
    x = fixed(N, L, D)
    with pytest.raises(ValueError, match=r"^increment must be floating \[2, 5, 21\], the shape of x; got float64 \[2, 5, 1\]"):
        residual(x, wrong.process(x))


def test_a_detached_branch_acts_and_does_not_learn(fixed, alike):
    wrong, right = alike(sums.Detached, Plain)
    x = fixed(N, L, D)
    for block in (wrong, right):
        block(x, VALID).square().sum().backward()
    gone = {name for name, parameter in wrong.named_parameters() if parameter.grad is None}
    assert gone == {name for name, _ in right.named_parameters() if name.startswith(("self_attn", "norm1"))}
    assert all(parameter.grad is not None for parameter in right.parameters())


def test_a_detached_branch_hides_in_the_forward_pass(fixed, alike):
    wrong, right = alike(sums.Detached, Plain)
    assert torch.equal(wrong(fixed(N, L, D), VALID), right(fixed(N, L, D), VALID))


def test_it_writes_zeros_into_the_padding_of_its_caller(fixed, alike):
    wrong, right = alike(sums.WritesIntoInput, PreNorm)
    x, kept = fixed(N, L, D), fixed(N, L, D)
    y = wrong(x, VALID)
    assert torch.equal(x[VALID], kept[VALID]) and (x[~VALID] == 0).all()
    torch.testing.assert_close(y[VALID], right(kept, VALID)[VALID], atol=1e-12, rtol=0)


def test_writing_into_the_input_hides_where_there_is_no_padding(fixed, alike):
    wrong, _ = alike(sums.WritesIntoInput, PreNorm)
    x = fixed(N, L, D)
    wrong(x, torch.ones_like(VALID))
    assert torch.equal(x, fixed(N, L, D))
