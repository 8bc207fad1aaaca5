"""What is told of a number that is known only to lie between two others, as a normal density.

A feature has mean 0 and variance 1 over all rows. Between two ends N(0, 1) has a mean m and a
variance v; N(0, 1) times the normal density of precision 1 / v - 1 and mean m / (1 - v) has the
same. That density stands for the interval, so that rows stay normal under every expert: one step
of expectation propagation [Minka, Uncertainty in Artificial Intelligence 17 (2001)].
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.censored import moments_between

LEAST_VARIANCE = 1e-6
LEAST_PRECISION = 1e-6  # less says nothing


def normal_evidence(low: Array, high: Array) -> tuple[Array, Array]:
    """Return mean and precision (n,) of the densities that stand for intervals; 0 of whole lines.

    low, high : (n,) in standard units, infinite where open
    """
    mean, var = moments_between(low, high)
    precision = 1.0 / np.maximum(var, LEAST_VARIANCE) - 1.0
    says = precision > LEAST_PRECISION
    precision = np.where(says, precision, 0.0)
    return np.where(says, mean * (1.0 + precision) / np.where(says, precision, 1.0), 0.0), precision
