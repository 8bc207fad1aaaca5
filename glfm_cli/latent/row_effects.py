"""What rows of a group share, and rows that follow one another: a Gaussian part of eta.

    w_ns = a_gs + b_gs t_n + u_ns      a row n of group g at time t;  s a latent column
    a_g ~ N(m, Omega)         intercepts of a group                m ~ N(0, I)
    Omega | c ~ InvWishart(S + 1, 4 diag(1 / c))                    c_s ~ InvGamma(1/2, 1)
    b_gs ~ N(0, q_s)                                                sqrt(q_s) ~ half-Cauchy(1)
    u_.s ~ N(0, v_s K_s),     K_s = exp(-|t - t'| / l_s) within a group, 0 between two
    sqrt(v_s) ~ half-Cauchy(1),    log(l_s / median step) ~ N(log 5, 1.5^2)

so that the sds of intercepts are half-t with 2 degrees of freedom and scale 1, and their
correlations uniform [Huang and Wand 2013]; t is time in sds of all rows; u is a stationary
autoregression of first order in continuous time, whose precision is tridiagonal in the order of
time. All is drawn exactly, given the residuals of observed cells, e = y - eta of the model
~ N(w, noise): a jointly over columns, with b and u integrated out; so v, l and q by Metropolis
steps; b with u integrated out; u by one factorisation a column. Without times there are no b and
u, without groups no a and b.

Cost of a sweep: O(G S^3 + N S). Memory: G S + N S doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.random import Generator
from scipy.linalg.lapack import dpttrs

from glfm_cli.arrays import Array, Groups
from glfm_cli.latent.model import Sizes, Spans, take
from glfm_cli.latent.row_laws import (
    Series,
    SeriesRows,
    draw_chain,
    draw_intercepts,
    draw_inverse_wishart,
    draw_normals,
    draw_slopes,
    factorise,
    group_sums,
    slope_law,
)

DEGREES = 2.0  # of the half-t priors of sds
LENGTH, LENGTH_SD = np.log(5.0), 1.5  # prior of the log of l, in median steps of time
FIRST_VARIANCE = 0.25
PROPOSALS = 3  # for v and l, in a sweep
HELD = 1e8  # precision by which rows that are known already are held


@dataclass(eq=False)
class RowEffects:
    """The part's state, or a snapshot of it.

    at : (S,) int64, the latent columns that have effects, in all `width` of them: not the time's
    code, time : (N,) of the rows;  a : (G, S);  m, c : (S,);  omega : (S, S)
    u : (N, S), or (0, S) without times;  v, length : (S,);  step : the median step of time
    b : (G, S), or (0, S) without times;  q : (S,)
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
    b: Array
    q: Array
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
            b=np.zeros((groups.n if timed else 0, S)),
            q=np.full(S, FIRST_VARIANCE),
            step=Series.of(groups.code, time).step if timed else 1.0,
        )

    def copy(self) -> RowEffects:
        """Return a copy that later updates leave alone; rows and times are shared."""
        names = ("a", "m", "c", "omega", "u", "v", "length", "b", "q")
        return replace(self, **{name: getattr(self, name).copy() for name in names})

    def shift(self, rows: slice | Array = slice(None)) -> Array:
        """Return w (n, width) of some rows."""
        w = np.zeros((self.code[rows].size, self.width))
        if len(self.a):
            w[:, self.at] = self.a[self.code[rows]]
        if len(self.u):
            w[:, self.at] += self.u[rows]
        if len(self.b):
            w[:, self.at] += self.slope_part(rows)
        return w

    @cached_property
    def clock(self) -> tuple[float, float]:
        """The mean of time, and its sd; 1 where it never moves."""
        return float(np.mean(self.time)), float(np.std(self.time)) or 1.0

    def slope_part(self, rows: slice | Array = slice(None)) -> Array:
        """Return b_g t_n (n, S) of some rows."""
        mean, sd = self.clock
        return self.b[self.code[rows]] * ((self.time[rows] - mean) / sd)[:, None]

    def update(self, e: Array, observed: Array, noise: Array, rng: Generator) -> None:
        """Draw everything given the residuals of the model.

        e, observed : (N, width) y less eta of the model, and 1 where it is seen
        noise : (width,) variances
        """
        if not self.at.size:
            return
        e, observed, noise = e[:, self.at], observed[:, self.at], noise[self.at]
        series = Series.of(self.code, self.time, self.step) if len(self.u) else None
        if len(self.a):
            sums, counts = group_sums(self.code, len(self.a), e, observed)
            if series is not None:
                mean, sd = self.clock
                rows = SeriesRows(series.order, self.code, (self.time - mean) / sd, len(self.a))
                law = self.v, self.length, self.q
                sums, counts = rows.of_intercepts(series, law, e, observed / noise)
                sums, counts = sums * noise, counts * noise
            self.a[:] = draw_intercepts(sums, counts, noise, self.m, self.omega, rng)
            self._draw_law(rng)
        if series is not None:
            rest = e - self.a[self.code] if len(self.a) else e
            for s in range(self.m.size):
                self._draw_series(s, series, rest[:, s], observed[:, s], noise[s], rng)

    def _draw_law(self, rng: Generator) -> None:
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
        self, s: int, series: Series, e: Array, observed: Array, noise: float, rng: Generator
    ) -> None:
        """Draw v, l, q, b and u of one latent column."""
        order, sloped = series.order, len(self.b) > 0
        seen, e, (mean, sd) = observed[order] / noise, e[order], self.clock
        code, t = self.code[order], (self.time[order] - mean) / sd
        own = np.log([self.v[s], self.length[s], self.q[s]])
        now = -np.inf
        for number in range(PROPOSALS + 1):
            size = 0.0 if number == 0 else 2.0 ** -rng.integers(0, 6)
            log_v, log_l, log_q = new = own + size * rng.standard_normal(3) * [1, 1, sloped]
            r, d = series.links(np.exp(log_l), np.exp(log_v))
            D, L = factorise(r, d, seen)
            found = -0.5 * float(np.log(D).sum() + np.log(d).sum())
            found += 0.5 * float((seen * e) @ dpttrs(D, L, seen * e)[0])
            found += 0.5 * log_v - np.log1p(np.exp(log_v))  # half-Cauchy of the sd
            found -= 0.5 * ((log_l - LENGTH) / LENGTH_SD) ** 2
            law = None
            if sloped:
                law = slope_law(D, L, seen, e, t, code, len(self.b))
                grown = 1.0 + np.exp(log_q) * law[0]
                found += 0.5 * float((np.exp(log_q) * law[1] ** 2 / grown - np.log(grown)).sum())
                found += 0.5 * log_q - np.log1p(np.exp(log_q))
            if number == 0 or np.log(rng.random()) < found - now:
                own, now, kept = new, found, (D, L, law)
        self.v[s], self.length[s], self.q[s] = np.exp(own)
        D, L, law = kept
        if law is not None:
            self.b[:, s] = draw_slopes(law, self.q[s], rng)
            e = e - self.b[code, s] * t
        self.u[order, s] = draw_chain(D, L, seen * e, rng)

    def scale_group(self, spans: tuple[tuple[int, int], ...]) -> Array:
        """Return, per column, squares in units of their prior sd, and their number (D, 2).

        A move along the scale of a column multiplies a, m and 1 / sqrt(c) with it, rows and columns
        of Omega, b and u: of the first and third the change of density and volume cancels but for
        that of normals m and 1 / sqrt(c) of variances 1 and 1/2.
        """
        found = np.zeros((len(spans), 2))
        for d, span in enumerate(spans):
            at = slice(*np.searchsorted(self.at, span))
            if len(self.a):
                found[d] += np.sum(self.m[at] ** 2 + 2.0 / self.c[at]), 2 * self.m[at].size
            if len(self.u):
                found[d, 1] += self.u[:, at].size + self.b[:, at].size
                found[d, 0] += float(np.sum(self.b[:, at] ** 2 / self.q[at]))
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
        self.b *= factor

    def of_new_rows(self, groups: Groups) -> RowsToJoin:
        """Return what new rows have in common with these, and with one another."""
        return RowsToJoin(self, groups)

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays."""
        names = ("at", "code", "time", "a", "m", "c", "omega", "u", "v", "length", "b", "q")
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
        b, q = part("b", len(a) if len(u) else 0, S), part("q", S)
        if np.any((code < 0) | (code >= max(len(a), 1))) or {len(u), len(time)} not in ({0}, {N}):
            raise ValueError("'effects' are not those of the rows")
        m, c, omega, v, length = (
            part(name, *shape)
            for name, shape in (
                *(("m", (S,)), ("c", (S,)), ("omega", (S, S)), ("v", (S,)), ("length", (S,))),
            )
        )
        step = float(part("step"))
        if min(x.min(initial=1.0) for x in (c, v, length, q)) <= 0.0 or step <= 0.0:
            raise ValueError("'effects' have a variance or length that is not above 0")
        try:
            np.linalg.cholesky(omega)
        except np.linalg.LinAlgError:
            raise ValueError("'effects.omega' is not positive definite") from None
        return cls(at, sizes.latent, code, time, a, m, c, omega, u, v, length, b, q, step)


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
        self.b = np.concatenate([fitted.b, np.zeros((self.new if len(fitted.b) else 0, S))])
        mean, sd = fitted.clock if len(fitted.u) else (0.0, 1.0)
        self.t = np.zeros(self.n) if groups.time is None else (groups.time - mean) / sd
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
        w[:, self.fitted.at] = self.u + (self.a[self.code] if len(self.a) else 0.0) + self.slopes
        return w

    @property
    def slopes(self) -> Array:
        """Return b_g t_n (n, S)."""
        if not len(self.b):
            return np.zeros_like(self.u)
        return self.b[self.code] * self.t[:, None]

    def update(self, e: Array, observed: Array, noise: Array, rng: Generator) -> None:
        """Draw what is new given the residuals of the model, as `RowEffects.update` takes them."""
        fitted, G = self.fitted, len(self.fitted.a)
        if not fitted.at.size:
            return
        e, observed, noise = e[:, fitted.at], observed[:, fitted.at], noise[fitted.at]
        if self.new:
            sums, counts = group_sums(self.code, G + self.new, e, observed)
            if self.series is not None:
                # New groups have no rows that are held, of which u alone is known.
                held = np.zeros((self.held.size, fitted.m.size))
                code = np.concatenate([self.code, fitted.code[self.held]])
                t = np.concatenate([self.t, held[:, 0]])
                rows = SeriesRows(self.series.order, code, t, G + self.new)
                law = fitted.v, fitted.length, fitted.q
                seen = np.vstack([observed / noise, held])
                sums, counts = rows.of_intercepts(self.series, law, np.vstack([e, held]), seen)
                sums, counts = sums * noise, counts * noise
            own = sums[G:], counts[G:], noise
            self.a[G:] = draw_intercepts(*own, fitted.m, fitted.omega, rng)
        if self.series is None:
            return
        rest = e - self.a[self.code] if len(self.a) else e
        order, n = self.series.order, self.n
        none = np.zeros(self.held.size)
        t = np.concatenate([self.t, none])[order]  # of rows that are held u alone is known
        code = np.concatenate([self.code, fitted.code[self.held]])[order]
        for s in range(fitted.m.size):
            precision = np.full(order.size, HELD / fitted.v[s])
            precision[:n] = observed[:, s] / noise[s]
            r, d = self.series.links(fitted.length[s], fitted.v[s])
            seen = precision[order]
            D, L = factorise(r, d, seen)
            if self.new and len(self.b):
                value = np.concatenate([rest[:, s], none])[order]
                A, B = slope_law(D, L, seen, value, t, code, G + self.new)
                self.b[G:, s] = draw_slopes((A[G:], B[G:]), fitted.q[s], rng)
            value = np.concatenate([rest[:, s] - self.slopes[:, s], fitted.u[self.held, s]])
            drawn = np.empty(order.size)
            drawn[order] = draw_chain(D, L, seen * value[order], rng)
            self.u[:, s] = drawn[:n]


@dataclass(frozen=True, eq=False)
class FoldedEffects:
    """A snapshot of the part of new rows: w (n, width)."""

    w: Array

    def shift(self, rows: slice | Array = slice(None)) -> Array:
        """Return w (n, width) of some rows."""
        return self.w[rows]
