"""The checks as tests of the reader's own suite. pytest need not be there for the rest of the library."""

from collections.abc import Callable
from unittest import SkipTest

from torch import nn

from oneblock.checks.diagnosis import CHECKS
from oneblock.checks.examination import examine
from oneblock.checks.finding import CRASHED, FAILED, NOT_APPLICABLE, Finding
from oneblock.checks.models.diagnosis import MODEL_CHECKS
from oneblock.checks.models.model import Call as ModelCall
from oneblock.checks.models.model import Model, model_of
from oneblock.checks.report import told
from oneblock.checks.subject import Call, Subject, subject_of


def pytest_checks(
    factory: Callable[[], nn.Module | Subject], D: int | None = None, call: Call | None = None, **claims: object
) -> type:
    """A class for pytest, one test a check; its name has to begin with ``Test``::

        from oneblock.checks import pytest_checks

        TestMyBlock = pytest_checks(lambda: MyBlock(64), D=64)

    Each test builds a block. It fails with what the check says; what is not applicable is skipped.

    Args:
        factory: makes a block, or a subject.
        D, call, claims: as :func:`oneblock.checks.subject.subject_of` takes them.
    """

    return _suite(CHECKS, lambda: subject_of(factory(), D, call, **claims))


def pytest_model_checks(
    factory: Callable[[], nn.Module | Model], V: int | None = None, call: ModelCall | None = None, **claims: object
) -> type:
    """The same for a classifier of token ids::

        TestMyClassifier = pytest_model_checks(lambda: MyClassifier(1000), V=1000)

    Args:
        factory: makes a classifier, or a :class:`Model`.
        V, call, claims: as :func:`oneblock.checks.models.model.model_of` takes them.
    """
    return _suite(MODEL_CHECKS, lambda: model_of(factory(), V, call, **claims))


def _suite(checks: dict[str, Callable[[object], Finding]], make: Callable[[], object]) -> type:
    def test(check: str) -> Callable[[object], None]:
        def run(self: object) -> None:
            finding = examine(make(), checks[check])
            if finding.outcome == NOT_APPLICABLE:
                raise SkipTest("; ".join(told(finding)))
            assert finding.outcome not in (FAILED, CRASHED), "\n".join(told(finding))

        return run

    return type("TestChecks", (), {f"test_{check}": test(check) for check in checks})
