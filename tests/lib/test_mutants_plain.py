"""The block that the mistakes are made in is the right one: its values, gradients, masks and dropout."""

import pytest
import torch

from oneblock.blocks import PreNorm
from oneblock.mutants.plain import Plain

N, L, D, H, F = 2, 5, 21, 3, 11
VALID = torch.tensor([[True, True, True, False, False], [True] * L])


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"activation": "relu", "eps": 0.1}, {"activation": torch.tanh}])
@pytest.mark.parametrize("valid_tokens", [None, VALID])
def test_it_gives_what_the_block_gives_and_the_same_gradients(fixed, alike, options, valid_tokens):
    results = []
    for block in alike(Plain, PreNorm, **options):
        x = fixed(N, L, D).requires_grad_()
        y = block(x, valid_tokens)
        gradients = torch.autograd.grad((y * fixed(N, L, D, seed=1)).sum(), [x, *block.parameters()])
        results.append([y.detach(), *gradients])
    for plain, due in zip(*results, strict=True):
        torch.testing.assert_close(plain, due, atol=1e-11, rtol=0)


def test_it_drops_at_each_site_of_the_block(fixed, alike):
    plain, block = (one.train() for one in alike(Plain, PreNorm, dropout=0.5))
    x = fixed(N, L, D)
    for site in ("self_attn.dropout", "dropout_hidden", "dropout_attended", "dropout_z"):
        for one in (plain, block):
            for dropout in ("self_attn.dropout", "dropout_hidden", "dropout_attended", "dropout_z"):
                one.get_submodule(dropout).p = 0.5 * (dropout == site)
        y = [one(x) for one in (plain, plain, block, block)]
        assert (y[0] != y[1]).any() and (y[2] != y[3]).any()


@pytest.mark.usefixtures("as_readers_run_it")
def test_it_holds_x_and_the_mask_to_the_same_contracts(fixed, alike):
    plain, _ = alike(Plain, PreNorm)
    with pytest.raises(ValueError, match=r"^x must be floating \[N, L, D\] = \[N, L, 21\]; got float64 \[2, 5, 7\]"):
        plain(fixed(2, 5, 7))
    with pytest.raises(ValueError, match=r"^valid_tokens must be bool \[N, L\] = \[2, 5\]; got float32 \[2, 5\]"):
        plain(fixed(N, L, D), VALID.float())
    with pytest.raises(ValueError, match=r"rows \[0, 1\] are all padding"):
        plain(fixed(N, L, D), torch.zeros_like(VALID))
