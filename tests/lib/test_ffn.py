from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.activations import ACTIVATIONS
from oneblock.costs import ffn_parameters, gated_ffn_parameters
from oneblock.ffn import FFN, SwiGLU, ffn, matched_width, swiglu
from oneblock.residual import residual
from oneblock.trace import record

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}
TORCH = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "silu": nn.SiLU()}
SHAPES = [(3,), (1, 3), (7, 3), (2, 7, 3)]
F = 5


@pytest.fixture(params=[FFN, SwiGLU], ids=["FFN", "SwiGLU"])
def module(request, fixed):
    """A network 3 → 5 → 3 with fixed parameters and, where it can have one, an activation without dead zones."""
    module = FFN(3, F, activation="gelu") if request.param is FFN else SwiGLU(3, F, bias=True)
    for seed, parameter in enumerate(module.parameters(), start=1):
        parameter.data = fixed(*parameter.shape, seed=seed) / 2
    return module


def summed(x, W, b):
    """``W x + b`` by another route than ``linear``: every product, then the sum."""
    return (x[..., None, :] * W).sum(-1) + (0 if b is None else b)


def torchs_ffn(x, W1, b1, W2, b2, activation):
    return summed(TORCH[activation](summed(x, W1, b1)), W2, b2)


def torchs_swiglu(x, W_gate, W_up, W_down, b_gate, b_up, b_down):
    gated = functional.silu(summed(x, W_gate, b_gate)) * summed(x, W_up, b_up)
    return summed(gated, W_down, b_down)


def assert_same_value_and_gradients(ours, theirs, tensors, upstream):
    results = []
    for function in (ours, theirs):
        leaves = [None if tensor is None else tensor.clone().requires_grad_() for tensor in tensors]
        value = function(*leaves)
        value.backward(upstream)
        results.append([value.detach(), *(leaf.grad for leaf in leaves if leaf is not None)])
    tolerance = TOLERANCE[upstream.dtype]
    for mine, due in zip(*results, strict=True):
        torch.testing.assert_close(mine, due, atol=tolerance, rtol=tolerance)


def in_dtype(tensors, dtype):
    return [None if tensor is None else tensor.to(dtype) for tensor in tensors]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", ["both", "first", "second", "none"])
def test_ffn_is_two_sums_of_products_around_torchs_activation(fixed, ffn_weights, dtype, shape, activation, bias):
    W1, b1, W2, b2 = ffn_weights
    b1, b2 = (b1 if bias in ("both", "first") else None), (b2 if bias in ("both", "second") else None)
    tensors = in_dtype([fixed(*shape), W1, b1, W2, b2], dtype)
    assert_same_value_and_gradients(
        lambda *t: ffn(*t, activation),
        lambda *t: torchs_ffn(*t, activation),
        tensors,
        fixed(*shape, seed=9, dtype=dtype),
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_swiglu_is_three_sums_of_products_around_torchs_silu(fixed, swiglu_weights, dtype, shape, bias):
    parameters = swiglu_weights if bias else swiglu_weights[:3] + [None] * 3
    tensors = in_dtype([fixed(*shape), *parameters], dtype)
    assert_same_value_and_gradients(swiglu, torchs_swiglu, tensors, fixed(*shape, seed=9, dtype=dtype))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_module_takes_the_parameters_of_torchs_encoder_layer_and_agrees(fixed, activation, bias):
    layer = nn.TransformerEncoderLayer(6, 1, F, activation=activation, bias=bias, dtype=torch.float64).eval()
    module = FFN(6, F, activation=activation, bias=bias).double()
    module.load_state_dict({name: value for name, value in layer.state_dict().items() if "linear" in name})
    x = fixed(2, 7, 6)
    torch.testing.assert_close(module(x), layer._ff_block(x), atol=1e-12, rtol=0)


def test_the_swiglu_module_is_the_function_of_its_parameters(fixed, swiglu_weights):
    module = SwiGLU(3, F, bias=True).double()
    W_gate, W_up, W_down, b_gate, b_up, b_down = swiglu_weights
    names = ("gate_proj", "up_proj", "down_proj")
    state = dict(zip([f"{name}.weight" for name in names], (W_gate, W_up, W_down), strict=True))
    state |= dict(zip([f"{name}.bias" for name in names], (b_gate, b_up, b_down), strict=True))
    module.load_state_dict(state)
    x = fixed(2, 7, 3)
    torch.testing.assert_close(module(x), torchs_swiglu(x, *swiglu_weights), atol=1e-12, rtol=0)


# By hand.

BY_HAND = [[[1.0, -1.0], [0.5, 0.5]], [0.0, 0.0], [[2.0, 0.0], [0.0, -1.0]], [0.0, 0.0]]


@pytest.mark.parametrize(
    "x, h, a, z, y",
    [
        ([1, 2], [-1, 1.5], [0, 1.5], [0, -1.5], [1, 0.5]),
        ([-1, 1], [-2, 0], [0, 0], [0, 0], [-1, 1]),
        ([2, -1], [3, 0.5], [3, 0.5], [6, -0.5], [8, -1.5]),
    ],
)
def test_the_example_worked_by_hand(x, h, a, z, y):
    x = torch.tensor(x, dtype=torch.float64)
    weights = [torch.tensor(weight, dtype=torch.float64) for weight in BY_HAND]
    trace = record(lambda row: residual(row, ffn(row, *weights)), x)
    assert trace.names == ("h", "a", "z", "y")
    assert [trace[name].tolist() for name in trace.names] == [h, a, z, y]
    assert trace.step("y").formula == "x + z"


def test_with_unit_projections_swiglu_is_silu_of_x_times_x():
    eye = torch.eye(2, dtype=torch.float64)
    z = swiglu(torch.tensor([1.0, 2.0], dtype=torch.float64), eye, eye.clone(), eye.clone())
    assert z.tolist() == pytest.approx([0.731059, 3.523188], abs=5e-7)


# Positions.


def test_a_position_reads_no_other(fixed, module):
    x = fixed(2, 7, 3)
    jacobian = torch.func.jacrev(module)(x)
    for n, i, m, j in product(range(2), range(7), range(2), range(7)):
        reads = jacobian[n, i, :, m, j].abs().max() > 0
        assert reads == ((n, i) == (m, j))


def test_every_position_goes_through_the_same_function(fixed):
    module, row = FFN(3, F).double(), fixed(3)
    z = module(row.expand(2, 7, 3).contiguous())
    torch.testing.assert_close(z, module(row).expand(2, 7, 3), atol=1e-15, rtol=0)


def test_both_work_under_torch_func_and_pass_finite_differences(fixed, module):
    x = fixed(7, 3)
    torch.testing.assert_close(torch.vmap(module)(x), module(x), atol=1e-15, rtol=0)
    assert torch.autograd.gradcheck(module, x.requires_grad_())


# Dropout and precision.


def test_dropout_acts_on_the_activations_in_training_only(fixed):
    module, x = FFN(3, 61, dropout=0.5).double(), fixed(3)
    assert record(module.eval(), x).names == ("h", "a", "z")
    torch.manual_seed(0)
    trace = record(module.train(), x)
    assert trace.names == ("h", "a", "a_dropped", "z")
    assert trace.step("a_dropped").formula == "Dropout(a)" and trace.step("z").reads["a"] == "a_dropped"
    kept = trace["a_dropped"] != 0
    assert 0 < kept.sum() < (trace["a"] != 0).sum()
    assert torch.equal(trace["a_dropped"][kept], 2 * trace["a"][kept])


def test_without_a_rate_training_and_inference_are_the_same(fixed):
    module, x = FFN(3, F).double(), fixed(3)
    assert torch.equal(module.train()(x), module.eval()(x))


def test_half_precision_stays_half_and_close(fixed, module):
    x = fixed(7, 3, dtype=torch.float32)
    due, half = module.float()(x), module.bfloat16()(x.bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), due, atol=0.05, rtol=0.05)


def test_autocast_mixes_precisions_as_it_does_in_torch(fixed):
    x, module = fixed(7, 3, dtype=torch.float32), FFN(3, F)
    same = nn.Sequential(module.linear1, nn.ReLU(), module.linear2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, due = module(x), same(x)
    assert due.dtype == torch.bfloat16 and torch.equal(ours, due)


# Sizes.


@pytest.mark.parametrize("D, F", [(512, 2048), (64, 256), (7, 11), (3, 5)])
def test_two_thirds_of_the_width_give_the_gated_network_as_many_parameters(D, F):
    assert abs(gated_ffn_parameters(D, matched_width(F)) - ffn_parameters(D, F, bias=False)) <= D


def test_the_counts_of_a_common_size():
    assert ffn_parameters(512, 2048, bias=False) == 2_097_152
    assert matched_width(2048) == 1365 and gated_ffn_parameters(512, 1365) == 2_096_640
