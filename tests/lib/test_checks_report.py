"""What a reader gets to see of the findings, in a notebook, in a terminal, in their own suite."""

import json
import re
from unittest import SkipTest

import pytest
import torch
from torch import nn

from oneblock.blocks import PostNorm, PreNorm
from oneblock.checks import CHECKS, Finding, Report, Subject, diagnose, pytest_checks
from oneblock.checks.finding import CRASHED, FAILED, NOT_APPLICABLE, PASSED, crashed, judged
from oneblock.mutants import NormAfterSum

D, H, F = 12, 2, 20


@pytest.fixture
def report():
    """One finding of each outcome."""
    lost = crashed("causality", RuntimeError("here\nand <there>"))
    found = judged("padding_leak", {"a": 0.0, "b": 0.25}, 1e-3)
    return Report("MyBlock", (judged("overfit", {"loss": 0.1}, 0.1), found, Finding("norm_axes", NOT_APPLICABLE), lost))


@pytest.mark.parametrize("value, outcome", [(0.5, PASSED), (0.50001, FAILED), (torch.inf, FAILED), (torch.nan, FAILED)])
def test_a_number_passes_up_to_its_threshold_and_nan_never(value, outcome):
    assert judged("overfit", {"loss": 0.0, "other": value}, 0.5).outcome == outcome


def test_the_worst_number_is_the_largest_and_nan_is_larger():
    assert judged("overfit", {"a": 1.0, "b": 3.0, "c": 2.0}, 0.5).worst == ("b", 3.0)
    assert judged("overfit", {"a": torch.inf, "b": torch.nan, "c": 2.0}, 0.5).worst[0] in "ab"
    assert judged("overfit", {"a": 3.0, "b": torch.nan}, 0.5).worst[0] == "b"


def test_only_what_failed_or_crashed_spoils_a_report(report):
    passed, failed, skipped, lost = report.findings
    assert Report("x", (passed, skipped)).ok
    assert not Report("x", (passed, failed)).ok and not Report("x", (passed, lost)).ok


def test_the_text_says_what_was_measured_what_is_due_and_where_to_look(report):
    assert report.text == repr(report)
    lines = report.text.splitlines()
    assert lines[0] == "MyBlock: 1 passed, 1 failed, 1 not applicable, 1 crashed"
    assert lines[2:5] == [
        "✓ Overfits four texts: passed",
        "✗ Is blind to padding: failed",
        "    b: 0.25, at most 0.001 is due. " + report.findings[1].said("source"),
    ]
    assert "    Read: 09_masks_and_padding.html#how-do-you-test-it" in lines
    assert "    RuntimeError: and <there>" in lines
    assert "    This check needs a submodule that norms its rows, found by what it does or by the name of its class; or say norms." in lines


def test_the_html_is_escaped_and_has_a_row_a_check(report):
    html = report._repr_html_()
    assert html.count("<tr>") == 4 and "and &lt;there&gt;" in html and "<there>" not in html


def test_in_html_what_failed_or_crashed_links_to_its_section_and_nothing_else_does(report):
    links = re.findall(r'<a href="(.*?)">(.*?)</a>', report._repr_html_())
    assert links == [(finding.said("link"),) * 2 for finding in report.findings if finding.outcome in (FAILED, CRASHED)]


def test_the_json_can_be_read_again_and_has_no_infinity():
    report = Report("MyBlock", (judged("overfit", {"loss": torch.inf}, 0.1),))
    data = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert data["block"] == "MyBlock" and data["ok"] is False
    (finding,) = data["findings"]
    assert finding["measured"] == {"loss": "inf"} and finding["check"] == "overfit" and finding["threshold"] == 0.1
    assert {"title", "proves", "source", "causes", "link", "note"} <= set(finding)


def test_a_report_has_every_check_once_and_is_asked_by_name():
    report = diagnose(NormAfterSum(D, H, F))
    assert [finding.check for finding in report.findings] == list(CHECKS)
    assert report["sublayers_off"].outcome == report["official_parity"].outcome == FAILED and not report.ok


def test_some_checks_alone_can_be_run():
    report = diagnose(PreNorm(D, H, F), checks=[CHECKS["shapes"]])
    assert [finding.check for finding in report.findings] == ["shapes"] and report.ok


class Fragile(nn.Module):
    """Refuses a text that is not in a batch of three."""

    def forward(self, x):
        if len(x) != 3:
            raise RuntimeError("three\nor nothing")
        return x


def test_a_crash_is_a_finding_and_the_rest_goes_on():
    report = diagnose(Fragile(), D)
    assert report["overfit"].outcome == CRASHED and report["overfit"].note == "RuntimeError: or nothing", report["overfit"]
    assert report["shapes"].outcome == FAILED and report["input_kept"].outcome == PASSED


def own_suite(factory, **claims):
    """How often each outcome came up in a reader's suite."""
    kind, outcomes = pytest_checks(factory, **claims), []
    for check in CHECKS:
        try:
            getattr(kind(), f"test_{check}")()
            outcomes.append(PASSED)
        except SkipTest as skip:
            outcomes.append(NOT_APPLICABLE)
            assert "This check needs" in str(skip)
        except AssertionError as failure:
            outcomes.append(FAILED)
            assert "Look at: " in str(failure)
    return {outcome: outcomes.count(outcome) for outcome in set(outcomes)}


def test_a_readers_suite_fails_where_the_report_does_and_skips_what_is_not_applicable():
    assert own_suite(lambda: NormAfterSum(D, H, F))[FAILED] == 2


TestPostNorm = pytest_checks(lambda: PostNorm(D, H, F))  # a reader's three lines, of which one is skipped


def test_a_suite_takes_a_ready_subject():
    made = pytest_checks(lambda: Subject(PreNorm(D, H, F), D, lambda block, x, valid_tokens: block(x)))
    made().test_shapes()
    with pytest.raises(SkipTest):
        made().test_padding_leak()
