"""Every mistake has right shapes, runs as the right one does, differs in few lines, and is told in words."""

from itertools import product

import pytest
import torch

from oneblock.errors import ArgumentError
from oneblock.mutants.catalogue import BLOCK, CLASSIFIER, MISTAKES, PROCEDURE, SIZES, mistake_words
from oneblock.words import words

N, L, D, H, F = 2, 5, 21, 3, 11
MASKS = {
    "none": None,
    "ragged": torch.tensor([[True, True, True, False, False], [True, True, True, True, False]]),
    "one text whole": torch.tensor([[True, True, True, False, False], [True] * L]),
}
REFUSED = ("batch_second", "ragged")
IDS = torch.tensor([[3, 10, 1, 0, 0], [2, 4, 9, 9, 7]])
OTHER_PARAMETERS = {"no_projection_back", "convolution_over_tokens", "no_final_norm", "blocks_in_a_list"}
UNREAD = {
    "no_output_projection": {"self_attn.out_proj.weight", "self_attn.out_proj.bias"},
    "detached": {f"self_attn.{name}" for name in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")}
    | {"norm1.weight", "norm1.bias"},
    "no_projection_back": {"linear2.weight", "linear2.bias"},
    "one_matrix_for_both": {"linear2.weight"},
}


def named(*kinds):
    return [name for name, mistake in MISTAKES.items() if mistake.kind in kinds]


@pytest.mark.parametrize("name, mask", [pair for pair in product(named(BLOCK), MASKS) if pair != REFUSED])
def test_a_block_has_the_right_shape_and_finite_numbers_and_gradients(fixed, filled, name, mask):
    mistake, x, valid_tokens = MISTAKES[name], fixed(N, L, D).requires_grad_(), MASKS[mask]
    wrong, right = filled(mistake.build(D, H, F)), filled(mistake.build_right(D, H, F))
    y = wrong(x, valid_tokens)
    assert y.shape == right(x, valid_tokens).shape == x.shape and y.dtype == x.dtype and y.isfinite().all()
    (y * fixed(N, L, D, seed=1)).sum().backward()
    assert x.grad.isfinite().all()
    without = {name for name, parameter in wrong.named_parameters() if parameter.grad is None}
    assert without == UNREAD.get(name, set())
    assert all(parameter.grad.isfinite().all() for parameter in wrong.parameters() if parameter.grad is not None)


def test_a_mask_that_was_turned_is_refused_where_a_position_is_padding_in_all_texts(fixed):
    name, mask = REFUSED
    with pytest.raises(ArgumentError, match=r"rows \[4\] are all padding"):
        MISTAKES[name].build(D, H, F).double()(fixed(N, L, D), MASKS[mask])


@pytest.mark.parametrize("name", named(CLASSIFIER))
def test_a_classifier_has_the_right_shape_and_finite_numbers_and_gradients(name):
    mistake = MISTAKES[name]
    wrong, right = mistake.build(D, H, F), mistake.build_right(D, H, F)
    logits = wrong(IDS)
    assert logits.shape == right(IDS).shape == (N, SIZES["C"]) and logits.isfinite().all()
    logits.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in wrong.parameters())


@pytest.mark.parametrize("name", named(BLOCK, CLASSIFIER))
def test_it_loads_the_parameters_of_the_right_one_or_is_known_not_to(name):
    wrong, right = MISTAKES[name].build(D, H, F), MISTAKES[name].build_right(D, H, F)
    shapes = [{key: value.shape for key, value in one.state_dict().items()} for one in (wrong, right)]
    assert (shapes[0] != shapes[1]) == (name in OTHER_PARAMETERS)
    if name not in OTHER_PARAMETERS:
        assert not any(wrong.load_state_dict(right.state_dict()))


@pytest.mark.parametrize("name", sorted({*named(BLOCK, CLASSIFIER)} - OTHER_PARAMETERS - {"one_norm_twice", "one_block_k_times"}))
def test_of_one_seed_it_has_the_first_values_of_the_right_one(name):
    states = []
    with torch.random.fork_rng(devices=[]):
        for build in (MISTAKES[name].build, MISTAKES[name].build_right):
            torch.manual_seed(0)
            states.append(build(D, H, F).state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[1])


def test_options_are_those_of_the_right_one():
    block = MISTAKES["unscaled"].build(D, H, F, activation="relu", dropout=0.5)
    assert block.activation == "relu" and block.dropout_z.p == 0.5
    assert MISTAKES["last_position"].build(D, H, F, C=3).head.out_features == 3


@pytest.mark.parametrize("name", named(PROCEDURE))
def test_a_procedure_is_called_and_not_built(name):
    with pytest.raises(ArgumentError, match=r"^kind must be block or classifier; got 'procedure'; call \.wrong and \.right"):
        MISTAKES[name].build(D, H, F)


@pytest.mark.parametrize("name", MISTAKES)
def test_it_differs_from_the_right_one_in_a_few_lines(name):
    lines = MISTAKES[name].lines()
    added, removed = ([line for line in lines if line[0] == sign] for sign in "+-")
    assert len(added) <= 5 and len(removed) <= 3 and added + removed
    assert all(line[1] == " " and line[2:] == line[2:].strip() for line in lines)


def test_the_lines_of_one_of_them():
    assert MISTAKES["unscaled"].lines() == ["- return q @ k.mT / sqrt(q.shape[-1])", "+ return q @ k.mT"]
    assert MISTAKES["step_without_forgetting"].lines() == ["- optimizer.zero_grad(set_to_none=True)"]
    assert MISTAKES["positions_twice"].lines()[0].startswith("+ return super().rows(token_ids) + ")


def test_each_class_is_one_mistake_and_stands_in_a_group():
    assert len({mistake.wrong for mistake in MISTAKES.values()}) == len(MISTAKES)
    groups = list(dict.fromkeys(mistake.group for mistake in MISTAKES.values()))
    assert groups == ["norms", "attention", "masks", "sums", "networks", "dropouts", "ports", "classifiers", "procedures"]


def test_every_mistake_has_words_and_no_other():
    assert set(words()["mistakes"]) == set(MISTAKES)


@pytest.mark.parametrize("name", MISTAKES)
def test_its_words_say_when_it_hides_just_if_it_does(name):
    told = mistake_words(name)
    assert set(told) == {"story", "fix"} | ({"hides_when"} if MISTAKES[name].hides else set())
    assert all(text.strip() == text and text.endswith((".", "].")) for text in told.values())


@pytest.mark.parametrize("name", MISTAKES)
def test_its_source_is_a_thread_that_can_be_opened_or_none(name):
    source = MISTAKES[name].source
    assert source == "" or source.startswith("https://github.com/") and source.rpartition("/issues/")[2].isdigit()


@pytest.mark.parametrize("name", named(BLOCK))
def test_a_block_keeps_the_dtype_of_its_input_whatever_the_default(fixed, name):
    block, x = MISTAKES[name].build(D, H, F).float(), fixed(N, L, D, dtype=torch.float32)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert block(x, MASKS["one text whole"]).dtype == torch.float32
    finally:
        torch.set_default_dtype(before)
