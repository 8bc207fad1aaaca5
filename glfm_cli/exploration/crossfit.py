"""Who has a feature, told by rows and columns apart from what is to be seen of it.

A feature is looked for in the draws given half of the rows, by these rows. How probably a row n of
the other half has it is told by its cells but that of column d, under such a draw:

    P(z_nk = 1 | x_n without d) = sum_c w_nc z_ck,   w_nc ~ prod_{e != d} p(x_ne | z_c)

where c are rows of the half that the draw was given: the prior of a new row's features is how they
occur together there. What column d is in rows with and without the feature is then no consequence
of how the feature was found: neither did the row take part, nor column d decide on the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.explanation import Explanation, memberships
from glfm_cli.exploration.halves import HalfSample
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.stability import MATCH, correlations, some_rows
from glfm_cli.inference.row_scores import log_densities

AT_MOST_ROWS = 1000  # of a half that judges
_CANDIDATES = 128  # rows whose features a row may have


@dataclass(frozen=True)
class CrossFit:
    """Who has the features of an explanation, as the draws of one half tell of the other.

    rows : (n,) numbers of the rows that judge
    probability : (D, n, K) of having each feature, told without column d; 0 where none is found
    found : (C, K) share of the draws of each chain that contain the feature
    """

    rows: Array
    probability: Array
    found: Array

    @property
    def known(self) -> Array:
        """Return (K,) bool: some draw contains the feature."""
        return np.asarray(self.found.any(axis=0))


def cross_fit(
    half: HalfSample, shown: Explanation, scales: Sequence[Scale], *, bias: bool
) -> CrossFit:
    """Return who has each feature of an explanation, told by the draws of a half.

    O(D n C) for each draw, with at most n = 1,000 rows and C = 128 candidates.
    """
    rows = half.other[some_rows(half.other.size, AT_MOST_ROWS)]
    among = some_rows(half.own.size, _CANDIDATES)
    mine = shown.Z[half.own]
    n_features = mine.shape[1]
    total = np.zeros((len(scales), rows.size, n_features))
    times, shares = np.zeros(n_features), []
    for chain in half.posterior.chains:
        found = np.zeros((0, n_features), dtype=bool)
        for draw in chain:
            Z = memberships(half.posterior, draw, slice(None), bias=bias)
            r = np.column_stack([correlations(mine, Z), np.zeros(n_features)])
            match = np.abs(r).argmax(axis=1)
            phi = r[np.arange(n_features), match]
            contained = np.abs(phi) >= MATCH
            found = np.vstack([found, contained])
            if contained.any():
                law = half.posterior.cells_law(draw, among)
                log_p = [
                    log_densities(s.link, s.encoded.cells[rows], law.column(s.d), draw.params[s.d])
                    for s in scales
                ]
                has = Z[among][:, match[contained]]
                has = np.where(phi[contained] > 0, has, 1 - has).astype(np.float64)
                for d, weights in enumerate(without_each(log_p)):
                    total[d][:, contained] += weights @ has
                times += contained
        shares.append(found.mean(axis=0))
    return CrossFit(rows, total / np.maximum(times, 1), np.array(shares))


def without_each(log_p: Sequence[Array]) -> list[Array]:
    """Return per column the weights (n, C), rows adding up to 1, that all other columns give.

    log_p : per column (n, C), the log density of each row's cell under each candidate
    """
    total = np.sum(log_p, axis=0)
    weights = []
    for own in log_p:
        rest = total - own
        rest = np.exp(rest - rest.max(axis=1, keepdims=True))
        weights.append(rest / rest.sum(axis=1, keepdims=True))
    return weights
