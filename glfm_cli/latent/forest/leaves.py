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
from typing import NamedTuple

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
MEDIAN = 1.0 - np.sqrt(3.0) / np.pi  # variance of the median of three standard normals
TOO_WIDE = 0.8  # error to variance of donors, below which these are drawn nearer to the middle


class ColumnChoice(NamedTuple):
    """How a column is forecast, and its cells are drawn.

    least : members of a leaf, at least
    linear : whether trees are grown on what a line leaves over
    middle : share of cells that are given the median of three donors
    """

    least: int
    linear: bool
    middle: float = 0.0


class Errors(NamedTuple):
    """Mean square error of infinitely many trees, and variance of donors around their mean."""

    error: float
    variance: float


def best_way(
    z: Array, seen: Array, kinds: Kinds, d: int, config: ForestConfig, rng: np.random.Generator
) -> ColumnChoice:
    """Return how column d is forecast best, of what the settings leave open.

    z, seen : (D, N) as `grow` has them
    """
    rows = np.flatnonzero((seen[d] != 0) & (z[d] != kinds.atom[d]))
    if rows.size < FEWEST:
        return ColumnChoice(config.least or USUAL, False)
    lines = [Lines.none(kinds, z.shape[1])]
    if config.linear != "never" and may_have(kinds)[d]:
        lines.append(Lines.fit(z, seen, kinds, [d], rng))
    if config.linear == "always":
        lines = lines[-1:]
    sizes = (config.least,) if config.least else SIZES
    config = replace(config, rows=min(config.rows, ROWS))

    @cache
    def errors(size: int, line: int) -> Errors:
        return errors_of_many(z, seen, kinds, d, rows, size, lines[line], config, rng)

    line, least, middle = 0, sizes[0], 0.0
    if len(lines) > 1:
        line = min(range(len(lines)), key=lambda line: errors(least, line).error)
    if len(sizes) > 1:
        least = min(sizes, key=lambda size: errors(size, line).error)
    if (len(lines) > 1 or len(sizes) > 1) and not kinds.levels[d]:
        middle = middles(errors(least, line))
    return ColumnChoice(least, bool(lines[line].place[d] >= 0), middle)


def middles(found: Errors) -> float:
    """Return the share of cells to be given the median of three donors.

    Donors are of rows that differ from that of the cell, and of trees that differ: in columns of
    little noise they are further from their mean than that is from the truth. What is drawn of
    them is then off by more than its forecast, and so are forecasts of other cells by it. With this
    share, of normals, what is drawn varies as much as the forecast is off.
    """
    if found.error >= TOO_WIDE * found.variance:
        return 0.0
    return min((1.0 - found.error / found.variance) / (1.0 - MEDIAN), 1.0)


def errors_of_many(
    z: Array, seen: Array, kinds: Kinds, d: int, rows: Array, least: int, lines: Lines,
    config: ForestConfig, rng: np.random.Generator,
) -> Errors:  # fmt: skip
    """Return the mean square error in column d of some rows of infinitely many trees.

    lines : that of column d, if its trees forecast what it leaves over

    Of numbers on the scale of z. Of levels the sum over levels, of probabilities or, where levels
    are ordered, of cumulative ones: the Brier and the ranked probability score.
    """
    leaf = np.full(len(z), least)
    donors, own = np.where(seen[d] != 0, targets(z, d, lines), np.nan), rows.astype(np.int32)
    total = squares = np.zeros(1)
    within = 0.0  # of donors in a leaf, around its mean
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
            within += float(np.mean(found.variances[:, 0, -1])) / FORESTS
        total, squares = total + error, squares + error**2
    pairs = FORESTS * (FORESTS - 1)
    of_many = float(np.mean(np.sum((total**2 - squares) / pairs, axis=1)))
    of_one = float(np.mean(np.sum(squares, axis=1))) / FORESTS
    return Errors(of_many, of_one - of_many + within)
