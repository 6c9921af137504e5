"""Checks of any block: ``diagnose(block, D=64)`` runs them all. Each file is one question.

Of any classifier: ``diagnose_model(model, V=1000)``; of a function: ``diagnose_prediction``, ``diagnose_loss``,
``diagnose_step`` and ``diagnose_comparison``. Each kind of subject has a table of its checks.
"""

from oneblock.checks.diagnosis import CHECKS, diagnose
from oneblock.checks.examination import examine
from oneblock.checks.finding import Finding
from oneblock.checks.guard import guard
from oneblock.checks.models.diagnosis import MODEL_CHECKS, diagnose_model
from oneblock.checks.models.model import IdsAdapter, Model, model_of
from oneblock.checks.procedures.comparison import Comparison
from oneblock.checks.procedures.diagnosis import (
    COMPARISON_CHECKS,
    LOSS_CHECKS,
    PREDICTION_CHECKS,
    STEP_CHECKS,
    diagnose_comparison,
    diagnose_loss,
    diagnose_prediction,
    diagnose_step,
)
from oneblock.checks.procedures.loss import Loss
from oneblock.checks.procedures.prediction import Prediction
from oneblock.checks.procedures.step import Step
from oneblock.checks.pytests import pytest_checks, pytest_model_checks
from oneblock.checks.report import Report
from oneblock.checks.subject import Adapter, Subject, subject_of

__all__ = [
    "CHECKS",
    "COMPARISON_CHECKS",
    "LOSS_CHECKS",
    "MODEL_CHECKS",
    "PREDICTION_CHECKS",
    "STEP_CHECKS",
    "Adapter",
    "Comparison",
    "Finding",
    "IdsAdapter",
    "Loss",
    "Model",
    "Prediction",
    "Report",
    "Step",
    "Subject",
    "diagnose",
    "diagnose_comparison",
    "diagnose_loss",
    "diagnose_model",
    "diagnose_prediction",
    "diagnose_step",
    "examine",
    "guard",
    "model_of",
    "pytest_checks",
    "pytest_model_checks",
    "subject_of",
]
