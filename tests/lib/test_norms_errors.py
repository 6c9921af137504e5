"""What is refused, by the library's own messages."""

import math

import pytest
import torch

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.norms import LayerNorm, RMSNorm, gemma_rms_norm, layer_norm, llama_rms_norm, rms_norm

pytestmark = pytest.mark.usefixtures("as_readers_run_it")



@pytest.mark.parametrize("norm", [layer_norm, rms_norm, LayerNorm(3), RMSNorm(3)])
def test_whole_numbers_are_refused(norm):
    with pytest.raises(DtypeError, match=r"^x must be floating \[\.\.\., D\].*; got int64 \[2, 3\]; "):
        norm(torch.ones(2, 3, dtype=torch.int64))


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_another_width_than_the_modules_is_refused(norm):
    due = r"^x must be floating \[\.\.\., D\] = \[\.\.\., 5\]; got float32 \[2, 5, 3\]; the last axis holds the features$"
    with pytest.raises(ShapeError, match=due):
        norm(5)(torch.ones(2, 5, 3))


@pytest.mark.parametrize("norm, name", [(layer_norm, "gamma"), (layer_norm, "beta"), (rms_norm, "gamma")])
@pytest.mark.parametrize("shape", [(7,), (1,), (), (3, 5)])
def test_a_parameter_of_another_width_is_named(fixed, norm, name, shape):
    due = rf"^{name} must be floating \[D\] = \[5\]; got float64 .*; it has the sizes of x along axes \(-1,\)$"
    with pytest.raises(ShapeError, match=due):
        norm(fixed(3, 5), **{name: fixed(*shape)})


def test_a_parameter_for_several_axes_must_have_all_their_sizes(fixed):
    due = r"^gamma must be floating \[n2, n1\] = \[3, 7\]; got float64 \[7\]; it has the sizes of x along axes \(-2, -1\)$"
    with pytest.raises(ShapeError, match=due):
        layer_norm(fixed(2, 3, 7), fixed(7), axes=(1, 2))


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_a_parameter_of_whole_numbers_is_named(fixed, norm):
    with pytest.raises(DtypeError, match=r"^gamma must be floating \[D\] = \[5\]; got int64 \[5\]"):
        norm(fixed(3, 5), torch.ones(5, dtype=torch.int64))


@pytest.mark.parametrize("norm", [llama_rms_norm, gemma_rms_norm])
def test_a_weight_of_another_width_is_refused(fixed, norm):
    with pytest.raises(ShapeError, match=r"^weight must be floating \[D\] = \[5\]; got float64 \[1\]"):
        norm(fixed(3, 5), fixed(1))


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_an_empty_axis_is_refused(norm):
    with pytest.raises(ShapeError, match=r"^x must be floating \[\.\.\., D\] with no axis of size 0; got float32 \[3, 0\]"):
        norm(torch.zeros(3, 0))
    with pytest.raises(ShapeError, match=r"^x must be floating with no axis of size 0 among axes \(-2,\); got float32 \[0, 5\]"):
        norm(torch.zeros(0, 5), axes=(0,))
    for shape in [(2, 0, 5), (2, 3, 0)]:
        with pytest.raises(ShapeError, match=r"^x must be floating .*no axis of size 0.*; got float32 \[2, "):
            norm(torch.zeros(shape), axes=(-2, -1))


@pytest.mark.parametrize("eps", [-1e-5, math.nan, math.inf, True, "1e-5"])
def test_an_epsilon_that_is_no_finite_number_from_zero_up_is_refused(fixed, eps):
    due = r"^eps must be a finite number ≥ 0; got"
    for call in (layer_norm, rms_norm):
        with pytest.raises(ArgumentError, match=due):
            call(fixed(5), eps=eps)
    for module in (LayerNorm, RMSNorm):
        with pytest.raises(ArgumentError, match=due):
            module(5, eps=eps)


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_axes_that_do_not_exist_or_repeat_are_refused(fixed, norm):
    for axes in [(), (2,), (-3,), -1, None, [-1], (True,), (1.5,), (-1.0,)]:
        with pytest.raises(ArgumentError, match=r"^axes must be a tuple of axes of x, each from -2 to 1; got"):
            norm(fixed(3, 5), axes=axes)
    with pytest.raises(ArgumentError, match=r"^axes must be different axes of x; got \(1, -1\); x has 2 axes"):
        norm(fixed(3, 5), axes=(1, -1))


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("D", [0, -5, 5.0, None])
def test_a_width_that_is_no_whole_number_is_refused(norm, D):
    with pytest.raises(ArgumentError, match=r"^D must be a whole number ≥ 1; got"):
        norm(D)


def test_a_switch_is_true_or_false():
    for call in (lambda: LayerNorm(5, affine=1), lambda: RMSNorm(5, affine=1)):
        with pytest.raises(ArgumentError, match=r"^affine must be True or False; got 1$"):
            call()
    with pytest.raises(ArgumentError, match=r"^bias must be True or False; got None$"):
        LayerNorm(5, bias=None)


@pytest.mark.parametrize("norm, name", [(LayerNorm, "weight"), (LayerNorm, "bias"), (RMSNorm, "weight")])
@pytest.mark.parametrize("dtype, of_x", [(torch.float64, "float32"), (torch.float64, "float16"), (torch.float16, "float32")])
def test_a_parameter_of_another_precision_is_named(fixed, norm, name, dtype, of_x):
    module, x = norm(5), fixed(3, 5, dtype=getattr(torch, of_x))
    module.get_parameter(name).data = torch.ones(5, dtype=dtype)
    due = rf"^{name} must be {of_x}, the dtype of x; got {str(dtype)[6:]} \[5\]; bring the module and its input to one dtype$"
    with pytest.raises(DtypeError, match=due):
        module(x)
