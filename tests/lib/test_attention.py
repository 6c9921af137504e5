"""Attention against ``torch.nn.MultiheadAttention``, in value and gradient, and against sums written out."""

from itertools import product
from math import exp, sqrt

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from oneblock.attention import MultiHeadAttention, attention

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}
# N, L, D, H: all different, or one head, one position, one sequence, one feature a head.
SIZES = [(2, 5, 6, 3), (3, 7, 10, 2), (2, 5, 7, 1), (5, 1, 6, 2), (1, 11, 4, 4)]
RAGGED = {2: [3, 5], 3: [7, 2, 4]}


def pair(fixed, D, H, bias=True, dtype=torch.float64):
    """Ours and torch's with the same parameters, none of them at its start value but as large as those."""
    ours = MultiHeadAttention(D, H, bias).to(dtype)
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=dtype)
    state = {name: fixed(*value.shape, seed=k, dtype=dtype) / 2 for k, (name, value) in enumerate(theirs.state_dict().items())}
    theirs.load_state_dict(state)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def lengths_as_mask(lengths, L):
    return torch.arange(L) < torch.tensor(lengths)[:, None]


def causal(L):
    return torch.ones(L, L, dtype=torch.bool).tril()


def assert_same(run, ours, theirs, x, real=..., **masks):
    """Values, and the gradients of the input and of each parameter, at the real positions."""
    valid, may_read = masks.get("valid_tokens"), masks.get("may_read")
    results, tolerance = [], TOLERANCE[x.dtype]
    for module in (ours, theirs):
        row = x.clone().requires_grad_()
        if module is ours:
            value = run(module, row, **masks)
        else:
            padding, forbidden = (None if mask is None else ~mask for mask in (valid, may_read))
            value, _ = module(row, row, row, key_padding_mask=padding, attn_mask=forbidden)
        upstream = torch.linspace(-1, 1, value[real].numel(), dtype=x.dtype).view_as(value[real])
        gradients = torch.autograd.grad(value[real], [row, *module.parameters()], upstream)
        names = ["x", *(name for name, _ in module.named_parameters())]
        results.append({"value": value[real].detach(), **dict(zip(names, gradients, strict=True))})
    assert results[0].keys() == results[1].keys()
    for name, mine in results[0].items():
        torch.testing.assert_close(mine, results[1][name], atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("N, L, D, H", SIZES)
def test_it_is_torchs_attention_in_value_and_gradient(fixed, run, N, L, D, H, bias, dtype):
    ours, theirs = pair(fixed, D, H, bias, dtype)
    assert_same(run, ours, theirs, fixed(N, L, D, seed=9, dtype=dtype))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("with_causal", [True, False])
@pytest.mark.parametrize("N, L, D, H", SIZES[:2])
def test_it_is_torchs_attention_under_masks_too(fixed, run, N, L, D, H, with_causal, dtype):
    ours, theirs = pair(fixed, D, H, dtype=dtype)
    valid = lengths_as_mask(RAGGED[N], L)
    masks = {"valid_tokens": valid, **({"may_read": causal(L)} if with_causal else {})}
    x = fixed(N, L, D, seed=9, dtype=dtype)
    assert_same(run, ours, theirs, x, **masks)
    assert_same(run, ours, theirs, x, real=valid, **masks)


def test_a_causal_mask_alone_is_torchs_too(fixed, run):
    ours, theirs = pair(fixed, 6, 3)
    assert_same(run, ours, theirs, fixed(2, 5, 6, seed=9), may_read=causal(5))


def test_it_is_the_sum_that_the_book_writes(fixed):
    q, k, v = (fixed(2, 3, 5, 7, seed=seed) for seed in range(3))
    mixed = attention(q, k, v)
    for n, h, i in product(range(2), range(3), range(5)):
        dots = [sum(q[n, h, i, e].item() * k[n, h, j, e].item() for e in range(7)) / sqrt(7) for j in range(5)]
        shares = [exp(dot) / sum(map(exp, dots)) for dot in dots]
        due = [sum(shares[j] * v[n, h, j, e].item() for j in range(5)) for e in range(7)]
        assert mixed[n, h, i].tolist() == pytest.approx(due, abs=1e-12)


def test_head_h_reads_rows_h_times_e_of_each_projection(fixed):
    """Head 1 alone: the other heads' values and keys may be anything."""
    ours, _ = pair(fixed, 6, 3)
    x, start = fixed(2, 5, 6, seed=9), ours.out_proj.weight.data.clone()
    ours.out_proj.weight.data = torch.zeros_like(start)
    ours.out_proj.weight.data[:, 2:4] = start[:, 2:4]  # only head 1 is read
    before = ours(x)
    for other in (0, 1, 4, 5):
        for part in range(3):
            ours.in_proj_weight.data[6 * part + other] += 1
    torch.testing.assert_close(ours(x), before, atol=1e-12, rtol=0)
    ours.in_proj_weight.data[2] += 1
    assert not torch.allclose(ours(x), before)


def test_one_seed_gives_ours_and_torchs_the_same_first_values():
    for D, H, bias in [(6, 3, True), (10, 2, False)]:
        torch.manual_seed(0)
        ours = MultiHeadAttention(D, H, bias).state_dict()
        torch.manual_seed(0)
        theirs = nn.MultiheadAttention(D, H, bias=bias).state_dict()
        assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


# What the shares are.


def test_for_fixed_shares_the_mix_is_linear_in_the_values_and_the_shares_are_not_linear_in_q(fixed):
    q, k, v, w = (fixed(2, 3, 5, 7, seed=seed) for seed in range(4))
    mix = lambda values: attention(q, k, values)  # noqa: E731
    torch.testing.assert_close(mix(2 * v - 3 * w), 2 * mix(v) - 3 * mix(w), atol=1e-12, rtol=0)
    assert not torch.allclose(attention(2 * q, k, v), 2 * attention(q, k, v))


def test_a_value_equal_everywhere_comes_through_whatever_the_shares(fixed):
    q, k = fixed(2, 3, 5, 7), fixed(2, 3, 5, 7, seed=1)
    v = fixed(2, 3, 1, 7, seed=2).expand(2, 3, 5, 7)
    torch.testing.assert_close(attention(q, k, v), v, atol=1e-12, rtol=0)


def test_a_position_that_may_not_be_read_counts_for_exactly_nothing(fixed, run):
    ours, _ = pair(fixed, 6, 3)
    valid, x = lengths_as_mask([3, 5], 5), fixed(2, 5, 6)
    other = torch.where(valid[..., None], x, 1e6 * fixed(2, 5, 6, seed=1))
    assert torch.equal(run(ours, x, valid)[valid], run(ours, other, valid)[valid])
    assert not torch.equal(run(ours, x)[valid], run(ours, other)[valid])


def test_both_masks_take_away_independently(fixed):
    q, k, v = (fixed(2, 3, 5, 7, seed=seed) for seed in range(3))
    valid, may_read = lengths_as_mask([3, 5], 5), causal(5)
    both = attention(q, k, v, valid, may_read)
    for n, i in product(range(2), range(5)):
        read = [j for j in range(5) if valid[n, j] and j <= i]
        alone = attention(q[n, :, i : i + 1].expand(3, len(read), 7), k[n][:, read], v[n][:, read])
        torch.testing.assert_close(both[n, :, i], alone[:, 0], atol=1e-12, rtol=0)


def test_dropout_acts_on_the_shares_in_training_only(fixed, run):
    module, x = MultiHeadAttention(6, 3, dropout=0.5).double(), fixed(2, 31, 6)
    assert torch.equal(run(module.eval(), x), run(module, x))
    shares = []
    attention(*(fixed(2, 3, 5, 7, seed=s) for s in range(3)), dropout=lambda alpha: shares.append(alpha) or alpha)
    torch.testing.assert_close(shares[0].sum(-1), torch.ones(2, 3, 5).double(), atol=1e-12, rtol=0)
    torch.manual_seed(0)
    first, second = run(module.train(), x), run(module, x)
    assert not torch.equal(first, second)


# torch.func and shapes.


def test_it_works_without_a_batch_and_under_torch_func(fixed):
    module, x = MultiHeadAttention(6, 3).double(), fixed(2, 5, 6)
    torch.testing.assert_close(torch.vmap(module)(x), module(x), atol=1e-14, rtol=0)
    torch.testing.assert_close(torch.stack([module(row) for row in x]), module(x), atol=1e-14, rtol=0)
    valid = lengths_as_mask([3, 5], 5)
    backward = torch.func.jacrev(module)(x, valid)
    torch.testing.assert_close(backward, torch.func.jacfwd(module)(x, valid), atol=1e-12, rtol=0)
    assert torch.autograd.gradcheck(lambda rows: module(rows, valid), x.requires_grad_())


def test_second_derivatives_come_by_torch_func_or_by_the_kernel_in_matrix_products(fixed):
    module, x, valid = MultiHeadAttention(6, 3).double(), fixed(2, 5, 6), lengths_as_mask([3, 5], 5)
    size = lambda rows: module(rows, valid).square().sum()  # noqa: E731
    with pytest.raises(RuntimeError, match="derivative for .*flash_attention.* is not implemented"):
        torch.autograd.functional.hessian(size, x)
    with sdpa_kernel(SDPBackend.MATH):
        due = torch.autograd.functional.hessian(size, x)
        with forward_ad.dual_level():
            slope = forward_ad.unpack_dual(size(forward_ad.make_dual(x, torch.ones_like(x)))).tangent
    torch.testing.assert_close(torch.func.hessian(size)(x), due, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(torch.func.jvp(size, (x,), (torch.ones_like(x),))[1], slope, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32_and_rounded_once(fixed, run, dtype):
    q, k, v = (fixed(2, 3, 5, 7, seed=seed, dtype=dtype) for seed in range(3))
    mixed, due = attention(q, k, v), attention(q.float(), k.float(), v.float())
    assert mixed.dtype == dtype and torch.equal(mixed, due.to(dtype))
    module = MultiHeadAttention(6, 3).to(dtype)
    with torch.no_grad():  # the identity four times: scores reach beyond 65504, the largest number of float16
        for weight in (*module.in_proj_weight.chunk(3), module.out_proj.weight):
            weight.copy_(torch.eye(6))
    x = 300 * fixed(2, 5, 6, seed=3, dtype=torch.float32).to(dtype)
    exact = torch.nn.functional.scaled_dot_product_attention(*3 * [x.double().unflatten(-1, (3, 2)).transpose(1, 2)])
    result = run(module, x)
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), exact.transpose(1, 2).flatten(2), atol=0, rtol=2 * torch.finfo(dtype).eps)


def test_masks_of_a_batch_of_their_own_by_vmap(fixed):
    module, x = MultiHeadAttention(6, 3).double(), fixed(2, 5, 6)
    masks = torch.stack([causal(5), causal(5).mT])
    together = torch.vmap(lambda rows, mask: module(rows, may_read=mask))(x, masks)
    due = torch.stack([module(rows, may_read=mask) for rows, mask in zip(x, masks, strict=True)])
    torch.testing.assert_close(together, due, atol=1e-14, rtol=0)


def test_the_inputs_are_left_as_they_were(fixed):
    module, x, valid = MultiHeadAttention(6, 3).double(), fixed(2, 5, 6), lengths_as_mask([3, 5], 5)
    module(x, valid, causal(5))
    assert torch.equal(x, fixed(2, 5, 6)) and torch.equal(valid, lengths_as_mask([3, 5], 5))
