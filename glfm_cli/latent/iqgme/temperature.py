"""How much surer, or less sure, forecasts ought to be than a fit is, by labels left out.

Means of coefficients are the maximum of a penalised likelihood, which lies too near 0 where
features tell labels almost without error. Forecasts are therefore raised to a power s, the inverse
of a temperature [Guo and others 2017]:

    P(level r) ~ p_r^s;  s = 1 with probability 1/2, else log s ~ N(0, SPREAD^2)

Labels left out by closed forms flatter the fit a little: by the lump at 1 such small gains leave
forecasts as they are.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from glfm_cli.arrays import Array, log_sum

SPREAD = 0.25  # of log s
FARTHEST, NODES = 5.0, 101  # standard deviations, and places, at which log s is looked at
LARGEST_POWER = float(np.exp(FARTHEST * SPREAD))


def tempered(log_p: Array, s: float) -> Array:
    """Return log probabilities (n, R) that are those of p^s."""
    power = s * log_p
    return np.asarray(power - np.logaddexp.reduce(power, axis=1, keepdims=True))


def inverse_temperature(log_p: Array, code: Array) -> float:
    """Return exp of the posterior mean of log s, by quadrature; 1 without labels.

    log_p : (n, R) of labels left out;  code : (n,) which level each is
    """
    z = np.linspace(-FARTHEST, FARTHEST, NODES)
    own = (np.arange(code.size), code.astype(np.intp))
    log_like = np.array([tempered(log_p, s)[own].sum() for s in np.exp(SPREAD * z)])
    log_prior = -0.5 * z**2 - log_sum(-0.5 * z**2)
    log_slab = log_sum(log_like + log_prior)
    mean = float(np.exp(log_like + log_prior - log_slab) @ z)
    moved = expit(log_slab - tempered(log_p, 1.0)[own].sum())
    return float(np.exp(SPREAD * moved * mean))
