"""New rows and columns of a matrix under a draw, everything that the fit's own units have fixed.

A sweep draws what is known of y given x, then [U_i, G_C[i], c_i] of every new row given all
columns, then [s V_j, G_R[j]] of every new column given all rows, new ones among them: Gibbs
sampling of the new units given the draw. With I and J the rows and columns of the fit,

    U_ik ~ N(0, 1/I)    s_k V_jk ~ N(0, s_k^2 / J)    G_C[i], c_i, G_R[j] as in `bsvd`

With noise of rows the f_i of every new row is drawn, too, from its prior at first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each, UnitCells
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.design import Covariates
from glfm_cli.latent.bsvd.draw import BsvdDraw
from glfm_cli.latent.bsvd.matrix import Matrix
from glfm_cli.latent.bsvd.moves import Regression
from glfm_cli.latent.bsvd.prior_means import means_of
from glfm_cli.latent.bsvd.row_noise import draw_row_precision
from glfm_cli.latent.model import Cells, Sparse


def draw_new_units(
    draw: BsvdDraw,
    config: BsvdConfig,
    cells: Cells,
    refill: Callable[[Array], None],
    sweeps: int,
    rng: np.random.Generator,
) -> BsvdDraw:
    """Return a draw with new units behind those of the fit.

    draw : of the fit
    cells : the cells of new units, in a matrix of all units; covariates of all
    refill : draws what is known of y given x (m, 1)
    sweeps : O(m K^2 + n K^3) each, for m cells and n new units
    """
    assert isinstance(cells.layout, Sparse)
    matrix, row, column = Matrix.of(cells), cells.layout.entries.row, cells.layout.entries.column
    n_rows, n_columns = matrix.shape
    slopes, row_noise = draw.n_slopes, draw.row_precision.size > 0
    design = Covariates.of(cells, matrix.shape, config)
    k, p = draw.n_components, draw.n_row_covariates
    (n_fitted, q), J = draw.left.shape, draw.right.shape[0]
    left, right = _sides(draw, design)
    prior = design.precision(draw.tau)
    mean = np.zeros(k + design.n_weights[0])
    mean[k : k + int(config.bias)] = draw.mu
    noise, f = float(draw.noise[0]), _row_precision(draw, n_rows, rng)
    precision = f, np.full(n_columns, 1.0 if matrix.own.size else 1.0 / noise)
    matrix.weigh(noise)
    n_own, n_of_row = design.n_weights
    of_row = np.r_[0:k, k + p : k + p + n_of_row, q - slopes : q]  # what a row has of its own
    around_rows, around_columns = _prior_means(draw, design, of_row.size, k + n_own)
    left[n_fitted:, of_row] = around_rows[n_fitted:]
    right[J:, : k + n_own] += around_columns[J:]
    for _ in range(sweeps):
        x = np.einsum("nk,nk->n", left[row], right[column])
        refill(x[:, None])
        y = matrix.values(cells.y)
        if row_noise:
            S = np.bincount(row, weights=(y - x) ** 2, minlength=n_rows)[n_fitted:]
            n = np.diff(matrix.rows.indptr)[n_fitted:]
            f[n_fitted:] = draw_row_precision(S, n, noise, draw.variation, rng)
        rows = Regression(
            precision=precision,
            own=left[:, k : k + p],
            other=right[:, k : k + p],
            regressor=right[:, of_row],
            prior=np.concatenate([np.full(k, float(n_fitted)), prior[1]]),
            prior_linear=np.zeros(of_row.size),
            center=around_rows,
        )
        found = rows.solve(matrix.rows, matrix.weight, y, rng, _from(n_fitted))
        left[n_fitted:, of_row] = (found.mean + found.deviation)[n_fitted:]
        of_columns = np.concatenate([J / draw.s**2, prior[0]])
        # With slopes a row sees (1 + c_i) g_j - c_i mu.
        own, regressor = right[:, k + p :].copy(), left[:, : k + n_own].copy()
        own[:, q - k - p - slopes :] = -draw.mu
        regressor[:, k : k + slopes] += left[:, q - slopes :]
        columns = Regression(
            precision=precision[::-1],
            own=own,
            other=left[:, k + p :],
            regressor=regressor,
            prior=of_columns,
            prior_linear=of_columns * mean,
            center=around_columns,
        )
        found = columns.solve(matrix.columns, matrix.weight, y, rng, _from(J))
        right[J:, : k + n_own] = (found.mean + found.deviation)[J:]
        right[J:, q - slopes :] = right[J:, k : k + slopes] - draw.mu
    return replace(
        draw, left=left, right=right, row_precision=f if row_noise else draw.row_precision
    )


def _row_precision(draw: BsvdDraw, n_rows: int, rng: np.random.Generator) -> Array:
    """Return f (n_rows,) of all rows, of new ones from its prior; 1 without noise of rows."""
    f = np.ones(n_rows)
    if draw.row_precision.size:
        n = draw.row_precision.size
        f[:n], none = draw.row_precision, np.zeros(n_rows - n)
        f[n:] = draw_row_precision(none, none, float(draw.noise[0]), draw.variation, rng)
    return f


def _prior_means(
    draw: BsvdDraw, design: Covariates, n_row: int, n_column: int
) -> tuple[Array, Array]:
    """Return what covariates say of the coefficients of rows (I, n_row) and columns, s in these."""
    rows, columns = design.features
    scaled = draw.of_columns * np.append(draw.s, 1.0)
    return means_of(rows, draw.of_rows, n_row), means_of(columns, scaled, n_column)


def _sides(draw: BsvdDraw, design: Covariates) -> tuple[Array, Array]:
    """Return left and right of all units: new ones have covariates and the mean intercept."""
    (n_fitted, q), J = draw.left.shape, draw.right.shape[0]
    k, p = draw.n_components, draw.n_row_covariates
    left, right = np.zeros((len(design.R), q)), np.zeros((len(design.C), q))
    left[:n_fitted], right[:J] = draw.left, draw.right
    left[n_fitted:, k : k + p] = design.R[n_fitted:]
    right[J:, k + p : q - draw.n_slopes] = design.C[J:]
    right[J:, k : k + int(design.bias)] = draw.mu
    return left, right


def _from(first: int) -> Each:
    """Return what works on the units from `first` on."""

    def each(side: UnitCells, work: Callable[[int, int], object]) -> None:
        if first < side.n:
            work(first, side.n)

    return each
