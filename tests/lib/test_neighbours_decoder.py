"""The decoder block against torch's decoder layer, in value and gradient; and one position at a time."""

import pytest
import torch
from torch import nn

from oneblock.dependency import reach
from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.jacobians import jacobian
from oneblock.neighbours import DecoderBlock
from oneblock.neighbours.causal import causal
from oneblock.trace import record

N, L, J, D, H, F = 2, 5, 7, 33, 3, 11
VALID, MEMORY = torch.tensor([[True, False, True, False, False], [True] * L]), torch.arange(J) < torch.tensor([[J], [4]])
LATER = torch.ones(L, L, dtype=torch.bool).triu(1)


@pytest.fixture
def block(filled):
    return filled(DecoderBlock(D, H, F))


def torchs(block, **options):
    layer = nn.TransformerDecoderLayer(D, H, F, 0.0, "gelu", batch_first=True, norm_first=True, **options)
    layer.load_state_dict(block.state_dict())
    return layer.eval()


def outcome(value, inputs, module, upstream):
    parameters = [p for _, p in sorted(module.named_parameters())]
    return [value, *torch.autograd.grad(value, [*inputs, *parameters], upstream)]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 5e-5)], ids=["float64", "float32"])
@pytest.mark.parametrize("padded", ["nothing", "x", "memory", "both"])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_torchs_decoder_layer_in_value_and_gradient(fixed, run, filled, bias, padded, dtype, tolerance):
    block = filled(DecoderBlock(D, H, F, bias=bias)).to(dtype)
    layer = torchs(block, bias=bias, dtype=dtype)
    valid_tokens = VALID if padded in ("x", "both") else None
    valid_memory = MEMORY if padded in ("memory", "both") else None
    real = VALID | True if valid_tokens is None else VALID
    ours, theirs = ([fixed(N, rows, D, dtype=dtype, seed=rows).requires_grad_() for rows in (L, J)] for _ in range(2))
    y = run(block, *ours, valid_tokens, valid_memory)[real]
    masks = {"tgt_mask": LATER, "tgt_key_padding_mask": None if valid_tokens is None else ~valid_tokens}
    masks["memory_key_padding_mask"] = None if valid_memory is None else ~valid_memory
    z = layer(*theirs, **masks)[real]
    upstream = fixed(*y.shape, seed=9, dtype=dtype)
    for came, due in zip(outcome(y, ours, block, upstream), outcome(z, theirs, layer, upstream), strict=True):
        torch.testing.assert_close(came, due, atol=tolerance, rtol=tolerance)


def test_it_reads_its_own_past_and_the_whole_memory(fixed, filled):
    block = filled(DecoderBlock(6, 2, 5))
    x, memory = fixed(N, L, 6), fixed(N, J, 6, seed=3)
    assert torch.equal(reach(lambda x: block(x, memory), x).positions, causal(L))
    moves = jacobian(lambda memory: block(x, memory), memory) != 0
    assert torch.equal(moves.sum(dim=(1, 2, 4, 5)).bool(), torch.eye(N).bool())
    assert moves.sum(dim=(0, 2, 3, 5)).bool().all()


@pytest.mark.parametrize("valid_memory", [None, MEMORY], ids=["whole memory", "padded memory"])
def test_one_position_at_a_time_it_gives_what_it_gives_for_all_at_once(fixed, block, valid_memory):
    x, memory, past = fixed(N, L, D), fixed(N, J, D, seed=3), None
    due, handed = block(x, memory, valid_memory=valid_memory), block.hand_over(memory)
    for t in range(L):
        y, past = block.next(x[:, t : t + 1], handed, past, valid_memory)
        torch.testing.assert_close(y, due[:, t : t + 1], atol=1e-12, rtol=1e-12)


def test_each_branch_has_its_dropout_in_training(fixed):
    block = DecoderBlock(D, H, F, dropout=0.3)
    rates = {name: part.p for name, part in block.named_modules() if isinstance(part, nn.Dropout)}
    branches = ["dropout_attended", "dropout_crossed", "dropout_hidden", "dropout_z", "multihead_attn.dropout", "self_attn.dropout"]
    assert sorted(rates) == branches and set(rates.values()) == {0.3}
    block.double(), block.self_attn.out_proj.weight.data.zero_(), block.linear2.weight.data.zero_()
    for part in block.modules():
        if isinstance(part, nn.Dropout) and part is not block.dropout_crossed:
            part.p = 0.0
    x, memory = fixed(N, L, D), fixed(N, J, D, seed=3)
    assert not torch.equal(block(x, memory), block(x, memory))
    assert torch.equal(block.eval()(x, memory), block(x, memory))


def test_a_trace_has_three_norms_and_three_sums(fixed, block):
    names = record(block, fixed(N, L, D), fixed(N, J, D)).names
    stops = [name for name in names if name.endswith((".ln", ".y"))]
    assert stops == ["norm1.ln", "sum1.y", "norm2.ln", "sum2.y", "norm3.ln", "sum3.y"]


@pytest.mark.usefixtures("as_readers_run_it")
def test_broken_contracts_are_named(fixed, block):
    x, memory = fixed(N, L, D), fixed(N, J, D)
    with pytest.raises(ShapeError, match=r"^memory must be floating \[N, J, D\] = \[2, J, 33\]; got .*; the memory is an encoder's"):
        block(x, memory[:1])
    with pytest.raises(ShapeError, match=r"^memory must be floating \[N, J, D\] = \[N, J, 33\]; got float64 \[2, 7, 5\]"):
        block.hand_over(fixed(N, J, 5))
    with pytest.raises(ArgumentError, match=r"^memory must be finite; got .*; every position reads it"):
        block(x, memory.clone().index_fill_(1, torch.tensor([2]), torch.nan))
    with pytest.raises(DtypeError, match=r"^valid_memory must be bool \[N, L\] = \[2, 7\]; got float64"):
        block(x, memory, valid_memory=MEMORY.double())
    with pytest.raises(ArgumentError, match=r"^valid_memory must be .*; rows \[0\] are all padding"):
        block(x, memory, valid_memory=MEMORY & torch.tensor([[False], [True]]))
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, 1, D\]"):
        block.next(x, block.hand_over(memory))
