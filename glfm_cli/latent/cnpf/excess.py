"""How much more counts vary than their rates: by a gamma factor a cell, of mean 1 and variance v.

    y | rate ~ Poisson(rate g),  g ~ Gamma(1 / v, 1 / v),  v = e / sqrt(E rate) + f

Words that a text has once it has again, and mean field knows its rates too well. Of words the same
v for all cells would be too much where much is expected, and v = e / E rate too little; reads of a
gene vary by the same share however many there are. e and f make cells likeliest, each ~ Exp(1),
by the law of a cell's rate without its own count: of which the part y phi_k is
taken out of q(x_uk) and q(a_ki), and the cell out of what they are exposed to.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import psi

from glfm_cli.arrays import Array
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import CnpfDraw, Excess, widened
from glfm_cli.links.law import GammaPoisson
from glfm_cli.streams import CHECKS, Streams

CELLS = 5_000  # with counts, and as many of all, that are looked at
MOST = 10.0  # of e and f
START = (0.1, 0.05)


def excess_of(config: CnpfConfig, draw: CnpfDraw, counts: Counts) -> Excess:
    """Return e and f; 0 of a topic model, whose rows have a known number of words."""
    if config.topics or not counts.count.size:
        return 0.0, 0.0
    row, column, y, weight = some_cells(counts)
    mean, var = law_without(config, draw, row, column, y)

    def loss(excess: Array) -> float:
        law = GammaPoisson(mean**2 / widened(mean, var, (excess[0], excess[1])), mean)
        return float(excess.sum() - weight @ law.log_pmf(y)) / weight.sum()

    best = minimize(loss, START, method="L-BFGS-B", bounds=[(0.0, MOST)] * 2).x
    e, f = best.tolist() if loss(best) < loss(np.zeros(2)) else (0.0, 0.0)
    return e, f


def law_without(
    config: CnpfConfig, draw: CnpfDraw, row: Array, column: Array, y: Array
) -> tuple[Array, Array]:
    """Return mean and variance (n,) of the rates of cells whose own counts are taken out of q."""
    s, x, a = draw.shared, draw.mean_x[row], draw.mean_a[column]
    shape, rate, A = draw.shape[row], draw.rate[row], s.A[column]
    B = A / a
    # Digamma falls to minus infinity in components that neither has.
    share = np.exp(psi(shape) - np.log(rate) + psi(A) - np.log(B)) + 1e-300
    own = y[:, None] * share / share.sum(axis=1, keepdims=True)
    shape, A = np.maximum(shape - own, s.w), np.maximum(A - own, config.column_shape)
    rate, B = np.maximum(rate - a, 1e-12), np.maximum(B - x, s.column_rate)
    x, a = shape / rate, A / B
    mean, var = (x * a).sum(axis=1), ((x**2 + x / rate) * a / B + x / rate * a**2).sum(axis=1)
    return mean, var


def some_cells(counts: Counts) -> tuple[Array, Array, Array, Array]:
    """Return rows, columns, counts and weights of some cells, zeros among them.

    Weights add up to about the number of cells that are not missing; no seed changes which.
    """
    rng = Streams(0, 0).get(CHECKS)
    (n_rows, n_columns), side = counts.shape, counts.rows
    m = counts.count.size
    at = np.arange(m) if m <= CELLS else np.sort(rng.integers(m, size=CELLS))
    row = np.searchsorted(side.indptr, at, side="right") - 1
    u, i = rng.integers(n_rows, size=CELLS), rng.integers(n_columns, size=CELLS)
    zero = np.flatnonzero([_is_zero(counts, *cell) for cell in zip(u, i, strict=True)])
    weight = np.repeat([m / at.size, n_rows * n_columns / CELLS], [at.size, zero.size])
    y = np.r_[counts.count[at].astype(np.float64), np.zeros(zero.size)]
    return np.r_[row, u[zero]], np.r_[side.index[at], i[zero]], y, weight


def _is_zero(counts: Counts, row: int, column: int) -> bool:
    side, lost = counts.rows, counts.missing_rows
    if column in side.index[side.indptr[row] : side.indptr[row + 1]]:
        return False
    k = lost.at[row] if lost.at.size else -1
    listed = k >= 0 and column in lost.index[lost.indptr[k] : lost.indptr[k + 1]]
    return k < 0 or listed == bool(lost.seen[k])
