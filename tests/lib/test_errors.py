import math

import pytest
import torch
from jaxtyping import TypeCheckError, config

from oneblock.blocks import PreNorm
from oneblock.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    check_dtype,
    check_finite,
    check_eps,
    check_flag,
    check_probability,
    check_size,
    check_tensor,
    describe,
)
from oneblock.norms import layer_norm

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def test_a_message_says_the_rule_then_what_came_then_what_to_do():
    error = DtypeError("valid_tokens", "bool [N, L] = [2, 6]", torch.zeros(2, 6), "compare your ids with the padding id")
    due = "valid_tokens must be bool [N, L] = [2, 6]; got float32 [2, 6]; compare your ids with the padding id"
    assert str(error) == due
    assert error.argument == "valid_tokens"


def test_a_message_without_advice_ends_with_what_came():
    assert str(ArgumentError("eps", "a finite number ≥ 0", -1.0)) == "eps must be a finite number ≥ 0; got -1.0"


def test_every_error_is_a_value_error_and_a_wrong_dtype_a_type_error_too():
    assert issubclass(ShapeError, ValueError) and issubclass(DtypeError, ValueError)
    assert issubclass(DtypeError, TypeError) and not issubclass(ShapeError, TypeError)


def test_a_long_value_is_described_in_few_words():
    assert len(describe(list(range(10_000)))) < 60
    assert describe(torch.zeros(2, 3, dtype=torch.int64)) == "int64 [2, 3]"
    assert describe("gleu") == "'gleu'"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_floating_tensor_of_the_right_sizes_passes(dtype):
    check_tensor("x", torch.zeros(2, 3, 5, dtype=dtype), "... D", D=5)
    check_tensor("x", torch.zeros(5, dtype=dtype), "... D", D=5)
    check_tensor("x", torch.zeros((), dtype=dtype), "...")


def test_an_empty_batch_passes_since_no_named_axis_is_empty():
    check_tensor("x", torch.zeros(0, 3, 5), "... D")


@pytest.mark.parametrize("value", [torch.zeros(5, dtype=torch.int64), torch.zeros(5, dtype=torch.bool), [1.0], None])
def test_what_is_no_floating_tensor_is_refused(value):
    with pytest.raises(DtypeError, match=r"^x must be floating \[\.\.\., D\]; got .*; .*embedding first$"):
        check_tensor("x", value, "... D")


def test_a_complex_tensor_is_refused():
    with pytest.raises(DtypeError, match=r"got complex64 \[5\]"):
        check_tensor("x", torch.zeros(5, dtype=torch.complex64), "... D")


def test_a_wrong_width_is_named_with_the_one_that_is_due():
    with pytest.raises(ShapeError, match=r"^x must be floating \[\.\.\., D\] = \[\.\.\., 5\]; got float32 \[5, 7\]$"):
        check_tensor("x", torch.zeros(5, 7), "... D", D=5)


def test_sizes_that_are_not_known_stay_letters():
    with pytest.raises(ShapeError, match=r"^W1 must be floating \[F, D\] = \[F, 5\]; got float32 \[5, 7\]; turn it$"):
        check_tensor("W1", torch.zeros(5, 7), "F D", "turn it", D=5)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 5)])
def test_a_wrong_number_of_axes_is_refused(shape):
    with pytest.raises(ShapeError, match=r"^W1 must be floating \[F, D\]; got"):
        check_tensor("W1", torch.zeros(shape), "F D")


def test_a_scalar_has_no_features():
    with pytest.raises(ShapeError, match=r"^x must be floating \[\.\.\., D\]; got float32 \[\]$"):
        check_tensor("x", torch.tensor(1.0), "... D")


def test_an_empty_axis_is_refused():
    with pytest.raises(ShapeError, match=r"^x must be floating \[\.\.\., D\] with no axis of size 0; got float32 \[3, 0\]"):
        check_tensor("x", torch.zeros(3, 0), "... D")


@pytest.mark.parametrize("eps", [-1e-5, math.nan, math.inf, -math.inf, True, "1e-5", None, torch.tensor(1e-5)])
def test_eps_is_a_finite_number_from_zero_up(eps):
    with pytest.raises(ArgumentError, match=r"^eps must be a finite number ≥ 0; got"):
        check_eps(eps)


@pytest.mark.parametrize("eps", [0, 0.0, 1e-12, 1, 0.5])
def test_whole_numbers_and_zero_are_fine_as_eps(eps):
    check_eps(eps)


@pytest.mark.parametrize("p", [-0.1, 1, 1.5, math.nan, False, "0.1"])
def test_a_dropout_rate_lies_in_zero_to_one_without_one(p):
    with pytest.raises(ArgumentError, match=r"^dropout must be a number in \[0, 1\); got"):
        check_probability("dropout", p)
    check_probability("dropout", 0)


@pytest.mark.parametrize("size", [0, -3, 2.0, True, "8", None])
def test_a_size_is_a_whole_number_from_one_up(size):
    with pytest.raises(ArgumentError, match=r"^D must be a whole number ≥ 1; got"):
        check_size("D", size)
    check_size("D", 1)


@pytest.mark.parametrize("flag", [0, 1, None, "no", torch.tensor(True)])
def test_a_switch_is_true_or_false(flag):
    with pytest.raises(ArgumentError, match=r"^bias must be True or False; got"):
        check_flag("bias", flag)
    check_flag("bias", True)
    check_flag("bias", False)


def test_another_dtype_is_refused_but_under_autocast():
    half, whole = torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2)
    with pytest.raises(DtypeError, match=r"^k must be float32, the dtype of q; got bfloat16 \[2\]; cast it$"):
        check_dtype("k", half, whole, "q", "cast it")
    check_dtype("k", whole, whole)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        check_dtype("k", half, whole)


def test_the_checks_read_no_value_so_that_they_hold_without_data():
    check_tensor("x", torch.zeros(3, 5, device="meta"), "... D", D=5)
    assert layer_norm(torch.zeros(3, 5, device="meta")).shape == (3, 5)


def test_signatures_are_checked_under_test():
    config.update("jaxtyping_disable", False)
    with pytest.raises(TypeCheckError):
        layer_norm(torch.zeros(3, 5, dtype=torch.int64))


def test_the_first_number_that_is_none_is_named_with_its_place():
    x = torch.zeros(2, 3)
    check_finite("x", x)
    x[1, 0], x[1, 2] = -math.inf, math.nan
    due = r"^x must be finite; got float32 \[2, 3\] with 2 non-finite, the first -inf at \[1, 0\]; look there$"
    with pytest.raises(ArgumentError, match=due):
        check_finite("x", x, "look there")


def test_what_stands_for_many_numbers_is_not_read():
    torch.func.vmap(lambda row: check_finite("x", row) or row)(torch.tensor([[math.nan]]))
    check_finite("x", torch.zeros(2, device="meta"))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kind", ["nested", "jagged", "sparse"])
def test_a_tensor_that_is_not_dense_is_refused(kind):
    rows = [torch.ones(2, 5), torch.ones(3, 5)]
    value = {
        "nested": lambda: torch.nested.nested_tensor(rows),
        "jagged": lambda: torch.nested.nested_tensor(rows, layout=torch.jagged),
        "sparse": lambda: torch.ones(2, 3, 5).to_sparse(),
    }[kind]()
    due = rf"^x must be floating \[N, L, D\] = \[N, L, 5\]; got a {kind.replace('jagged', 'nested')} tensor; make it dense, with padding"
    with pytest.raises(ShapeError, match=due):
        check_tensor("x", value, "N L D", D=5)
    with pytest.raises(ShapeError, match=due):
        PreNorm(5, 1, 7)(value)
