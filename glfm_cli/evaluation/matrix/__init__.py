"""How far predictions of a matrix that is given as triplets can be trusted."""

from __future__ import annotations

from glfm_cli.evaluation.matrix.evaluate import (
    METHODS,
    MatrixEvaluation,
    evaluate_matrix,
)
from glfm_cli.evaluation.matrix.holdouts import MECHANISMS

__all__ = ["MECHANISMS", "METHODS", "MatrixEvaluation", "evaluate_matrix"]
