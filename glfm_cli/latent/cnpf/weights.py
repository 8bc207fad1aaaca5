"""The weights w_k and their rate c, with q(x) profiled out.

    f(v) = sum_u [ logGamma(w + n) - logGamma(w) ] - w R + (alpha / T) v,    w = exp v
    R    = c + sum_u [ log(rho + S) - E log r ]

Its stationary point is that of w <- (alpha / T + K) / R, K = sum_u w (psi(w + n) - psi(w)), as for
a negative binomial [Zhou and Carin 2015]; n is not whole here, so that steps are checked.
"""

from __future__ import annotations

import numpy as np
from scipy.special import psi

from glfm_cli._kernels import _cnpf
from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows, sum_blocks
from glfm_cli.latent.cnpf.tables import Globals, padded

STEPS = 3
TRIES = 7
LONGEST = 2.0  # Newton step in log w
LEAST = 1e-12
ROUNDING = 1e-13


def sum_rises(rows: Rows, counts: Counts, w: Array, each: Each) -> Array:
    """Return (3, T) sums over rows.

    Of logGamma(w+n) - logGamma(w), of w (psi(w+n) - psi(w)), of w^2 (psi'(w+n) - psi'(w)).
    """
    wide = padded(w)

    def work(start: int, end: int, out: Array) -> None:
        _cnpf.add_rises(start, end, wide, rows.n, out)

    return sum_blocks(counts.rows, each, (3, wide.size), work)[:, : w.size]


def fixed_point(K: Array, R: Array, shape: float) -> Array:
    """Return (alpha / T + K) / R, the mean of the weights' conditional gamma."""
    w: Array = np.maximum((shape + K) / R, LEAST)
    return w


def update_weights(
    shared: Globals, rows: Rows, counts: Counts, R: Array, each: Each, shape: float
) -> None:
    """Raise f of every component by a few steps, Newton's where it is concave.

    R : (T,) see above;  shape : alpha / T
    """
    w = shared.w
    rises = sum_rises(rows, counts, w, each)
    for _ in range(STEPS):
        gradient = rises[1] + shape - w * R
        curvature = rises[1] + rises[2] - w * R
        newton = -gradient / np.where(curvature < 0.0, curvature, -1.0)
        use = (curvature < 0.0) & (np.abs(newton) < LONGEST)
        step = np.where(use, newton, np.log(fixed_point(rises[1], R, shape) / w))
        old = rises[0] - w * R + shape * np.log(w)
        accepted, factor = np.zeros(w.size, dtype=bool), np.ones(w.size)
        for attempt in range(TRIES):
            factor[~accepted] = 3.0**-attempt if attempt < TRIES - 1 else 0.0
            trial = np.maximum(w * np.exp(factor * step), LEAST)
            rises = sum_rises(rows, counts, trial, each)
            new = rises[0] - trial * R + shape * np.log(trial)
            accepted |= new >= old - ROUNDING * np.abs(old)
            if accepted.all():
                break
        w = trial
    shared.w = w


def settle_weights(
    shared: Globals, rows: Rows, counts: Counts, R: Array, each: Each, shape: float
) -> None:
    """Set the weights above `LEAST` to the fixed point where n is a mean of whole counts.

    Shares of the mean step leave a little of a row's counts to most components, of which K would
    make much. The count itself is 0 with probability exp(-n), and about n / (1 - exp(-n)) if not
    [Teh et al. 2007].
    """
    w = shared.w

    def work(start: int, end: int, out: Array) -> None:
        n = rows.n[start:end, : w.size]
        some = -np.expm1(-n)
        mean = n / np.where(some > 0.0, some, 1.0)
        out += (some * w * (psi(w + np.maximum(mean, 1.0)) - psi(w))).sum(axis=0)

    K = sum_blocks(counts.rows, each, (w.size,), work)
    shared.w = np.where(w > LEAST, fixed_point(K, R, shape), w)
