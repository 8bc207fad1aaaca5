"""Complete a matrix that is given as triplets: ratings, or hits among trials."""

from __future__ import annotations

from glfm_cli.matrices.matrix import MatrixCompletion, MatrixTask, impute_matrix, plan_matrix
from glfm_cli.matrices.pairs import ALL, MOST_PAIRS, Pairs, predict_pairs

__all__ = [
    "ALL",
    "MOST_PAIRS",
    "MatrixCompletion",
    "MatrixTask",
    "Pairs",
    "impute_matrix",
    "plan_matrix",
    "predict_pairs",
]
