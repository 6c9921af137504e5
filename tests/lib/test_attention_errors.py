import pytest
import torch

from oneblock.attention import MultiHeadAttention, attention
from oneblock.errors import ArgumentError, DtypeError, ShapeError

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

VALID = torch.tensor([[True, True, True, False, False], [True] * 5])


@pytest.fixture
def module():
    return MultiHeadAttention(6, 3).double()


def test_a_width_that_the_heads_cannot_share_is_refused_with_those_that_can():
    due = r"^H must be a divisor of D = 6; got 4; each head takes D/H features; fitting are 1, 2, 3, 6$"
    with pytest.raises(ArgumentError, match=due):
        MultiHeadAttention(6, 4)


@pytest.mark.parametrize("D, H, argument", [(0, 1, "D"), (6, 0, "H"), (6, 2.0, "H"), (True, 1, "D")])
def test_sizes_are_whole_and_positive(D, H, argument):
    with pytest.raises(ArgumentError, match=rf"^{argument} must be a whole number ≥ 1; got"):
        MultiHeadAttention(D, H)


def test_a_bias_is_there_or_not():
    with pytest.raises(ArgumentError, match=r"^bias must be True or False; got 0.1$"):
        MultiHeadAttention(6, 3, 0.1)


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_a_dropout_rate_leaves_something(rate):
    with pytest.raises(ArgumentError, match=r"^dropout must be a number in \[0, 1\); got"):
        MultiHeadAttention(6, 3, dropout=rate)


@pytest.mark.parametrize("shape", [(2, 5, 7), (2, 6, 5), (6,)])
def test_rows_of_another_width_are_refused(fixed, module, shape):
    due = r"^x must be floating \[\.\.\., L, D\] = \[\.\.\., L, 6\]; got float64 .*; the last axis holds the features$"
    with pytest.raises(ShapeError, match=due):
        module(fixed(*shape))


def test_ids_are_refused(module):
    with pytest.raises(DtypeError, match=r"^x must be floating .*; got int64 \[2, 5\]; .*token ids need an embedding"):
        module(torch.ones(2, 5, dtype=torch.int64))


def test_a_sequence_of_no_position_is_refused(fixed, module):
    with pytest.raises(ShapeError, match=r"^x must be .* with no axis of size 0; got float64 \[2, 0, 6\]"):
        module(fixed(2, 0, 6))


@pytest.mark.parametrize("argument", ["k", "v"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 2), (2, 3, 7, 6), (1, 3, 7, 2), (2, 1, 7, 2), (3, 7, 2)])
def test_keys_and_values_have_the_shape_of_the_queries(fixed, argument, shape):
    given = {"q": fixed(2, 3, 7, 2), "k": fixed(2, 3, 7, 2), "v": fixed(2, 3, 7, 2), argument: fixed(*shape)}
    due = rf"^{argument} must be floating \[\.\.\., L, E\] = \[2, 3, 7, 2\], the shape of q; got .*; q, k and v have one shape$"
    with pytest.raises(ShapeError, match=due):
        attention(**given)


@pytest.mark.parametrize("argument", ["k", "v"])
def test_keys_and_values_have_the_dtype_of_the_queries(fixed, argument):
    given = {"q": fixed(3, 7, 2), "k": fixed(3, 7, 2), "v": fixed(3, 7, 2), argument: fixed(3, 7, 2).float()}
    due = rf"^{argument} must be float64, the dtype of q; got float32 \[3, 7, 2\]; q, k and v have one dtype$"
    with pytest.raises(DtypeError, match=due):
        attention(**given)


@pytest.mark.parametrize("name", ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"])
def test_a_parameter_of_another_precision_is_named(fixed, module, name):
    parameter = module.get_parameter(name)
    parameter.data = parameter.data.float()
    due = rf"^{name} must be float64, the dtype of x; got float32 .*; bring the module and its input to one dtype$"
    with pytest.raises(DtypeError, match=due):
        module(fixed(2, 5, 6))


def test_a_padding_mask_of_numbers_is_refused(fixed, module):
    with pytest.raises(DtypeError, match=r"^valid_tokens must be bool \[N, L\] = \[2, 5\]; got float32 \[2, 5\]; compare"):
        module(fixed(2, 5, 6), VALID.float())


@pytest.mark.parametrize("shape", [(5, 2), (2, 1), (1, 5), (5,)])
def test_a_padding_mask_that_torch_would_stretch_is_refused(fixed, module, shape):
    with pytest.raises(ShapeError, match=r"^valid_tokens must be bool \[N, L\] = \[2, 5\]; got bool"):
        module(fixed(2, 5, 6), torch.ones(shape, dtype=torch.bool))


def test_a_text_of_padding_alone_is_refused(fixed, module):
    with pytest.raises(ArgumentError, match=r"^valid_tokens must be .*; rows \[1\] are all padding; drop those texts$"):
        module(fixed(2, 5, 6), torch.tensor([[True] * 5, [False] * 5]))


def test_a_padding_mask_needs_a_batch(fixed, module):
    for x in (fixed(5, 6), fixed(2, 2, 5, 6)):
        with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\]; got float64"):
            module(x, VALID)


def test_the_function_checks_its_masks_itself(fixed):
    q = fixed(2, 3, 5, 2)
    with pytest.raises(DtypeError, match=r"^valid_tokens must be bool \[N, L\] = \[2, 5\]"):
        attention(q, q, q, VALID.long())
    with pytest.raises(ShapeError, match=r"^q must be floating \[N, H, L, E\]; got .*; with valid_tokens, q has the axes"):
        attention(q[0], q[0], q[0], VALID)


@pytest.mark.parametrize("may_read", [torch.ones(5, 5), [[True]]])
def test_a_reading_mask_of_numbers_is_refused(fixed, module, may_read):
    due = r"^may_read must be bool \[L, L\] = \[5, 5\]; got .*; True where row i may read column j$"
    with pytest.raises(DtypeError, match=due):
        module(fixed(2, 5, 6), may_read=may_read)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 5), (2, 5, 5)])
def test_a_reading_mask_of_another_shape_is_refused(fixed, module, shape):
    due = r"^may_read must be bool \[L, L\] = \[5, 5\]; got bool .*; True where row i may read column j$"
    with pytest.raises(ShapeError, match=due):
        module(fixed(2, 5, 6), may_read=torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("valid", [None, VALID.flip(1)])
def test_a_position_left_without_anything_to_read_is_refused(fixed, module, valid):
    may_read = torch.ones(5, 5, dtype=torch.bool).tril(0 if valid is not None else -1)
    with pytest.raises(ArgumentError, match=r"^may_read must be bool .* something to read; got bool \[5, 5\]; a position"):
        module(fixed(2, 5, 6), valid, may_read)


@pytest.mark.parametrize("name, mask", [("valid_tokens", VALID), ("may_read", torch.ones(5, 5, dtype=torch.bool))])
def test_a_mask_on_another_device_is_named_where_the_kernel_would_give_numbers(fixed, module, name, mask):
    due = rf"^{name} must be on cpu, the device of the rows; got bool .* on meta; move it there with \.to\(\)$"
    with pytest.raises(ArgumentError, match=due):
        module(fixed(2, 5, 6), **{name: mask.to("meta")})
