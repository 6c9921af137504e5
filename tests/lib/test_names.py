"""The names are those that were counted, the split keeps what it promises, and texts that cannot be encoded are refused."""

import unicodedata
from collections import Counter

import pytest
import torch

from oneblock.errors import ArgumentError
from oneblock.names import (
    CATEGORIES,
    Name,
    Vocabulary,
    both_cases,
    itself,
    numbered,
    one_word_away,
    split,
    unicode_names,
    valid,
    words_of,
)

NAMES = unicode_names()
FEW = [Name(f"{size} LETTER {letter}", category) for letter in "ABCDEFGHIJK" for size, category in [("CAPITAL", "Lu"), ("SMALL", "Ll")]]


def test_there_are_as_many_names_and_words_as_unicode_3_2_has():
    assert len(NAMES) == len({name.text for name in NAMES}) == 11_721
    lengths = Counter(len(name.text.split()) for name in NAMES)
    assert min(lengths) == 1 and max(lengths) == 13
    assert len({word for name in NAMES for word in name.text.split()}) == 3_761
    assert {name.category for name in NAMES} == set(CATEGORIES) and len(CATEGORIES) == 26


def test_a_name_and_its_category_belong_to_one_character():
    known = dict(NAMES)
    for character in "A", "é", "5", "€", "ß", "\u0301", "☃":
        assert known[unicodedata.name(character)] == unicodedata.category(character)


def test_no_name_is_in_both_parts_and_none_is_lost():
    training, validation = split(NAMES, share=0.2, seed=3)
    assert sorted(training + validation) == sorted(NAMES) and not set(training) & set(validation)
    assert len(validation) == 2_344


def test_a_split_hangs_on_its_seed_and_not_on_the_order_of_the_list():
    for family in (itself, both_cases):
        one, other = (split(few, 0.3, 5, family) for few in (FEW, FEW[::-1]))
        assert one == other and split(FEW, 0.3, 6, family) != one


def test_a_family_stays_together():
    training, validation = split(FEW, 0.3, seed=1, family=both_cases)
    parts = [{both_cases(name.text) for name in part} for part in (training, validation)]
    assert not parts[0] & parts[1] and len(training) + len(validation) == 22 and len(validation) == 6
    apart = split(FEW, 0.3, seed=1)
    assert {both_cases(name.text) for name in apart[0]} & {both_cases(name.text) for name in apart[1]}


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, True, "half", float("nan")])
@pytest.mark.usefixtures("as_readers_run_it")
def test_a_share_that_leaves_a_part_empty_is_refused(share):
    with pytest.raises(ArgumentError, match=r"^share must be a number between 0 and 1; got "):
        split(FEW, share)


def one_word_away_by_pairs(texts, others):
    def differ(a, b):
        a, b = a.split(), b.split()
        return len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1

    return [any(differ(text, other) for other in others) for text in texts]


def test_texts_one_word_apart_are_found_as_by_comparing_all_pairs():
    training, validation = ([name.text for name in part[:300]] for part in split(NAMES, seed=2))
    found = one_word_away(validation, training)
    assert found == one_word_away_by_pairs(validation, training) and 0 < sum(found) < 300


def test_a_text_is_not_one_word_from_itself():
    assert one_word_away(["A B", "C"], ["A B"]) == [False, False]
    assert one_word_away(["A B", "C", "B A"], ["A B", "A C", "D"]) == [True, True, False]
    assert one_word_away(["A B", "C"], iter(["A B"])) == [False, False]


@pytest.fixture
def vocabulary():
    return Vocabulary(["SMALL LETTER A", "SMALL LETTER B", "SMALL A"], at_least=2)


def test_ids_follow_the_alphabet_behind_padding_and_the_unknown_word(vocabulary):
    assert vocabulary.words == ("", "?", "A", "LETTER", "SMALL") and len(vocabulary) == 5
    assert vocabulary.known("LETTER") and not vocabulary.known("B") and not vocabulary.known("?")


def test_a_text_is_encoded_word_by_word_with_padding_behind(vocabulary):
    ids = vocabulary.encode(["small letter b", "A"], L=5)
    assert ids.tolist() == [[4, 3, 1, 0, 0], [2, 0, 0, 0, 0]] and ids.dtype == torch.int64
    assert valid(ids).tolist() == [[True, True, True, False, False], [True, False, False, False, False]]


def test_a_question_mark_in_a_text_is_an_unknown_word_and_no_padding(vocabulary):
    assert vocabulary.encode(["? A"], L=2).tolist() == [[1, 2]]


def test_words_of_the_validation_part_are_unknown():
    training, validation = ([name.text for name in part] for part in split(NAMES))
    vocabulary = Vocabulary(training)
    assert {word for text in training for word in words_of(text)} == set(vocabulary.words[2:])
    new = {word for text in validation for word in text.split()} - set(vocabulary.words)
    assert len(new) > 100 and not any(map(vocabulary.known, new))


def test_a_class_is_the_place_of_its_category():
    assert numbered(FEW[:3], ["Ll", "Lm", "Lu"]).tolist() == [2, 0, 2]
    assert numbered([], ["Ll"]).dtype == torch.int64
    with pytest.raises(ArgumentError, match=r"^categories must be a list with Lu, which the names have; got \['Ll', 'Lm'\]$"):
        numbered(FEW[:3], ["Ll", "Lm"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^text must be of one word or more; got ''"),
        ("  \t", r"^text must be of one word or more; got "),
        ("A B C D", r"^text must be of at most 3 words, as there are positions; got '4 words'"),
        (65, r"^text must be a str; got 65; a text is one string"),
        (["A"], r"^text must be a str; got \['A'\]"),
        (None, r"^text must be a str; got None"),
    ],
)
@pytest.mark.usefixtures("as_readers_run_it")
def test_a_text_that_has_no_ids_is_refused(vocabulary, text, message):
    with pytest.raises(ArgumentError, match=message):
        vocabulary.encode(["A", text], L=3)


@pytest.mark.parametrize("texts", ["SMALL A", None, 3])
@pytest.mark.usefixtures("as_readers_run_it")
def test_a_single_text_is_no_list_of_texts(vocabulary, texts):
    for use in (Vocabulary, lambda given: vocabulary.encode(given, L=3)):
        with pytest.raises(ArgumentError, match=r"^texts must be a list of texts; got .*put a single text in a list"):
            use(texts)


def test_no_text_at_all_is_refused(vocabulary):
    with pytest.raises(ArgumentError, match=r"^texts must be one text or more; got \[\]"):
        vocabulary.encode([], L=3)


@pytest.mark.parametrize("at_least", [0, -1, 1.5])
@pytest.mark.usefixtures("as_readers_run_it")
def test_a_threshold_is_a_whole_number(at_least):
    with pytest.raises(ArgumentError, match=r"^at_least must be a whole number ≥ 1; got "):
        Vocabulary(["A"], at_least)
