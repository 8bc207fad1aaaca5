"""Columns that are missing where any of some others is: a score and its items.

Such a column mostly follows from these others. A hidden item would be told by its score, and a
hidden score by its items, as no missing one is; so the score is hidden where one of its items is.
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array

LEAST_ROWS = 20  # in which the column is missing
MOST_ROWS = 20_000
LEAST_OF = 5  # in which one of the others is
SHARE = 0.95  # of rows, that tell one from the other
MOST_OF = 0.8  # of the rows without the column, that are without one of the others: no block
FEWEST = 2  # others


def derived_gaps(seen: Array) -> dict[int, Array]:
    """Return columns that are missing where any of others is, and hardly elsewhere, and these.

    seen : (N, D) bool, which cells are known; of many rows some are looked at. O(MOST_ROWS D²)
    """
    seen = seen[:: -(-len(seen) // MOST_ROWS) or 1]
    gone = (~seen).astype(np.float32)  # sums of which are exact
    n_gone = gone.sum(axis=0)
    if not np.any(n_gone >= LEAST_ROWS):
        return {}
    both = gone.T @ gone
    inside = both >= SHARE * n_gone[:, None]  # of d (rows), in those of e (columns)
    inside &= (n_gone >= LEAST_OF)[:, None] & (n_gone[:, None] <= MOST_OF * n_gone)
    found = {}
    for e in np.flatnonzero((inside.sum(axis=0) >= FEWEST) & (n_gone >= LEAST_ROWS)).tolist():
        of = np.flatnonzero(inside[:, e])
        if gone[gone[:, e] > 0][:, of].any(axis=1).sum() >= SHARE * n_gone[e]:
            found[e] = of
    return found
