"""Noise of a matrix whose cells have variances of their own beside it, as means of trials have.

    y_ij ~ N(x_ij, sd^2 + v_ij)     sd ~ |N(0, scale^2)|, at least LEAST

v_ij is known: 1 / n_ij where y is the mean of n_ij pseudo-observations, whose own mean
x_ij + sd e_ij differs from cell to cell. With e integrated out sd says whether rates vary more than
rows and columns do, and a cell of few trials says as little as it should.
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.bsvd.effects import slice_draw
from glfm_cli.latent.bsvd.moves import BsvdState

LEAST = 1e-3  # of the deviation, so that its square is one to divide by


def draw_noise_beside_own(state: BsvdState, y: Array, rng: np.random.Generator) -> None:
    """Draw the noise variance given the residuals, and follow with the precisions of cells.

    O(m), and O(T) of T different own variances for each of some ten evaluations of a density.
    """
    matrix, scale = state.matrix, state.config.extra_scale
    squares = np.bincount(matrix.kind, weights=(y - state.x) ** 2, minlength=matrix.own.size)
    times = np.bincount(matrix.kind, minlength=matrix.own.size)

    def log_density(log_sd: float) -> float:
        """Of log sd: the likelihood, and the half-normal prior of sd."""
        sd = float(np.exp(log_sd))
        if sd < LEAST:
            return -np.inf
        variance = sd * sd + matrix.own
        likelihood = -0.5 * np.sum(times * np.log(variance) + squares / variance)
        return float(likelihood) + log_sd - 0.5 * (sd / scale) ** 2

    log_sd = slice_draw(log_density, 0.5 * float(np.log(state.noise[0])), rng)
    state.noise[0] = np.exp(2.0 * log_sd)
    matrix.weigh(float(state.noise[0]))
