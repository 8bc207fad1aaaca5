"""Noise variances of the rows of a matrix whose values are numbers.

    y_ij ~ N(x_ij, sd2 / f_i)     f_i ~ Gamma(a, a)     1 / sqrt(a) ~ U(LEAST, MOST)

f_i says by how much the cells of row i are more precise than those of others; its mean is 1 and
1 / sqrt(a) its coefficient of variation, so that a large a means one variance for all rows. With
f integrated out the residuals of a row are a multivariate t of 2 a degrees of freedom: sd2 and a
are drawn given that, then every f_i.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.bsvd.effects import slice_draw
from glfm_cli.latent.bsvd.moves import BsvdState, scan

LEAST, MOST = 1e-3, 1.0  # of the coefficient of variation
FIRST_VARIATION = 0.3  # where a chain begins


def draw_noise_of_rows(state: BsvdState, y: Array, rng: np.random.Generator, each: Each) -> None:
    """Draw sd2 and the coefficient of variation with f integrated out, then f, given residuals.

    O(m), and O(I) for each of some ten evaluations of a density.
    """
    matrix, config = state.matrix, state.config
    ones = np.ones(matrix.shape[0]), np.ones(matrix.shape[1])
    squares = y - state.x
    squares *= squares
    S, n = scan(matrix, squares, ones[1], ones, each)

    def of_noise(log_noise: float) -> float:
        """Of log sd2: the likelihood, and the inverse-gamma prior of sd2."""
        prior = -config.noise_shape * log_noise - config.noise_rate * np.exp(-log_noise)
        return float(prior) + log_likelihood(S, n, log_noise, state.variation)

    def of_variation(log_variation: float) -> float:
        """Of log 1/sqrt(a): the likelihood, and the uniform prior of 1/sqrt(a)."""
        if not LEAST <= np.exp(log_variation) <= MOST:
            return -np.inf
        log_noise = float(np.log(state.noise[0]))
        return log_variation + log_likelihood(S, n, log_noise, float(np.exp(log_variation)))

    state.noise[0] = np.exp(slice_draw(of_noise, float(np.log(state.noise[0])), rng))
    state.variation = float(np.exp(slice_draw(of_variation, float(np.log(state.variation)), rng)))
    state.row_precision[:] = draw_row_precision(S, n, float(state.noise[0]), state.variation, rng)


def log_likelihood(S: Array, n: Array, log_noise: float, variation: float) -> float:
    """Return log p of the residuals of all rows, f integrated out, but for a constant.

    S, n : (I,) sum of squares and number of the residuals of each row
    """
    a = variation**-2.0
    counts, times = np.unique(n, return_counts=True)
    of_counts = gammaln(a + 0.5 * counts) - gammaln(a) - 0.5 * counts * (log_noise + np.log(a))
    of_squares = (a + 0.5 * n) * np.log1p(S * np.exp(-log_noise) / (2.0 * a))
    return float(times @ of_counts - of_squares.sum())


def draw_row_precision(
    S: Array, n: Array, noise: float, variation: float, rng: np.random.Generator
) -> Array:
    """Return f (I,) given the residuals of every row; from the prior where there are none."""
    a = variation**-2.0
    return rng.gamma(a + 0.5 * n) / (a + 0.5 * S / noise)
