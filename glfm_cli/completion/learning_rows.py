"""Which rows of a large table what all rows share is learnt from.

A simple random sample, but for a tenth of it: rows that raise what is rare in the sample to
`FEWEST` rows where the table has so many. Rare are levels, observed or missing cells of a column,
and patterns of missing cells that several rows share. Of what few rows of the table hold, all are
taken first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.streams import LEARN, Streams

AUTO_ROWS = 10_000  # what "auto" takes of a table with more than twice as many
FEWEST = 20  # rows of a level or pattern
SHARE = 0.1  # of the sample, for what is rare


def rows_to_learn(learn_rows: int | str | None, n_rows: int) -> int | None:
    """Return how many rows are learnt from; None where all are."""
    if learn_rows == "auto":
        return AUTO_ROWS if n_rows > 2 * AUTO_ROWS else None
    if learn_rows is None or isinstance(learn_rows, str) or learn_rows >= n_rows:
        return None
    return int(learn_rows)


def choose_rows(data: Data, n: int, seed: int) -> Array:
    """Return n rows of a table, ascending.

    Parameters
    ----------
    data : Data
        With more rows than n.
    n : int
        At least 1.
    seed : int
        The run's.

    Returns
    -------
    (n,) int64
        O(cells) time.
    """
    order = Streams(seed, 0).get(LEARN).permutation(data.n_rows)
    place = np.argsort(order)
    chosen = np.zeros(data.n_rows, dtype=bool)
    budget = int(SHARE * n)
    chosen[order[: n - budget]] = True
    for members in sorted(_strata(data), key=len):
        others = members[~chosen[members]]
        more = min(FEWEST, members.size) - (members.size - others.size)
        if more > 0 and budget > 0:
            first = others[np.argsort(place[others])[: min(more, budget)]]
            chosen[first] = True
            budget -= first.size
    rest = order[~chosen[order]]
    chosen[rest[:budget]] = True
    return np.flatnonzero(chosen)


def _strata(data: Data) -> Iterator[Array]:
    """Yield the rows of each level, of known or missing cells of a column, of each pattern."""
    known = np.column_stack([c.observed | c.between for c in data.columns])
    for d, column in enumerate(data.columns):
        yield np.flatnonzero(known[:, d])
        yield np.flatnonzero(~known[:, d])
        for code in range(len(column.levels)):
            yield np.flatnonzero(column.x == code)
    patterns, of_row = np.unique(np.packbits(known, axis=1), axis=0, return_inverse=True)
    of_row = of_row.ravel()
    counts = np.bincount(of_row, minlength=len(patterns))
    by_pattern = np.split(np.argsort(of_row, kind="stable"), np.cumsum(counts)[:-1])
    yield from (rows for rows in by_pattern if rows.size >= FEWEST)
