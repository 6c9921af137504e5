"""What a check does to a block does not outlast it."""

import random
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from oneblock.blocks import PreNorm
from oneblock.checks import CHECKS, diagnose, examine, guard, subject_of


@pytest.fixture
def block():
    """A block in a state of its own: mixed modes, a hook, a gradient, a frozen parameter, a buffer."""
    block = PreNorm(12, 2, 20, dropout=0.1).eval()
    block.dropout_z.train()
    block.norm1.weight.requires_grad_(False)
    block.linear1.weight.grad = torch.full_like(block.linear1.weight, 0.5)
    block.register_buffer("seen", torch.tensor([3.0]))
    return block


def state(block):
    """All that must stay, as plain data."""
    tensors = {**dict(block.named_parameters()), **dict(block.named_buffers())}
    return {
        "values": {name: value.tolist() for name, value in tensors.items()},
        "identities": {name: id(value) for name, value in tensors.items()},
        "grads": {name: None if value.grad is None else (id(value.grad), value.grad.tolist()) for name, value in tensors.items()},
        "learning": {name: value.requires_grad for name, value in tensors.items()},
        "modules": {name: (id(module), module.training, len(module._forward_hooks)) for name, module in block.named_modules()},
        "rates": [module.p for module in block.modules() if isinstance(module, nn.Dropout)],
        "attributes": {name: sorted(vars(module)) for name, module in block.named_modules()},
        "random": (torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()),
        "grad mode": torch.is_grad_enabled(),
    }


def spoil(block):
    """Everything that a careless check might do."""
    block.train()
    with torch.no_grad():
        for value in (*block.parameters(), *block.buffers()):
            value.fill_(torch.nan)
    block.requires_grad_(True)
    block.linear1.weight.grad.zero_()
    block.linear2.weight.grad = torch.ones_like(block.linear2.weight)
    block.register_forward_hook(lambda *_: None)
    block.norm2 = nn.Identity()
    block.norm1.weight = nn.Parameter(torch.zeros(12))
    block.self_attn.dropout.p, block.kept = 0.9, []
    torch.rand(3), random.random(), np.random.rand()


def test_everything_is_restored(block):
    before, draws = state(block), random.getstate()
    with guard(block):
        spoil(block)
    assert (state(block), random.getstate()) == (before, draws)


def test_everything_is_restored_after_an_exception_which_goes_on(block):
    before = state(block)
    with pytest.raises(ZeroDivisionError), guard(block):
        spoil(block)
        1 / 0
    assert state(block) == before


def test_a_hook_of_the_readers_can_still_be_removed_by_its_handle(block):
    handle = block.register_forward_hook(lambda *_: None)
    with guard(block):
        block._forward_hooks.clear()
    assert len(block._forward_hooks) == 1
    handle.remove()
    assert not block._forward_hooks


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_leaves_no_trace(block, check):
    before = state(block)
    assert examine(subject_of(block), CHECKS[check]).outcome != "crashed"
    assert state(block) == before


def test_neither_does_a_block_that_raises(block, monkeypatch):
    before = state(block)

    def fails(*given):
        spoil(block)
        raise RuntimeError("first line\nno such kernel")

    report = diagnose(block, call=fails)
    assert state(block) == before
    assert {finding.outcome for finding in report.findings} <= {"crashed", "failed", "passed", "not applicable"}
    assert report["overfit"].note == "RuntimeError: no such kernel"


def test_the_copy_that_is_kept_is_none_of_the_readers(block):
    twin = deepcopy(block)
    diagnose(block)
    assert all(torch.equal(mine, its) for mine, its in zip(block.parameters(), twin.parameters(), strict=True))
