"""How much of a column the map explains: of cells that their rows' places have not seen.

A row's place is drawn to its own cells, so that the law of a cell at its row's place is narrow even
in a column that goes with no other. So an eighth of the cells is hidden at a time, their rows are
placed anew by the cells that are left, and what is foretold there is scored. With F the masses
below the levels, or below quantiles, of a column with an order, p those of its levels without one,
e the true ones (0 or 1), and Fm, pm the shares among the cells that are scored,

    explained = 1 - (sum (F - e)^2 / sum (Fm - e)^2)^2      ranked probability score
    explained = 1 - sum (p - e)^2 / sum (pm - e)^2          Brier score

and 0 where that is below 0: the place says nothing of the column. The first is R^2 of a normal
column. What rows share has seen the hidden cells, as one of all rows each, and is not fitted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.scales import Scale
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.model import Problem

ROWS = 500  # placed anew, drawn at random
PARTS = 8  # each cell is hidden in one of them


def explained_shares(
    posterior: Posterior, problem: Problem, scales: Sequence[Scale], *, threads: int
) -> Array:
    """Return the share (D,) of each column that the map of the best restart explains.

    problem : the cells of the table that the map was made of
    scales : of its columns; 0 for those that have no known cells
    """
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(problem.n_rows)[:ROWS])
    best = replace(posterior, chains=(posterior.chains[0][-1:],), weights=(1.0,))
    truth = [scale.encoded.x[chosen] for scale in scales]
    part = rng.permuted(np.arange(chosen.size * len(scales)) % PARTS).reshape(-1, len(scales))
    masses = [np.full((chosen.size, scale.n_bins), np.nan) for scale in scales]
    for number in range(PARTS):
        xs = tuple(x[chosen] for x in problem.xs)
        for d, x in enumerate(xs):
            x[part[:, d] == number] = np.nan
        for d, date in problem.beside:  # which says a part of the date that is hidden
            xs[d][part[:, date] == number] = np.nan
        hidden = replace(problem, xs=xs, groups=None, of_fit=chosen)
        draw = fold_in(best, hidden, seed=number, threads=threads).chains[0][0]
        law = posterior.model.cells_law(draw.latent, slice(None))
        for scale in scales:
            at = part[:, scale.d] == number
            p = scale.link.masses(scale.at, law.column(scale.d, at), draw.params[scale.d])
            masses[scale.d][at] = p
    return np.array([_explained(*of) for of in zip(scales, masses, truth, strict=True)])


def _explained(scale: Scale, p: Array, x: Array) -> float:
    """Return what is explained of cells x (n,), NaN where missing, by masses p (n, G)."""
    known = ~np.isnan(x)
    x, p = x[known], p[known]
    if not x.size:
        return 0.0
    bins = x.astype(np.intp) if scale.discrete else np.searchsorted(scale.at, x, side="left")
    e = np.equal(bins[:, None], np.arange(p.shape[1])).astype(np.float64)
    if scale.ordered:
        p, e = np.cumsum(p, axis=1), np.cumsum(e, axis=1)
    total = np.sum((e - e.mean(axis=0)) ** 2)
    left = float(np.sum((e - p) ** 2) / total) if total > 0.0 else 1.0
    return max(0.0, 1.0 - (left**2 if scale.ordered else left))
