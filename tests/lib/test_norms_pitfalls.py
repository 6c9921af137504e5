import math

import pytest
import torch
from torch.nn import functional

from oneblock.norms import layer_norm
from oneblock.norms_pitfalls import across_tokens, copied_layer_norm, eps_outside_root, unbiased_deviation

ONE_HOT = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)


@pytest.mark.parametrize("wrong", [unbiased_deviation, eps_outside_root, across_tokens, copied_layer_norm])
def test_each_has_the_right_shape_and_another_value_than_torch(fixed, wrong):
    x = 1e-2 * fixed(2, 3, 7)
    value, due = wrong(x), functional.layer_norm(x, (7,))
    assert value.shape == due.shape
    assert (value - due).abs().max() > 1e-3


def test_dividing_by_one_less_shrinks_every_number_by_the_same_factor(fixed):
    x = fixed(3, 8)
    due = layer_norm(x, eps=0) * math.sqrt(7 / 8)
    torch.testing.assert_close(unbiased_deviation(x, eps=0), due, atol=1e-14, rtol=0)


def test_dividing_by_one_less_makes_one_feature_nan():
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert unbiased_deviation(torch.tensor([3.0])).isnan().all()


def test_epsilon_outside_the_root_is_another_number_where_the_deviation_is_small():
    x = torch.tensor([-1e-3, 1e-3], dtype=torch.float64)
    assert layer_norm(x)[1].item() == pytest.approx(0.3015, abs=5e-5)
    assert eps_outside_root(x)[1].item() == pytest.approx(0.9901, abs=5e-5)


def test_epsilon_outside_the_root_makes_a_constant_row_far_steeper():
    nearly = torch.tensor([1e-7, -1e-7], dtype=torch.float64)
    assert eps_outside_root(nearly)[0].item() == pytest.approx(1e-7 / (1e-7 + 1e-5))
    assert layer_norm(nearly)[0].item() == pytest.approx(1e-7 / math.sqrt(1e-5), rel=1e-6)


def test_statistics_across_tokens_let_padding_change_a_real_token(fixed):
    x = fixed(1, 3, 7)
    padded = torch.cat([x, torch.zeros(1, 2, 7)], dim=1)
    assert torch.equal(layer_norm(padded)[:, :3], layer_norm(x))
    assert (across_tokens(padded)[:, :3] - across_tokens(x)).abs().max() > 0.1


def test_statistics_across_tokens_are_torchs_on_the_turned_tensor(fixed):
    x = fixed(2, 3, 7)
    torch.testing.assert_close(across_tokens(x), functional.layer_norm(x.mT, (3,)).mT, atol=1e-12, rtol=0)


def test_the_copied_one_gives_one_and_a_half_where_torch_gives_root_three():
    assert copied_layer_norm(ONE_HOT, eps=0)[0].item() == 1.5
    assert copied_layer_norm(ONE_HOT)[0].item() == pytest.approx(1.5, abs=5e-6)
    assert functional.layer_norm(ONE_HOT, (4,), eps=0)[0].item() == pytest.approx(math.sqrt(3), abs=1e-12)
    assert layer_norm(ONE_HOT)[0].item() == pytest.approx(1.732, abs=5e-4)
