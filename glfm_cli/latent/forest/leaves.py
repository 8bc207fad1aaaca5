"""How small the leaves of a column's trees are, and what share linear forecasts have.

Where a column is a smooth function of others, leaves of one member forecast best; where it is
mostly noise, large ones; where it is nearly a weighted sum, a line before them, or beside them of
levels. Ways are compared by forecasts of observed cells, by trees that have not seen them. The mean
square error of few trees is larger than that of many by the variance of trees, which is most of it
in small leaves. So some forests that share no random number forecast the same cells: the mean
product of the errors of any two is the mean square error of infinitely many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest import discriminants
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.discriminants import Discriminants
from glfm_cli.latent.forest.lines import Lines, may_have
from glfm_cli.latent.forest.trees import FEWEST, grow, law, targets
from glfm_cli.links.law import NormalMixture, Probabilities

USUAL = 3
SIZES = (USUAL, 1, 10)
SETTLED = 3  # turns through the columns, after which the cells are no more those of the start
FORESTS = 4
TREES, LEFT_OUT = 4, 1  # of each forest, and how many of these do not see a row
ROWS = 2_000  # of which these trees are grown, at most
SHARE_SD = 0.35  # of a normal prior of a discriminant's share around a half
LEAST_SHARE = 0.05


Errors = tuple[float, Array]  # the mean square of all, and the mean of each row


def best_way(
    z: Array, seen: Array, kinds: Kinds, d: int, config: ForestConfig, rng: np.random.Generator
) -> tuple[int, float]:
    """Return how column d is forecast best, of what the settings leave open.

    z, seen : (D, N) as `grow` has them

    Returns: members of a leaf, at least; of numbers 1 where trees are grown on what a line leaves
        over, else 0; of levels the share that a discriminant has beside trees
    """
    rows = np.flatnonzero((seen[d] != 0) & (z[d] != kinds.atom[d]))
    if rows.size < FEWEST:
        return config.least or USUAL, 0.0
    lines = [Lines.none(kinds, z.shape[1])]
    if config.linear != "never" and may_have(kinds)[d]:
        lines.append(Lines.fit(z, seen, kinds, [d], rng))
    if config.linear == "always":
        lines = lines[-1:]
    sizes, least = (config.least,) if config.least else SIZES, config.least or USUAL
    config = replace(config, rows=min(config.rows, ROWS))

    def lowest(ways: Sequence[tuple[int, Lines]]) -> tuple[tuple[int, Lines], Errors]:
        found = [errors_of_many(z, seen, kinds, d, rows, *way, config, rng) for way in ways]
        best = int(np.argmin([square for square, _ in found]))
        return ways[best], found[best]

    line = lines[0] if len(lines) == 1 else lowest([(least, line) for line in lines])[0][1]
    if config.linear != "never" and discriminants.may_have(kinds)[d]:
        (least, _), errors = lowest([(size, line) for size in sizes])
        return least, share_of(z, seen, kinds, d, rows, errors, rng)
    if len(sizes) > 1:
        least = lowest([(size, line) for size in sizes])[0][0]
    return least, float(line.place[d] >= 0)


def share_of(
    z: Array, seen: Array, kinds: Kinds, d: int, rows: Array, trees: Errors,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """Return the share of a discriminant in the forecast of column d, of trees the rest.

    trees : their errors, of some rows

    It is that of the least mean square error, by a normal prior around a half.
    """
    found = Discriminants.fit(z, seen, kinds, np.arange(len(z)) == d, rng)
    p = np.exp(found.log_p(d, z, rows, rows.astype(np.int32)))
    error, (square, mean) = error_of_levels(p, z[d, rows], kinds.nominal[d] != 0), trees
    both, own = (float(np.mean(np.sum(other * error, axis=1))) for other in (mean, error))
    prior = square / (rows.size * SHARE_SD**2)
    apart = square - 2.0 * both + own + prior
    share = float(np.clip((square - both + 0.5 * prior) / apart, 0.0, 1.0)) if apart > 0.0 else 0.0
    return share if share >= LEAST_SHARE else 0.0


def error_of_levels(p: Array, code: Array, nominal: bool) -> Array:
    """Return the errors (n, R) of probabilities, or of cumulative ones where levels are ordered."""
    error = p.copy()
    error[np.arange(code.size), code.astype(np.intp)] -= 1.0
    return error if nominal else error.cumsum(axis=1)


def errors_of_many(
    z: Array, seen: Array, kinds: Kinds, d: int, rows: Array, least: int, lines: Lines,
    config: ForestConfig, rng: np.random.Generator,
) -> Errors:  # fmt: skip
    """Return the mean square error of infinitely many trees in column d of some rows.

    lines : that of column d, if its trees forecast what it leaves over

    Of numbers on the scale of z. Of levels the sum over levels, of probabilities or, where levels
    are ordered, of cumulative ones: the Brier and the ranked probability score.

    Returns: that, and the mean errors (n, R), or (n, 1) of numbers, of some trees
    """
    leaf = np.full(len(z), least)
    donors, own = np.where(seen[d] != 0, targets(z, d, lines), np.nan), rows.astype(np.int32)
    total = squares = np.zeros(1)
    for _ in range(FORESTS):
        trees = grow(z, seen, kinds, [d], TREES, LEFT_OUT, leaf, config, rng, lines)
        found = law(z, rows, own, donors, kinds, d, trees, 0, config.prior)
        if isinstance(found, Probabilities):
            error = error_of_levels(found.p, z[d, rows], kinds.nominal[d] != 0)
        else:
            assert isinstance(found, NormalMixture)
            error = found.means[:, 0, -1:] - donors[rows, None]
        total, squares = total + error, squares + error**2
    pairs = FORESTS * (FORESTS - 1)
    return float(np.mean(np.sum((total**2 - squares) / pairs, axis=1))), total / FORESTS
