"""A trial splits as it says, compares on the same texts, and gives the same numbers each time."""

import pytest
import torch

from oneblock.names import both_cases
from oneblock.naming import PENALTIES, accuracy_of_bag, encoded, fresh, known_words, parts, trial


@pytest.fixture(autouse=True)
def in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("family", ["itself", "both cases", "known words"])
def test_no_family_is_in_both_parts(family):
    vocabulary, categories, training, validation = parts(family, at_least=100, seed=1)
    every = training + validation
    key = {"itself": str, "both cases": both_cases, "known words": known_words(every, 100)}[family]
    assert len(every) == 11_721 and not {key(name.text) for name in training} & {key(name.text) for name in validation}
    assert 0.15 < len(validation) / len(every) <= 0.2 and len(categories) == 26
    texts = [name.text for name in training]
    assert all(sum(word in text.split() for text in texts) >= 90 for word in vocabulary.words[2:4])


def test_names_that_differ_in_rare_words_are_one_family():
    every = sum(parts()[2:], [])
    family = known_words(every, 100)
    assert family("LATIN SMALL LETTER ALPHA") == family("LATIN SMALL LETTER THORN") == "LATIN SMALL LETTER ?"
    assert family("LATIN SMALL LETTER A") != family("LATIN SMALL LETTER O")


def test_first_values_hang_on_the_seed_and_leave_torchs_own_alone():
    torch.manual_seed(1)
    due = torch.rand(3)
    torch.manual_seed(1)
    one, same, other = (fresh(11, 3, seed) for seed in (4, 4, 5))
    assert torch.equal(torch.rand(3), due)
    assert torch.equal(one.head.weight, same.head.weight) and not torch.equal(one.head.weight, other.head.weight)
    assert len(fresh(11, 3, 0, D=8).blocks) == 2 and fresh(11, 3, 0, D=8).blocks[0].linear1.out_features == 16


def test_a_bag_is_judged_by_its_best_penalty(monkeypatch):
    rights = iter([0.5, 0.7, 0.6])
    monkeypatch.setattr("oneblock.naming.evaluate", lambda *_: (0.0, next(rights)))
    ids, classes = torch.tensor([[1, 2], [2, 0]]), torch.tensor([0, 1])
    assert len(PENALTIES) == 3 and accuracy_of_bag((ids, classes), (ids, classes), V=3, C=2) == 0.7


def test_a_trial_tells_what_it_was_and_can_be_made_again():
    one = trial(fraction=1 / 32, seed=1, epochs=1)
    assert one == trial(fraction=1 / 32, seed=1, epochs=1)
    assert one[:6] == (100, "itself", 1 / 32, 293, 32, 1) and one.vocabulary == 65
    vocabulary, categories, names, held_out = parts(seed=1)
    classes = encoded(held_out, vocabulary, categories)[1]
    assert one.majority == (classes == categories.index("Lo")).double().mean().item()
    assert one.majority < one.bag < 1 and 0.2 < one.classifier < 1
