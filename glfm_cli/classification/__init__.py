"""Classification: predict a label when features, and some labels, are missing."""

from __future__ import annotations

from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.classify import classify
from glfm_cli.classification.experts import ExpertsFound, describe_experts
from glfm_cli.classification.folds import CrossValidation, cross_validate
from glfm_cli.classification.result import Classification, Predictions
from glfm_cli.classification.saved import is_classifier, load_trained
from glfm_cli.classification.scores import SCORES, all_scores
from glfm_cli.classification.tasks import FitUsage, TaskUsage
from glfm_cli.classification.trained import Trained

__all__ = [
    "SCORES",
    "Classification",
    "Classifier",
    "CrossValidation",
    "ExpertsFound",
    "FitUsage",
    "Predictions",
    "TaskUsage",
    "Trained",
    "all_scores",
    "classify",
    "cross_validate",
    "describe_experts",
    "is_classifier",
    "load_trained",
]
