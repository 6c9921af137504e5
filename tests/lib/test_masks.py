import pytest
import torch

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.masks import check_valid_tokens

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

X = torch.zeros(2, 6, 5)
VALID = torch.tensor([[True] * 2 + [False] * 4, [True] * 6])


def test_a_bool_mask_with_a_real_token_in_each_row_passes():
    assert check_valid_tokens(VALID, X) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_mask_of_numbers_is_refused(dtype):
    due = r"^valid_tokens must be bool \[N, L\] = \[2, 6\]; got \w+ \[2, 6\]; compare your ids with the padding id$"
    with pytest.raises(DtypeError, match=due):
        check_valid_tokens(VALID.to(dtype), X)


@pytest.mark.parametrize("shape", [(6, 2), (2, 5), (1, 6), (6,), (2, 6, 1), (2, 6, 6)])
def test_a_mask_of_another_shape_is_refused(shape):
    due = r"^valid_tokens must be bool \[N, L\] = \[2, 6\]; got bool .*; compare your ids with the padding id$"
    with pytest.raises(ShapeError, match=due):
        check_valid_tokens(torch.ones(shape, dtype=torch.bool), X)


def test_texts_that_are_all_padding_are_named():
    due = r"^valid_tokens must be .* with a True in every row; got bool \[2, 6\]; rows \[0\] are all padding"
    with pytest.raises(ArgumentError, match=due):
        check_valid_tokens(torch.tensor([[False] * 6, [True] * 6]), X)


def test_the_rows_have_a_batch_a_length_and_a_width():
    with pytest.raises(ShapeError, match=r"^x must be floating \[N, L, D\]; got float32 \[6, 5\]"):
        check_valid_tokens(VALID, X[0])
