from fractions import Fraction
from math import exp, log

import pytest
import torch

from oneblock.errors import ArgumentError, DtypeError, ShapeError
from oneblock.masks import check_valid_tokens, masked_mean, token_loss
from oneblock.trace import record

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


def test_a_mask_with_its_axes_swapped_is_told_so():
    with pytest.raises(ShapeError, match=r"got bool \[6, 2\]; its two axes are swapped$"):
        check_valid_tokens(VALID.T, X)


@pytest.mark.parametrize("shape", [(2, 5), (1, 6), (6,), (2, 6, 1), (2, 6, 6)])
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


LENGTHS = [2, 5, 3]
RAGGED = torch.arange(5) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture
def rows(fixed):
    """Rows ``[3, 5, 7]`` of three texts of 2, 5 and 3 tokens; what stands at padding is not small."""
    return fixed(3, 5, 7).masked_fill(~RAGGED[..., None], 1e3)


def test_the_mean_is_that_of_each_text_cut_to_its_length(rows):
    exact = [[sum(Fraction(row[d]) for row in text[:n]) / n for d in range(7)] for text, n in zip(rows.tolist(), LENGTHS, strict=True)]
    expected = torch.tensor([[float(number) for number in text] for text in exact], dtype=torch.float64)
    torch.testing.assert_close(masked_mean(rows, RAGGED), expected, rtol=1e-15, atol=1e-15)


def test_without_padding_the_mean_is_the_mean(fixed):
    rows = fixed(2, 5, 3)
    torch.testing.assert_close(masked_mean(rows, torch.ones(2, 5, dtype=torch.bool)), rows.mean(1))


def test_padding_need_not_stand_at_the_end(fixed):
    rows = fixed(1, 5, 3)
    holes = torch.tensor([[False, True, False, True, True]])
    torch.testing.assert_close(masked_mean(rows, holes)[0], (rows[0, 1] + rows[0, 3] + rows[0, 4]) / 3)


def test_a_text_of_one_token_is_its_own_mean(fixed):
    rows = fixed(2, 5, 3)
    one = torch.arange(5) == torch.tensor([[4], [0]])
    assert masked_mean(rows, one).equal(torch.stack([rows[0, 4], rows[1, 0]]))


@pytest.mark.parametrize("value", [0.0, -1e300, torch.inf, torch.nan])
def test_what_stands_at_padding_changes_no_bit(rows, value):
    other = rows.masked_fill(~RAGGED[..., None], value)
    assert masked_mean(other, RAGGED).equal(masked_mean(rows, RAGGED))


def test_a_nan_in_a_real_row_reaches_the_mean_of_its_text_and_feature_only(rows):
    rows[1, 4, 6] = torch.nan
    assert masked_mean(rows, RAGGED).isnan().nonzero().tolist() == [[1, 6]]


def test_a_text_without_a_real_token_has_the_mean_zero(rows):
    none = RAGGED.clone()
    none[1] = False
    assert masked_mean(rows, none)[1].eq(0).all()


def test_the_gradient_of_each_real_row_is_one_over_the_count_and_padding_gets_none(rows):
    rows = rows.masked_fill(~RAGGED[..., None], torch.nan).requires_grad_()
    masked_mean(rows, RAGGED).sum().backward()
    expected = torch.tensor([[1 / n if j < n else 0 for j in range(5)] for n in LENGTHS], dtype=torch.float64)
    torch.testing.assert_close(rows.grad, expected[..., None].expand(3, 5, 7))


@pytest.mark.parametrize("dtype, count", [(torch.float16, 2053), (torch.bfloat16, 263)])
def test_half_precision_counts_beyond_what_it_can_count(dtype, count):
    rows = torch.ones(1, count, 3, dtype=dtype)
    mean = masked_mean(rows, torch.ones(1, count, dtype=torch.bool))
    assert mean.dtype == dtype and mean.eq(1).all()


def test_a_sum_beyond_half_precision_still_has_a_mean():
    mean = masked_mean(torch.full((1, 5, 3), 6e4, dtype=torch.float16), torch.ones(1, 5, dtype=torch.bool))
    assert mean.eq(torch.tensor(6e4, dtype=torch.float16)).all()


def test_each_step_of_the_mean_is_what_its_formula_gives(rows, worked_out):
    trace = record(masked_mean, rows, RAGGED).pick(n=0)
    assert trace.names == ("token_weights", "kept", "total", "count", "pooled")
    for name in ("total", "count", "pooled"):
        from_formula, from_tensor = worked_out(trace, trace.step(name), max=max)
        assert from_formula == pytest.approx(from_tensor, rel=1e-14)
    assert trace["token_weights"].flatten().tolist() == [1, 1, 0, 0, 0]
    assert trace["kept"].eq(0).all(-1).tolist() == [False, False, True, True, True]


def test_the_axes_of_a_whole_text_have_no_length(rows):
    trace = record(masked_mean, rows, RAGGED)
    axes = {"rows": "NLD", "token_weights": "NL1", "kept": "NLD", "total": "ND", "count": "N1", "pooled": "ND"}
    assert {name: "".join(trace.axes(name)) for name in axes} == axes


@pytest.mark.parametrize("function", [masked_mean, lambda x, valid: token_loss(x, torch.zeros(3, 5, dtype=torch.int64), valid)])
@pytest.mark.parametrize("mask, error", [(RAGGED.float(), DtypeError), (RAGGED.mT, ShapeError), (RAGGED[:1], ShapeError)])
def test_mean_and_loss_refuse_a_mask_that_does_not_fit(rows, function, mask, error):
    with pytest.raises(error, match=r"^valid_tokens must be bool \[N, L\] = \[3, 5\]; got .*; (compare your ids with the padding|its two axes are swapped)"):
        function(rows, mask)


def test_the_mean_refuses_rows_without_a_batch(rows):
    with pytest.raises(ShapeError, match=r"^rows must be floating \[N, L, D\]; got float64 \[5, 7\]"):
        masked_mean(rows[0], RAGGED)


CLASSES = torch.tensor([[0, 6, -1, 99, -100], [1, 2, 3, 4, 5], [6, 6, 0, 7, -7]])


def test_the_loss_is_the_mean_over_the_real_tokens_of_the_batch(rows):
    surprises = [
        log(sum(exp(logit) for logit in rows[n, j].tolist())) - rows[n, j, CLASSES[n, j]].item()
        for n, length in enumerate(LENGTHS)
        for j in range(length)
    ]
    assert token_loss(rows, CLASSES, RAGGED).item() == pytest.approx(sum(surprises) / 10, rel=1e-14)


@pytest.mark.parametrize("value", [0.0, 1e300, torch.inf, torch.nan])
def test_logits_at_padding_change_neither_the_loss_nor_a_gradient(rows, value):
    other = rows.masked_fill(~RAGGED[..., None], value)
    pair = [logits.clone().requires_grad_() for logits in (rows, other)]
    losses = [token_loss(logits, CLASSES, RAGGED) for logits in pair]
    sum(losses).backward()
    assert losses[0].equal(losses[1])
    assert pair[0].grad.equal(pair[1].grad)
    assert pair[1].grad.ne(0).any(-1).equal(RAGGED)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_loss_of_half_precision_is_rounded_once(fixed, dtype):
    logits, classes = fixed(3, 701, 5, dtype=dtype), torch.arange(3 * 701).reshape(3, 701) % 5
    real = torch.ones(3, 701, dtype=torch.bool)
    exact = token_loss(logits.double(), classes, real)
    assert token_loss(logits, classes, real).equal(exact.to(dtype))


def test_a_batch_without_a_real_token_has_no_loss(rows):
    with pytest.raises(ArgumentError, match=r"^valid_tokens must be .* with a True; got bool \[3, 5\]; a mean over no token is 0/0$"):
        token_loss(rows, CLASSES, torch.zeros(3, 5, dtype=torch.bool))


def test_a_text_of_padding_only_beside_others_is_passed_over(rows):
    some = RAGGED.clone()
    some[1] = False
    chosen = [0, 2]
    torch.testing.assert_close(token_loss(rows, CLASSES, some), token_loss(rows[chosen], CLASSES[chosen], RAGGED[chosen]))


@pytest.mark.parametrize("wrong", [-100, -1, 7])
def test_a_real_token_of_no_class_is_refused(rows, wrong):
    classes = CLASSES.clone()
    classes[1, 4] = wrong
    due = rf"^classes must be from 0 to 6 at real tokens; got \[{wrong}\]; mark padding in valid_tokens$"
    with pytest.raises(ArgumentError, match=due):
        token_loss(rows, classes, RAGGED)


@pytest.mark.parametrize("classes, error", [(CLASSES.int(), DtypeError), (CLASSES.double(), DtypeError), (CLASSES[:, :2], ShapeError)])
def test_classes_are_whole_numbers_one_for_each_token(rows, classes, error):
    with pytest.raises(error, match=r"^classes must be int64 \[N, L\] = \[3, 5\]; got "):
        token_loss(rows, classes, RAGGED)


# Where values cannot be read, and other devices.


def test_the_loss_of_each_text_by_vmap_is_that_of_the_text_alone(rows):
    each = torch.vmap(token_loss)(rows[:, None], CLASSES[:, None], RAGGED[:, None])
    alone = [token_loss(rows[n : n + 1], CLASSES[n : n + 1], RAGGED[n : n + 1]) for n in range(3)]
    torch.testing.assert_close(each, torch.stack(alone), rtol=1e-14, atol=0)


def test_mean_and_loss_have_a_shape_without_data_and_can_be_exported(rows):
    class Both(torch.nn.Module):
        def forward(self, rows, classes, valid):
            return masked_mean(rows, valid), token_loss(rows, classes, valid)

    there = [tensor.to("meta") for tensor in (rows, CLASSES, RAGGED)]
    assert [one.shape for one in Both()(*there)] == [(3, 7), ()]
    exported = torch.export.export(Both(), (rows, CLASSES, RAGGED)).module()
    for mine, due in zip(exported(rows, CLASSES, RAGGED), Both()(rows, CLASSES, RAGGED), strict=True):
        torch.testing.assert_close(mine, due, rtol=1e-14, atol=0)


def test_a_mask_or_classes_on_another_device_are_named(rows):
    due = r"^valid_tokens must be on cpu, the device of the rows; got bool \[3, 5\] on meta; move it there with \.to\(\)$"
    for function in (check_valid_tokens, lambda valid, rows: masked_mean(rows, valid)):
        with pytest.raises(ArgumentError, match=due):
            function(RAGGED.to("meta"), rows)
    with pytest.raises(ArgumentError, match=r"^classes must be on cpu, the device of logits; got int64 \[3, 5\] on meta"):
        token_loss(rows, CLASSES.to("meta"), RAGGED)


def test_a_mask_for_each_of_many_is_not_read():
    check = lambda valid, x: check_valid_tokens(valid, x) or valid  # noqa: E731
    torch.vmap(check)(torch.zeros(3, 2, 6, dtype=torch.bool), X.expand(3, 2, 6, 5))
    assert check_valid_tokens(torch.zeros(2, 6, dtype=torch.bool, device="meta"), X.to("meta")) is None
