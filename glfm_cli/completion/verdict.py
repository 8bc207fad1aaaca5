"""Whether the estimates of a completion are precise enough."""

from __future__ import annotations

import numpy as np

from glfm_cli.completion.matrix.matrix import MatrixTask
from glfm_cli.encoding import Data
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.precision import GOAL, Precision, measure_precision
from glfm_cli.streams import CELLS, Streams


def judge(
    posterior: Posterior, data: Data | MatrixTask, seed: int, goal: float | None = None
) -> Precision:
    """Return how precise the estimates of the cells to be completed are."""
    if isinstance(data, MatrixTask):
        return data.measure_precision(posterior, goal)
    missing = {d: np.flatnonzero(e.requested) for d, e in enumerate(data.columns)}
    return measure_precision(posterior, missing, Streams(seed, 0).get(CELLS), goal or GOAL)
