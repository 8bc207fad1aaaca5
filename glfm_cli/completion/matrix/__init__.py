"""Complete a matrix that is given as triplets: ratings, or hits among trials."""

from __future__ import annotations

from glfm_cli.completion.matrix.matrix import MatrixData, prepare_matrix
from glfm_cli.completion.matrix.pairs import MOST_PAIRS, Pairs, predict_pairs
from glfm_cli.completion.matrix.predictions import MatrixCompletion
from glfm_cli.completion.matrix.side import Features, FeatureTable, features_of

__all__ = [
    "MOST_PAIRS",
    "FeatureTable",
    "Features",
    "MatrixCompletion",
    "MatrixData",
    "Pairs",
    "features_of",
    "predict_pairs",
    "prepare_matrix",
]
