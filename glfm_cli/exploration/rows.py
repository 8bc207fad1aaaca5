"""What the posterior says of single rows and cells: which are surprising, which are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.explanation import explain, memberships, numbered
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.stability import thinned
from glfm_cli.inference.posterior import Posterior

_AT_MOST_DRAWS = 100
_SURPRISE_DRAWS = 40
_FEWEST_ROWS = 3  # of a feature that counts as common
_LEAST_SHARE = 0.01
N_SIMILAR = 10


@dataclass(frozen=True)
class Surprising:
    """The least expected observed cells and rows, the most surprising first.

    A density has the unit of its column, so a cell is compared with the others of its column:
    `excess` is the log density less the column's mean log density. A row's is the sum over its
    observed cells.

    cell_row, cell_column, cell_density, cell_excess : (n,) of cells; column among the modelled
    row, row_density, row_excess : (n,) of rows
    """

    cell_row: Array
    cell_column: Array
    cell_density: Array
    cell_excess: Array
    row: Array
    row_density: Array
    row_excess: Array


@dataclass(frozen=True)
class Similar:
    """The rows that share most features with one row, the most alike first.

    row : the row asked for;  rows, likeness : (n,) the others, and in [0, 1] how alike they are
    """

    row: int
    rows: Array
    likeness: Array


def surprising(
    posterior: Posterior, scales: Sequence[Scale], at_most: int, *, bias: bool
) -> Surprising:
    """Return the `at_most` least expected cells, and as many rows.

    The log density is that of a cell given the features of its row, averaged over draws before the
    log is taken. Features that hardly any row has (under 1 %, or under three rows) are left out:
    with them the model accommodates odd rows, which would then look expected.
    O(draws N S), with at most 40 draws.
    """
    cells = {scale.d: np.flatnonzero(scale.encoded.observed) for scale in scales}
    scores = _log_scores(posterior, scales, cells, bias=bias)
    n_rows = scales[0].encoded.x.size
    density, excess = np.zeros(n_rows), np.zeros(n_rows)
    above: dict[int, Array] = {}
    for d, score in scores.items():
        above[d] = score - score.mean() if score.size else score
        density[cells[d]] += score
        excess[cells[d]] += above[d]
    row = np.concatenate([cells[d] for d in scores])
    column = np.concatenate([np.full(cells[d].size, d) for d in scores])
    every = np.concatenate([above[d] for d in scores])
    worst = np.argsort(every, kind="stable")[:at_most]
    seen = np.flatnonzero(np.bincount(row, minlength=n_rows))
    rows = seen[np.argsort(excess[seen], kind="stable")[:at_most]]
    return Surprising(
        cell_row=row[worst],
        cell_column=column[worst],
        cell_density=np.concatenate([scores[d] for d in scores])[worst],
        cell_excess=every[worst],
        row=rows,
        row_density=density[rows],
        row_excess=excess[rows],
    )


def _log_scores(
    posterior: Posterior, scales: Sequence[Scale], cells: dict[int, Array], *, bias: bool
) -> dict[int, Array]:
    """Return the log density of cells under the common features, averaged over draws."""
    scores = {d: np.full(rows.size, -np.inf) for d, rows in cells.items()}
    n_draws = 0
    few = _thinned(posterior, _SURPRISE_DRAWS)
    for c, t, _ in numbered(few):
        one = explain(few, c, t, bias=bias)
        count = one.Z.sum(axis=0, dtype=np.int64)
        common = count >= max(_FEWEST_ROWS, _LEAST_SHARE * one.Z.shape[0])
        eta = one.eta_of(slice(None), common)
        for scale in scales:
            rows = cells[scale.d]
            density = scale.link.log_density(
                scale.encoded.scored[rows],
                scale.law(eta[rows], float(one.noise[scale.d])),
                one.params[scale.d],
            )
            scores[scale.d] = np.logaddexp(scores[scale.d], density)
        n_draws += 1
    return {d: score - np.log(n_draws) for d, score in scores.items()}


def similar(posterior: Posterior, row: int, *, bias: bool) -> Similar:
    """Return the ten rows that share most features with a row, averaged over draws.

    Likeness in one draw is the number of features both rows have over the number either has, 1
    where neither has any; features are turned to be on in at most half of the rows.
    """
    total, n = np.zeros(0), 0
    for _, _, draw in numbered(_thinned(posterior, _AT_MOST_DRAWS)):
        Z = memberships(posterior, draw, slice(None), bias=bias).astype(np.float64)
        if bias and Z.shape[1]:
            Z = np.where(Z.mean(axis=0) > 0.5, 1 - Z, Z)
        both = Z @ Z[row]
        either = Z.sum(axis=1) + Z[row].sum() - both
        alike = np.divide(both, either, out=np.ones_like(both), where=either > 0)
        total, n = (alike if n == 0 else total + alike), n + 1
    likeness = total / n
    others = np.delete(np.arange(likeness.size), row)
    order = others[np.argsort(-likeness[others], kind="stable")[:N_SIMILAR]]
    return Similar(row, order, likeness[order])


def _thinned(posterior: Posterior, at_most: int) -> Posterior:
    """Return the posterior with about `at_most` evenly spaced draws."""
    per_chain = max(1, at_most // len(posterior.chains))
    chains = tuple(
        tuple(chain[t] for t in thinned(len(chain), per_chain).tolist())
        for chain in posterior.chains
    )
    return replace(posterior, chains=chains)
