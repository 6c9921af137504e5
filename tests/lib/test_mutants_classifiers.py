"""Each wrong classifier is wrong in the way that is told of it, and agrees with the right one where it hides."""

import pytest
import torch

from oneblock.classifier import Classifier
from oneblock.mutants import classifiers
from oneblock.mutants.classifiers import PlainClassifier
from oneblock.norms import layer_norm

N, L, V, C, D = 2, 5, 13, 7, 21
SIZES = {"V": V, "C": C, "L": 11, "K": 2}
IDS = torch.tensor([[3, 10, 1, 0, 0], [2, 4, 9, 9, 7]])
FULL = torch.tensor([[3, 10, 1, 8, 5], [2, 4, 9, 9, 7]])


@pytest.fixture
def models(alike):
    def pair(wrong, right=PlainClassifier, **sizes):
        return alike(wrong, right, **{**SIZES, **sizes})

    return pair


def test_the_classifier_taken_apart_is_the_right_one(models):
    plain, right = models(PlainClassifier, Classifier)
    torch.testing.assert_close(plain(IDS), right(IDS), atol=1e-12, rtol=0)
    with pytest.raises(ValueError, match=r"^token_ids must be from 0 to 12, as V = 13; got \[13\]"):
        plain(IDS + 10 * (IDS == 3))


def longer(ids):
    return torch.cat([ids, torch.zeros(N, 3, dtype=torch.int64)], dim=1)


def test_a_mean_over_padding_changes_with_the_length_of_the_batch(models):
    wrong, right = models(classifiers.MeanOverPadding)
    assert (wrong(IDS) - wrong(longer(IDS))).abs().max() > 0.1
    assert (right(IDS) - right(longer(IDS))).abs().max() < 1e-12


def test_a_mean_over_padding_hides_where_there_is_none(models):
    wrong, right = models(classifiers.MeanOverPadding)
    torch.testing.assert_close(wrong(FULL), right(FULL), atol=1e-12, rtol=0)


def test_the_last_position_is_that_of_a_pad(models):
    wrong, right = models(classifiers.LastPosition)
    x = right.rows(IDS)
    changed = x.clone()
    changed[0, -1] = -x[0, -1]
    logits = [wrong.from_rows(rows, IDS != 0) for rows in (x, changed)]
    assert (logits[0] - logits[1])[0].abs().max() > 0.1
    assert (right.from_rows(x, IDS != 0) - right.from_rows(changed, IDS != 0)).abs().max() < 1e-12


def test_the_last_position_hides_where_a_text_is_one_row(models):
    wrong, right = models(classifiers.LastPosition)
    torch.testing.assert_close(wrong(FULL[:, :1]), right(FULL[:, :1]), atol=1e-12, rtol=0)


def test_without_a_final_norm_the_logits_grow_with_the_rows(models):
    wrong, right = models(classifiers.NoFinalNorm, Classifier)
    x = 1e3 * right.rows(IDS)
    growth = [(model.from_rows(1e3 * x, IDS != 0).norm() / model.from_rows(x, IDS != 0).norm()).item() for model in (wrong, right)]
    assert growth[0] > 500 and growth[1] < 2


def test_without_a_final_norm_it_hides_where_the_rows_come_out_normed(models):
    wrong, right = models(classifiers.NoFinalNorm, Classifier)
    right.norm.weight.data.fill_(1.0)
    right.norm.bias.data.zero_()
    for model in (wrong, right):
        for block in model.blocks:
            for last in (block.self_attn.out_proj, block.linear2):
                last.weight.data.zero_()
                last.bias.data.zero_()
    x = layer_norm(right.rows(IDS))
    torch.testing.assert_close(wrong.from_rows(x, IDS != 0), right.from_rows(x, IDS != 0), atol=1e-3, rtol=0)


def test_positions_per_text_do_not_tell_the_order_of_the_words(models):
    wrong, right = models(classifiers.PositionsPerText)
    assert (wrong(FULL) - wrong(FULL.flip(1))).abs().max() < 1e-12
    assert (right(FULL) - right(FULL.flip(1))).abs().max() > 0.01


def test_positions_per_text_give_a_text_other_logits_in_another_place(models):
    wrong, right = models(classifiers.PositionsPerText)
    assert (wrong(FULL) - wrong(FULL.flip(0)).flip(0)).abs().max() > 0.01
    torch.testing.assert_close(right(FULL), right(FULL.flip(0)).flip(0), atol=1e-12, rtol=0)


def test_positions_per_text_hide_where_the_batch_is_one_row(models):
    wrong, right = models(classifiers.PositionsPerText)
    assert torch.equal(wrong(FULL[:1, :1]), right(FULL[:1, :1]))


def test_positions_twice_are_positions_of_double_size_and_hide_where_they_are_zero(models):
    wrong, right = models(classifiers.PositionsTwice)
    assert (wrong(IDS) - right(IDS)).abs().max() > 0.01
    right.positions.data *= 2
    torch.testing.assert_close(wrong(IDS), right(IDS), atol=1e-12, rtol=0)
    for model in (wrong, right):
        model.positions.data.zero_()
    assert torch.equal(wrong(IDS), right(IDS))


def test_one_block_twice_has_the_parameters_of_one(models):
    wrong, right = models(classifiers.OneBlockKTimes, Classifier)
    counts = [sum(parameter.numel() for parameter in model.parameters()) for model in (wrong, right)]
    assert counts[1] - counts[0] == sum(parameter.numel() for parameter in right.blocks[1].parameters())
    assert (wrong(IDS) - right(IDS)).abs().max() > 0.01
    right.blocks[1].load_state_dict(right.blocks[0].state_dict())
    torch.testing.assert_close(wrong(IDS), right(IDS), atol=1e-12, rtol=0)


def test_one_block_hides_where_one_is_all_there_is(models):
    wrong, right = models(classifiers.OneBlockKTimes, Classifier, K=1)
    assert torch.equal(wrong(IDS), right(IDS))


def drawn(model):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return model(D=D, H=3, F=11, dropout=0.5, **SIZES)


def test_blocks_in_a_list_are_found_by_nobody(models):
    wrong, right = drawn(classifiers.BlocksInAList), drawn(Classifier)
    names = {name for name, _ in right.named_parameters()} - {name for name, _ in wrong.named_parameters()}
    assert names == {name for name in right.state_dict() if name.startswith("blocks.")} != set()
    wrong.eval()
    assert not wrong.training and all(block.training for block in wrong.blocks)


def test_blocks_in_a_list_hide_while_outputs_alone_are_compared():
    wrong, right = drawn(classifiers.BlocksInAList), drawn(Classifier)
    for block in (*wrong.blocks, *right.blocks):
        block.eval()
    assert torch.equal(wrong(IDS), right(IDS))
