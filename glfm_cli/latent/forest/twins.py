"""Columns that nearly say the same, drawn together where a row has neither.

Drawn in turn, two such cells hold each other where they are, each forecast by what was forecast by
it: a chain would hardly leave its start. So before a column is visited, its missing cells in rows
that have none of its twins are drawn without these, and the twins with them: a donor, from a leaf
of trees that ask nothing of either, gives the row its cells of all of them, or what lines on the
other columns leave over of these.
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.lines import STEP_ROWS, Inputs, Lines
from glfm_cli.latent.forest.trees import draw_cells, grow, targets

ROWS = 4_000  # by which twins are found, at most,
FEWEST = 20  # and at least so many that have both


def twins_of(z: Array, seen: Array, kinds: Kinds, share: float) -> list[Array]:
    """Return the twins of every column: others of which one alone explains so much of it.

    z, seen : (D, N) cells, of which those that were observed count
    share : of the variance of a number, or of the indicators of levels

    Of a column of levels what they explain is corrected for how many there are.
    """
    D, inputs = len(z), Inputs.of(kinds)
    if inputs.too_many:
        return [np.empty(0, dtype=np.intp)] * D
    rows = np.arange(0, z.shape[1], -(-z.shape[1] // ROWS))
    there = seen[:, rows][inputs.column].T.astype(np.float64)
    x = np.where(there > 0.0, inputs.see(z[:, rows]), 0.0)
    middle = x.sum(axis=0) / np.maximum(there.sum(axis=0), 1.0)
    x = (x - middle) * there
    n = there.T @ there
    some = np.maximum(n, 1.0)
    mean, product = x.T @ there / some, x.T @ x / some  # (p, q): where both inputs were observed
    variance = (x**2).T @ there / some - mean**2
    of_both = np.maximum(variance * variance.T, 1e-300)
    square = np.where(variance * variance.T > 1e-18, (product - mean * mean.T) ** 2 / of_both, 0.0)
    explained = np.zeros((D, D))
    for e in np.unique(inputs.column):
        of = np.flatnonzero(inputs.column == e)
        first = of[0]
        if kinds.nominal[e] and of.size > 1:  # indicators of which one is 1
            left = 1.0 - np.minimum(square[:, of] @ (1.0 - middle[of]), 1.0)
            by = 1.0 - left * (n[:, first] - 1.0) / np.maximum(n[:, first] - of.size, 1.0)
        else:
            by = square[:, of].max(axis=1)
        by = np.where(n[:, first] >= FEWEST, by, 0.0)
        weight = np.bincount(inputs.column, variance[:, first], D)
        total = np.bincount(inputs.column, variance[:, first] * by, D)
        explained[:, e] = total / np.maximum(weight, 1e-300)
    np.fill_diagonal(explained, 0.0)
    return [np.flatnonzero(row > share) for row in explained]


def draw_together(
    z: Array,
    seen: Array,
    kinds: Kinds,
    d: int,
    twins: Array,
    linear: Array,
    least: Array,
    config: ForestConfig,
    rng: np.random.Generator,
) -> None:
    """Draw column d and its twins in rows that have none of them, in place.

    linear : (D,) uint8, which columns are forecast by lines
    least : (D,) int64, members of a leaf, at least
    """
    group = np.append(d, twins)
    rows = np.flatnonzero(~seen[group].any(axis=0))
    if not rows.size or not seen[d].any():
        return
    has = group[linear[group] != 0].tolist()
    lines = Lines.fit(z, seen, kinds, has, rng, without=group.tolist(), most=STEP_ROWS)
    asked = np.setdiff1d(np.arange(len(z)), twins)
    at = int(np.searchsorted(asked, d))
    cells, few = z[asked], kinds.take(asked)
    cells[at] = targets(z, d, lines)
    trees = grow(cells, seen[asked], few, [at], config.moving, 0, least[asked], config, rng)
    nobody, number = np.full(rows.size, -1, dtype=np.int32), np.arange(z.shape[1], dtype=float)
    draw_cells(cells, few, at, rows, nobody, number, trees, 0, rng)
    donor = cells[at, rows].astype(np.intp)
    for m in group:
        if lines.place[m] < 0:
            z[m, rows] = z[m, donor]
            continue
        left = lines.left_over(m)[donor]
        drawn = z[m, donor] - lines.forecast(m, z, donor)  # of donors that were not observed
        left = np.where(np.isnan(left), drawn, left)
        z[m, rows] = (lines.forecast(m, z, rows) + left).astype(np.float32)
