"""Complete a matrix that is given as triplets: ratings, or successes among trials."""

from glfm_cli.completion.matrix.matrix import MatrixData, prepare_matrix
from glfm_cli.completion.matrix.pairs import Pairs, predict_pairs
from glfm_cli.completion.matrix.predictions import MatrixCompletion
from glfm_cli.completion.matrix.side import features_of
