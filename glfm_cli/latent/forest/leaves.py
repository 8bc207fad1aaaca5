"""How small the leaves of a column's trees are, and whether they forecast what a line leaves over.

Where a column is a smooth function of others, leaves of one member forecast best; where it is
mostly noise, large ones; where it is nearly a weighted sum, a line before them. Ways are compared
by forecasts of observed cells, by trees that have not seen them. The mean square error of few trees
is larger than that of many by the variance of trees, which is most of it in small leaves. So some
forests that share no random number forecast the same cells: the mean product of the errors of any
two is the mean square error of infinitely many.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.lines import Lines, may_have
from glfm_cli.latent.forest.trees import FEWEST, grow, law, targets
from glfm_cli.links.law import NormalMixture, Probabilities

USUAL = 3
SIZES = (USUAL, 1, 10)  # the first is that by which lines are compared
SETTLED = 3  # turns through the columns, after which the cells are no more those of the start
FORESTS = 4
TREES, LEFT_OUT = 4, 1  # of each forest, and how many of these do not see a row
ROWS = 2_000  # of which these trees are grown, at most


def best_way(
    z: Array, seen: Array, kinds: Kinds, d: int, config: ForestConfig, rng: np.random.Generator
) -> tuple[int, bool]:
    """Return how column d is forecast best, of what the settings leave open.

    z, seen : (D, N) as `grow` has them

    Returns: members of a leaf, at least; whether trees are grown on what a line leaves over
    """
    rows = np.flatnonzero((seen[d] != 0) & (z[d] != kinds.atom[d]))
    if rows.size < FEWEST:
        return config.least or USUAL, False
    lines = [Lines.none(kinds, z.shape[1])]
    if config.linear != "never" and may_have(kinds)[d]:
        lines.append(Lines.fit(z, seen, kinds, [d], rng))
    if config.linear == "always":
        lines = lines[-1:]
    sizes = (config.least,) if config.least else SIZES
    config = replace(config, rows=min(config.rows, ROWS))

    @cache
    def error(size: int, line: int) -> float:
        return error_of_many(z, seen, kinds, d, rows, size, lines[line], config, rng)

    line, least = 0, sizes[0]
    if len(lines) > 1:
        line = min(range(len(lines)), key=lambda line: error(least, line))
    if len(sizes) > 1:
        least = min(sizes, key=lambda size: error(size, line))
    return least, bool(lines[line].place[d] >= 0)


def error_of_many(
    z: Array, seen: Array, kinds: Kinds, d: int, rows: Array, least: int, lines: Lines,
    config: ForestConfig, rng: np.random.Generator,
) -> float:  # fmt: skip
    """Return the mean square error in column d of some rows of infinitely many trees.

    lines : that of column d, if its trees forecast what it leaves over

    Of numbers on the scale of z. Of levels the sum over levels, of probabilities or, where levels
    are ordered, of cumulative ones: the Brier and the ranked probability score.
    """
    leaf = np.full(len(z), least)
    donors, own = np.where(seen[d] != 0, targets(z, d, lines), np.nan), rows.astype(np.int32)
    total = squares = np.zeros(1)
    for _ in range(FORESTS):
        trees = grow(z, seen, kinds, [d], TREES, LEFT_OUT, leaf, config, rng, lines)
        found = law(z, rows, own, donors, kinds, d, trees, 0, config.prior)
        if isinstance(found, Probabilities):
            error = found.p.copy()
            error[np.arange(rows.size), z[d, rows].astype(np.intp)] -= 1.0
            error = error if kinds.nominal[d] else error.cumsum(axis=1)
        else:
            assert isinstance(found, NormalMixture)
            error = found.means[:, 0, -1:] - donors[rows, None]
        total, squares = total + error, squares + error**2
    pairs = FORESTS * (FORESTS - 1)
    return float(np.mean(np.sum((total**2 - squares) / pairs, axis=1)))
