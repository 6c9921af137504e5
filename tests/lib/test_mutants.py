import pytest
import torch
from torch import nn

from oneblock.blocks import PostNorm, PreNorm
from oneblock.mutants import NormAfterSum
from oneblock.trace import record

N, L, D, H, F = 2, 5, 6, 3, 11
VALID = torch.tensor([[True, True, True, False, False], [True] * L])


@pytest.fixture
def layer(fixed):
    """torch's layer with no parameter at its start value."""
    layer = nn.TransformerEncoderLayer(D, H, F, dropout=0.0, activation="gelu", batch_first=True, dtype=torch.float64)
    for seed, (name, parameter) in enumerate(layer.named_parameters()):
        parameter.data = fixed(*parameter.shape, seed=seed) / 2 + (name in ("norm1.weight", "norm2.weight"))
    return layer


def copied(kind, layer):
    block = kind(D, H, F).double()
    block.load_state_dict(layer.state_dict())
    return block


def test_half_of_it_is_pre_norm_and_half_post_norm(fixed, layer):
    """From torch's own parts, in the order that the docstring writes."""
    x, padding = fixed(N, L, D), ~VALID
    u = x + layer._sa_block(layer.norm1(x), None, padding)
    due = layer.norm2(u + layer._ff_block(u))
    torch.testing.assert_close(copied(NormAfterSum, layer)(x, VALID), due, atol=1e-12, rtol=0)


def test_it_is_neither_of_the_two_with_the_very_same_parameters(fixed, layer):
    x = fixed(N, L, D)
    y = {kind: copied(kind, layer)(x) for kind in (PreNorm, PostNorm, NormAfterSum)}
    assert {value.shape for value in y.values()} == {x.shape}
    for kind in (PreNorm, PostNorm):
        assert (y[NormAfterSum] - y[kind]).abs().max() > 0.1


def test_where_its_norms_stand(fixed, layer):
    trace = record(copied(NormAfterSum, layer), fixed(N, L, D))
    assert trace.step("norm1.mean").reads == {"x": "x"} and trace.step("q").reads["x"] == "norm1.ln"
    assert trace.step("sum1.y").reads == {"x": "x", "increment": "attended"}
    assert trace.step("h").reads["x"] == "sum1.y" and trace.step("sum2.y").reads == {"x": "sum1.y", "increment": "z"}
    assert trace.step("norm2.mean").reads == {"x": "sum2.y"} and torch.equal(trace.result, trace["norm2.ln"])


@pytest.mark.usefixtures("as_readers_run_it")
def test_its_input_is_held_to_the_same_contract(fixed, layer):
    with pytest.raises(ValueError, match=r"^x must be floating \[N, L, D\] = \[N, L, 6\]; got float64 \[2, 5, 7\]"):
        copied(NormAfterSum, layer)(fixed(2, 5, 7))
