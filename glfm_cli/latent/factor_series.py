"""Series that columns share: what one says of the next value of another.

    w_ns = ... + sum_k L_ks g_k(t_n),    L_ks ~ N(0, p_k),    sqrt(p_k) ~ half-Cauchy(1)

within a group g_k is a stationary autoregression of second order in continuous time, of variance 1,
as u_s of a column is (row_effects.py), with lengths of its own: a dynamic factor model [Stock and
Watson 2011]. Of up to `MOST` of them those that say nothing are drawn to nothing, by p_k.

A series and its velocity are Markov, and so are all together. Two draws of g take turns, since one
hardly moves where the other is free [Yu and Meng 2011]: given the columns' own series u, by what is
seen less u, and given the sums z = L g + u and their velocities, of which u is what g leaves over.
Loadings are drawn with u integrated out.

Cost of a sweep: O(N K (K^2 + S)) beside that of u.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.random import Generator
from scipy.linalg.lapack import dpbtrf, dtbtrs

from glfm_cli._kernels._series import fill_blocks
from glfm_cli.arrays import Array
from glfm_cli.latent.model import take
from glfm_cli.latent.row_laws import Series, SeriesLaw, draw_normals, draw_variances

NAMES = ("g", "loading", "p", "length")
MOST = 6
TOGETHER = 8  # columns whose precisions are held at once
LENGTH = np.log([5.0, 0.5])  # prior of the logs of lengths l and k, in median steps of time
LENGTH_SD = np.array([1.5, 2.0])
PROPOSALS = 3  # for lengths, in a sweep


def log_length_prior(log_lengths: Array) -> float:
    """Return the log density of l and k of one series, but for a constant."""
    return -0.5 * float(np.sum(((log_lengths - LENGTH) / LENGTH_SD) ** 2))


class Blocks(NamedTuple):
    """A symmetric matrix of M x M blocks, of which those on the diagonal and beside it are not 0.

    diagonal, below : (w, w, M), `below[..., n]` in row n + 1 and column n; the last is 0
    """

    diagonal: Array
    below: Array

    @classmethod
    def of_series(cls, series: Series, lengths: Array, v: float) -> Blocks:
        """Return the precision of (u, du/dt) of variance v; time in median steps."""
        M = series.which.size
        found = cls(np.empty((2, 2, M)), np.empty((2, 2, M)))
        parts, root = series.steps(lengths), math.sqrt(np.prod(lengths))
        fill_blocks(series.which, parts, 1.0 / v, root, *found)
        return found

    def times(self, x: Array) -> Array:
        """Return the product with x (w, M)."""
        found: Array = np.einsum("ijn,jn->in", self.diagonal, x)
        found[:, 1:] += np.einsum("ijn,jn->in", self.below[..., :-1], x[:, :-1])
        found[:, :-1] += np.einsum("jin,jn->in", self.below[..., :-1], x[:, 1:])
        return found

    def draw(self, b: Array, rng: Generator) -> Array | None:
        """Return a draw (w, M) of N(Q^-1 b, Q^-1), Q this and b (w, M); None beyond rounding."""
        w, M = b.shape
        band = np.zeros((M, w, 2 * w))
        for c in range(w):
            band[:, c, : w - c] = self.diagonal[c:, c].T
            band[:, c, w - c : 2 * w - c] = self.below[:, c].T
        factor, status = dpbtrf(band.reshape(-1, 2 * w).T, lower=1, overwrite_ab=1)
        if status != 0:
            return None
        half = dtbtrs(factor, b.T.reshape(-1, 1), uplo="L")[0]
        half += rng.standard_normal(half.shape)
        return np.asarray(dtbtrs(factor, half, uplo="L", trans="T")[0]).reshape(M, w).T


class OwnSeries(NamedTuple):
    """The columns' own series: x (S, 2, M), u and its velocity; length (2, S), v (S,)."""

    x: Array
    length: Array
    v: Array

    def precision(self, s: int, series: Series) -> Blocks:
        """Return that of one column's."""
        return Blocks.of_series(series, self.length[:, s], self.v[s])

    def energy(self, series: Series) -> Array:
        """Return the squares (S,) of u and its velocity in units of their prior sds."""
        parts = [np.sum(x * self.precision(s, series).times(x)) for s, x in enumerate(self.x)]
        return np.array(parts)


@dataclass(eq=False)
class FactorSeries:
    """K series, or a snapshot of them.

    g : (N, K) at the rows;  loading : (K, S);  p : (K,);  length : (2, K), l and k
    """

    g: Array
    loading: Array
    p: Array
    length: Array

    @classmethod
    def none(cls, rows: int, width: int, n: int = 0) -> Self:
        """Return n of them that are 0, of so many latent columns."""
        length = np.tile(np.exp(LENGTH)[:, None], n)
        return cls(np.zeros((rows, n)), np.zeros((n, width)), np.ones(n), length)

    @classmethod
    def begin(cls, series: Series, y: Array, observed: Array) -> Self:
        """Return the principal components of columns whose gaps are bridged by lines in time.

        y : (N, S) less what is the same at all times;  observed : (N, S)
        """
        (N, S), M = y.shape, series.code.size
        state = cls.none(N, S, min(MOST, S // 2, M // 2))
        K = len(state.p)
        if not K:
            return state
        z = np.zeros((M, S))
        for s in range(S):
            seen = series.sums(observed[:, s])
            at = np.flatnonzero(seen)
            if at.size:
                mean = series.sums(np.where(observed[:, s], y[:, s], 0.0))[at] / seen[at]
                z[:, s] = np.interp(np.arange(M), at, mean)
        z -= z.mean(axis=0)
        values, vectors = np.linalg.eigh(z.T @ z / len(z))
        root = np.sqrt(np.maximum(values[::-1][:K], 1e-12))
        V = vectors[:, ::-1][:, :K]
        state.g[:] = (z @ V / root)[series.node]
        state.loading[:] = (V * root).T
        return state

    def copy(self) -> FactorSeries:
        """Return a copy that later updates leave alone."""
        return replace(self, **{name: getattr(self, name).copy() for name in NAMES})

    def shift(self, rows: slice | Array = slice(None)) -> Array:
        """Return L g (n, S) of some rows."""
        return np.asarray(self.g[rows] @ self.loading)

    def draw_loadings(
        self, s: int, g: Array, law: SeriesLaw, b: Array, code: Array, rng: Generator
    ) -> None:
        """Draw those of one latent column, with its own series integrated out.

        g : (M, K);  law : of its own series;  b : (M,) sums of what is seen, times its precision
        code : (M,) groups of the times
        """
        A, B = law.shared(b, np.empty((b.size, 0)), np.empty(0), g, code)
        Q = A + np.diag(1.0 / self.p)
        self.loading[:, s] = draw_normals(Q[None], B[None], rng)[0]

    def draw_variances(self, rng: Generator) -> None:
        """Draw p."""
        squares = np.sum(self.loading**2, axis=1)
        self.p[:] = draw_variances(self.p, squares, self.loading.shape[1], rng)

    def given_own(
        self,
        series: Series,
        g: Array,
        rest: Array,
        seen: Array,
        rng: Generator,
        held: Array | None = None,
    ) -> Array:
        """Return g and its velocity (K, 2, M) at the times, drawn one after another; draw lengths.

        g : (M, K) as it was;  rest : (N, S) what all other parts leave over;  seen : its precisions
        held : (M,) precisions by which g is held where it is; then lengths stay as they are
        """
        (M, K), L = g.shape, self.loading
        G, g = np.empty((K, 2, M)), g.copy()
        for k in range(K):
            others = rest - (np.delete(g, k, axis=1) @ np.delete(L, k, axis=0))[series.node]
            precision, b = series.sums(seen @ L[k] ** 2), series.sums((seen * others) @ L[k])
            if held is not None:
                precision, b = precision + held, b + held * g[:, k]
            law = self._law(k, series, precision, b, PROPOSALS if held is None else 0, rng)
            G[k] = law.draw(b, rng).T
            G[k, 1] /= np.sqrt(self.length[:, k].prod())
            g[:, k] = G[k, 0]
        return G

    def _law(
        self, k: int, series: Series, precision: Array, b: Array, proposals: int, rng: Generator
    ) -> SeriesLaw:
        """Draw lengths of one series, itself integrated out, and return its law given them."""
        own, now = np.log(self.length[:, k]), -np.inf
        for number in range(proposals + 1):
            size = 0.0 if number == 0 else 2.0 ** -rng.integers(0, 6)
            new = own + size * rng.standard_normal(2)
            law = SeriesLaw(series, np.exp(new), 1.0, precision)
            found = 0.5 * (law.square(b) - law.log_ratio) + log_length_prior(new)
            if number == 0 or np.log(rng.random()) < found - now:
                own, now, kept = new, found, law
        if proposals:
            self.length[:, k] = np.exp(own)
        return kept

    def given_sums(
        self,
        series: Series,
        G: Array,
        own: OwnSeries,
        rng: Generator,
        held: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return g and the columns' own series, (K, 2, M) and (S, 2, M), given z = L g + u.

        As they were where the precision, which rests on what is given alone, is lost to rounding.

        G : (K, 2, M) g and its velocity as they were;  held : (M,) as for `given_own`
        """
        (K, _, M), L = G.shape, self.loading
        diagonal, below, b = np.zeros((K, 2, K, 2, M)), np.zeros((K, 2, K, 2, M)), np.zeros_like(G)
        z = own.x + np.tensordot(L.T, G, 1)
        for at in np.array_split(np.arange(len(z)), -(-len(z) // TOGETHER)):
            Q, of = [own.precision(s, series) for s in at], L[:, at]
            both = (of[:, None] * of).reshape(K * K, -1)
            for i, j in np.ndindex(2, 2):
                for whole, part in (diagonal, 0), (below, 1):
                    each = np.array([one[part][i, j] for one in Q])
                    whole[:, i, :, j] += (both @ each).reshape(K, K, M)
            told = np.array([one.times(z[s]) for s, one in zip(at, Q, strict=True)])
            b += np.tensordot(of, told, 1)
        for k in range(K):
            prior = Blocks.of_series(series, self.length[:, k], 1.0)
            diagonal[k, :, k] += prior.diagonal
            below[k, :, k] += prior.below
            if held is not None:
                diagonal[k, 0, k, 0] += held
                b[k, 0] += held * G[k, 0]
        Q_all = Blocks(diagonal.reshape(2 * K, 2 * K, M), below.reshape(2 * K, 2 * K, M))
        drawn = Q_all.draw(b.reshape(2 * K, M), rng)
        if drawn is None:
            return G, own.x
        G = drawn.reshape(K, 2, M)
        return G, z - np.tensordot(L.T, G, 1)

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays; none where there are no series."""
        if not self.p.size:
            return {}
        return {f"effects.factor.{name}": getattr(self, name) for name in NAMES}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], rows: int, width: int) -> Self:
        """Return what `pack` gave, on the same memory; ValueError when it is no such part."""
        if not any(f"effects.factor.{name}" in arrays for name in NAMES):
            return cls.none(rows, width)

        def part(name: str, *shape: int | None) -> Array:
            return take(arrays, f"effects.factor.{name}", np.float64, shape)

        p = part("p", None)
        K = p.size
        found = cls(part("g", rows, K), part("loading", K, width), p, part("length", 2, K))
        if min(p.min(initial=1.0), found.length.min(initial=1.0)) <= 0.0:
            raise ValueError("'effects.factor' has a variance or length that is not above 0")
        return found
