import math
from fractions import Fraction
from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.norms import LayerNorm, RMSNorm, gemma_rms_norm, layer_norm, llama_rms_norm, rms_norm
from oneblock.trace import record

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}
SHAPES = [(5,), (1, 7), (3, 5), (2, 3, 7), (3, 2, 5, 61)]
EPS = [0.0, 1e-12, 1e-5, 1e-1]
without_the_check_of_signatures = pytest.mark.usefixtures("as_readers_run_it")


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


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("ours, theirs", [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_the_modules_exchange_their_state_with_torchs(fixed, ours, theirs, affine):
    x = fixed(2, 3, 7)
    due = theirs(7, elementwise_affine=affine).double()
    for seed, parameter in enumerate(due.parameters(), start=1):
        parameter.data = fixed(7, seed=seed)
    module = ours(7, affine=affine).double()
    module.load_state_dict(due.state_dict())
    torch.testing.assert_close(module(x), due(x), atol=1e-12, rtol=0)
    due.load_state_dict(module.state_dict())


@pytest.mark.parametrize("ours, theirs", [(LayerNorm, nn.LayerNorm), (RMSNorm, nn.RMSNorm)])
def test_a_fresh_module_has_torchs_epsilon_and_changes_nothing_by_its_parameters(fixed, ours, theirs):
    x = 1e-3 * fixed(2, 3, 7, dtype=torch.float32)
    torch.testing.assert_close(ours(7)(x), theirs(7)(x), atol=1e-6, rtol=1e-6)


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


# Edges.


def test_a_constant_row_gives_beta_and_a_slope_of_size_one_over_root_epsilon(fixed):
    x = torch.full((5,), 3.0, dtype=torch.float64, requires_grad=True)
    beta = fixed(5)
    assert torch.equal(layer_norm(x, fixed(5, seed=1), beta), beta)
    slope = torch.func.jacrev(layer_norm)(x)[0, 0].item()
    assert slope == pytest.approx((1 - 1 / 5) / math.sqrt(1e-5))


def test_one_feature_always_gives_beta(fixed):
    assert torch.equal(layer_norm(fixed(3, 1), torch.tensor([2.0]), torch.tensor([0.25])), torch.full((3, 1), 0.25).double())


@pytest.mark.parametrize("x", [[5.0, 5.0, 5.0], [0.0, 0.0, 0.0]])
def test_a_constant_row_without_epsilon_is_nan_as_in_torch(x):
    x = torch.tensor(x)
    assert layer_norm(x, eps=0).isnan().all() and functional.layer_norm(x, (3,), eps=0).isnan().all()


def test_a_zero_row_under_rms_norm_is_zero_and_without_epsilon_nan_as_in_torch():
    x = torch.zeros(3)
    assert rms_norm(x).tolist() == [0, 0, 0]
    assert rms_norm(x, eps=0).isnan().all() and functional.rms_norm(x, (3,), eps=0).isnan().all()


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_infinity_and_nan_in_a_row_come_out_as_in_torch_and_stay_in_that_row(odd):
    x = torch.tensor([[1.0, odd, 2.0], [1.0, 3.0, 8.0]])
    for ours, theirs in [(layer_norm, functional.layer_norm), (rms_norm, functional.rms_norm)]:
        torch.testing.assert_close(ours(x), theirs(x, (3,)), equal_nan=True)
        assert ours(x)[1].isfinite().all()


def test_an_empty_batch_gives_an_empty_batch():
    assert layer_norm(torch.zeros(0, 3, 5)).shape == rms_norm(torch.zeros(0, 3, 5)).shape == (0, 3, 5)


def test_the_input_is_left_as_it_was(fixed):
    x = fixed(3, 5)
    before = x.clone()
    layer_norm(x, fixed(5), fixed(5))
    rms_norm(x, fixed(5))
    assert torch.equal(x, before)


# Half precision.


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0, 20_000.0])
def test_half_precision_is_computed_in_float32_and_rounded_once_as_in_torch(fixed, dtype, scale):
    x = (scale * fixed(3, 7, dtype=torch.float32)).to(dtype)
    gamma, beta = fixed(7, seed=1, dtype=dtype), fixed(7, seed=2, dtype=dtype)
    one_rounding = {"atol": 1e-6, "rtol": torch.finfo(dtype).eps}
    ours, due = layer_norm(x, gamma, beta), functional.layer_norm(x, (7,), gamma, beta)
    assert ours.dtype == dtype and ours.isfinite().all()
    torch.testing.assert_close(ours, due, **one_rounding)
    torch.testing.assert_close(rms_norm(x, gamma), functional.rms_norm(x, (7,), gamma), **one_rounding)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rms_norms_epsilon_is_that_of_the_dtype_it_computes_in(dtype):
    trace = record(rms_norm, torch.tensor([1e-9, 2e-9], dtype=dtype))
    due = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    assert trace["eps"].item() == due
    x = torch.tensor([1e-3, 2e-3], dtype=dtype)
    torch.testing.assert_close(rms_norm(x), functional.rms_norm(x, (2,)), atol=1e-12, rtol=torch.finfo(dtype).eps)


def test_float32_overflows_where_the_square_does_as_in_torch():
    x = torch.tensor([1e20, 2e20])
    assert rms_norm(x).tolist() == functional.rms_norm(x, (2,)).tolist() == [0, 0]


def test_llamas_order_of_casts_differs_in_half_precision_only(fixed):
    x, weight = fixed(61, 7), fixed(7, seed=1)
    torch.testing.assert_close(llama_rms_norm(x, weight), rms_norm(x, weight, 1e-6), atol=1e-15, rtol=0)
    x, weight = x.bfloat16(), weight.bfloat16()
    assert torch.equal(llama_rms_norm(x, weight), weight * functional.rms_norm(x.float(), (7,), eps=1e-6).bfloat16())
    assert not torch.equal(llama_rms_norm(x, weight), rms_norm(x, weight, 1e-6))


def test_gemmas_weight_is_its_distance_from_one_and_is_added_in_float32(fixed):
    x, weight = fixed(61, 7), fixed(7, seed=1)
    torch.testing.assert_close(gemma_rms_norm(x, torch.zeros(7)), rms_norm(x, eps=1e-6), atol=1e-15, rtol=0)
    due = functional.rms_norm(x, (7,), 1 + weight, 1e-6)
    torch.testing.assert_close(gemma_rms_norm(x, weight), due, atol=1e-12, rtol=0)
    x, weight = x.bfloat16(), weight.bfloat16()
    due = functional.rms_norm(x.float(), (7,), 1 + weight.float(), 1e-6).bfloat16()
    torch.testing.assert_close(gemma_rms_norm(x, weight), due, atol=0, rtol=torch.finfo(torch.bfloat16).eps)
    assert not torch.equal(gemma_rms_norm(x, weight), rms_norm(x, 1 + weight, 1e-6))


# torch.func.


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


# Wrong input.


@without_the_check_of_signatures
@pytest.mark.parametrize("norm", [layer_norm, rms_norm, LayerNorm(3), RMSNorm(3)])
def test_whole_numbers_are_refused(norm):
    with pytest.raises(DtypeError, match=r"^x must be floating \[\.\.\., D\].*; got int64 \[2, 3\]; "):
        norm(torch.ones(2, 3, dtype=torch.int64))


@without_the_check_of_signatures
@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_another_width_than_the_modules_is_refused(norm):
    due = r"^x must be floating \[\.\.\., D\] = \[\.\.\., 5\]; got float32 \[2, 5, 3\]; the last axis holds the features$"
    with pytest.raises(ShapeError, match=due):
        norm(5)(torch.ones(2, 5, 3))


@without_the_check_of_signatures
@pytest.mark.parametrize("norm, name", [(layer_norm, "gamma"), (layer_norm, "beta"), (rms_norm, "gamma")])
@pytest.mark.parametrize("shape", [(7,), (1,), (), (3, 5)])
def test_a_parameter_of_another_width_is_named(fixed, norm, name, shape):
    due = rf"^{name} must be floating \[D\] = \[5\]; got float64 .*; it has the sizes of x along axes \(-1,\)$"
    with pytest.raises(ShapeError, match=due):
        norm(fixed(3, 5), **{name: fixed(*shape)})


@without_the_check_of_signatures
def test_a_parameter_for_several_axes_must_have_all_their_sizes(fixed):
    due = r"^gamma must be floating \[n2, n1\] = \[3, 7\]; got float64 \[7\]; it has the sizes of x along axes \(-2, -1\)$"
    with pytest.raises(ShapeError, match=due):
        layer_norm(fixed(2, 3, 7), fixed(7), axes=(1, 2))


@without_the_check_of_signatures
@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_a_parameter_of_whole_numbers_is_named(fixed, norm):
    with pytest.raises(DtypeError, match=r"^gamma must be floating \[D\] = \[5\]; got int64 \[5\]"):
        norm(fixed(3, 5), torch.ones(5, dtype=torch.int64))


@without_the_check_of_signatures
@pytest.mark.parametrize("norm", [llama_rms_norm, gemma_rms_norm])
def test_a_weight_of_another_width_is_refused(fixed, norm):
    with pytest.raises(ShapeError, match=r"^weight must be floating \[D\] = \[5\]; got float64 \[1\]"):
        norm(fixed(3, 5), fixed(1))


@without_the_check_of_signatures
@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_an_empty_axis_is_refused(norm):
    with pytest.raises(ShapeError, match=r"^x must be floating \[\.\.\., D\] with no axis of size 0; got float32 \[3, 0\]"):
        norm(torch.zeros(3, 0))
    with pytest.raises(ShapeError, match=r"^x must be floating with no axis of size 0 among axes \(-2,\); got float32 \[0, 5\]"):
        norm(torch.zeros(0, 5), axes=(0,))


@without_the_check_of_signatures
@pytest.mark.parametrize("eps", [-1e-5, math.nan, math.inf, True, "1e-5"])
def test_an_epsilon_that_is_no_finite_number_from_zero_up_is_refused(fixed, eps):
    due = r"^eps must be a finite number ≥ 0; got"
    for call in (layer_norm, rms_norm):
        with pytest.raises(ArgumentError, match=due):
            call(fixed(5), eps=eps)
    for module in (LayerNorm, RMSNorm):
        with pytest.raises(ArgumentError, match=due):
            module(5, eps=eps)


@without_the_check_of_signatures
@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_axes_that_do_not_exist_or_repeat_are_refused(fixed, norm):
    for axes in [(), (2,), (-3,), -1, None, [-1], (True,), (1.5,)]:
        with pytest.raises(ArgumentError, match=r"^axes must be a tuple of axes of x, each from -2 to 1; got"):
            norm(fixed(3, 5), axes=axes)
    with pytest.raises(ArgumentError, match=r"^axes must be different axes of x; got \(1, -1\); x has 2 axes"):
        norm(fixed(3, 5), axes=(1, -1))


@without_the_check_of_signatures
@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("D", [0, -5, 5.0, None])
def test_a_width_that_is_no_whole_number_is_refused(norm, D):
    with pytest.raises(ArgumentError, match=r"^D must be a whole number ≥ 1; got"):
        norm(D)
