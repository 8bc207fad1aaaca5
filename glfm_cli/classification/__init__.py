"""Classification: predict a label when features, and some labels, are missing."""

from __future__ import annotations

from glfm_cli.classification.classify import classify
from glfm_cli.classification.experts import describe_experts
from glfm_cli.classification.result import Classification, Predictions
from glfm_cli.classification.saved import is_classifier, load_trained
from glfm_cli.classification.tasks import FitUsage, TaskUsage
