"""Complete a matrix that is given as triplets: ratings, or hits among trials."""

from __future__ import annotations

from glfm_cli.completion.matrix.impute import impute_matrix
from glfm_cli.completion.matrix.matrix import MatrixCompletion, MatrixTask, plan_matrix
from glfm_cli.completion.matrix.new_units import FittedMatrix, with_fit
from glfm_cli.completion.matrix.pairs import ALL, MOST_PAIRS, Pairs, predict_pairs
from glfm_cli.completion.matrix.saved import plan_matrix_session, task_of_fit
from glfm_cli.completion.matrix.side import Features, FeatureTable, features_of

__all__ = [
    "ALL",
    "MOST_PAIRS",
    "FeatureTable",
    "Features",
    "FittedMatrix",
    "MatrixCompletion",
    "MatrixTask",
    "Pairs",
    "features_of",
    "impute_matrix",
    "plan_matrix",
    "plan_matrix_session",
    "predict_pairs",
    "task_of_fit",
    "with_fit",
]
