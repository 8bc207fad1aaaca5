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


def grouped_folds(code: Array, group: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return a fold (m,) for each row, all rows of a group in one, levels spread evenly.

    Groups, the largest first, go in turn to the fold that has the fewest rows of their levels.

    code, group : (m,) levels 0..R-1, and numbers of groups
    """
    place = np.unique(group, return_inverse=True)[1]
    count = np.zeros((place.max() + 1, int(code.max()) + 1))
    np.add.at(count, (place, code.astype(np.intp)), 1.0)
    share = count / np.maximum(count.sum(axis=0), 1.0)  # rare levels count as much as others
    order = rng.permutation(len(share))
    order = order[np.argsort(-np.square(share[order]).sum(axis=1), kind="stable")]
    fold, total = np.empty(len(share), dtype=np.intp), np.zeros((n_folds, share.shape[1]))
    for g in order:
        fold[g] = np.lexsort((total.sum(axis=1), total @ share[g]))[0]
        total[fold[g]] += share[g]
    return np.asarray(fold[place])
