"""Which features bind columns together by more than chance gives.

The evidence that feature k has to do with column d is the correlation r of the column's cells
(their ranks, of intervals by what lies surely below and above them, or the indicator of each level)
with the probabilities p of having the feature, which were told without this column and by draws of
other rows (crossfit.py). Were the columns independent, then any order of the column's cells were as
likely as the one that is there, so that

    z = r sqrt(n - 1)

has mean 0 and variance 1 whatever the table, its size and the model. z is averaged over those of
the two halves whose draws contain the feature. Averaged, not added up: what the halves say of each
other is not independent.

The null level is what the largest |z| of all features, columns and halves stays below in 95 % of
tables whose columns are permuted, each on its own. A table without any dependence between columns
has a feature above it in at most one of twenty cases.

Features are taken one by one, first the one that tells most of the columns; correlations are then
those that are left given the features taken. So twins are taken once, and it ends where no feature
says more than chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array, interval_ranks, mean_ranks
from glfm_cli.exploration.crossfit import CrossFit
from glfm_cli.exploration.scales import Scale

LEVEL = 0.95  # share of permuted tables that stay below the null level
AT_MOST = 8  # features taken
_PERMUTATIONS = 199
_FEWEST = 3.0  # rows expected to have both a feature and a level, or neither, from which it counts
_LEAST_SD = 1e-6  # of probabilities that differ between rows at all


@dataclass(frozen=True)
class Evidence:
    """How much features have to do with columns.

    null_level : of |z|
    z : (K, D) of the view of the column that says most, signed
    taken : (K, D) z when a feature was taken, given those before it; 0 of features not taken
    order : the features that say more than chance and than those before them, the first first
    """

    null_level: float
    z: Array
    taken: Array
    order: tuple[int, ...]

    @property
    def credible(self) -> Array:
        """Return (K, D) bool: the feature has to do with the column."""
        return np.maximum(np.abs(self.z), np.abs(self.taken)) > self.null_level


@dataclass(frozen=True)
class _ObservedCells:
    """A column in the rows of one half in which it is observed.

    p : (n, K) probabilities of the features, told without it
    views : (n, V) its ranks, or the indicators of its levels
    enough : (K, V) bool, few rows are no reason for a large correlation
    """

    p: Array
    views: Array
    enough: Array


def weigh(
    crossed: Sequence[CrossFit], scales: Sequence[Scale], seed: int, n_features: int = 0
) -> Evidence:
    """Return the evidence of what halves tell of each other; K features, D columns.

    n_features : K, of tables too small for halves: nothing is said of any feature
    """
    n_features = crossed[0].probability.shape[2] if crossed else n_features
    halves = [[_seen(one, i, scale) for i, scale in enumerate(scales)] for one in crossed]
    if not (crossed and n_features):
        none = np.zeros((n_features, len(scales)))
        return Evidence(np.inf, none, none, ())
    rng = np.random.default_rng(seed)
    level = null_level([column for columns in halves for column in columns], rng)
    times = np.maximum(np.sum([one.known for one in crossed], axis=0), 1)
    order: list[int] = []
    now = _averages(halves, times, order)
    z, taken = now[0], np.zeros_like(now[0])
    while len(order) < AT_MOST:
        above = np.abs(now[0]).max(axis=1) > level
        if not above.any():
            break
        order.append(int(np.argmax(np.where(above, np.sum(now[1] ** 2, axis=1), -1.0))))
        taken[order[-1]] = now[0][order[-1]]
        now = _averages(halves, times, order)
    return Evidence(level, z, taken, tuple(order))


def null_level(columns: Sequence[_ObservedCells], rng: np.random.Generator) -> float:
    """Return what the largest |z| stays below where cells are permuted within each column."""
    largest = np.zeros(_PERMUTATIONS)
    for column in columns:
        n, n_views = column.views.shape
        if n < 2:
            continue
        order = rng.permuted(np.tile(np.arange(n), (_PERMUTATIONS, 1)), axis=1)
        p, views = _standard(column.p), _standard(column.views)
        for v in range(n_views):
            z = np.sqrt(n - 1) * np.abs(views[order, v] @ p[:, column.enough[:, v]])
            largest = np.maximum(largest, z.max(axis=1, initial=0.0))
    return float(np.quantile(largest, LEVEL, method="higher"))


def _seen(crossed: CrossFit, i: int, scale: Scale) -> _ObservedCells:
    """Return what one half says of column number `i`."""
    encoded = scale.encoded
    x = encoded.inside[crossed.rows]
    there = ~np.isnan(x) if scale.link.n_latent else np.zeros(x.size, dtype=bool)
    x, p = x[there], crossed.probability[i][there]
    if encoded.ends is not None:
        views = interval_ranks(*encoded.cells[crossed.rows][there].T)[:, None]
        least = np.full(1, 0.5)
    elif scale.ordered:
        views, least = mean_ranks(x)[:, None], np.full(1, 0.5)
    else:
        views = (x[:, None] == np.arange(len(scale.encoded.levels))).astype(np.float64)
        views = views[:, : 1 if views.shape[1] == 2 else None]
        share = views.sum(axis=0) / max(x.size, 1)
        least = np.minimum(share, 1 - share)
    rare = p.sum(axis=0) / max(x.size, 1)
    return _ObservedCells(p, views, x.size * np.outer(np.minimum(rare, 1 - rare), least) >= _FEWEST)


def _averages(
    halves: Sequence[Sequence[_ObservedCells]], times: Array, given: Sequence[int]
) -> tuple[Array, Array]:
    """Return z and r (K, D) of the view of each column that says most, averaged over halves.

    times : (K,) the halves that contain a feature; the others say 0
    """
    by_column = []
    for parts in zip(*halves, strict=True):
        r = np.array([_partial(part, given) for part in parts])
        dof = np.array([max(len(part.p) - 1 - len(given), 0) for part in parts])
        both = [one.sum(axis=0) / times[:, None] for one in (r * np.sqrt(dof)[:, None, None], r)]
        most = np.abs(both[0]).argmax(axis=1)[:, None]
        by_column.append([np.take_along_axis(one, most, axis=1)[:, 0] for one in both])
    z, r = np.moveaxis(np.array(by_column), 1, 0)
    return z.T, r.T


def _partial(column: _ObservedCells, given: Sequence[int]) -> Array:
    """Return the correlations (K, V) of features and views, given some of the features."""
    q, _ = np.linalg.qr(np.column_stack([np.ones(len(column.p)), column.p[:, list(given)]]))
    p, views = (_standard(one - q @ (q.T @ one)) for one in (column.p, column.views))
    return np.where(column.enough, p.T @ views, 0.0)


def _standard(values: Array) -> Array:
    """Return columns of mean 0 and length 1; 0 where all values are the same."""
    centred = values - values.mean(axis=0) if len(values) else values
    length = np.sqrt(np.sum(centred**2, axis=0))
    least = _LEAST_SD * np.sqrt(len(values))
    return np.divide(centred, length, out=np.zeros_like(centred), where=length > least)
