"""The local step: q of every row given what rows share, and sums over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from glfm_cli._kernels import _cnpf
from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each, UnitCells
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.tables import NONE, Tables, prior_precision

FIRST_COVARIANCE = 0.1  # of q(v), in units of the prior's


@dataclass
class Rows:
    """q of the rows, and what a pass over them leaves for the next.

    n : (U, K) counts by component: q(x) is Gamma(w + n, rho + S)
    m : (U, F) means of q(v);  cov : (U, J) pairs of its covariance, or (U, F) variances
    g : (U,) exposures of a topic model, else empty
    rho : (U, K) E r;  x : (U, K) exp(E log x) up to a factor a row;  ratio : (m,) see the kernel
    bound : (U,) terms of the bound
    """

    n: Array
    m: Array
    cov: Array
    g: Array
    rho: Array = field(default_factory=lambda: NONE)
    x: Array = field(default_factory=lambda: NONE)
    ratio: Array = field(default_factory=lambda: NONE)
    bound: Array = field(default_factory=lambda: NONE)

    @classmethod
    def of(cls, config: CnpfConfig, n: Array) -> Rows:
        """Return q with the given counts by component and v about its prior mean."""
        U, F = n.shape[0], config.n_free
        variance = FIRST_COVARIANCE / prior_precision(config)
        diagonal = np.arange(F)
        J = F if config.diagonal else F * (F + 1) // 2
        cov = np.zeros((U, J))
        cov[:, diagonal if config.diagonal else diagonal * (diagonal + 3) // 2] = variance
        return cls(n, np.zeros((U, F)), cov, np.ones(U if config.topics else 0))

    def copy(self) -> Rows:
        """Return a copy of what the next pass depends on."""
        return Rows(self.n.copy(), self.m.copy(), self.cov.copy(), self.g.copy())

    @property
    def gaussian(self) -> tuple[Array, Array, Array]:
        """n, m and cov, as the kernels take them."""
        return self.n, self.m, self.cov


def visit_rows(
    rows: Rows,
    counts: Counts,
    tables: Tables,
    each: Each,
    rounds: int,
    tolerance: float = 1e-4,
    mean_step: bool = False,
) -> None:
    """Renew q of every row, in place: counts by component, then v, for so many rounds at most.

    With the mean step, shares are proportional to E x E a, which is no coordinate step of the
    bound, but does not starve components in rows of few counts [Asuncion et al. 2009].
    """
    config, (U, K) = tables.config, rows.n.shape
    if rows.rho.shape != (U, K):
        rows.rho, rows.x = np.empty((U, K)), np.empty((U, K))
        rows.ratio, rows.bound = np.empty(counts.count.size), np.empty(U)
    side, F = counts.rows, rows.m.shape[1]

    def work(start: int, end: int) -> None:
        _cnpf.visit_rows(
            *(start, end, side.indptr, side.index, counts.count, tables.a, tables.w),
            *(tables.loadings, tables.products, tables.prior, *tables.exposures, *tables.link),
            *(config.diagonal, mean_step, rounds, tolerance),
            *(rows.g, *rows.gaussian, rows.rho, rows.x, rows.ratio),
            NONE if mean_step else rows.bound,
            np.empty(_cnpf.work_size(K, F)),
        )

    each(side, work)


@dataclass(frozen=True)
class LeftOut:
    """What is left out of cells (m,) at a time, see the kernel: components, and counts in them."""

    top: Array
    own: Array
    was: Array
    change: Array

    @classmethod
    def of(cls, m: int) -> LeftOut:
        """Return parts of which nothing is left out."""
        return cls(*(np.zeros(m, kind) for kind in (np.int16, np.float32, np.int16, np.float32)))


NO_PARTS = LeftOut.of(0)


def leave_out(
    rows: Rows, counts: Counts, tables: Tables, shape: Array, parts: LeftOut, each: Each
) -> None:
    """Renew counts by component, in place, by the mean step without what a cell says of itself.

    Of the component that has most of a cell's count that part is taken out of the row and of the
    column, of shapes `shape` (I, T), before the cell is split again [Asuncion et al. 2009]. Without
    it shares confirm themselves. v stays.
    """
    side, w, least = counts.rows, tables.w, tables.config.column_shape
    rows.x = mean_x(rows, tables, w)

    def work(start: int, end: int) -> None:
        _cnpf.leave_out(
            *(start, end, side.indptr, side.index, counts.count, tables.a, w, shape, least),
            *(rows.x, rows.n, parts.top, parts.own, parts.was, parts.change, rows.ratio),
            np.empty(w.size),
        )

    each(side, work)


def count_columns(
    rows: Rows, counts: Counts, tables: Tables, each: Each, parts: LeftOut = NO_PARTS
) -> Array:
    """Return the counts (I, T) of columns by component, with the shares of the last visit."""
    side, T = counts.columns, tables.config.components
    out = np.empty(tables.a.shape)

    def work(start: int, end: int) -> None:
        _cnpf.add_columns(
            *(start, end, side.indptr, side.index, side.cell, rows.ratio, rows.x, tables.a),
            *(parts.was, parts.change, out),
        )

    each(side, work)
    return out[:, :T]


def sum_blocks(
    side: UnitCells, each: Each, shape: tuple[int, ...], work: Callable[[int, int, Array], None]
) -> Array:
    """Return the sum over blocks of what `work(start, end, out)` adds to zeros, in their order."""
    sums = np.zeros((len(side.cuts) - 1, *shape))
    number = {start: b for b, start in enumerate(side.cuts[:-1])}
    each(side, lambda start, end: work(start, end, sums[number[start]]))
    total: Array = sums.sum(axis=0)
    return total


def sum_rates(rows: Rows, counts: Counts, tables: Tables, w: Array, each: Each) -> Array:
    """Return (2, K) the sums over rows of log(rho + S), and of E x = (w + n) / (rho + S)."""
    K = w.size

    def work(start: int, end: int, out: Array) -> None:
        _cnpf.add_rates(
            *(start, end, w, *tables.exposures, rows.g, rows.n, rows.rho, out, np.empty(K))
        )

    return sum_blocks(counts.rows, each, (2, K), work)


def exposures(rows: Rows, tables: Tables) -> Array:
    """Return S (U, K) of every row."""
    if rows.g.size:
        return np.repeat(rows.g[:, None], tables.S.size, axis=1)
    S = np.repeat(tables.S[None, :], rows.n.shape[0], axis=0)
    if tables.at.size:
        have = tables.at >= 0
        S[have] = tables.own[tables.at[have]]
    return S


def mean_x(rows: Rows, tables: Tables, w: Array) -> Array:
    """Return E x (U, K)."""
    mean: Array = (w + rows.n) / (rows.rho + exposures(rows, tables))
    return mean
