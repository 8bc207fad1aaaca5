"""Columns of rows hidden at random: the whole count, or the zero, goes with its column."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.cnpf.counts import Counts


def hide_columns(counts: Counts, seen: Array) -> tuple[Counts, Counts]:
    """Return the counts of the columns that are seen, the others missing, and those of the others.

    seen : (U, I) bool; rows are few here, held out to be predicted
    """
    side = counts.rows
    row = np.repeat(np.arange(side.n), np.diff(side.indptr))
    here = seen[row, side.index]
    kept = (row[here], side.index[here], counts.count[here])
    rest = (row[~here], side.index[~here], counts.count[~here])
    unit, other = np.nonzero(~seen)
    return (
        Counts.of(*kept, counts.shape, (unit, other), counts.threads),
        Counts.of(*rest, counts.shape, threads=counts.threads),
    )
