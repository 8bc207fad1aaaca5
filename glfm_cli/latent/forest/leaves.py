"""How small the leaves of a column's trees are.

Where a column is a smooth function of others, leaves of one member forecast best; where it is
mostly noise, large ones. Sizes are compared by forecasts of observed cells, by trees that have not
seen them. The mean square error of few trees is larger than that of many by the variance of trees,
which is most of it in small leaves. So some forests that share no random number forecast the same
cells: the mean product of the errors of any two is the mean square error of infinitely many.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.trees import FEWEST, grow, law
from glfm_cli.links.law import NormalMixture, Probabilities

USUAL = 3
SIZES = (USUAL, 1, 10)
SETTLED = 3  # turns through the columns, after which the cells are no more those of the start
FORESTS = 4
TREES, LEFT_OUT = 4, 1  # of each forest, and how many of these do not see a row
ROWS = 2_000  # of which these trees are grown, at most


def best_least(
    z: Array, seen: Array, kinds: Kinds, d: int, config: ForestConfig, rng: np.random.Generator
) -> int:
    """Return of how many members, at least, leaves of trees of column d forecast it best.

    z, seen : (D, N) as `grow` has them
    """
    rows = np.flatnonzero((seen[d] != 0) & (z[d] != kinds.atom[d]))
    if rows.size < FEWEST:
        return USUAL
    config = replace(config, rows=min(config.rows, ROWS))
    errors = [error_of_many(z, seen, kinds, d, rows, least, config, rng) for least in SIZES]
    return SIZES[int(np.argmin(errors))]


def error_of_many(
    z: Array, seen: Array, kinds: Kinds, d: int, rows: Array, least: int, config: ForestConfig,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """Return the mean square error in column d of some rows of infinitely many trees.

    Of numbers on the scale of z. Of levels the sum over levels, of probabilities or, where levels
    are ordered, of cumulative ones: the Brier and the ranked probability score.
    """
    leaf = np.full(len(z), least)
    donors, own = np.where(seen[d] != 0, z[d], np.nan), rows.astype(np.int32)
    total = squares = np.zeros(1)
    for _ in range(FORESTS):
        trees = grow(z, seen, kinds, [d], TREES, LEFT_OUT, leaf, config, rng)
        found = law(z, rows, own, donors, kinds, d, trees, 0, config.prior)
        if isinstance(found, Probabilities):
            error = found.p.copy()
            error[np.arange(rows.size), z[d, rows].astype(np.intp)] -= 1.0
            error = error if kinds.nominal[d] else error.cumsum(axis=1)
        else:
            assert isinstance(found, NormalMixture)
            error = found.means[:, 0, -1:] - z[d, rows, None]
        total, squares = total + error, squares + error**2
    pairs = FORESTS * (FORESTS - 1)
    return float(np.mean(np.sum((total**2 - squares) / pairs, axis=1)))
