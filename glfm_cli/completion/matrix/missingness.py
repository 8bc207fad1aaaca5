"""What the pattern of observed cells says of rows and columns  [BSVD, section 5.4.1].

People rate what they expect to like, and get asked what they may know: which cells are there can
say something of their values. The leading singular vectors of the 0/1 matrix of observed cells
are covariates of rows (left) and of columns (right).
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.latent.model import Entries

SMALLEST = 1e-8  # of the largest singular value: what is below is rounding
DENSE = 200  # the shorter side of a matrix that is decomposed as a whole


def missingness_features(entries: Entries, requested: int) -> tuple[Array, Array]:
    """Return covariates of rows (I, p) and columns (J, q), mean 0 and standard deviation 1.

    p and q are at most `wanted`: vectors of singular values that are 0, and constant ones, say
    nothing and are left out. O(m `wanted`) time for m observed cells.

    Raises UsageError: `wanted` is not between 1 and the number of rows or columns.
    """
    n_rows, n_columns = entries.shape
    most = min(n_rows, n_columns)
    if not 1 <= requested <= most:
        raise UsageError(
            "--missingness-features",
            value=requested,
            expected=f"a whole number from 1 to {most}, the shorter side of the matrix",
        )
    from scipy import sparse  # of few runs, and takes as long to import as a table to encode

    mask = sparse.csr_matrix(
        (np.ones(entries.row.size), (entries.row, entries.column)), shape=entries.shape
    )
    if most <= max(DENSE, requested):
        left, size, right = np.linalg.svd(mask.toarray(), full_matrices=False)
    else:
        from scipy.sparse.linalg import svds

        # A start without chance: the same cells give the same covariates.
        left, size, right = svds(mask, k=requested, v0=np.ones(most))
    order = np.argsort(-size, kind="stable")[:requested]
    order = order[size[order] > SMALLEST * size.max()]
    return _standardised(left[:, order]), _standardised(right[order].T)


def _standardised(vectors: Array) -> Array:
    """Return the columns that vary, each with mean 0, sd 1 and its largest entry positive."""
    spread = vectors.std(axis=0)
    varies = spread > SMALLEST * np.abs(vectors).max(axis=0, initial=0.0)
    out = (vectors[:, varies] - vectors[:, varies].mean(axis=0)) / spread[varies]
    largest = np.take_along_axis(out, np.abs(out).argmax(axis=0)[None], axis=0)
    return np.ascontiguousarray(out * np.sign(largest))
