"""What rows that a fit has not seen have in common with its rows, and with one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array, Groups
from glfm_cli.latent.factor_series import OwnSeries
from glfm_cli.latent.row_effects import RowEffects
from glfm_cli.latent.row_laws import Series, SeriesLaw, draw_intercepts, draw_slopes, group_sums

HELD = 1e8  # precision by which rows that are known already are held


class RowsToJoin:
    """The part of rows that a fit has not seen: its groups are held, new ones are drawn.

    w : (n, width), which `update` draws
    """

    def __init__(self, fitted: RowEffects, groups: Groups, predictors: Array | None) -> None:
        self.fitted, self.n, S = fitted, groups.code.size, fitted.m.size
        G = len(fitted.a)
        self.new = max(groups.n - G, 0)
        self.code = groups.code
        self.a = np.concatenate([fitted.a, np.tile(fitted.m, (self.new, 1))])
        self.b = np.concatenate([fitted.b, np.zeros((self.new if len(fitted.b) else 0, S))])
        self.common = np.zeros((self.n, S))
        if len(fitted.f) and groups.time is not None:
            x = fitted.given.joined(predictors, self.code, G + self.new)
            self.common = fitted.curves(x, self.code, groups.time)
        self.t = np.zeros(self.n) if groups.time is None else fitted.clocked(groups.time)
        self.u = np.zeros((self.n, S))
        self.series: Series | None = None
        self.g = np.empty((0, len(fitted.factors.p)))  # at the times of the series
        self.begun = False
        self.held = np.empty(0, dtype=np.int64)
        if len(fitted.u) and groups.time is not None:
            self.held = np.flatnonzero(np.isin(fitted.code, np.unique(groups.code)))
            code = np.concatenate([groups.code, fitted.code[self.held]])
            time = np.concatenate([groups.time, fitted.time[self.held]])
            self.series = Series.of(code, time, fitted.step)
            known = self.series.node[self.n :]
            self.g = np.zeros((self.series.code.size, len(fitted.factors.p)))
            self.g[known] = fitted.factors.g[self.held]
            self.held_at = np.zeros(len(self.g))
            self.held_at[known] = HELD

    @property
    def w(self) -> Array:
        """Return the part (n, width)."""
        w = np.zeros((self.n, self.fitted.width))
        w[:, self.fitted.at] = (
            self.common + self.shared + self.u + self.slopes + self.intercepts
        )
        return w

    @property
    def shared(self) -> Array:
        """Return L g (n, S)."""
        if self.series is None:
            return np.zeros_like(self.u)
        return np.asarray(self.g[self.series.node[: self.n]] @ self.fitted.factors.loading)

    @property
    def intercepts(self) -> Array:
        """Return a_g (1 + d t_n) (n, S)."""
        if not len(self.a):
            return np.zeros_like(self.u)
        return self.a[self.code] * (1.0 + self.fitted.d * self.t[:, None])

    @property
    def slopes(self) -> Array:
        """Return b_g t_n (n, S)."""
        if not len(self.b):
            return np.zeros_like(self.u)
        return self.b[self.code] * self.t[:, None]

    def update(self, e: Array, observed: Array, noise: Array, rng: Generator) -> None:
        """Draw what is new given the residuals of the model, as `RowEffects.update` takes them."""
        fitted, G, n = self.fitted, len(self.fitted.a), len(self.fitted.a) + self.new
        if not fitted.at.size:
            return
        e, observed, noise = e[:, fitted.at], observed[:, fitted.at], noise[fitted.at]
        e, seen, known = e - self.common, observed / noise, fitted.u[self.held]
        if self.series is not None:  # of rows that are held u alone is known
            seen = np.concatenate([seen, np.full(known.shape, HELD) / fitted.v])
        if self.series is not None and not self.begun and self.g.size:
            self._begin(e, observed, noise, rng)
        if self.new:
            if self.series is None:
                A, B = group_sums(self.code, n, e, observed, noise)
            else:  # new groups have no rows that are held
                rest = np.concatenate([e - self.shared, known])
                A, B = fitted.of_intercepts(self.series, seen, rest, n)
            self.a[G:] = draw_intercepts(A[G:], B[G:], fitted.m, fitted.omega, rng)
        if self.series is not None:
            self._draw_series(self.series, e - self.intercepts, known, seen, rng)

    def _begin(self, e: Array, observed: Array, noise: Array, rng: Generator) -> None:
        """Draw shared series as if the columns' own were noise."""
        assert self.series is not None
        fitted, held = self.fitted, np.zeros((self.held.size, e.shape[1]))
        rest = np.concatenate([e - self.intercepts, held])
        seen = np.concatenate([observed / (noise + fitted.v), held])
        G = fitted.factors.given_own(self.series, self.g, rest, seen, rng, self.held_at)
        self.g, self.begun = G[:, 0].T, True

    def _draw_series(
        self, series: Series, e: Array, known: Array, seen: Array, rng: Generator
    ) -> None:
        """Draw slopes of new groups, u and g, given what intercepts leave over, e (n, S)."""
        fitted, n = self.fitted, len(self.fitted.a) + self.new
        rest = np.concatenate([e - self.shared, known])
        t, node, x = fitted.clocked(series.time)[:, None], series.node[: self.n], []
        for s in range(fitted.m.size):
            precision, b = series.sums(seen[:, s]), series.sums(seen[:, s] * rest[:, s])
            law = SeriesLaw(series, fitted.length[:, s], fitted.v[s], precision)
            if len(self.b):
                if self.new:
                    A, B = (one[len(fitted.a) :] for one in law.lines(b, t, series.code, n))
                    self.b[len(fitted.a) :, s] = draw_slopes(A[:, 0, 0], B[:, 0], fitted.q[s], rng)
                b -= np.bincount(node, seen[: self.n, s] * self.slopes[:, s], b.size)
            x.append((law.draw(b, rng) / [1.0, np.sqrt(fitted.length[:, s].prod())]).T)
        own = OwnSeries(np.array(x), fitted.length, fitted.v)
        if self.g.size:
            factors = fitted.factors
            rest = np.concatenate([e - self.slopes, known]) - own.x[:, 0, series.node].T
            free = np.concatenate([seen[: self.n], np.zeros_like(known)])
            G = factors.given_own(series, self.g, rest, free, rng, self.held_at)
            G, own_x = factors.given_sums(series, G, own, rng, self.held_at)
            self.g, own = G[:, 0].T, own._replace(x=own_x)
        self.u[:] = own.x[:, 0, node].T


@dataclass(frozen=True, eq=False)
class FoldedEffects:
    """A snapshot of the part of new rows: w (n, width)."""

    w: Array

    def shift(self, rows: slice | Array = slice(None)) -> Array:
        """Return w (n, width) of some rows."""
        return self.w[rows]
