"""What rows of a group share, and rows that follow one another: a Gaussian part of eta.

    w_ns = f_s(t_n) + sum_p x_gp h_ps(t_n) + a_gs (1 + d_s t_n) + b_gs t_n + sum_k L_ks g_k + u_ns
                                           a row n of group g at time t;  s a latent column
    a_g ~ N(m, Omega)         intercepts of a group                m ~ N(0, I)
    Omega | c ~ InvWishart(S + 1, 4 diag(1 / c))                    c_s ~ InvGamma(1/2, 1)
    f_s: natural cubic spline through values ~ N(0, p_s R) at J knots; R in `knots_precision`
    h_ps: another, values ~ N(0, r_ps R), of predictors x_g that never change in a group (given.py)
    b_gs ~ N(0, q_s);  d_s ~ N(0, 1/10)      sqrt(p_s), sqrt(q_s), sqrt(r_ps) ~ half-Cauchy(1)
    u_.s ~ N(0, v_s K_s),    within a group K_s = (l e^(-r / l) - k e^(-r / k)) / (l - k),
    r = |t - t'|, l = l_s and k = k_s, and 0 between two;    sqrt(v_s) ~ half-Cauchy(1)
    log(l_s / median step) ~ N(log 5, 1.5^2),    log(k_s / median step) ~ N(log 0.5, 2^2)

so that the sds of intercepts are half-t with 2 degrees of freedom and scale 1, and their
correlations uniform [Huang and Wand 2013]; t is time in sds of all rows, from its mean; slopes that
go with intercepts, by d, let groups part, or come together, as time goes on; u is a stationary
autoregression of second order in continuous time, with real roots: of first order where k is far
below the steps, differentiable with correlation (1 + r / l) e^(-r / l) where k = l. With its
velocity it is Markov: the precision of both is banded in the order of time; series g that columns
share are in factor_series.py. All is drawn exactly, given the residuals e = y - eta of the model,
of observed cells ~ N(w, noise): a jointly over columns, with b and u integrated out; so v, l, k and
q by Metropolis steps; f and every h with a of the column integrated out besides, then a; d with b
and u, b and L with u integrated out; u by one factorisation a column, then g, and u again. Without
times there are no f, h, b, d, g and u, without groups no f, h, a, b and d. Latent columns of x have
no h.

Cost of a sweep: O(G S^3 + N S). Memory: G S + N S doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array, Groups
from glfm_cli.latent.factor_series import (
    LENGTH,
    PROPOSALS,
    FactorSeries,
    OwnSeries,
    log_length_prior,
)
from glfm_cli.latent.given import GroupPredictors
from glfm_cli.latent.model import Sizes, Spans, take
from glfm_cli.latent.row_laws import (
    Series,
    SeriesLaw,
    curve,
    draw_intercepts,
    draw_inverse_wishart,
    draw_normals,
    draw_slopes,
    draw_variances,
    group_sums,
    intercept_law,
    knots_of,
    knots_precision,
)

DRAWN = ("a", "m", "c", "omega", "u", "v", "length", "b", "d", "q", "f", "p", "h", "r")
DEGREES = 2.0  # of the half-t priors of sds
PARTING = 0.1  # prior variance of d
FIRST_VARIANCE = 0.25
_FIRST, _NOISE = 20, 0.3  # steps of a start, and the variance of noise that they assume


@dataclass(eq=False)
class RowEffects:
    """The part's state, or a snapshot of it.

    at : (S,) int64, the latent columns that have effects, in all `width` of them: not the time's
    code, time : (N,) of the rows;  a : (G, S);  m, c : (S,);  omega : (S, S)
    u : (N, S), or (0, S) without times;  v : (S,);  length : (2, S), l and k
    b : (G, S), or (0, S) without times;  d, q : (S,);  step : the median step of time
    f : (J, S), or (0, S) without groups or times;  p : (S,);  knots : (J,)
    h : (P, J, S);  r : (P, S);  given : x and the latent columns where they are
    factors : L, g and what belongs to them
    energy : (S,) squares of u and its velocity in units of their prior sds, when they were drawn
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
    d: Array
    q: Array
    f: Array
    p: Array
    h: Array
    r: Array
    knots: Array
    step: float
    energy: Array
    given: GroupPredictors
    factors: FactorSeries

    @classmethod
    def start(cls, groups: Groups, spans: Spans, predictors: Array | None = None) -> Self:
        """Return a state without effects; y of predictors (N, width) are NaN elsewhere."""
        timed = groups.time is not None
        time = groups.time if groups.time is not None else np.empty(0)
        knots, given = knots_of(time, groups.n), GroupPredictors.none(groups.n)
        if knots.size and predictors is not None:
            given = GroupPredictors.of(predictors, groups.code, groups.n)
        every = [range(*span) for d, span in enumerate(spans) if d != groups.clock]
        at = np.array([s for span in every for s in span], dtype=np.int64)
        S, P = at.size, given.at.size
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
            length=np.tile(np.exp(LENGTH)[:, None], S),
            b=np.zeros((groups.n if timed else 0, S)),
            d=np.zeros(S),
            q=np.full(S, FIRST_VARIANCE),
            f=np.zeros((knots.size, S)),
            p=np.full(S, FIRST_VARIANCE),
            h=np.zeros((P, knots.size, S)),
            r=np.full((P, S), FIRST_VARIANCE),
            knots=knots,
            step=Series.of(groups.code, time).step if timed else 1.0,
            energy=np.zeros(S),
            given=given,
            factors=FactorSeries.none(time.size, S),
        )

    def begin(self, y: Array, observed: Array, rng: Generator) -> None:
        """Draw intercepts some times on y (N, width) less its means, for a typical noise.

        Shared series are what these leave of its principal components.
        """
        y, observed = y[:, self.at], observed[:, self.at]
        y = y - np.where(observed, y, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        if self.a.size:
            law = group_sums(self.code, len(self.a), y, observed, np.full(y.shape[1], _NOISE))
            for _ in range(_FIRST):
                self.a[:] = draw_intercepts(*law, self.m, self.omega, rng)
                self._draw_law(rng)
            y = y - self.a[self.code]
        if len(self.u):
            self.factors = FactorSeries.begin(self.series, y, observed)

    def copy(self) -> RowEffects:
        """Return a copy that later updates leave alone; rows and times are shared."""
        own = {name: getattr(self, name).copy() for name in DRAWN}
        return replace(self, **own, factors=self.factors.copy())

    def shift(self, rows: slice | Array = slice(None)) -> Array:
        """Return w (n, width) of some rows."""
        if len(self.a) and self.at.size == self.width:  # all in order, which costs far less
            w = self.a.take(self.code[rows], axis=0)
        else:
            w = np.zeros((self.code[rows].size, self.width))
            w[:, self.at] = self.a.take(self.code[rows], axis=0) if len(self.a) else 0.0
        if len(self.u):
            w[:, self.at] += self.u[rows] + self.factors.shift(rows)
        if len(self.b):
            w[:, self.at] += self.slope_part(rows)
        if len(self.f):
            w[:, self.at] += self.curves(self.given.x, self.code[rows], self.time[rows])
        return w

    def curves(self, x: Array, code: Array, time: Array) -> Array:
        """Return what groups share in time (n, S), of rows of groups with predictors x (G, P)."""
        found = curve(self.knots, self.f, time)
        for x_p, h in zip(x.T, self.h, strict=True):
            found += x_p[code, None] * curve(self.knots, h, time)
        return found

    @cached_property
    def led(self) -> Array:
        """Which columns (S,) have curves h: those that are no predictors themselves."""
        return ~np.isin(self.at, self.given.at)

    @cached_property
    def series(self) -> Series:
        """The times of groups."""
        return Series.of(self.code, self.time, self.step)

    @cached_property
    def shapes(self) -> Array:
        """What a curve has of each of its values (M, J) at the times of groups."""
        if not len(self.f):
            return np.empty((0, 0))
        return curve(self.knots, np.eye(len(self.f)), self.series.time)

    @cached_property
    def precision(self) -> Array:
        """That of a curve's values (J, J), R."""
        return knots_precision(self.knots)

    @cached_property
    def clock(self) -> tuple[float, float]:
        """The mean of time, and its sd; 1 where it never moves."""
        return float(np.mean(self.time)), float(np.std(self.time)) or 1.0

    def clocked(self, time: Array) -> Array:
        """Return times in sds of all rows."""
        mean, sd = self.clock
        return (time - mean) / sd

    def slope_part(self, rows: slice | Array = slice(None)) -> Array:
        """Return (b_g + d a_g) t_n (n, S) of some rows."""
        slopes = self.b + self.d * self.a
        return slopes[self.code[rows]] * self.clocked(self.time[rows])[:, None]

    def lines_of(self, s: int, time: Array) -> Array:
        """Return what a and b of one latent column are multiplied with at times (M, 2)."""
        t = self.clocked(time)
        return np.column_stack([1.0 + self.d[s] * t, t])

    def update(self, e: Array, observed: Array, noise: Array, rng: Generator) -> None:
        """Draw everything given the residuals of the model.

        e, observed : (N, width) y less eta of the model, and 1 where it is seen
        noise : (width,) variances
        """
        if not self.at.size:
            return
        e, observed, noise = e[:, self.at], observed[:, self.at], noise[self.at]
        series = self.series if len(self.u) else None
        if len(self.a):
            if series is None:
                law = group_sums(self.code, len(self.a), e, observed, noise)
            else:
                rest = e - self.factors.shift()
                if len(self.f):
                    rest -= self.curves(self.given.x, self.code, self.time)
                law = self.of_intercepts(series, observed / noise, rest, len(self.a))
            self.a[:] = draw_intercepts(*law, self.m, self.omega, rng)
            self._draw_law(rng)
        if series is not None:
            g = np.zeros((series.code.size, len(self.factors.p)))
            g[series.node] = self.factors.g
            seen = observed / noise
            own = [
                self._draw_series(s, series, self.shapes, g, e[:, s], seen[:, s], rng)
                for s in range(self.m.size)
            ]
            self._draw_shared(series, g, np.array(own), e, seen, rng)
            if len(self.f):
                R, J = self.precision, len(self.f)
                self.p[:] = draw_variances(self.p, np.sum(self.f * (R @ self.f), axis=0), J, rng)
                for r, h in zip(self.r, self.h[:, :, self.led], strict=True):
                    r[self.led] = draw_variances(r[self.led], np.sum(h * (R @ h), axis=0), J, rng)

    def of_intercepts(self, series: Series, seen: Array, e: Array, n: int) -> tuple[Array, Array]:
        """Return A and B (n, S) of what rows (n_rows, S) say of intercepts, without b and u."""
        found = []
        for s in range(self.m.size):
            precision, b = series.sums(seen[:, s]), series.sums(seen[:, s] * e[:, s])
            law = SeriesLaw(series, self.length[:, s], self.v[s], precision)
            lines = law.lines(b, self.lines_of(s, series.time), series.code, n)
            found.append(intercept_law(*lines, self.q[s]))
        A, B = zip(*found, strict=True)
        return np.array(A).T, np.array(B).T

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

    def _draw_shared(
        self, series: Series, g: Array, x: Array, e: Array, seen: Array, rng: Generator
    ) -> None:
        """Draw shared series and, where these have moved, u again.

        g : (M, K) as they were;  x : (S, 2, M) u and its velocity
        """
        factors, own = self.factors, OwnSeries(x, self.length, self.v)
        self.u[:] = x[:, 0, series.node].T
        if len(factors.p):
            rest = e - self.shift()[:, self.at] + factors.shift()
            G = factors.given_own(series, g, rest, seen, rng)
            G, x = factors.given_sums(series, G, own, rng)
            factors.g[:], self.u[:] = G[:, 0, series.node].T, x[:, 0, series.node].T
            factors.draw_variances(rng)
        self.energy[:] = own._replace(x=x).energy(series)

    def _draw_series(
        self, s: int, series: Series, shapes: Array, g: Array, e: Array, seen: Array, rng: Generator
    ) -> Array:
        """Draw v, l, k, q, f, d, b and L of one latent column, and return u and its velocity.

        shapes : (M, J) of curves;  g : (M, K) shared series;  e, seen : (N,)
        """
        precision, whole, sloped = series.sums(seen), series.sums(seen * e), len(self.b) > 0
        t, known = self.clocked(series.time), g @ self.factors.loading[:, s]
        if sloped:
            known += self._intercepts_of(s, series) + self._curves_of(s, series, shapes)
        b = whole - precision * known
        own = np.log([self.v[s], self.q[s], *self.length[:, s]])
        now = -np.inf
        for number in range(PROPOSALS + 1):
            size = 0.0 if number == 0 else 2.0 ** -rng.integers(0, 6)
            new = own + size * rng.standard_normal(4) * [1, sloped, 1, 1]
            v, q, *lengths = np.exp(new)
            law = SeriesLaw(series, lengths, v, precision)
            found = 0.5 * (law.square(b) - law.log_ratio)
            found += 0.5 * new[0] - np.log1p(v)  # half-Cauchy of the sd
            found += log_length_prior(new[2:])
            if sloped:
                lines = law.lines(b, t[:, None], series.code, len(self.b))
                A, B = lines[0][:, 0, 0], lines[1][:, 0]
                found += 0.5 * float((q * B**2 / (1.0 + q * A) - np.log1p(q * A)).sum())
                found += 0.5 * new[1] - np.log1p(q)
            if number == 0 or np.log(rng.random()) < found - now:
                own, now, kept = new, found, law
        self.v[s], self.q[s], *self.length[:, s] = np.exp(own)
        law = kept
        shared = precision * (g @ self.factors.loading[:, s])
        whole -= shared
        if len(self.f):
            self._draw_curves(s, series, shapes, law, whole, rng)
        b = whole
        if sloped:
            a = self.a[series.code, s]
            b = whole - precision * (a + self._curves_of(s, series, shapes))
            A, B = law.shared(b, t[:, None], 1.0 / self.q[[s]], (a * t)[:, None], series.code)
            self.d[s] = draw_slopes(A[0], B, PARTING, rng)[0]
            b = b - precision * self.d[s] * a * t
            A, B = law.lines(b, t[:, None], series.code, len(self.b))
            self.b[:, s] = draw_slopes(A[:, 0, 0], B[:, 0], self.q[s], rng)
            b = b - precision * t * self.b[series.code, s]
        if len(self.factors.p):
            self.factors.draw_loadings(s, g, law, b + shared, series.code, rng)
            b = b + shared - precision * (g @ self.factors.loading[:, s])
        return (law.draw(b, rng) / [1.0, np.sqrt(self.length[:, s].prod())]).T

    def _intercepts_of(self, s: int, series: Series) -> Array:
        """Return a (1 + d t) of one latent column at the times of groups (M,)."""
        return np.asarray(self.a[series.code, s] * self.lines_of(s, series.time)[:, 0])

    def _curves_of(self, s: int, series: Series, shapes: Array) -> Array:
        """Return f and all x h of one latent column at the times of groups (M,)."""
        if not len(self.f):
            return np.zeros(series.code.size)
        found = shapes @ self.f[:, s]
        for x, h in zip(self.given.x.T, self.h, strict=True):
            found += x[series.code] * (shapes @ h[:, s])
        return np.asarray(found)

    def _draw_curves(
        self, s: int, series: Series, shapes: Array, law: SeriesLaw, b: Array, rng: Generator
    ) -> None:
        """Draw f, every h and a of one latent column given sums b (M,) of all parts and noise.

        The curves one after another, given a of other columns: without that of this, b and u.
        """
        code, R, inverse = series.code, self.precision, np.linalg.inv(self.omega)
        own = self.lines_of(s, series.time)
        away = np.delete(self.a - self.m, s, axis=1) @ np.delete(inverse[s], s)
        mean, precision = self.m[s] - away / inverse[s, s], inverse[s, s]  # of a given others
        prior = np.array([precision, 1.0 / self.q[s]])
        left = b - law.seen * (mean[code] * own[:, 0] + self._curves_of(s, series, shapes))
        curves = [(np.ones(len(self.a)), self.f, self.p)]
        if self.led[s]:
            curves += [*zip(self.given.x.T, self.h, self.r, strict=True)]
        for x, values, variance in curves:
            X = x[code, None] * shapes
            left += law.seen * (X @ values[:, s])
            A, B = law.shared(left, own, prior, X, code)
            Q = A + R / variance[s]
            values[:, s] = draw_normals(Q[None], B[None], rng)[0]
            left -= law.seen * (X @ values[:, s])
        A, B = intercept_law(*law.lines(left, own, code, len(self.a)), self.q[s])
        self.a[:, s] = mean + draw_slopes(A, B, 1.0 / precision, rng)

    def scale_group(self, spans: tuple[tuple[int, int], ...]) -> Array:
        """Return, per column, squares in units of their prior sd, and their number (D, 2).

        A move along the scale of a column multiplies a, m and 1 / sqrt(c) with it, rows and columns
        of Omega, f, h, b, L, u and its velocity: of the first and third the change of density and
        volume cancels but for that of normals m and 1 / sqrt(c) of variances 1 and 1/2.
        """
        found = np.zeros((len(spans), 2))
        times = self.series.code.size if len(self.u) else 0
        for d, span in enumerate(spans):
            at = slice(*np.searchsorted(self.at, span))
            if len(self.a):
                found[d] += np.sum(self.m[at] ** 2 + 2.0 / self.c[at]), 2 * self.m[at].size
            if len(self.u):
                found[d, 1] += 2 * times * self.m[at].size + self.b[:, at].size
                found[d, 0] += float(np.sum(self.b[:, at] ** 2 / self.q[at]))
                found[d, 0] += float(np.sum(self.energy[at]))
                own = self.factors.loading[:, at]
                found[d] += float(np.sum(own**2 / self.factors.p[:, None])), own.size
            if len(self.f):
                R = self.precision
                curves = len(self.f) * (1 + len(self.h) * self.led[at])
                found[d, 1] += np.sum(curves)
                for f, p in ((self.f, self.p), *zip(self.h, self.r, strict=True)):
                    found[d, 0] += np.sum(f[:, at] * (R @ f[:, at]) / p[at])
        return found

    def rescale(self, factor: Array) -> None:
        """Multiply what shares the scale of latent columns by `factor` (width,)."""
        factor = factor[self.at]
        self.a *= factor
        self.m *= factor
        self.omega *= np.outer(factor, factor)
        self.c /= factor**2
        self.u *= factor
        self.b *= factor
        self.f *= factor
        self.h *= factor
        self.factors.loading *= factor

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays: those of fits of before, where there are no predictors."""
        names = [name for name in DRAWN if name not in ("h", "r") or self.given.at.size]
        arrays = {f"effects.{name}": getattr(self, name) for name in ("at", "code", "time", *names)}
        arrays |= self.given.pack() | self.factors.pack()
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
        d = part("d", S) if "effects.d" in arrays else np.zeros(S)  # fits of before have none
        if np.any((code < 0) | (code >= max(len(a), 1))) or {len(u), len(time)} not in ({0}, {N}):
            raise ValueError("'effects' are not those of the rows")
        shapes = {"m": (S,), "c": (S,), "omega": (S, S), "v": (S,), "length": (2, S)}
        m, c, omega, v, length = (part(name, *shape) for name, shape in shapes.items())
        knots, step = knots_of(time, len(a)), float(part("step"))
        f, p = part("f", knots.size, S), part("p", S)
        given = GroupPredictors.unpack(arrays, len(a), sizes.latent)
        P = given.at.size
        h, r = np.empty((0, knots.size, S)), np.empty((0, S))
        if P:
            h, r = part("h", P, knots.size, S), part("r", P, S)
        if min(x.min(initial=1.0) for x in (c, v, length, q, p, r)) <= 0.0 or step <= 0.0:
            raise ValueError("'effects' have a variance or length that is not above 0")
        try:
            np.linalg.cholesky(omega)
        except np.linalg.LinAlgError:
            raise ValueError("'effects.omega' is not positive definite") from None
        factors = FactorSeries.unpack(arrays, len(time), S)
        rest = u, v, length, b, d, q, f, p, h, r, knots, step, np.zeros(S), given, factors
        return cls(at, sizes.latent, code, time, a, m, c, omega, *rest)
