"""Each mistake is caught, no right one is flagged, and a row says which check saw what."""

from functools import cache

import pytest
import torch

from oneblock import clinic
from oneblock.checks import CHECKS, MODEL_CHECKS, Finding
from oneblock.checks.finding import CRASHED, FAILED, NOT_APPLICABLE, PASSED
from oneblock.clinic import TOLD_THE_ANSWER, Cell, Row, examined, name_of_right, told
from oneblock.mutants import procedures
from oneblock.mutants.catalogue import MISTAKES
from oneblock.words import words

pytestmark = pytest.mark.usefixtures("as_readers_run_it")

SAID = words()["clinic"]
ONE_PER_KIND = {
    "mask_inverted": ("padding_leak", "official_parity", "reference_parity"),
    "causal_off_by_one": ("official_parity", "reference_parity", "causality"),
    "gate_and_up_swapped": ("reference_parity",),
    "one_block_k_times": ("parameters_own", "logits_reference"),
    "positions_twice": ("logits_reference",),
    "softmax_before_loss": ("loss_of_logits", "loss_parity"),
    "eval_only": ("prediction_free",),
    "step_without_forgetting": ("step_forgets",),
    "at_one_rate": ("comparison_rates",),
}


def finding(outcome, check="padding_leak", threshold=1e-6, note="", **measured):
    return Finding(check, outcome, measured, threshold, note)


def cell(*outcomes, right=PASSED):
    return Cell(tuple(map(finding, outcomes)), (finding(right),))


@cache
def one_seed(name):
    return examined(name, seeds=1)


@pytest.mark.parametrize("name, checks", ONE_PER_KIND.items())
def test_a_mistake_is_caught_by_these_and_the_right_one_by_none(name, checks):
    row = one_seed(name)
    assert row.caught_by == checks and row.seen_by == tuple(check for check in checks if check not in TOLD_THE_ANSWER)
    assert not any(one.flags_the_right_one for one in row.cells.values())


def test_what_fires_at_one_seed_fires_at_another():
    assert examined("mask_inverted", seeds=2).caught_by == ONE_PER_KIND["mask_inverted"]
    assert [len(cell.wrong) for cell in examined("eval_only", seeds=2).cells.values()] == [1, 2, 1, 1]


@pytest.mark.parametrize("name", SAID["twins"])
def test_what_looks_right_from_outside_is_a_mistake_of_the_catalogue(name):
    assert SAID["twins"][name].startswith("It is a right ") or name == "softmax_over_heads_too"
    assert name in MISTAKES


def test_a_row_has_the_checks_of_its_kind():
    assert list(one_seed("mask_inverted").cells) == list(CHECKS)
    assert list(one_seed("positions_twice").cells) == list(MODEL_CHECKS)
    assert set(clinic.ASKED) == {mistake.right for mistake in MISTAKES.values() if mistake.kind == "procedure"}
    assert all(right in vars(procedures).values() for right in clinic.ASKED)


def test_without_its_claim_a_causal_block_would_be_flagged(monkeypatch):
    claimed = MISTAKES["causal_off_by_one"]
    unclaimed = type(claimed)(claimed.wrong, claimed.right, claimed.place)
    assert claimed.claims == {"causal": True} and unclaimed.claims == {}
    finding = clinic._findings(unclaimed, unclaimed.right, 0, ["causality"])["causality"]
    assert finding.outcome == FAILED and one_seed("causal_off_by_one").cells["causality"].right[0].outcome == PASSED


def test_those_with_one_right_one_and_one_claim_share_its_findings():
    assert name_of_right("unscaled") == name_of_right("norm_over_tokens") == "norm_over_tokens"
    assert name_of_right("causal_off_by_one") == "causal_off_by_one"


def test_the_other_seeds_are_asked_only_what_fired_at_the_first(monkeypatch):
    asked = []

    def findings(mistake, one, seed, checks=None):
        asked.append((one is mistake.wrong, seed, checks and list(checks)))
        outcome = {"a": FAILED, "b": PASSED, "c": CRASHED if seed == 0 else PASSED}
        return {check: finding(outcome[check] if one is mistake.wrong else PASSED) for check in checks or outcome}

    monkeypatch.setattr(clinic, "_findings", findings)
    clinic._of_right.cache_clear()
    row = examined("unscaled", seeds=3)
    clinic._of_right.cache_clear()
    assert [one for one in asked if one[0]] == [(True, 0, None), (True, 1, ["a", "c"]), (True, 2, ["a", "c"])]
    assert [one for one in asked if not one[0]] == [(False, seed, None) for seed in range(3)]
    assert row.caught_by == ("a",) and row.unstable == ("c",) and row.cells["c"].fired == 1


def test_a_cell_catches_if_it_fires_at_every_seed():
    assert cell(FAILED, CRASHED).catches and cell(FAILED, CRASHED).fired == 2
    assert not cell(FAILED, PASSED).catches and not cell(PASSED).catches and not cell(NOT_APPLICABLE).catches
    assert cell(PASSED).applies and cell(CRASHED).applies and not cell(NOT_APPLICABLE).applies
    assert cell(FAILED, right=CRASHED).flags_the_right_one and not cell(FAILED, right=NOT_APPLICABLE).flags_the_right_one


def test_of_two_effects_that_rounding_tells_apart_the_first_is_named():
    near = Cell((finding(FAILED, train=0.78123, eval=0.7812300001, other=0.5),), ())
    assert near.effect == ("train", 0.78) and cell(PASSED).effect is None


def row_of(**cells):
    return Row("unscaled", cells)


def test_a_row_is_told_with_a_label_for_every_check_that_is_wanted():
    alarm = Cell((finding(FAILED, train=0.1234),) * 2, (finding(PASSED),))
    shown = told(row_of(padding_leak=alarm, shapes=cell(PASSED), overfit=cell(NOT_APPLICABLE)), ["overfit", "padding_leak", "dtypes"])
    checks = words()["checks"]
    labels = [SAID["fires"].format(checks[name]["title"]) for name in ("overfit", "padding_leak", "dtypes")]
    assert list(shown)[5:8] == labels and shown[labels[0]] == shown[labels[2]] == ""
    assert shown[labels[1]] == f"0.12 (train), where at most 1e-06 is due. {checks['padding_leak']['proves']}"
    assert shown[SAID["lines"]] == "- return q @ k.mT / sqrt(q.shape[-1])\n+ return q @ k.mT"
    assert shown[SAID["seen"]] == "Project-MONAI/GenerativeModels #146" and "√E" in shown[SAID["outside"]]
    assert (shown[SAID["passed"]], shown[SAID["blind"]]) == (checks["shapes"]["title"], checks["overfit"]["title"])


def test_a_check_that_stopped_or_fired_at_some_seeds_says_so():
    proves, label = words()["checks"]["padding_leak"]["proves"], SAID["fires"].format(words()["checks"]["padding_leak"]["title"])
    stopped = Cell((finding(CRASHED, note="ValueError: \tno."),), ())
    assert told(row_of(padding_leak=stopped))[label] == f"It stopped: ValueError: no. {proves}"
    shown = told(row_of(padding_leak=Cell((finding(FAILED, train=2.0), finding(PASSED)), ())))[label]
    assert shown == f"At 1 of 2 seeds only. 2 (train), where at most 1e-06 is due. {proves}"


def test_all_of_them_are_told_in_the_same_labels():
    rows = [one_seed(name) for name in ("mask_inverted", "gate_and_up_swapped")]
    assert list(told(rows[0])) == list(told(rows[1])) and all(told(rows[0])[label] for label in list(told(rows[0]))[:3])


def test_a_reader_whose_numbers_are_float64_by_default_sees_the_same():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        row = examined("inference_only", seeds=1)
    finally:
        torch.set_default_dtype(before)
    assert row.seen_by[0] == "prediction_repeats" and not any(cell.flags_the_right_one for cell in row.cells.values())
