import string

import pytest
import torch
from torch import nn
from torch.nn import functional

from oneblock.errors import ArgumentError
from oneblock.exercises import EXERCISES, check
from oneblock.words import words


def by_ffn(x, W1, b1, W2, b2):
    return functional.linear(functional.relu(functional.linear(x, W1, b1)), W2, b2)


def by_rms(x, gamma, eps):
    return functional.rms_norm(x, x.shape[-1:], gamma, eps)


def by_swiglu(x, W_gate, W_up, W_down):
    return torch.einsum("df,...f->...d", W_down, functional.silu(x @ W_gate.T) * (x @ W_up.T))


def by_mean(rows, valid_tokens):
    return torch.stack([row[valid].mean(0) for row, valid in zip(rows, valid_tokens, strict=True)])


def by_softmax(scores, valid_tokens):
    shares = torch.zeros_like(scores)
    for n, valid in enumerate(valid_tokens):
        shares[n][:, valid] = scores[n][:, valid].softmax(-1)
    return shares


def by_move(f, x, valid_tokens, other):
    changed = x.clone()
    changed[~valid_tokens] = other[~valid_tokens]
    return max((f(changed, valid_tokens)[n, i] - f(x, valid_tokens)[n, i]).abs().max() for n, i in valid_tokens.nonzero().tolist())


def by_pre(x, norm1, attend, norm2, process):
    x = x + attend(norm1(x))
    return x + process(norm2(x))


def by_post(x, norm1, attend, norm2, process):
    x = norm1(attend(x) + x)
    return norm2(process(x) + x)


def by_crossover(D, F):
    """The first length that costs more, less one: the crossover is a whole number here."""
    return next(L for L in range(1, 10**6) if 8 * L * D * D + 4 * L * L * D > 4 * L * D * F) - 1


def by_step(model, optimizer, inputs, classes):
    optimizer.zero_grad()
    loss = nn.CrossEntropyLoss()(model(inputs), classes)
    loss.backward()
    optimizer.step()
    return loss


RIGHT = {
    "ffn": by_ffn,
    "residual_block": lambda x, *weights: x + by_ffn(x, *weights),
    "layer_norm": lambda x, gamma, beta, eps: functional.layer_norm(x, x.shape[-1:], gamma, beta, eps),
    "rms_norm": by_rms,
    "layer_norm_jacobian": lambda x, eps: torch.autograd.functional.jacobian(lambda v: functional.layer_norm(v, v.shape, eps=eps), x),
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "swiglu": by_swiglu,
    "masked_mean": by_mean,
    "masked_softmax": by_softmax,
    "padding_move": by_move,
    "pre_norm": by_pre,
    "post_norm": by_post,
    "crossover": by_crossover,
    "training_step": by_step,
}
WRONG = [(name, mistake) for name, exercise in EXERCISES.items() for mistake in exercise.wrong]
each = pytest.mark.parametrize("name", EXERCISES)


@each
def test_a_right_answer_by_another_route_passes(name):
    verdict = check(name, RIGHT[name])
    assert verdict.passed and repr(verdict) == f"✓ {name} passes: {'; '.join(EXERCISES[name].cases())}."


@pytest.mark.parametrize("name, mistake", WRONG)
def test_each_known_mistake_fails_and_is_told_as_itself(name, mistake):
    verdict, texts = check(name, EXERCISES[name].wrong[mistake]), words()
    says = texts["exercises"]["mistakes"].get(mistake) or texts["misreadings"][mistake]
    assert not verdict.passed and says in verdict.text
    same_result = {"forgets_too_late", "never_moves"}
    assert (" Or: " in verdict.text) == (mistake in same_result)


def test_every_mistake_has_one_sentence_and_every_sentence_a_mistake():
    own, shared = set(words()["exercises"]["mistakes"]), set(words()["misreadings"])
    used = {mistake for _, mistake in WRONG}
    assert own <= used <= own | shared and own & shared == set()


@each
def test_a_function_that_returns_nothing_is_open(name):
    verdict = check(name, lambda *given: None)
    assert verdict.outcome == "open" and not verdict.passed
    assert repr(verdict).startswith(f"○ {name} is still open: write the function, then run this cell again. It is given {EXERCISES[name].arguments.split()[0]}")


def test_an_open_exercise_says_what_is_given():
    assert check("layer_norm", lambda *given: None).text.endswith("It is given x [2, 3, 5], gamma [5], beta [5], eps.")


SILU = RIGHT["silu"]


@pytest.mark.parametrize(
    "function, says",
    [
        (lambda x: SILU(x)[None], "silu, numbers around 0: the shape should be [7] and is [1, 7]."),
        (lambda x: SILU(x.float()), "silu, numbers around 0: the dtype should be float64 and is float32."),
        (lambda x: SILU(x).double(), "silu, a batch in float32: the dtype should be float32 and is float64."),
        (lambda x: SILU(x).tolist(), "silu, numbers around 0: due is [7]; it returns a value of type list."),
        (lambda x: 1.0, "silu, numbers around 0: due is [7]; it returns a value of type float."),
        (lambda x: x / 0, "silu, numbers around 0: at [0] it gives inf; due is 2.66171."),
        (lambda x: SILU(x) + (x == x[-1]), "silu, numbers around 0: at [6] it gives "),
        (lambda x, y: x, "silu, numbers around 0: it raises TypeError: "),
        (lambda x: x.mul_(x.sigmoid()), "silu, numbers around 0: it writes into x; make a new tensor, the caller may still need the old one."),
        (lambda x: x * x.exp() / (1 + x.exp()), "silu, far out: at [0] it gives nan; due is 940.106."),
    ],
)
def test_the_first_thing_that_is_wrong_is_told(function, says):
    assert check("silu", function).text.startswith(says)


def test_two_numbers_that_differ_late_are_told_as_different():
    verdict = check("silu", lambda x: SILU(x) * (1 + 1e-7))
    assert verdict.text == "silu, numbers around 0: at [0] it gives 2.661715; due is 2.661714."


@pytest.mark.parametrize("error, passes", [(1e-10, True), (1e-7, False)])
def test_rounding_is_forgiven_and_no_more(error, passes):
    assert check("silu", lambda x: SILU(x) * (1 + (error if x.dtype == torch.float64 else 0))).passed == passes
    assert check("silu", lambda x: SILU(x) * (1 + (1e3 * error if x.dtype == torch.float32 else 0))).passed == passes


@pytest.mark.parametrize("name, function, says", [
    ("crossover", lambda D, F: None, "crossover is still open"),
    ("crossover", lambda D, F: F, "crossover, D = 10, F = 70: it gives 70; due is 50. That is where scores and weighted sum"),
    ("crossover", lambda D, F: 2 * F - 4 * D, "crossover, D = 10, F = 70: it gives 100; due is 50. That counts the scores and the projections;"),
    ("crossover", lambda D, F: "50", "crossover, D = 10, F = 70: due is a number; it returns a value of type str."),
    ("crossover", lambda D, F: 50, "crossover, D = 64, F = 256: it gives 50; due is 128."),
])  # fmt: skip
def test_a_number_may_be_due(name, function, says):
    assert check(name, function).text.startswith(says)


def test_multiplying_by_the_mask_is_told_where_it_shows():
    by_product = EXERCISES["masked_mean"].wrong["nan_times_zero"]
    text = check("masked_mean", by_product).text
    assert text == "masked_mean, NaN in the padding: at [0, 0] it gives nan; due is 0.476046. 0 · NaN is NaN: replace the padding, do not multiply it."


def test_where_the_numbers_are_right_no_mistake_is_told():
    """For one row, an activation of the result would change nothing."""

    def writes(x, *weights):
        result = by_ffn(x, *weights)
        x.zero_()
        return result

    assert check("ffn", writes).text == "ffn, a row: it writes into x; make a new tensor, the caller may still need the old one."


def test_an_answer_may_need_no_gradient_or_one():
    assert check("ffn", lambda *given: by_ffn(*(one.requires_grad_() for one in given))).passed


def test_a_text_of_the_reader_stays_a_text():
    def fails(x):
        raise ValueError("<b>")

    assert check("silu", fails)._repr_html_() == (
        '<div class="ob-figure ob-verdict"><p>✗ silu, numbers around 0: it raises ValueError: &lt;b&gt;</p></div>'
    )


@pytest.mark.usefixtures("as_readers_run_it")
def test_what_is_no_exercise_or_no_function_is_refused():
    with pytest.raises(ArgumentError, match=r"^name must be one of ffn, residual_block, .*; got 'relu'$"):
        check("relu", torch.relu)
    with pytest.raises(ArgumentError, match=r"^function must be a function; got .*; give its name, without calling it$"):
        check("silu", torch.tensor(1.0))


def test_every_word_is_used_and_no_other():
    fields = {name: [f for _, f, _, _ in string.Formatter().parse(text) if f is not None] for name, text in words()["exercises"].items() if name != "mistakes"}
    due = {"question": 0, "right": 0, "wrong": 0, "open": 2, "passed": 2, "failed": 3, "raised": 1, "no_tensor": 2, "number": 0}
    due |= {"other_shape": 2, "other_dtype": 2, "other_number": 3, "other_value": 2, "written_into": 1}
    assert {name: len(found) for name, found in fields.items()} == due
