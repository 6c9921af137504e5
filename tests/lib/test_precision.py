import pytest
import torch

from oneblock.precision import widened


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(half):
    assert widened(torch.tensor([1.5], dtype=half)).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_wider_tensors_are_handed_back_themselves(dtype):
    x = torch.tensor([1.5], dtype=dtype)
    assert widened(x) is x
