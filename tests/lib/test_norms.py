import math
from fractions import Fraction

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from oneblock.trace import record

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}
SHAPES = [(5,), (1, 7), (3, 5), (2, 3, 7), (3, 2, 5, 61)]
EPS = [0.0, 1e-12, 1e-5, 1e-1]


def value_and_gradients(function, tensors, upstream):
    """What ``function(*tensors)`` gives, and the gradient of its weighted sum by each tensor there is."""
    leaves = [None if tensor is None else tensor.clone().requires_grad_() for tensor in tensors]
    value = function(*leaves)
    value.backward(upstream)
    return [value.detach(), *(leaf.grad for leaf in leaves if leaf is not None)]


def assert_all_close(ours, theirs, dtype):
    for mine, due in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, due, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("affine", ["γ and β", "γ", "β", "neither"])
def test_layer_norm_has_torchs_value_and_gradients(fixed, dtype, shape, eps, affine):
    D = shape[-1]
    gamma = fixed(D, seed=1, dtype=dtype) if "γ" in affine else None
    beta = fixed(D, seed=2, dtype=dtype) if "β" in affine else None
    tensors, upstream = [fixed(*shape, dtype=dtype), gamma, beta], fixed(*shape, seed=3, dtype=dtype)
    ours = value_and_gradients(lambda x, g, b: layer_norm(x, g, b, eps), tensors, upstream)
    theirs = value_and_gradients(lambda x, g, b: functional.layer_norm(x, (D,), g, b, eps), tensors, upstream)
    assert_all_close(ours, theirs, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eps", [None, *EPS])
@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm_has_torchs_value_and_gradients(fixed, dtype, shape, eps, affine):
    D = shape[-1]
    gamma = fixed(D, seed=1, dtype=dtype) if affine else None
    tensors, upstream = [fixed(*shape, dtype=dtype), gamma], fixed(*shape, seed=3, dtype=dtype)
    ours = value_and_gradients(lambda x, g: rms_norm(x, g, eps), tensors, upstream)
    theirs = value_and_gradients(lambda x, g: functional.rms_norm(x, (D,), g, eps), tensors, upstream)
    assert_all_close(ours, theirs, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("axes", [(-2, -1), (-1, -2), (1, 2)])
def test_both_norms_take_several_axes_as_torch_does(fixed, dtype, axes):
    x, upstream = fixed(2, 3, 7, dtype=dtype), fixed(2, 3, 7, seed=3, dtype=dtype)
    gamma, beta = fixed(3, 7, seed=1, dtype=dtype), fixed(3, 7, seed=2, dtype=dtype)
    ours = value_and_gradients(lambda *t: layer_norm(*t, axes=axes), [x, gamma, beta], upstream)
    theirs = value_and_gradients(lambda x, g, b: functional.layer_norm(x, (3, 7), g, b), [x, gamma, beta], upstream)
    assert_all_close(ours, theirs, dtype)
    ours = value_and_gradients(lambda *t: rms_norm(*t, axes=axes), [x, gamma], upstream)
    theirs = value_and_gradients(lambda x, g: functional.rms_norm(x, (3, 7), g), [x, gamma], upstream)
    assert_all_close(ours, theirs, dtype)


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_an_axis_that_is_not_the_last_is_that_axis_turned_last(fixed, norm):
    x, gamma = fixed(2, 3, 7), fixed(3, seed=1)
    torch.testing.assert_close(norm(x, gamma, axes=(1,)), norm(x.mT, gamma).mT, atol=1e-15, rtol=0)


def test_layer_norm_can_be_without_beta_alone_as_torchs_can(fixed, run):
    due = nn.LayerNorm(7, bias=False).double()
    module = LayerNorm(7, bias=False).double()
    due.weight.data = fixed(7, seed=1)
    module.load_state_dict(due.state_dict())
    torch.testing.assert_close(run(module, fixed(2, 3, 7)), due(fixed(2, 3, 7)), atol=1e-12, rtol=0)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("ours, theirs", [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_the_modules_exchange_their_state_with_torchs(fixed, run, ours, theirs, affine):
    x = fixed(2, 3, 7)
    due = theirs(7, elementwise_affine=affine).double()
    for seed, parameter in enumerate(due.parameters(), start=1):
        parameter.data = fixed(7, seed=seed)
    module = ours(7, affine=affine).double()
    module.load_state_dict(due.state_dict())
    torch.testing.assert_close(run(module, x), due(x), atol=1e-12, rtol=0)
    due.load_state_dict(module.state_dict())


@pytest.mark.parametrize("ours, theirs", [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_a_fresh_module_has_torchs_epsilon_and_changes_nothing_by_its_parameters(fixed, run, ours, theirs):
    x = 1e-3 * fixed(2, 3, 7, dtype=torch.float32)
    torch.testing.assert_close(run(ours(7), x), theirs(7)(x), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("ours, theirs", [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_a_module_uses_the_epsilon_it_was_given(fixed, run, ours, theirs):
    x = fixed(2, 3, 7, dtype=torch.float32)
    torch.testing.assert_close(run(ours(7, eps=0.5), x), theirs(7, eps=0.5)(x), atol=1e-6, rtol=1e-6)


def test_a_module_tells_its_settings():
    assert repr(LayerNorm(5, eps=0.1)) == "LayerNorm(D=5, eps=0.1, affine=True)"
    assert repr(RMSNorm(5, affine=False)) == "RMSNorm(D=5, eps=None, affine=False)"


def test_training_and_inference_are_the_same_and_nothing_is_remembered(fixed):
    module, x = LayerNorm(7).double(), fixed(2, 3, 7)
    first = module.train()(x)
    module(100 + 5 * x)
    assert torch.equal(module.eval()(x), first)
    assert list(module.state_dict()) == ["weight", "bias"]


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_a_row_is_measured_by_its_own_numbers(fixed, norm):
    x = fixed(3, 2, 7)
    together = norm(x)
    assert torch.equal(norm(x[:1]), together[:1]), "the batch matters"
    assert torch.equal(norm(x[:, :1]), together[:, :1]), "the other tokens matter"


# By hand, in fractions.


def by_hand(x, centre):
    x = [Fraction(number) for number in x]
    mean = sum(x) / len(x) if centre else Fraction(0)
    square = sum((number - mean) ** 2 for number in x) / len(x)
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    assert root**2 == square, "choose numbers whose deviation is a fraction"
    return [(number - mean) / root for number in x]


@pytest.mark.parametrize("x", [[1, 3], [2, 4], [1, Fraction(1, 2)], [Fraction(3, 2), Fraction(5, 2)], [-1, 5, 5, 7]])
def test_layer_norm_agrees_with_fractions(x):
    due = [float(number) for number in by_hand(x, centre=True)]
    row = torch.tensor([float(number) for number in x], dtype=torch.float64)
    assert layer_norm(row, eps=0).tolist() == pytest.approx(due, abs=1e-15)


@pytest.mark.parametrize("x", [[1, 7], [-1, 5, 5, 7]])
def test_rms_norm_agrees_with_fractions(x):
    due = [float(number) for number in by_hand(x, centre=False)]
    row = torch.tensor([float(number) for number in x], dtype=torch.float64)
    assert rms_norm(row, eps=0).tolist() == pytest.approx(due, abs=1e-15)


def test_one_and_three_step_by_step():
    trace = record(layer_norm, torch.tensor([1.0, 3.0], dtype=torch.float64), eps=0.0)
    steps = {name: trace[name].tolist() for name in ("mean", "centred", "squares", "variance", "std", "ln")}
    due = {"mean": [2], "centred": [-1, 1], "squares": [1, 1], "variance": [1], "std": [1], "ln": [-1, 1]}
    assert steps == due


def test_four_numbers_with_mean_four_deviation_three_and_rms_five():
    x = torch.tensor([-1.0, 5.0, 5.0, 7.0], dtype=torch.float64)
    trace = record(layer_norm, x, eps=0.0)
    assert (trace["mean"].item(), trace["std"].item()) == (4, 3)
    assert record(rms_norm, x, eps=0.0)["rms"].item() == 5


def test_one_and_three_with_epsilon_a_hundred_thousandth():
    x = torch.tensor([1.0, 3.0], dtype=torch.float64)
    assert layer_norm(x, eps=1e-5).tolist() == pytest.approx([-0.999995, 0.999995], abs=5e-7)
    assert rms_norm(x, eps=1e-5).tolist() == pytest.approx([0.447213, 1.341639], abs=5e-7)
    assert rms_norm(x, eps=0).tolist() == pytest.approx([1 / math.sqrt(5), 3 / math.sqrt(5)], abs=1e-15)


# torch.func.


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # within jacfwd
@pytest.mark.parametrize("ours, theirs", [(layer_norm, functional.layer_norm), (rms_norm, functional.rms_norm)])
def test_both_norms_work_under_torch_func(fixed, ours, theirs):
    x, gamma = fixed(3, 7), fixed(7, seed=1)
    torch.testing.assert_close(torch.vmap(ours, (0, None))(x, gamma), ours(x, gamma), atol=1e-15, rtol=0)
    jacobians = torch.vmap(torch.func.jacrev(ours), (0, None))(x, gamma)
    due = torch.stack([torch.autograd.functional.jacobian(lambda r: theirs(r, (7,), gamma), row) for row in x])
    torch.testing.assert_close(jacobians, due, atol=1e-12, rtol=0)
    torch.testing.assert_close(torch.func.jacfwd(ours)(x[0]), torch.func.jacrev(ours)(x[0]), atol=1e-12, rtol=0)


@pytest.mark.parametrize("module", [LayerNorm(5), RMSNorm(5)], ids=["LayerNorm", "RMSNorm"])
def test_the_gradients_pass_finite_differences(fixed, module):
    assert torch.autograd.gradcheck(module.double(), fixed(3, 5).requires_grad_())
