"""New rows, rates of cells, and the shares of held-out counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import TINY, CnpfDraw, draw_of, factor_variance, widened
from glfm_cli.latent.cnpf.rows import visit_rows
from glfm_cli.latent.cnpf.starts import start_new_rows
from glfm_cli.latent.cnpf.tables import tables_of

ROUNDS = 25
PART = 1 << 16  # cells whose temporary numbers are held at once


def fold_in(draw: CnpfDraw, counts: Counts, config: CnpfConfig) -> CnpfDraw:
    """Return the snapshot of other rows, by the local step alone.

    Weights are multiplied by tau, and shares are those of the mean step, by which columns have
    settled. Missing pairs say nothing; a topic model takes the words it sees for all.
    """
    shared = draw.shared.copy()
    shared.w = shared.w * draw.tau
    tables = tables_of(config, shared, counts, draw.columns, mean_step=True)
    rows = start_new_rows(config, counts, shared.w)
    with thread_pool(counts.threads) as each:
        visit_rows(rows, counts, tables, each, ROUNDS, mean_step=True)
    totals = counts.row_totals
    new = draw_of(config, draw.shared, draw.columns, rows, tables, totals, draw.tau)
    return replace(new, excess=draw.excess)


@dataclass(frozen=True)
class Rates:
    """Mean and variance (n,) of the Poisson rates of some cells, under q."""

    mean: Array
    var: Array


def rates(draw: CnpfDraw, row: Array, column: Array) -> Rates:
    """Return the moments of sum_k x_uk a_ki, times a cell's factor, at the cells (row, column).

    For a topic model these are shares of the row's total, times that.
    """
    x, a = draw.mean_x, draw.mean_a
    var_x = x / draw.rate
    var_a = a**2 / draw.shared.A
    mean, var = np.empty(row.size), np.empty(row.size)
    for start in range(0, row.size, PART):
        part = slice(start, start + PART)
        u, i = row[part], column[part]
        mean[part] = np.einsum("nk,nk->n", x[u], a[i])
        # Both factors are independent: E x^2 a^2 - (E x E a)^2.
        var[part] = np.einsum("nk,nk->n", var_x[u] + x[u] ** 2, var_a[i])
        var[part] += np.einsum("nk,nk->n", var_x[u], a[i] ** 2)
        mean[part] *= draw.size[u]
        var[part] *= draw.size[u] ** 2
    return Rates(mean, widened(mean, var, draw.excess))


def p_any(draw: CnpfDraw, rows: slice | Array) -> Array:
    """Return P(y > 0) (n, I) of some rows in all columns, by gamma rates of the moments of `rates`.

    O(n I T), for three products of matrices.
    """
    x, a, size = draw.mean_x[rows], draw.mean_a, draw.size[rows, None]
    var_x, var_a = x / draw.rate[rows], a**2 / draw.shared.A
    mean = size * (x @ a.T)
    scale = (var_x + x**2) @ var_a.T  # the variance over the mean: the scale of a gamma law
    scale += var_x @ (a.T**2)
    factor = factor_variance(mean, draw.excess)
    scale *= size**2 / np.maximum(mean, TINY) * (1.0 + factor)
    scale += factor * mean
    np.maximum(scale, TINY, out=scale)
    found: Array = -np.expm1(-mean / scale * np.log1p(scale))
    return found


def sample_rates(
    draw: CnpfDraw, row: Array, column: Array, size: int, rng: np.random.Generator
) -> Array:
    """Return draws (size, n) of the rates of cells from q, joint within rows and columns."""
    units, u = np.unique(row, return_inverse=True)
    sides, i = np.unique(column, return_inverse=True)
    a_rate = draw.shared.A[sides] / draw.mean_a[sides]
    out = np.empty((size, row.size))
    for s in range(size):
        x = rng.gamma(draw.shape[units]) / draw.rate[units]
        a = rng.gamma(draw.shared.A[sides]) / a_rate
        out[s] = np.einsum("nk,nk->n", x[u], a[i]) * draw.size[row]
    return out


def cell_shares(draw: CnpfDraw, held_out: Counts) -> Array:
    """Return the rates (m,) of the cells that have counts, over those of all columns."""
    side = held_out.rows
    row = np.repeat(np.arange(side.n), np.diff(side.indptr))
    draw = replace(draw, size=np.ones(draw.size.size))  # of a topic model 0 where nothing is seen
    total = draw.mean_x @ draw.mean_a.sum(axis=0)
    p: Array = rates(draw, row, side.index).mean / total[row]
    return p
