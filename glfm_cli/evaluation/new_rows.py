"""Counts of new rows, predicted from some of their columns: what is hidden, and how it is scored.

Rows are held out of the fit. Of each a column is observed at random, zeros included, and the counts
of its other columns are predicted. Columns that no row left has a count in are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Ids, Triplets
from glfm_cli.errors import UsageError

MECHANISM = "new-rows"
RATES = (0.5, 0.9)
MOST, SHARE = 1000, 0.2  # rows held out
SMOOTH = 0.01


@dataclass(frozen=True)
class HeldOutRows:
    """Rows to learn from, and others of which some columns are hidden.

    train : of the rows to learn from and the columns that have a count there
    counts : (n, J) of the rows held out;  hidden : (n, J) bool
    """

    train: Triplets
    counts: Array
    hidden: Array

    @property
    def shares(self) -> Array:
        """Return the columns' shares (J,) of the counts to learn from, smoothed."""
        total = np.bincount(
            self.train.column, np.nan_to_num(self.train.value.x), len(self.train.columns)
        )
        return (total + SMOOTH) / (total + SMOOTH).sum()


def draw_new_rows(triplets: Triplets, rate: float, rng: np.random.Generator) -> HeldOutRows:
    """Return rows held out at random, of which a share `rate` of the columns is hidden.

    The same generator hides more of the same cells at a larger rate.
    """
    n_rows, J = len(triplets.rows), len(triplets.columns)
    n = min(MOST, int(SHARE * n_rows))
    if n < 1:
        raise UsageError(f"--mechanism {MECHANISM} holds out rows, and there are {n_rows}")
    order = rng.permutation(n_rows)
    out, rest = np.sort(order[:n]), np.sort(order[n:])
    uniform = rng.random((n, J))
    x = np.nan_to_num(triplets.value.x)
    place = np.full(n_rows, -1)
    place[rest] = np.arange(rest.size)
    learnt = place[triplets.row] >= 0
    total = np.bincount(triplets.column[learnt], x[learnt], J)
    kept = np.flatnonzero(total > 0.0)
    if not kept.size:
        raise UsageError("the rows that are left to learn from have no counts")
    column = np.full(J, -1)
    column[kept] = np.arange(kept.size)
    here = learnt & (column[triplets.column] >= 0)
    value = triplets.value
    train = Triplets(
        _some(triplets.rows, rest),
        _some(triplets.columns, kept),
        place[triplets.row[here]].astype(np.int32),
        column[triplets.column[here]].astype(np.int32),
        replace(
            value, x=value.x[here], observed=value.observed[here], requested=value.requested[here]
        ),
    )
    place[rest], place[out] = -1, np.arange(n)
    there = (place[triplets.row] >= 0) & (column[triplets.column] >= 0)
    counts = np.zeros((n, kept.size), dtype=np.int32)
    counts[place[triplets.row[there]], column[triplets.column[there]]] = x[there]
    return HeldOutRows(train, counts, uniform[:, kept] < rate)


def _some(ids: Ids, at: Array) -> Ids:
    return Ids(ids.name, tuple(ids.keys[i] for i in at), ids.values.take(pa.array(at)))
