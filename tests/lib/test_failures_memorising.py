import pytest
import torch

from oneblock.errors import ArgumentError
from oneblock.failures.memorising import HELD_OUT, curve, few, trial

pytestmark = pytest.mark.usefixtures("as_readers_run_it")


def test_no_two_training_names_are_alike_and_none_has_an_unknown_word():
    token_ids, classes = few(37, seed=1).training
    assert len(set(map(tuple, token_ids.tolist()))) == len(classes) == 37
    assert not (token_ids == 1).any()


def test_shuffled_names_have_the_same_classes_dealt_out_anew():
    right, shuffled = few(37, seed=1), few(37, seed=1, labels="shuffled")
    assert torch.equal(right.training[0], shuffled.training[0])
    assert torch.equal(right.training[1].sort()[0], shuffled.training[1].sort()[0])
    assert (right.training[1] != shuffled.training[1]).double().mean() > 0.5
    assert all(torch.equal(a, b) for a, b in zip(right.validation, shuffled.validation, strict=True))
    assert len(right.validation[1]) == HELD_OUT


def test_a_block_learns_a_few_wrong_classes_by_heart():
    one = trial(31, "shuffled", seed=0, epochs=40)
    assert one.learned == 1 and one.end < 0.5


def test_the_curve_has_a_point_for_each_epoch_and_ends_in_the_last_state():
    given = few(29, seed=2)
    points = curve(given, 5, seed=2)
    assert len(points) == 5 and points[-1].training_loss < points[0].training_loss
    assert points[:3] == curve(given, 3, seed=2)


def test_a_trial_tells_the_best_epoch_from_the_last():
    one = trial(31, "right", seed=0, epochs=25)
    points = curve(few(31, seed=0), 25, seed=0)
    losses = [point.loss for point in points]
    assert losses[one.epoch - 1] == min(losses) == one.losses[0] and one.losses[1] == losses[-1]
    assert one.best == points[one.epoch - 1].accuracy and one.end == points[-1].accuracy


def test_unknown_labels_are_refused():
    with pytest.raises(ArgumentError, match="labels must be one of right; shuffled; got 'wrong'"):
        few(31, 0, "wrong")
