"""All findings of one block: as text, as HTML in a notebook, as JSON."""

import json
from collections import Counter
from dataclasses import dataclass
from html import escape

from oneblock.checks.finding import CRASHED, FAILED, NOT_APPLICABLE, OUTCOMES, PASSED, Finding
from oneblock.words import words

SIGNS = {PASSED: "✓", FAILED: "✗", NOT_APPLICABLE: "–", CRASHED: "!"}
ANYWHERE = 'style="overflow-wrap: anywhere"'
"""A link is one long word, and a phone is narrow."""


@dataclass(frozen=True)
class Report:
    """``text``, ``to_json()`` and, in a notebook, a table; ``ok`` if no check failed and none crashed."""

    block: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed or crashed. What was not applicable has not been looked at."""
        return not any(finding.outcome in (FAILED, CRASHED) for finding in self.findings)

    def __getitem__(self, check: str) -> Finding:
        return next(finding for finding in self.findings if finding.check == check)

    @property
    def summary(self) -> str:
        """How many checks had which outcome."""
        counts, named = Counter(finding.outcome for finding in self.findings), words()["report"]["outcomes"]
        return f"{self.block}: " + ", ".join(f"{counts[outcome]} {named[outcome]}" for outcome in OUTCOMES)

    @property
    def text(self) -> str:
        """One line a check; below those that failed or crashed, what was measured and what to look at."""
        lines = [self.summary, ""]
        for finding in self.findings:
            lines += [" ".join((SIGNS[finding.outcome], *told(finding)[:1])), *(f"    {line}" for line in told(finding)[1:])]
        return "\n".join(lines)

    def to_json(self) -> str:
        """``{"block", "ok", "findings": […]}``."""
        found = [finding.to_dict() for finding in self.findings]
        return json.dumps({"block": self.block, "ok": self.ok, "findings": found}, ensure_ascii=False, indent=2)

    def _repr_html_(self) -> str:
        body = "\n".join(_html(finding) for finding in self.findings)
        return f'<div class="ob-figure">\n<table>\n<caption>{escape(self.summary)}</caption>\n{body}\n</table>\n</div>'

    def __repr__(self) -> str:
        return self.text


def told(finding: Finding) -> list[str]:
    """A finding in lines: its title and outcome; what was measured; what to look at and where to read of it."""
    said = words()["report"]
    lines = [f"{finding.said('title')}: {said['outcomes'][finding.outcome]}"]
    if finding.outcome == FAILED:
        name, value = finding.worst
        lines.append(said["measured"].format(name, f"{value:.3g}", f"{finding.threshold:.3g}", finding.said("source")))
    if finding.outcome in (FAILED, CRASHED) and finding.note:
        lines.append(finding.note)
    if finding.outcome == FAILED:
        lines.append(said["causes"].format(finding.said("causes")))
    if finding.outcome in (FAILED, CRASHED):
        lines.append(said["read"].format(finding.said("link")))
    if finding.outcome == NOT_APPLICABLE:
        lines.append(said["needs"].format(finding.said("needs")))
    return lines


def _html(finding: Finding) -> str:
    link = escape(finding.said("link"))
    told_at = "<br>".join(escape(line) for line in told(finding)[1:]).replace(link, f'<a href="{link}">{link}</a>')
    sign = f"{SIGNS[finding.outcome]} {words()['report']['outcomes'][finding.outcome]}"
    return f"<tr><td>{escape(sign)}</td><td>{escape(finding.said('title'))}</td><td {ANYWHERE}>{told_at}</td></tr>"
