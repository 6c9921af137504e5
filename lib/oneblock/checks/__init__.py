"""Checks of any block: ``diagnose(block, D=64)`` runs them all. Each file is one question."""

from oneblock.checks.diagnosis import CHECKS, diagnose, examine
from oneblock.checks.finding import Finding
from oneblock.checks.guard import guard
from oneblock.checks.pytests import pytest_checks
from oneblock.checks.report import Report
from oneblock.checks.subject import Adapter, Subject, subject_of

__all__ = ["CHECKS", "Adapter", "Finding", "Report", "Subject", "diagnose", "examine", "guard", "pytest_checks", "subject_of"]
