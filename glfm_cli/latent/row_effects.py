"""What rows of a group share, and rows that follow one another: a Gaussian part of eta.

    w_ns = a_gs + u_ns        a row n of group g;  s a latent column
    a_g ~ N(m, Omega)         intercepts of a group                m ~ N(0, I)
    Omega | c ~ InvWishart(S + 1, 4 diag(1 / c))                    c_s ~ InvGamma(1/2, 1)
    u_.s ~ N(0, v_s K_s),     K_s = exp(-|t - t'| / l_s) within a group, 0 between two
    sqrt(v_s) ~ half-Cauchy(1),    log(l_s / median step) ~ N(log 5, 1.5^2)

so that the sds of intercepts are half-t with 2 degrees of freedom and scale 1, and their
correlations uniform [Huang and Wand 2013]; u is a stationary autoregression of first order in
continuous time, whose precision is tridiagonal in the order of time. All is drawn exactly, given
the residuals of observed cells, e = y - eta of the model ~ N(w, noise): a jointly over columns; v
and l with u integrated out, by Metropolis steps; u by one factorisation a column. Without times
there is no u, without groups no a.

Cost of a sweep: O(G S^3 + N S). Memory: G S + N S doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg.lapack import dpttrf, dpttrs, dtbtrs

from glfm_cli.arrays import Array, Groups
from glfm_cli.latent.model import Sizes, Spans, take

DEGREES = 2.0  # of the half-t priors of sds
LENGTH, LENGTH_SD = np.log(5.0), 1.5  # prior of the log of l, in median steps of time
FIRST_VARIANCE = 0.25
PROPOSALS = 3  # for v and l, in a sweep
CLOSEST = 1e-4  # median steps; rows that are closer in time are taken for so far apart
HELD = 1e8  # precision by which rows that are known already are held
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


@dataclass(eq=False)
class RowEffects:
    """The part's state, or a snapshot of it.

    at : (S,) int64, the latent columns that have effects, in all `width` of them: not the time's
    code, time : (N,) of the rows;  a : (G, S);  m, c : (S,);  omega : (S, S)
    u : (N, S), or (0, S) without times;  v, length : (S,);  step : the median step of time
    """

    at: Array
    width: int
    code: Array
    time: Array
    a: Array
    m: Array
    c: Array
    omega: Array
    u: Array
    v: Array
    length: Array
    step: float

    @classmethod
    def start(cls, groups: Groups, spans: Spans) -> Self:
        """Return a state without effects."""
        every = [range(*span) for d, span in enumerate(spans) if d != groups.clock]
        at = np.array([s for span in every for s in span], dtype=np.int64)
        S, timed = at.size, groups.time is not None
        time = groups.time if groups.time is not None else np.empty(0)
        return cls(
            at=at,
            width=spans[-1][1],
            code=groups.code,
            time=time,
            a=np.zeros((groups.n, S)),
            m=np.zeros(S),
            c=np.ones(S),
            omega=FIRST_VARIANCE * np.eye(S),
            u=np.zeros((groups.code.size if timed else 0, S)),
            v=np.full(S, FIRST_VARIANCE),
            length=np.full(S, np.exp(LENGTH)),
            step=Series.of(groups.code, time).step if timed else 1.0,
        )

    def copy(self) -> RowEffects:
        """Return a copy that later updates leave alone; rows and times are shared."""
        names = ("a", "m", "c", "omega", "u", "v", "length")
        return replace(self, **{name: getattr(self, name).copy() for name in names})

    def shift(self, rows: slice | Array = slice(None)) -> Array:
        """Return w (n, width) of some rows."""
        w = np.zeros((self.code[rows].size, self.width))
        if len(self.a):
            w[:, self.at] = self.a[self.code[rows]]
        if len(self.u):
            w[:, self.at] += self.u[rows]
        return w

    def update(self, e: Array, observed: Array, noise: Array, rng: np.random.Generator) -> None:
        """Draw everything given the residuals of the model.

        e, observed : (N, width) y less eta of the model, and 1 where it is seen
        noise : (width,) variances
        """
        if not self.at.size:
            return
        e, observed, noise = e[:, self.at], observed[:, self.at], noise[self.at]
        if len(self.a):
            rest = e - self.u if len(self.u) else e
            sums, counts = group_sums(self.code, len(self.a), rest, observed)
            self.a[:] = draw_intercepts(sums, counts, noise, self.m, self.omega, rng)
            self._draw_law(rng)
        if len(self.u):
            rest = e - self.a[self.code] if len(self.a) else e
            series = Series.of(self.code, self.time, self.step)
            for s in range(self.m.size):
                self._draw_series(s, series, rest[:, s], observed[:, s], noise[s], rng)

    def _draw_law(self, rng: np.random.Generator) -> None:
        """Draw m, Omega and c given the intercepts."""
        (G, S), inverse = self.a.shape, np.linalg.inv(self.omega)
        Q, b = np.eye(S) + G * inverse, inverse @ self.a.sum(axis=0)
        self.m[:] = draw_normals(Q[None], b[None], rng)[0]
        away = self.a - self.m
        scale = away.T @ away + 2.0 * DEGREES * np.diag(1.0 / self.c)
        self.omega[:] = draw_inverse_wishart(DEGREES + S - 1 + G, scale, rng)
        rate = DEGREES * np.diagonal(np.linalg.inv(self.omega)) + 1.0
        self.c[:] = rate / rng.standard_gamma(0.5 * (DEGREES + S), S)

    def _draw_series(
        self,
        s: int,
        series: Series,
        e: Array,
        observed: Array,
        noise: float,
        rng: np.random.Generator,
    ) -> None:
        """Draw v, l and u of one latent column."""
        seen = observed[series.order] / noise
        b = seen * e[series.order]
        own, now = (np.log(self.v[s]), np.log(self.length[s])), -np.inf
        for number in range(PROPOSALS + 1):
            size = 0.0 if number == 0 else 2.0 ** -rng.integers(0, 6)
            log_v, log_l = own + size * rng.standard_normal(2)
            r, d = series.links(np.exp(log_l), np.exp(log_v))
            D, L = factorise(r, d, seen)
            found = 0.5 * float(b @ dpttrs(D, L, b)[0] - np.log(D).sum() - np.log(d).sum())
            found += 0.5 * log_v - np.log1p(np.exp(log_v))  # half-Cauchy of the sd
            found -= 0.5 * ((log_l - LENGTH) / LENGTH_SD) ** 2
            if number == 0 or np.log(rng.random()) < found - now:
                own, now, kept = (log_v, log_l), found, (D, L)
        self.v[s], self.length[s] = np.exp(own)
        self.u[series.order, s] = draw_chain(*kept, b, rng)

    def scale_group(self, spans: tuple[tuple[int, int], ...]) -> Array:
        """Return, per column, squares in units of their prior sd, and their number (D, 2).

        A move along the scale of a column multiplies a, m and 1 / sqrt(c) with it, rows and columns
        of Omega, and u: of the first and third the change of density and volume cancels but for
        that of normals m and 1 / sqrt(c) of variances 1 and 1/2.
        """
        found = np.zeros((len(spans), 2))
        for d, span in enumerate(spans):
            at = slice(*np.searchsorted(self.at, span))
            if len(self.a):
                found[d] += np.sum(self.m[at] ** 2 + 2.0 / self.c[at]), 2 * self.m[at].size
            if len(self.u):
                found[d, 1] += self.u[:, at].size
                found[d, 0] += sum(self._energy(s) for s in range(at.start, at.stop))
        return found

    def _energy(self, s: int) -> float:
        """Return u' K^-1 u / v of one latent column."""
        series = Series.of(self.code, self.time, self.step)
        r, d = series.links(self.length[s], self.v[s])
        u = self.u[series.order, s]
        step = u - r * np.concatenate([[0.0], u[:-1]])
        return float(np.sum(step**2 / d))

    def rescale(self, factor: Array) -> None:
        """Multiply what shares the scale of latent columns by `factor` (width,)."""
        factor = factor[self.at]
        self.a *= factor
        self.m *= factor
        self.omega *= np.outer(factor, factor)
        self.c /= factor**2
        self.u *= factor

    def of_new_rows(self, groups: Groups) -> RowsToJoin:
        """Return what new rows have in common with these, and with one another."""
        return RowsToJoin(self, groups)

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays."""
        names = ("at", "code", "time", "a", "m", "c", "omega", "u", "v", "length")
        arrays = {f"effects.{name}": getattr(self, name) for name in names}
        return arrays | {"effects.step": np.array(self.step, dtype=np.float64)}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], sizes: Sizes) -> Self:
        """Return what `pack` gave, on the same memory; ValueError when it is no such part."""
        N, at = sizes.rows, take(arrays, "effects.at", np.int64, (None,))
        S = at.size
        if np.any(np.diff(at, prepend=-1, append=sizes.latent) <= 0):
            raise ValueError("'effects.at' does not name latent columns, each once")

        def part(name: str, *shape: int | None) -> Array:
            return take(arrays, f"effects.{name}", np.float64, shape)

        code = take(arrays, "effects.code", np.int64, (N,))
        a, u, time = part("a", None, S), part("u", None, S), part("time", None)
        if np.any((code < 0) | (code >= max(len(a), 1))) or {len(u), len(time)} not in ({0}, {N}):
            raise ValueError("'effects' are not those of the rows")
        m, c, omega, v, length = (
            part(name, *shape)
            for name, shape in (
                *(("m", (S,)), ("c", (S,)), ("omega", (S, S)), ("v", (S,)), ("length", (S,))),
            )
        )
        step = float(part("step"))
        if not (np.all(c > 0.0) and np.all(v > 0.0) and np.all(length > 0.0) and step > 0.0):
            raise ValueError("'effects' have a variance or length that is not above 0")
        try:
            np.linalg.cholesky(omega)
        except np.linalg.LinAlgError:
            raise ValueError("'effects.omega' is not positive definite") from None
        return cls(at, sizes.latent, code, time, a, m, c, omega, u, v, length, step)


class RowsToJoin:
    """The part of rows that a fit has not seen: its groups are held, new ones are drawn.

    w : (n, width), which `update` draws
    """

    def __init__(self, fitted: RowEffects, groups: Groups) -> None:
        self.fitted, self.n, S = fitted, groups.code.size, fitted.m.size
        G = len(fitted.a)
        self.new = max(groups.n - G, 0)
        self.code = groups.code
        self.a = np.concatenate([fitted.a, np.tile(fitted.m, (self.new, 1))])
        self.u = np.zeros((self.n, S))
        self.series: Series | None = None
        self.held = np.empty(0, dtype=np.int64)
        if len(fitted.u) and groups.time is not None:
            self.held = np.flatnonzero(np.isin(fitted.code, np.unique(groups.code)))
            code = np.concatenate([groups.code, fitted.code[self.held]])
            time = np.concatenate([groups.time, fitted.time[self.held]])
            self.series = Series.of(code, time, fitted.step)

    @property
    def w(self) -> Array:
        """Return the part (n, width)."""
        w = np.zeros((self.n, self.fitted.width))
        w[:, self.fitted.at] = self.u + (self.a[self.code] if len(self.a) else 0.0)
        return w

    def update(self, e: Array, observed: Array, noise: Array, rng: np.random.Generator) -> None:
        """Draw what is new given the residuals of the model, as `RowEffects.update` takes them."""
        fitted, G = self.fitted, len(self.fitted.a)
        if not fitted.at.size:
            return
        e, observed, noise = e[:, fitted.at], observed[:, fitted.at], noise[fitted.at]
        if self.new:
            sums, counts = group_sums(self.code, G + self.new, e - self.u, observed)
            law = noise, fitted.m, fitted.omega
            self.a[G:] = draw_intercepts(sums[G:], counts[G:], *law, rng)
        if self.series is None:
            return
        rest = e - self.a[self.code] if len(self.a) else e
        order, n = self.series.order, self.n
        for s in range(fitted.m.size):
            precision = np.full(order.size, HELD / fitted.v[s])
            value = np.concatenate([rest[:, s], fitted.u[self.held, s]])
            precision[:n] = observed[:, s] / noise[s]
            r, d = self.series.links(fitted.length[s], fitted.v[s])
            b = (precision * value)[order]
            drawn = np.empty(order.size)
            drawn[order] = draw_chain(*factorise(r, d, precision[order]), b, rng)
            self.u[:, s] = drawn[:n]


@dataclass(frozen=True, eq=False)
class FoldedEffects:
    """A snapshot of the part of new rows: w (n, width)."""

    w: Array

    def shift(self, rows: slice | Array = slice(None)) -> Array:
        """Return w (n, width) of some rows."""
        found: Array = self.w[rows]
        return found


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
    found: Array = dpttrs(D, L, b)[0] + drawn[:, 0]
    return found


def draw_inverse_wishart(degrees: float, scale: Array, rng: np.random.Generator) -> Array:
    """Return a draw (S, S) of the inverse-Wishart law, by Bartlett's factor of its inverse."""
    S = len(scale)
    A = np.tril(rng.standard_normal((S, S)), -1)
    A[np.arange(S), np.arange(S)] = np.sqrt(rng.chisquare(degrees - np.arange(S)))
    root = np.linalg.solve(A, np.linalg.cholesky(scale).T)
    drawn: Array = root.T @ root
    return drawn


def draw_normals(Q: Array, b: Array, rng: np.random.Generator) -> Array:
    """Return draws (n, L) of N(Q^-1 b, Q^-1), for precisions Q (n, L, L) and b (n, L)."""
    root = np.linalg.cholesky(Q)
    half = np.linalg.solve(root, b[..., None]) + rng.standard_normal((*b.shape, 1))
    drawn: Array = np.linalg.solve(root.swapaxes(1, 2), half)[..., 0]
    return drawn
