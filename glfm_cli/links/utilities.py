"""Normal utilities of which it is known which is the largest: their means, its probability.

Of more than two by quadrature over the largest, centred near its mode: errors of means below 2e-7
of three utilities, 3e-6 of six, 4e-5 of twelve.
[Girolami and Rogers 2006]
"""

from __future__ import annotations

import math

import numpy as np

from glfm_cli._kernels._categorical import fill_means_of_largest
from glfm_cli.arrays import Array

NODES, WEIGHTS = np.polynomial.hermite.hermgauss(16)
WEIGHTS = WEIGHTS * np.exp(NODES * NODES)


def expect_largest(winner: Array, eta: Array, slot: Array) -> tuple[Array, Array]:
    """Return E[u | which is largest] (..., n, R - 1), and the log probability (..., n) of that.

    u ~ N(eta, I), and the reference's utility N(0, 1), of which no mean is returned.
    O(n R nodes) for each of the leading axes.

    winner : (n,) intp; which of the R utilities is the largest
    eta : (..., n, R - 1) float64; means before that is known
    slot : (R,) intp; place of each utility in eta, -1 of the reference
    """
    each = np.ascontiguousarray(eta).reshape(math.prod(eta.shape[:-2]), *eta.shape[-2:])
    mean, log_z = np.empty_like(each), np.empty(each.shape[:2])
    scratch = np.empty((3 + 2 * NODES.size) * slot.size)
    fill_means_of_largest(winner, each, slot, NODES, WEIGHTS, scratch, mean, log_z)
    return mean.reshape(eta.shape), log_z.reshape(eta.shape[:-1])
