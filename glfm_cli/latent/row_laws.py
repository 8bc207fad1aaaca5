"""Normal laws of what rows of a group share: series of rows in time, slopes and intercepts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpttrf, dpttrs, dtbtrs

from glfm_cli.arrays import Array

CLOSEST = 1e-4  # median steps; rows that are closer in time are taken for so far apart
_BLOCK = 1 << 21  # numbers in the precisions of groups that are held at once


class Series(NamedTuple):
    """Rows in the order of group and time.

    order : (N,) rows;  gap : (N,) time since the row before in the group, in median steps, infinite
        at the first;  step : the median step
    """

    order: Array
    gap: Array
    step: float

    @classmethod
    def of(cls, code: Array, time: Array, step: float | None = None) -> Series:
        """Return that of rows; `step` is the one of a fit that they are added to."""
        order = np.lexsort((time, code))
        gap = np.diff(time[order], prepend=np.inf)
        gap[np.diff(code[order], prepend=-1) != 0] = np.inf
        if step is None:
            steps = gap[(gap > 0.0) & np.isfinite(gap)]
            step = float(np.median(steps)) if steps.size else 1.0
        return cls(order, np.maximum(gap / step, CLOSEST), step)

    def links(self, length: float, variance: float) -> tuple[Array, Array]:
        """Return r and d (N,):  u_n = r_n u_(n-1) + N(0, d_n) for rows in order."""
        away = self.gap / length
        return np.exp(-away), -variance * np.expm1(-2.0 * away)


def group_sums(code: Array, n: int, e: Array, observed: Array) -> tuple[Array, Array]:
    """Return the sums and numbers (n, S) of what is seen of each group."""
    weights = [np.where(observed[:, s] != 0, e[:, s], 0.0) for s in range(e.shape[1])]
    sums = [np.bincount(code, column, n) for column in weights]
    counts = [np.bincount(code, observed[:, s], n) for s in range(e.shape[1])]
    return np.array(sums).T.reshape(n, -1), np.array(counts).T.reshape(n, -1)


def draw_intercepts(
    sums: Array, counts: Array, noise: Array, m: Array, omega: Array, rng: np.random.Generator
) -> Array:
    """Return draws (G, S) of intercepts:  Q_g = Omega^-1 + diag(n_gs / noise_s)."""
    inverse, (G, S) = np.linalg.inv(omega), sums.shape
    a, block = np.empty((G, S)), max(1, _BLOCK // max(S * S, 1))
    for start in range(0, G, block):
        at = slice(start, start + block)
        Q = inverse + (counts[at] / noise)[:, :, None] * np.eye(S)
        a[at] = draw_normals(Q, inverse @ m + sums[at] / noise, rng)
    return a


class SeriesRows(NamedTuple):
    """Rows of series: their order, groups, of which there are n, and times in sds."""

    order: Array
    code: Array
    t: Array
    n: int

    def of_intercepts(
        self, series: Series, law: tuple[Array, Array, Array], e: Array, seen: Array
    ) -> tuple[Array, Array]:
        """Return B and A (n, S) of what rows say of intercepts, without b and u.

        law : v, length and q (S,);  e, seen : (N, S) residuals, and their precisions
        """
        B, A = np.empty((2, self.n, e.shape[1]))
        code, t, one = self.code[self.order], self.t[self.order], np.ones(self.order.size)
        for s, (v, length, q) in enumerate(zip(*law, strict=True)):
            own = seen[self.order, s]
            D, L = factorise(*series.links(length, v), own)
            rows = D, L, own, e[self.order, s]
            A[:, s], B[:, s] = slope_law(*rows, one, code, self.n)
            tt, tb = slope_law(*rows, t, code, self.n)
            both = np.bincount(code, own * (t - dpttrs(D, L, own * t)[0]), self.n)
            A[:, s] -= both**2 / (tt + 1.0 / q)
            B[:, s] -= both * tb / (tt + 1.0 / q)
        return B, A


def slope_law(
    D: Array, L: Array, seen: Array, e: Array, t: Array, code: Array, n: int
) -> tuple[Array, Array]:
    """Return A and B (n,): what rows say of slopes is exp(B_g b_g - A_g b_g^2 / 2), without u.

    With V = K v + diag(1 / seen), A_g = t' V^-1 t and B_g = t' V^-1 e over the rows of the group:
    V^-1 x = seen x - seen Q^-1 (seen x), Q = L D L' the precision of u given what is seen.
    """
    within = seen * (t - dpttrs(D, L, seen * t)[0])
    return np.bincount(code, within * t, n), np.bincount(code, within * e, n)


def draw_slopes(law: tuple[Array, Array], q: float, rng: np.random.Generator) -> Array:
    """Return draws (n,) of slopes ~ N(0, q), given what rows say of them."""
    precision = law[0] + 1.0 / q
    return law[1] / precision + rng.standard_normal(precision.size) / np.sqrt(precision)


def factorise(r: Array, d: Array, seen: Array) -> tuple[Array, Array]:
    """Return D (N,) and L (N - 1,) of the precision L D L' of u given what is seen of it.

    Its diagonal is 1 / d_n + r_(n+1)^2 / d_(n+1) + seen_n, beside it is -r_(n+1) / d_(n+1).
    """
    diagonal, beside = 1.0 / d + seen, -r[1:] / d[1:]
    diagonal[:-1] -= r[1:] * beside
    D, L, status = dpttrf(diagonal, beside)
    if status != 0:
        raise np.linalg.LinAlgError("the precision of a series is not positive definite")
    return D, L


def draw_chain(D: Array, L: Array, b: Array, rng: np.random.Generator) -> Array:
    """Return a draw (N,) of N(Q^-1 b, Q^-1), Q = L D L' tridiagonal."""
    upper = np.ones((2, D.size))
    upper[0, 1:] = L
    drawn = dtbtrs(upper, (rng.standard_normal(D.size) / np.sqrt(D))[:, None], diag="U")[0]
    return dpttrs(D, L, b)[0] + drawn[:, 0]


def draw_inverse_wishart(degrees: float, scale: Array, rng: np.random.Generator) -> Array:
    """Return a draw (S, S) of the inverse-Wishart law, by Bartlett's factor of its inverse."""
    S = len(scale)
    A = np.tril(rng.standard_normal((S, S)), -1)
    A[np.arange(S), np.arange(S)] = np.sqrt(rng.chisquare(degrees - np.arange(S)))
    root = np.linalg.solve(A, np.linalg.cholesky(scale).T)
    return root.T @ root


def draw_normals(Q: Array, b: Array, rng: np.random.Generator) -> Array:
    """Return draws (n, L) of N(Q^-1 b, Q^-1), for precisions Q (n, L, L) and b (n, L)."""
    root = np.linalg.cholesky(Q)
    half = np.linalg.solve(root, b[..., None]) + rng.standard_normal((*b.shape, 1))
    return np.linalg.solve(root.swapaxes(1, 2), half)[..., 0]
