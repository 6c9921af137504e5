import warnings

import pytest
import torch
from torch import nn

from oneblock.blocks import PostNorm, PreNorm
from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.masks import masked_mean
from oneblock.padding import leak, padding_invariance, refill

N, L, D = 3, 7, 6
VALID = torch.arange(L) < torch.tensor([[2], [5], [3]])
DTYPES = [torch.float32, torch.float64]
MODES = ["train", "eval", "eval, no_grad"]


@pytest.fixture
def x(fixed):
    return 3 * fixed(N, L, D)


@pytest.fixture
def made():
    """``made(nn.Linear, 6, 5)``: a module whose parameters have all left their start values."""

    def module(kind, *sizes, dtype=torch.float64, **options):
        torch.manual_seed(0)
        result = kind(*sizes, **options).to(dtype)
        for parameter in result.parameters():
            parameter.data += 0.3 * torch.randn_like(parameter)
        return result

    return module


@pytest.fixture
def logits(made):
    """``logits(rows_of)``: what a linear head says of the masked mean of its rows, as a function of x and the mask."""
    head = made(nn.Linear, D, 5)
    return lambda rows_of: lambda x, valid: head(masked_mean(rows_of(x, valid), valid))


@pytest.mark.parametrize("kind", [PreNorm, PostNorm])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_block_that_masks_is_invariant(made, x, kind, dtype):
    found = padding_invariance(made(kind, D, 2, 11, dtype=dtype), x.to(dtype), VALID)
    assert found.holds
    assert found.refilled == {"zeros": 0, "random": 0, "large": 0}
    assert set(found.resized) == {"3 more", "each alone"}


def test_logits_of_a_masked_mean_are_invariant(made, x, logits):
    assert padding_invariance(logits(made(PreNorm, D, 2, 11)), x, VALID).holds


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_torchs_layer_is_invariant_on_every_path(made, x, norm_first, dtype, mode):
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
    layer = made(nn.TransformerEncoderLayer, D, 2, 11, dtype=dtype, **options).train(mode == "train")
    with torch.set_grad_enabled("no_grad" not in mode):
        found = padding_invariance(lambda x, valid: layer(x, src_key_padding_mask=~valid), x.to(dtype), VALID)
    assert found.holds


def test_padding_may_stand_anywhere(made, x):
    holes = torch.tensor([[0, 1, 0, 1, 1, 0, 0], [1] * 7, [0, 0, 0, 0, 0, 0, 1]]).bool()
    assert padding_invariance(made(PreNorm, D, 2, 11), x, holes).holds


def test_an_output_that_ends_with_the_longest_text_is_compared_too(made, x):
    block = made(PreNorm, D, 2, 11)
    assert padding_invariance(lambda x, valid: block(x, valid)[:, valid.any(0)], x, VALID).holds
    assert not padding_invariance(lambda x, valid: block(x)[:, valid.any(0)], x, VALID).holds


def test_torchs_encoder_over_nested_tensors_is_invariant(made, x):
    layer = made(nn.TransformerEncoderLayer, D, 2, 11, dropout=0.0, batch_first=True)
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        encoder = nn.TransformerEncoder(layer, 2).eval()
        assert padding_invariance(lambda x, valid: encoder(x, src_key_padding_mask=~valid), x, VALID).holds


def last_position(x, valid):
    return x[:, -1]


def mean_of_all(x, valid):
    return x.mean(1)


def divided_by_the_padded_length(x, valid):
    return x.masked_fill(~valid[..., None], 0).mean(1)


def multiplied_by_zero(x, valid):
    return (x * valid[..., None]).sum(1)


def queries_masked(x, valid):
    scores = (x @ x.mT).masked_fill(~valid[..., None], -1e9)
    return scores.softmax(-1) @ x


def small_number_added(x, valid):
    return (x @ x.mT - 1e4 * ~valid[:, None]).softmax(-1) @ x


def counted_from_the_end(x, valid):
    return x * torch.arange(x.shape[1], 0, -1).to(x)[:, None]


@pytest.mark.parametrize(
    "f, refilled, resized",
    [
        (last_position, {"zeros", "random", "large"}, {"3 more", "each alone"}),
        (mean_of_all, {"zeros", "random", "large"}, {"3 more", "each alone"}),
        (queries_masked, {"zeros", "random", "large"}, {"3 more", "each alone"}),
        (divided_by_the_padded_length, set(), {"3 more", "each alone"}),
        (counted_from_the_end, set(), {"3 more", "each alone"}),
        (small_number_added, {"large"}, set()),
        (multiplied_by_zero, set(), set()),
    ],
)
def test_each_mistake_is_seen_by_the_changes_that_can_see_it(x, f, refilled, resized):
    found = padding_invariance(f, x, VALID)
    assert {name for name, move in found.refilled.items() if move} == refilled
    assert {name for name, move in found.resized.items() if move > found.rounding} == resized
    assert found.holds == (not refilled | resized)


@pytest.mark.parametrize("mask", [lambda valid: None, lambda valid: ~valid])
def test_a_missing_and_an_inverted_mask_leak_into_rows_and_logits(made, x, logits, mask):
    block = made(PreNorm, D, 2, 11)

    def rows(x, valid):
        return block(x, None if valid.all() else mask(valid))

    for f in (rows, logits(rows)):
        assert min(padding_invariance(f, x, VALID).refilled.values()) > 1e-3


def test_real_rows_that_never_move_do_not_save_a_mean_over_all_positions(made, x):
    block = made(PreNorm, D, 2, 11)
    assert padding_invariance(block, x, VALID).holds
    assert min(padding_invariance(lambda x, valid: block(x, valid).mean(1), x, VALID).refilled.values()) > 1e-3


def test_the_moves_are_those_worked_out_by_hand():
    x = torch.tensor([[[1.0, 2.0], [3.0, 5.0], [7.0, 0.0]]])
    valid = torch.tensor([[True, True, False]])
    assert leak(lambda x, valid: 2 * x, x, valid, torch.tensor([4.0, -4.0])).tolist() == [[0, 0, 8]]
    assert leak(mean_of_all, x, valid, 1.0).tolist() == [[2, pytest.approx(1 / 3)]]
    assert leak(last_position, x, valid, torch.nan).tolist() == [[torch.inf, torch.inf]]
    assert leak(multiplied_by_zero, x, valid, 9.0).tolist() == [[0, 0]]
    assert leak(multiplied_by_zero, x, valid, torch.nan).tolist() == [[torch.inf, torch.inf]]
    found = padding_invariance(mean_of_all, x, valid)
    assert found.refilled["zeros"] == pytest.approx(7 / 3)
    assert found.resized == {"3 more": pytest.approx(11 / 6), "each alone": pytest.approx(5 / 3)}
    assert found.rounding == pytest.approx(64 * 2**-23 * 11 / 3)


def test_what_is_nan_before_and_after_did_not_move(x):
    def spoilt(x, valid):
        return x.masked_fill(~valid[..., None], torch.nan)

    assert leak(spoilt, x, VALID, 1.0).eq(0).all()
    assert padding_invariance(spoilt, x, VALID).holds


def test_a_real_row_that_becomes_nan_moved_infinitely_far(x):
    found = padding_invariance(lambda x, valid: x + 0 * torch.log(x.abs().max() < 1e3), x, VALID)
    assert found.refilled == {"zeros": 0, "random": 0, "large": torch.inf}
    assert not found.holds


def test_refilling_keeps_every_bit_of_the_real_rows(x):
    other = refill(x, VALID, torch.inf)
    assert other[VALID].equal(x[VALID]) and other[~VALID].eq(torch.inf).all()
    rows = torch.arange(float(L * D)).reshape(L, D)
    assert refill(x, VALID, rows)[0, 2:].equal(rows[2:].double())
    assert refill(x, VALID, rows[1])[2, 4].equal(rows[1].double())


def test_modes_random_numbers_gradients_and_the_input_stay_as_they_were(made, x):
    block = made(PreNorm, D, 2, 11, dropout=0.5).eval()
    block(x, VALID).sum().backward()
    grads, before, state = [p.grad.clone() for p in block.parameters()], x.clone(), torch.get_rng_state()
    x.requires_grad_()

    def overwrites(x, valid):
        torch.rand(1)
        return block(x.mul_(2), valid)

    assert padding_invariance(overwrites, x, VALID).holds
    assert not leak(overwrites, x, VALID, 1.0).requires_grad
    assert not block.training and x.grad is None and x.equal(before)
    assert torch.get_rng_state().equal(state)
    assert all(p.grad.equal(grad) for p, grad in zip(block.parameters(), grads, strict=True))


@pytest.mark.parametrize("function", [padding_invariance, lambda f, x, valid: leak(f, x, valid, 0.0)])
def test_dropout_in_training_is_named_and_not_taken_for_a_leak(made, x, function):
    block = made(PreNorm, D, 2, 11, dropout=0.5)
    state = torch.get_rng_state()
    with pytest.raises(ArgumentError, match=r"^f must be a callable that answers the same twice; got 'PreNorm'; call eval\(\) before"):
        function(block, x, VALID)
    assert block.training and torch.get_rng_state().equal(state)


refused = pytest.mark.usefixtures("as_readers_run_it")


@refused
def test_a_batch_without_padding_cannot_leak(x):
    with pytest.raises(ArgumentError, match=r"^valid_tokens must be with a False, .*; got bool \[3, 7\]; nothing could leak$"):
        padding_invariance(mean_of_all, x, torch.ones(N, L, dtype=torch.bool))


@refused
def test_a_real_token_without_a_finite_number_is_refused(x):
    with pytest.raises(ArgumentError, match=r"^f must be finite at real tokens; got float64 \[10, 6\]; look for NaN"):
        padding_invariance(lambda x, valid: x.log(), x, VALID)


@refused
@pytest.mark.parametrize(
    "f, error",
    [
        (lambda x, valid: x.argmax(-1), DtypeError),
        (lambda x, valid: (x, None), DtypeError),
        (lambda x, valid: x.sum(), ShapeError),
        (lambda x, valid: x[:2], ShapeError),
        (lambda x, valid: x[:, :4], ShapeError),
        (lambda x, valid: torch.cat([x, x], 1), ShapeError),
    ],
)
def test_a_callable_to_something_else_is_refused(x, f, error):
    with pytest.raises(error, match=r"^f must be a callable to .* N = 3 and L = 7; got "):
        padding_invariance(f, x, VALID)


@refused
def test_a_callable_whose_width_depends_on_the_padding_is_refused(x):
    with pytest.raises(ShapeError, match=r"^f must be a callable to one shape for one batch, here \[3, 4\]; got float64 \[3, 6\]"):
        padding_invariance(lambda x, valid: x[:, 0, : x.shape[1] - 3], x, VALID)


@refused
@pytest.mark.parametrize("padding", [torch.ones(5), torch.ones(3, 6), torch.ones(1, 7, 6), torch.ones(1, 3, 7, 6)])
def test_padding_of_another_shape_is_refused(x, padding):
    with pytest.raises(ShapeError, match=r"^padding must be a number, \[D\], \[L, D\] or \[N, L, D\] = \[3, 7, 6\]; got "):
        refill(x, VALID, padding)


@refused
def test_a_mask_that_breaks_its_contract_is_refused(x):
    with pytest.raises(DtypeError, match=r"^valid_tokens must be bool \[N, L\] = \[3, 7\]"):
        leak(mean_of_all, x, VALID.float(), 0.0)


def test_the_rounding_is_that_of_what_comes_out(x):
    found = padding_invariance(lambda x, valid: x.float(), x, VALID)
    assert found.rounding == pytest.approx(64 * 2**-23 * x[VALID].abs().max().item(), rel=1e-6)


def test_where_everything_is_zero_nothing_may_move_and_nothing_does(x):
    found = padding_invariance(lambda x, valid: torch.zeros_like(x), x, VALID)
    assert found.rounding == 0 and found.holds


@pytest.mark.parametrize("n", range(3))
def test_a_text_that_moves_alone_is_found_wherever_it_stands(x, n):
    found = padding_invariance(lambda x, valid: x + (x.shape[1] == VALID[n].sum()), x, VALID)
    assert found.resized["each alone"] == pytest.approx(1) and not any(found.refilled.values())
