"""Columns that some others say together, such as sand of silt and clay, and rows that lack some.

No one of them says another, so they are no twins. But in a row that has neither a column nor some
of these, each is drawn by what was drawn by it, as twins are. So those that are mostly missing
beside a column are its twins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.twins import FEWEST, NOBODY, ROWS

CLOSER = 4.0  # than twins, of which one leaves so many times more, are columns to some others
MOST = 5  # of these
OWN = 0.01  # share of a number's variance that those before it must leave, to be one more of them


def with_sums(
    twins: Sequence[Array], z: Array, seen: Array, kinds: Kinds, share: float
) -> list[Array]:
    """Return the twins of every column, of one without any those of a few that say it together.

    Only of numbers: of these few those that the rows without the column lack, most often.

    z, seen : (D, N) cells, of which those that were observed count
    share : of a number's variance, that a twin explains; of what it leaves, `CLOSER` times less is
        left by some that say it together
    """
    found, most_left = list(twins), (1.0 - share) / CLOSER
    numbers = np.flatnonzero((kinds.levels == 0) & np.isnan(kinds.atom) & (seen.sum(axis=1) > 0))
    if kinds.too_many or numbers.size <= 2:
        return found
    rows = np.arange(0, z.shape[1], -(-z.shape[1] // ROWS))
    known = seen[np.ix_(numbers, rows)] != 0
    x = z[np.ix_(numbers, rows)]
    C = _correlations(x, known)
    for i, d in enumerate(numbers.tolist()):
        if twins[d].size or seen[d].all():
            continue
        few = _few(C, x, known, i, most_left)
        if few:
            found[d] = np.sort(_lacked(seen[d] != 0, seen != 0, numbers[few]))
    return found


def _lacked(there: Array, seen: Array, few: Array) -> Array:
    """Return which of some columns rows without a column lack, most often, if they lack one."""
    lacking, n_rows = np.unique(~seen[few][:, ~there], axis=1, return_counts=True)
    n_rows = np.where(lacking.any(axis=0), n_rows, 0)
    if not n_rows.any():
        return NOBODY
    found: Array = few[lacking[:, int(np.argmax(n_rows))]]
    return found


def _correlations(x: Array, known: Array) -> Array:
    """Return (p, p), each of the rows that have both; 0 where these are few."""
    n = known.sum(axis=1)  # 0 of a column that none of these rows has
    middle = np.where(known, x, 0.0).sum(axis=1) / np.maximum(n, 1)
    x = np.where(known, x - middle[:, None], 0.0)
    there = known.astype(np.float64)
    both, product = there @ there.T, x @ x.T
    square = x**2 @ there.T
    scale = np.sqrt(np.maximum(square * square.T, 1e-300))
    C: Array = np.where(both >= FEWEST, product / scale, 0.0)
    np.fill_diagonal(C, 1.0)
    return C


def _few(C: Array, x: Array, known: Array, i: int, most_left: float) -> list[int]:
    """Return the places of the few columns that say column i together; none if there are none.

    The one that explains most of what is left is taken, one after another; then those are left out
    without which the others explain as much.
    """
    C, few = C.copy(), list[int]()
    while C[i, i] > most_left:
        own = np.diag(C).copy()
        own[[i, *few]] = 0.0
        gain = np.where(own > OWN, C[i] ** 2 / np.maximum(own, OWN), 0.0)
        j = int(np.argmax(gain))
        if len(few) == MOST or gain[j] <= 0.0:
            return []
        few.append(j)
        C -= np.outer(C[:, j], C[j]) / C[j, j]
    if not _explain(x, known, i, few, most_left):
        return []
    for j in few[:]:
        rest = [k for k in few if k != j]
        if rest and _explain(x, known, i, rest, most_left):
            few = rest
    return few


def _explain(x: Array, known: Array, i: int, few: list[int], most_left: float) -> bool:
    """Return whether columns leave so little of column i in the rows that have all of them."""
    rows = known[[i, *few]].all(axis=0)
    if rows.sum() < FEWEST:
        return False
    y, A = x[i, rows], np.column_stack([x[few][:, rows].T, np.ones(int(rows.sum()))])
    left = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    n, spread = y.size, float(np.var(y))
    return spread > 0.0 and float(left @ left) / (n - A.shape[1]) <= most_left * spread
