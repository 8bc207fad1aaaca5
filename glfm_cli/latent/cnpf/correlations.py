"""How components go together in the rows: correlations of the logarithms of their counts.

With n_uk the expected count of component k in row u, L = log(1 + n), and c_k the mean over rows of
n_uk / (1 + n_uk), by which L_uk rises with the logarithm of row u's size,

    C_jk = cov(L_j, L_k) - s c_j c_k        rho_jk = C_jk / sqrt(C_jj C_kk)
    s = max(0, median over pairs of cov(L_j, L_k) / (c_j c_k))

s is the variance of the rows' log sizes: what a typical pair has in common is the rows' sizes, not
a correlation of its own. So two components alone have a correlation of at most 0.

The model's own l_j . l_k does not do. Under the exp link log x_k has the variance |l_k|^2 +
psi'(w_k) within rows of one size, and two have the covariance l_j . l_k; yet the ascent leaves to
the gamma variables what locations could tell of, and the lengths that are left are near 0 with
correlations of 0.8 as with none; the cosine, which forgets the lengths, is near 1 or -1 in both.

Independent components have rho_jk of variance (1 + r^2) V_j V_k / (C_jj C_kk) / (U - 3) about, with
V the variances of L before the sizes are taken off, and r what sizes correlate L_j and L_k by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from glfm_cli.arrays import Array

LIVE = 1e-3  # share of the counts from which a component is one
SMALL = 0.1  # of the mean share of those: counts of less are mostly those of their neighbours
FEWEST_ROWS = 4
RISK = 0.05  # that some pair of independent components is above its level
LEAST = 1e-9  # variance of L from which a component differs between rows


class Correlations(NamedTuple):
    """How T components go together in rows.

    rho : (T, T) correlations, 1 on the diagonal; 0 of small components
    level : (T, T) that all |rho| of independent components stay below in 95 % of tables; inf of
        small components, of which nothing can be told
    """

    rho: Array
    level: Array


def count_correlations(counts: Array) -> Correlations:
    """Return the correlations of components with expected counts (U, T) in rows.

    Small are components with less than a tenth of the mean share.
    """
    found = Correlations(np.eye(counts.shape[1]), np.full((counts.shape[1],) * 2, np.inf))
    total = counts.sum(axis=0)
    share = total / max(total.sum(), np.finfo(float).tiny)
    live = share > LIVE
    large = np.flatnonzero(live & (share * np.count_nonzero(live) >= SMALL))
    if large.size < 2 or counts.shape[0] < FEWEST_ROWS:
        return found
    n = counts[:, large]
    pairs = np.triu_indices(large.size, 1)
    covariance = np.cov(np.log1p(n), rowvar=False)
    slope = _squared((n / (1.0 + n)).mean(axis=0))
    common = max(0.0, float(np.median((covariance / slope)[pairs]))) * slope
    own = covariance - common
    varies = _squared(np.diag(own) > LEAST)
    size = np.sqrt(_squared(np.maximum(np.diag(own), LEAST)))
    rho = np.where(varies, np.clip(own / size, -1.0, 1.0), 0.0)
    spread = np.sqrt(_squared(np.diag(covariance)) + common**2)
    z = norm.isf(RISK / 2.0 / pairs[0].size) / np.sqrt(counts.shape[0] - 3)
    at = np.ix_(large, large)
    found.rho[at], found.level[at] = rho, np.where(varies, z * spread / size, np.inf)
    np.fill_diagonal(found.rho, 1.0)
    return found


def _squared(v: Array) -> Array:
    """Return v v'."""
    return np.outer(v, v)
