"""The moves of the low-rank model's effects: their precisions, and the scales of intercepts.

    intercept of row i  d_i ~ N(0, sd^2)     of column j  mu + d_j,  d_j ~ N(0, sd^2)
    slope of row i      c_i ~ N(0, sd^2), where there are slopes
    sd ~ half-Cauchy(scale)                  mu ~ N(0, v)

Units may differ much or hardly at all, and only they themselves can say which: the half-Cauchy
law is flat below its scale and has a heavy tail above it [Gelman 2006]. With tau = 1 / sd^2 it is
the mixture tau | b ~ Gamma(1/2, b), b ~ Gamma(1/2, 1 / scale^2). Weights of covariates keep a
gamma prior of their precision.

Precisions given effects move slowly where cells say little of each unit, so that every sweep also
moves effects and sd together, and the mean between the two sides [Yu and Meng 2011; Liu and Wu
1999].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.bsvd.moves import BsvdState, scan, shift

WIDTH = 0.5  # of the first bracket of the log scale
MOST_STEPS = 40  # that a bracket grows by
NARROWEST = 1e-12


def draw_effect_precisions(state: BsvdState, rng: Generator) -> None:
    """Draw the mean of the columns' intercepts, and the precisions of all effects."""
    config, design = state.config, state.design
    first = int(design.bias)
    of_rows = first if design.one_kind else 0
    if of_rows:
        _draw_mean(state, rng)
    around = [means.of_intercepts[:, None] for means in (state.of_columns, state.of_rows)]
    groups = (
        (state.G_R[:, :first] - state.mu - around[0], True),
        (state.G_R[:, first : design.n_weights[0]], False),
        (state.G_C[:, :of_rows] - around[1], True),
        (state.G_C[:, of_rows : design.n_weights[1]], False),
        (state.slope, True),
    )
    for i, (g, intercepts) in enumerate(groups):
        if not g.size:
            continue
        shape, rate = config.effect_shape, config.effect_rate
        if intercepts:
            shape, rate = 0.5, rng.standard_exponential()
            rate /= config.intercept_scale**-2 + state.tau[i]
        squares = float(np.sum(g * g))
        state.tau[i] = rng.gamma(shape + 0.5 * g.size) / (rate + 0.5 * squares)


def draw_prior_means(state: BsvdState, rng: Generator) -> None:
    """Draw what covariates say of factors and intercepts, given these."""
    design, k, scale = state.design, state.active, state.config.intercept_scale
    rows = state.G_C[:, 0] if design.bias and design.one_kind else None
    columns = state.G_R[:, 0] - state.mu if design.bias else None
    state.of_rows.draw(state.U[:, k], k, rows, state.tau[2], scale, rng)
    state.of_columns.draw(state.V[:, k], k, columns, state.tau[0], scale, rng)


def _draw_mean(state: BsvdState, rng: Generator) -> None:
    """Draw mu, first given the columns' intercepts, then with these and against the rows'."""
    g, of_rows, prior = state.G_R[:, 0], state.G_C[:, 0], 1.0 / state.config.bias_variance
    around = state.of_rows.of_intercepts
    precision = state.tau[0] * g.size + prior
    linear = state.tau[0] * float(np.sum(g - state.of_columns.of_intercepts))
    if state.design.slopes:
        # x is as it was when the intercept of a row grows by c_i times what mu grows by.
        c, old = state.slope[:, 0], state.mu
        precision += state.tau[2] * float(c @ c)
        linear += state.tau[2] * float(c @ (old * c - (of_rows - around)))
    state.mu = linear / precision + rng.standard_normal() / np.sqrt(precision)
    if state.design.slopes:
        of_rows += (state.mu - old) * c
    # x is as it was when all intercepts of rows grow by what those of columns lose.
    precision = state.tau[2] * of_rows.size + prior
    step = (prior * state.mu - state.tau[2] * float(np.sum(of_rows - around))) / precision
    step += rng.standard_normal() / np.sqrt(precision)
    of_rows += step
    g -= step
    state.mu -= step


def move_intercepts(state: BsvdState, y: Array, rng: Generator, each: Each) -> None:
    """Draw by how much intercepts of each side of a matrix, slopes, and their sd are multiplied.

    Given d / sd the likelihood is normal in sd; its draw is by slice sampling [Neal 2003]. A few
    nanoseconds a cell. x changes with the intercepts.
    """
    design, matrix = state.design, state.matrix
    if not (design.bias and design.one_kind):
        return
    ones_of_columns, response = np.ones(matrix.shape[1]), np.ones(matrix.shape[0])
    if design.slopes:
        response += state.slope[:, 0]
    R, Q = scan(matrix, y - state.x, ones_of_columns, state.precision, each)
    mean = state.of_rows.of_intercepts
    grown = mean + _rescaled(state, 2, state.G_C[:, 0] - mean, R, Q, rng)
    shift(matrix, state.x, grown - state.G_C[:, 0], ones_of_columns, each)
    state.G_C[:, 0] = grown
    R, Q = _sums_of_columns(state, y, response)
    mean = state.mu + state.of_columns.of_intercepts
    grown = mean + _rescaled(state, 0, state.G_R[:, 0] - mean, R, Q, rng)
    shift(matrix, state.x, response, grown - state.G_R[:, 0], each)
    state.G_R[:, 0] = grown
    if design.slopes:
        level = np.ascontiguousarray(state.level[:, 0])
        R, Q = scan(matrix, y - state.x, level, state.precision, each)
        grown = _rescaled(state, 4, state.slope[:, 0], R, Q, rng)
        shift(matrix, state.x, grown - state.slope[:, 0], level, each)
        state.slope[:, 0] = grown


def _sums_of_columns(state: BsvdState, y: Array, response: Array) -> tuple[Array, Array]:
    """Return the sums of w r (y - x), and of w r^2, over the cells of every column (J,).

    r is the response (I,) of a cell's row, and w the precision of the cell.
    """
    matrix, design, n = state.matrix, state.design, state.matrix.shape[1]
    R, Q = np.zeros(n), np.zeros(n)
    of_rows, of_columns = state.precision
    for part in matrix.parts():
        index, E = matrix.rows.index[part], y[part] - state.x[part]
        w = matrix.weight[part] if matrix.weight.size else None
        wE = E if w is None else w * E
        if design.slopes or design.row_noise:  # else r is 1 everywhere, and w the weight
            cell = np.arange(part.start, part.start + E.size)
            row = np.searchsorted(matrix.rows.indptr, cell, side="right") - 1
            r, wr = response[row], (of_rows * response)[row]
            wE, w = wr * wE, r * wr if w is None else r * wr * w
        R += np.bincount(index, weights=wE, minlength=n)
        Q += np.bincount(index, weights=w, minlength=n)
    return of_columns * R, of_columns * Q


def _rescaled(state: BsvdState, group: int, d: Array, R: Array, Q: Array, rng: Generator) -> Array:
    """Return c d, and set the group's precision to tau / c^2, c drawn given d / sd.

    R, Q : of each unit, sum of w (y - x) and of w over its cells
    """
    sd = 1.0 / np.sqrt(state.tau[group])
    squares, products = float(Q @ (d * d)), float(R @ d + Q @ (d * d))
    scale = state.config.intercept_scale

    def log_density(log_c: float) -> float:
        """Of log c: the likelihood, and the half-Cauchy prior of log (c sd)."""
        c = np.exp(log_c)
        prior = log_c - np.log1p((c * sd / scale) ** 2)
        return float(prior - 0.5 * squares * c * c + products * c)

    c = np.exp(slice_draw(log_density, 0.0, rng))
    state.tau[group] /= c * c
    return c * d


def slice_draw(log_density: Callable[[float], float], start: float, rng: Generator) -> float:
    """Return a slice-sampling step from `start`: a draw whose invariant law is the density's.

    Brackets grow by steps of `WIDTH`, at most `MOST_STEPS` in all, split at random between both
    sides [Neal 2003, figures 3 and 5].
    """
    level = log_density(start) - rng.standard_exponential()
    low = start - WIDTH * rng.random()
    high = low + WIDTH
    down = int(rng.integers(MOST_STEPS))
    up = MOST_STEPS - 1 - down
    while down > 0 and log_density(low) > level:
        low, down = low - WIDTH, down - 1
    while up > 0 and log_density(high) > level:
        high, up = high + WIDTH, up - 1
    while True:
        drawn = low + (high - low) * rng.random()
        if log_density(drawn) > level:
            return float(drawn)
        if high - low < NARROWEST:  # of rounding
            return start
        if drawn < start:
            low = drawn
        else:
            high = drawn
