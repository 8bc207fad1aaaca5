"""New rows and columns of a matrix under a draw, everything that the fit's own units have fixed.

A sweep draws what is known of y given x, then [U_i, G_C[i], c_i] of every new row given all
columns, then [s V_j, G_R[j]] of every new column given all rows, new ones among them: Gibbs
sampling of the new units given the draw. With I and J the rows and columns of the fit,

    U_ik ~ N(0, 1/I)    s_k V_jk ~ N(0, s_k^2 / J)    G_C[i], c_i, G_R[j] as in `bsvd`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glfm_cli.latent.design import Design
from glfm_cli.latent.latent import Array, Cells
from glfm_cli.latent.lowrank import BsvdConfig, Regression
from glfm_cli.latent.matrix import Each, Matrix, Side


@dataclass(frozen=True)
class Fixed:
    """What new units share with those of the fit, under one draw.

    left (I, q), right (J, q) : of the fit;  noise : of the matrix
    n_components, n_row_covariates : the first of the q columns, and those after them
    s : (k,) scales;  tau, mu : see `BsvdState`
    """

    left: Array
    right: Array
    noise: float
    n_components: int
    n_row_covariates: int
    s: Array
    tau: Array
    mu: float


def draw_new_units(
    fixed: Fixed,
    config: BsvdConfig,
    cells: Cells,
    refill: Callable[[Array], None],
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return both sides with new units behind those of the fit.

    Parameters
    ----------
    fixed : Fixed
    config : BsvdConfig
    cells : Cells
        The cells of new units, in a matrix of all units; covariates of all.
    refill : callable
        Draws what is known of y given x (m, 1).
    sweeps : int
        O(m K^2 + n K^3) each, for m cells and n new units.
    rng : numpy.random.Generator
    """
    assert cells.entries is not None
    matrix, row, column = Matrix.of(cells), cells.entries.row, cells.entries.column
    n_rows, n_columns = matrix.shape
    slopes = fixed.tau.size - 4
    design = Design.of(cells, matrix.shape, config.bias, slopes > 0)
    k, p = fixed.n_components, fixed.n_row_covariates
    (n_fitted, q), J = fixed.left.shape, fixed.right.shape[0]
    left, right = np.zeros((n_rows, q)), np.zeros((n_columns, q))
    left[:n_fitted], right[:J] = fixed.left, fixed.right
    left[n_fitted:, k : k + p], right[J:, k + p : q - slopes] = design.R[n_fitted:], design.C[J:]
    prior = design.precision(fixed.tau)
    first = int(config.bias)
    right[J:, k : k + first] = fixed.mu
    mean = np.zeros(k + p)
    mean[k : k + first] = fixed.mu
    of_row = np.r_[0:k, k + p : q]  # what a row has of its own
    for _ in range(sweeps):
        refill(np.einsum("nk,nk->n", left[row], right[column])[:, None])
        y = matrix.values(cells.y)
        rows = Regression(
            precision=(np.ones(n_rows), np.full(n_columns, 1.0 / fixed.noise)),
            own=left[:, k : k + p],
            other=right[:, k : k + p],
            regressor=right[:, of_row],
            prior=np.concatenate([np.full(k, float(n_fitted)), prior[1]]),
            prior_linear=np.zeros(of_row.size),
        )
        found = rows.solve(matrix.rows, matrix.weight, y, rng, _from(n_fitted))
        left[n_fitted:, of_row] = (found.mean + found.deviation)[n_fitted:]
        precision = np.concatenate([J / fixed.s**2, prior[0]])
        # With slopes a row sees (1 + c_i) g_j - c_i mu.
        own, regressor = right[:, k + p :].copy(), left[:, : k + p].copy()
        own[:, q - k - p - slopes :] = -fixed.mu
        regressor[:, k : k + slopes] += left[:, q - slopes :]
        columns = Regression(
            precision=(np.full(n_columns, 1.0 / fixed.noise), np.ones(n_rows)),
            own=own,
            other=left[:, k + p :],
            regressor=regressor,
            prior=precision,
            prior_linear=precision * mean,
        )
        found = columns.solve(matrix.columns, matrix.weight, y, rng, _from(J))
        right[J:, : k + p] = (found.mean + found.deviation)[J:]
        right[J:, q - slopes :] = right[J:, k : k + slopes] - fixed.mu
    return left, right


def _from(first: int) -> Each:
    """Return what works on the units from `first` on."""

    def each(side: Side, work: Callable[[int, int], object]) -> None:
        if first < side.n:
            work(first, side.n)

    return each
