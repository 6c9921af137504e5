"""The stored studies of where a block fails are what their scripts would store: a sample of each is made anew."""

from pathlib import Path
from statistics import median

import pytest
import torch

from oneblock.failures import addition, brackets, memorising, quadratic, width
from oneblock.stored import load, pick

DATA = Path(__file__).parents[2] / "book" / "data"
ADDITION = load(DATA / "addition_study.json", addition.Trial)
BRACKETS = load(DATA / "brackets_study.json", brackets.Trial)
WIDTH = load(DATA / "width_study.json", width.Trial)
MEMORISING = load(DATA / "memorising_study.json", memorising.Trial)
QUADRATIC = load(DATA / "quadratic_study.json", quadratic.Cost)
# Three significant digits: at worst 1.005 is stored as 1.00 or 1.01.
DIGITS = 5.1e-3


@pytest.mark.parametrize(
    ("name", "records", "fields"),
    [
        ("addition_study", ADDITION, 3),
        ("brackets_study", BRACKETS, 2),
        ("width_study", WIDTH, 3),
        ("memorising_study", MEMORISING, 3),
        ("quadratic_study", QUADRATIC, 2),
    ],
)
def test_each_study_holds_every_kind_once(name, records, fields, script):
    assert [one[:fields] for one in records] == script(name).KINDS


@pytest.mark.parametrize(("positions", "nines", "seed"), [("learned, from any place", 0.5, 1)])
def test_the_first_spans_of_a_sample_of_adders_are_found_again(positions, nines, seed):
    (stored,) = pick(ADDITION, positions=positions, nines=nines, seed=seed)
    anew = addition.trial(positions, nines, seed, steps=2 * addition.SPAN)
    assert stored.losses[:2] == pytest.approx(anew.losses, rel=DIGITS)


@pytest.mark.parametrize(("deepest", "seed"), [(3, 1)])
def test_the_first_spans_of_a_sample_of_readers_of_brackets_are_found_again(deepest, seed):
    (stored,) = pick(BRACKETS, deepest=deepest, seed=seed)
    anew = brackets.trial(deepest, seed, steps=2 * brackets.SPAN)
    assert stored.losses[:2] == pytest.approx(anew.losses, rel=0.02)  # float32, which other machines sum otherwise


@pytest.mark.parametrize(("F", "fours", "seed"), [(2, 3, 2)])
def test_a_sample_of_the_study_of_width_is_found_again(F, fours, seed):
    (stored,) = pick(WIDTH, F=F, fours=fours, seed=seed)
    anew = width.trial(F, fours, seed)
    assert stored[:4] == anew[:4] and stored[4:] == pytest.approx(anew[4:], rel=DIGITS)


@pytest.mark.parametrize(("names", "labels", "seed"), [(50, "shuffled", 1)])
def test_a_sample_of_the_study_of_few_names_is_found_again(names, labels, seed):
    (stored,) = pick(MEMORISING, names=names, labels=labels, seed=seed)
    anew = memorising.trial(names, labels, seed)
    assert (stored.epoch, stored.learned) == (anew.epoch, anew.learned)
    assert stored.losses == pytest.approx(anew.losses, rel=DIGITS)
    assert stored[5:8] == pytest.approx(anew[5:8], rel=DIGITS)


@pytest.mark.parametrize("way", quadratic.WAYS)
@pytest.mark.parametrize("L", [128, 512])
def test_the_bytes_of_the_study_of_length_are_found_again(way, L):
    (stored,) = pick(QUADRATIC, way=way, L=L)
    assert stored.kept == quadratic.kept_bytes(way, L)


def test_no_adder_adds_twice_the_length_and_all_with_their_own_rows_add_the_length_of_training():
    at = {n: k for k, n in enumerate(addition.LENGTHS)}
    assert max(one.sums[at[16]] for one in ADDITION) < 0.15
    for positions in ("learned", "sinusoids"):
        assert min(one.sums[at[8]] for one in pick(ADDITION, positions=positions)) > 0.85


def test_a_carry_through_four_nines_is_learned_only_where_there_are_many():
    seldom, often = (pick(ADDITION, positions="learned", nines=nines) for nines in (0.0, 0.5))
    assert max(one.runs[4] for one in seldom) < 0.25 and median(one.runs[4] for one in often) > 0.7


def test_brackets_are_followed_to_the_depth_of_training_and_no_deeper():
    at = {depth: k for k, depth in enumerate(brackets.DEPTHS)}
    for one in pick(BRACKETS, deepest=3):
        assert min(one.texts[: at[4]]) > 0.95 and max(one.texts[at[4] :]) < 0.4
    assert min(min(one.texts) for one in pick(BRACKETS, deepest=7)) > 0.7


def test_every_block_learns_its_names_by_heart_right_or_shuffled():
    assert {one.learned for one in MEMORISING} == {1.0}
    assert all(one.end < one.commonest for one in pick(MEMORISING, labels="shuffled"))


def test_time_grows_by_four_and_bytes_of_the_fused_kernel_by_two():
    assert quadratic.doubling(QUADRATIC, "fused kernel", "kept") == [2.0] * 5
    for way in ("scores written out", "fused kernel"):
        assert min(quadratic.doubling(QUADRATIC, way, "seconds")[2:]) > 3


def test_with_enough_sentences_width_beyond_need_changes_nothing():
    assert all(one.new == 1 for one in pick(WIDTH, fours=16) if one.F in (4, 32, 128, 512, 2048))
    assert torch.tensor([one.learned - one.new for one in WIDTH]).max() < 0.15
