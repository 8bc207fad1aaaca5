"""Folds of rows over which labels are spread evenly."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array


def stratified_folds(code: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return a fold (m,) for each row, levels spread over folds as evenly as can be."""
    order = rng.permutation(code.size)
    order = order[np.argsort(code[order], kind="stable")]
    fold = np.empty(code.size, dtype=np.intp)
    fold[order] = np.arange(code.size) % n_folds
    return fold
