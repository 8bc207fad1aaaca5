"""The moves of the low-rank model (`bsvd`): components, rows, columns, scales and noise.

Letters, model and source are those of `bsvd`; each move leaves the posterior given y invariant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from glfm_cli._kernels import _bsvd
from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.blocks import Each, UnitCells
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.design import Covariates
from glfm_cli.latent.bsvd.matrix import Matrix
from glfm_cli.latent.bsvd.prior_means import PriorMeans
from glfm_cli.latent.model import Cells, Spans

SCALE_STEP = 0.3  # of the log scale moves


@dataclass
class BsvdState:
    """One chain's state, updated in place.

    U : (I, K), V : (J, K), s : (K,), of the components that are on; 0 and of no meaning elsewhere
    on : (K,) bool, z
    G_R : (J, Jr), G_C : (I, Jc)
    slope : (I, 1) the rows' c_i, or (I, 0)
    tau : (4,) precisions of columns' intercepts and weights, of rows' intercepts and weights; a
        fifth of slopes
    mu : mean of the columns' intercepts;  noise : (D,) variances
    row_precision : (I,) f, by which the cells of a row are more precise; 1 without noise of rows
    variation : 1/sqrt(a), the coefficient of variation of f
    of_rows, of_columns : what covariates say of factors and intercepts
    x : (m,) means of the observed cells, row order
    """

    config: BsvdConfig
    matrix: Matrix
    design: Covariates
    unit_noise: Array
    spans: Spans
    U: Array
    V: Array
    s: Array
    on: Array
    G_R: Array
    G_C: Array
    slope: Array
    noise: Array
    alpha: float
    tau: Array
    mu: float
    x: Array
    row_precision: Array
    variation: float
    of_rows: PriorMeans
    of_columns: PriorMeans
    at_cap: bool = False

    @property
    def active(self) -> Array:
        """The numbers of the components that are on."""
        return np.flatnonzero(self.on)

    @property
    def level(self) -> Array:
        """What the slopes multiply: the columns' intercepts less their mean (J, 1), or (J, 0)."""
        return self.G_R[:, : self.slope.shape[1]] - self.mu

    @property
    def precision(self) -> tuple[Array, Array]:
        """What multiplied gives a cell's precision, but for its weight: (I,) and (J,)."""
        of_columns = 1.0 / self.noise[self.matrix.owner]
        return self.row_precision, np.ones_like(of_columns) if self.matrix.own.size else of_columns

    def sides(self) -> tuple[Array, Array]:
        """Return left (I, q) and right (J, q)."""
        k = self.active
        left = np.concatenate([self.U[:, k], self.design.R, self.G_C, self.slope], axis=1)
        of_columns = [self.s[k] * self.V[:, k], self.G_R, self.design.C, self.level]
        right = np.concatenate(of_columns, axis=1)
        return np.ascontiguousarray(left), np.ascontiguousarray(right)


def switch_on(state: BsvdState, V: Array) -> None:
    """Switch on components with V (J, n) and s of a middling size; they have no U yet."""
    n_rows, n_columns = state.matrix.shape
    k = np.flatnonzero(~state.on)[: V.shape[1]]
    state.on[k] = True
    state.U[:, k], state.V[:, k] = 0.0, V
    square = 0.25
    if state.design.one_kind:  # far below what noise hides: many that fit noise are slow to go
        square = min(square, 0.02 * np.sqrt(n_rows * n_columns) / max(state.matrix.n_cells, 1))
    state.s[k] = np.sqrt(square * n_rows * n_columns)
    state.of_rows.factors[:, k] = state.of_columns.factors[:, k] = 0.0


def draw_components(state: BsvdState, E: Array, rng: np.random.Generator, each: Each) -> None:
    """Draw z_k with U_k integrated out, then U_k and s_k, of a few components.

    V_k and s_k of one that is off come fresh from their prior. With Rk_ij the residual without
    component k, R_i = sum_j w Rk_ij V_jk and Q_i = sum_j w V_jk^2,

        log odds z_k = log odds p0
        + sum_i [(s R_i + I m_i)^2 / (I + s^2 Q_i) - I m_i^2 - log(1 + s^2 Q_i / I)] / 2

    with m_i the prior mean of U_ik, 0 without covariates.

    `E` (m,), the residuals y - x, changes in place. Which components are visited must not depend
    on which are on: visiting these more often would switch off more than on.
    """
    matrix, config = state.matrix, state.config
    n_rows, n_columns = matrix.shape
    K = state.s.size
    precision = state.precision
    for k in rng.choice(K, min(config.candidates, K), replace=False):
        if not state.on[k]:
            state.V[:, k] = rng.standard_normal(n_columns) / np.sqrt(n_columns)
            for means in (state.of_rows, state.of_columns):
                means.factors[:, k] = means.renewed(rng)
            state.V[:, k] += state.of_columns.of_factors(np.array([k]))[:, 0]
            state.s[k] = abs(rng.standard_normal()) / np.sqrt(state.alpha)
            state.U[:, k] = 0.0
        V, U, s = np.ascontiguousarray(state.V[:, k]), state.U[:, k], float(state.s[k])
        R, Q = scan(matrix, E, V, precision, each)
        R += s * U * Q  # the residuals without k
        spread, m = n_rows + s * s * Q, state.of_rows.of_factors(np.array([k]))[:, 0]
        linear = s * R + n_rows * m
        log_evidence = 0.5 * (linear**2 / spread - n_rows * m * m - np.log1p(s * s * Q / n_rows))
        log_odds = prior_log_odds(config, K) + float(np.sum(log_evidence))
        on = rng.logistic() < log_odds
        if not on and not state.on[k]:
            continue
        U_new, s_new = np.zeros(n_rows), s
        if on:
            U_new = linear / spread + rng.standard_normal(n_rows) / np.sqrt(spread)
            p = state.alpha + float(U_new @ (U_new * Q))
            s_new = positive_normal(float(U_new @ R) / p, 1.0 / np.sqrt(p), rng)
        shift(matrix, E, s * U - s_new * U_new, V, each)
        state.U[:, k], state.s[k], state.on[k] = U_new, s_new, on


def scan(
    matrix: Matrix, E: Array, V: Array, precision: tuple[Array, Array], each: Each
) -> tuple[Array, Array]:
    """Return sum_j w E V_j and sum_j w V_j^2 of every row (I,), for precisions (I,) and (J,)."""
    return scan_side(matrix.rows, matrix.weight, E, V, *precision, each)


def scan_side(
    units: UnitCells, weight: Array, E: Array, V: Array, own: Array, other: Array, each: Each
) -> tuple[Array, Array]:
    """Return sum w E V and sum w V^2 of every unit of a side.

    own, other : precisions of the units (n,), and of the others (n_other,), as V
    """
    R, Q = np.empty(units.n), np.empty(units.n)
    v = np.empty((V.size, 2))
    np.multiply(other, V, out=v[:, 0])
    np.multiply(v[:, 0], V, out=v[:, 1])
    fixed = units.indptr, units.index, units.cell, weight, v, E, R, Q
    each(units, lambda a, b: _bsvd.scan_component(a, b, *fixed))
    R *= own
    Q *= own
    return R, Q


def shift(matrix: Matrix, E: Array, step: Array, V: Array, each: Each) -> None:
    """E_ij += step_i V_j, in place."""
    rows = matrix.rows
    each(rows, lambda a, b: _bsvd.shift_residuals(a, b, rows.indptr, rows.index, step, V, E))


def prior_log_odds(config: BsvdConfig, K: int) -> float:
    """Return log(p0 / (1 - p0)); a single component is always on."""
    return np.inf if K == 1 else float(np.log(config.on_mass / (config.off_mass * (K - 1))))


def positive_normal(mean: float, sd: float, rng: np.random.Generator) -> float:
    out = np.empty(1)
    fill_truncated_normal(np.array([mean]), sd, np.zeros(1), np.array([np.inf]), rng, out)
    return float(out[0])


class Solved(NamedTuple):
    """Normal conditionals of the units of a side: mean (n, q), draw minus mean (n, q), (n,)."""

    mean: Array
    deviation: Array
    quadratic: Array


@dataclass(frozen=True)
class Regression:
    """y_uv = own_u . other_v + coefficient_u . regressor_v, the coefficients a priori normal.

    precision : of the cells, of the own unit (n,) and of the other (n_other,), to be multiplied
    prior, prior_linear : (q,) prior precision, and that times the prior mean
    center : (n, q) what the prior mean of every unit is more than that; None for nothing
    """

    precision: tuple[Array, Array]
    own: Array
    other: Array
    regressor: Array
    prior: Array
    prior_linear: Array
    center: Array | None = None

    def solve(
        self, side: UnitCells, weight: Array, y: Array, rng: np.random.Generator, each: Each
    ) -> Solved:
        """Return the conditional of every unit of a side.

        Raises NumericalError: a precision matrix is not positive definite.
        """
        q = self.prior.size
        mean, quadratic = np.zeros((side.n, q)), np.zeros(side.n)
        deviation = rng.standard_normal((side.n, q))
        own, other = self.own, self.other
        if self.center is not None:
            own = np.append(own, self.center, axis=1)
            other = np.append(other, self.regressor, axis=1)
        own, other, regressor = map(np.ascontiguousarray, (own, other, self.regressor))
        failed = []

        def work(start: int, end: int) -> None:
            bad = _bsvd.solve_units(
                start, end, side.indptr, side.index, side.cell, weight, *self.precision, y, own,
                other, regressor, self.prior, self.prior_linear, mean, deviation, quadratic,
                np.empty(_bsvd.work_size(q)),
            )  # fmt: skip
            if bad:
                failed.append(bad)

        each(side, work)
        if failed:
            raise NumericalError(
                "the low-rank model's covariance lost positive definiteness",
                hint="Look for columns with extreme values, or set `transform: rank` for them.",
            )
        if self.center is not None:
            mean += self.center
        return Solved(mean, deviation, quadratic)


def draw_rows(state: BsvdState, y: Array, rng: np.random.Generator, each: Each) -> None:
    """Draw [U_i, G_C[i], c_i] of every row together, given the columns."""
    matrix, design, k = state.matrix, state.design, state.active
    n_rows, n_own = matrix.shape[0], design.n_weights[1]
    C = design.C[:, :n_own]
    prior = np.append(np.full(k.size, float(n_rows)), design.precision(state.tau)[1])
    regression = Regression(
        precision=state.precision,
        own=design.R,
        other=state.G_R,
        regressor=np.concatenate([state.s[k] * state.V[:, k], C, state.level], axis=1),
        prior=prior,
        prior_linear=np.zeros(prior.size),
        center=state.of_rows.of_units(k, prior.size),
    )
    found = regression.solve(matrix.rows, matrix.weight, y, rng, each)
    drawn = found.mean + found.deviation
    parts = np.split(drawn, [k.size, k.size + n_own], axis=1)
    state.U[:, k], state.G_C[:, :n_own], state.slope[:] = parts


def draw_columns(
    state: BsvdState, cells: Cells, y: Array, rng: np.random.Generator, each: Each
) -> Array | None:
    """Draw [V_j, G_R[j]] of every column together, given the rows.

    In a table, first moves y of each unit-noise column along its scale, the weights integrated
    out, and returns the new y (m,); `cells.factor` says by how much. None when nothing moved.
    """
    matrix, design, k = state.matrix, state.design, state.active
    n_columns, n_own = matrix.shape[1], design.n_weights[0]
    prior = np.concatenate([np.full(k.size, float(n_columns)), design.precision(state.tau)[0]])
    prior_mean = np.zeros(prior.size)
    if design.bias:
        prior_mean[k.size] = state.mu
    # With slopes a row sees (1 + c_i) g_j - c_i mu.
    R = design.R[:, :n_own].copy()
    R[:, : state.slope.shape[1]] += state.slope
    regression = Regression(
        precision=state.precision[::-1],
        own=np.append(design.C, np.full_like(state.level, -state.mu), axis=1),
        other=np.append(state.G_C, state.slope, axis=1),
        regressor=np.concatenate([state.s[k] * state.U[:, k], R], axis=1),
        prior=prior,
        prior_linear=prior * prior_mean,
        center=state.of_columns.of_units(k, prior.size),
    )
    found = regression.solve(matrix.columns, matrix.weight, y, rng, each)
    factor = _move_unit_scales(state, cells, found.quadratic, rng)
    drawn = found.deviation + (
        found.mean if factor is None else found.mean * factor[matrix.owner][:, None]
    )
    state.V[:, k], state.G_R[:, :n_own] = drawn[:, : k.size], drawn[:, k.size :]
    return None if factor is None else y * factor[matrix.owner[matrix.rows.index]]


def _move_unit_scales(
    state: BsvdState, cells: Cells, quadratic: Array, rng: np.random.Generator
) -> Array | None:
    """Return the factors (D,) of the tables' unit-noise columns, drawn from their conditional.

    Given everything but the column's own weights, y and what shares its scale are multiplied by c,
    c^2 ~ Gamma(n / 2, rate sum of squares / 2), n numbers in all [Liu and Sabatti 2000].
    """
    cells.factor[:] = 1.0
    unit = np.flatnonzero(state.unit_noise)
    if state.design.one_kind or not unit.size:
        return None
    D, matrix = state.unit_noise.size, state.matrix
    n_cells = np.bincount(matrix.owner, weights=np.diff(matrix.columns.indptr), minlength=D)
    squares = np.bincount(matrix.owner, weights=quadratic, minlength=D) + cells.scale_group[:, 0]
    n = n_cells + cells.scale_group[:, 1]
    unit = unit[(n[unit] > 0) & (squares[unit] > 0.0)]
    cells.factor[unit] = np.sqrt(2.0 * rng.gamma(0.5 * n[unit]) / squares[unit])
    return cells.factor.copy()


def move_scales(state: BsvdState, rng: np.random.Generator) -> None:
    """Move along s U V' = (s / t) (t U) V' and s (t U) (V / t)', which leave x as it is.

    t = exp(0.3 eps); Metropolis-Hastings with the Jacobian [Liu and Wu 1999].
    """
    n_rows, n_columns = state.matrix.shape
    of_rows, of_columns = state.of_rows, state.of_columns
    moved = n_rows + of_rows.p  # numbers, their means' coefficients among them
    for k in state.active:
        u2, v2 = of_rows.squares(k, state.U[:, k]), of_columns.squares(k, state.V[:, k])
        log_t = SCALE_STEP * rng.standard_normal()
        t = np.exp(log_t)
        log_ratio = -0.5 * n_rows * u2 * (t * t - 1.0) - 0.5 * n_columns * v2 * (t**-2 - 1.0)
        if -rng.standard_exponential() < log_ratio + (moved - n_columns - of_columns.p) * log_t:
            state.U[:, k] *= t
            state.V[:, k] /= t
            of_rows.factors[:, k] *= t
            of_columns.factors[:, k] /= t
            u2 *= t * t
        log_t = SCALE_STEP * rng.standard_normal()
        t = np.exp(log_t)
        log_ratio = -0.5 * n_rows * u2 * (t * t - 1.0)
        log_ratio -= 0.5 * state.alpha * state.s[k] ** 2 * (t**-2 - 1.0)
        if -rng.standard_exponential() < log_ratio + (moved - 1) * log_t:
            state.U[:, k] *= t
            of_rows.factors[:, k] *= t
            state.s[k] /= t


def fill_means(state: BsvdState, each: Each) -> None:
    """Fill the means of the observed cells, from both sides."""
    left, right = state.sides()
    rows = state.matrix.rows
    each(rows, lambda a, b: _bsvd.fill_means(a, b, rows.indptr, rows.index, left, right, state.x))


def draw_noise(state: BsvdState, y: Array, rng: np.random.Generator) -> None:
    """Draw the noise variances that are not 1, given the residuals."""
    free = np.flatnonzero(state.unit_noise == 0)
    if not free.size:
        return
    matrix, config, D = state.matrix, state.config, state.unit_noise.size
    sums = np.zeros(D)
    for part in matrix.parts():
        squares = (y[part] - state.x[part]) ** 2
        owner = matrix.owner[matrix.rows.index[part]]
        sums += np.bincount(owner, weights=squares, minlength=D)
    n_cells = np.bincount(matrix.owner, weights=np.diff(matrix.columns.indptr), minlength=D)[free]
    rate = config.noise_rate + 0.5 * sums[free]
    state.noise[free] = rate / rng.gamma(config.noise_shape + 0.5 * n_cells)
