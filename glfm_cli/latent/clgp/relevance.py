"""How much each dimension of the latent space counts."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.features import Inducing
from glfm_cli.latent.clgp.parameters import Shared
from glfm_cli.latent.clgp.spreads import slopes

LEAST_RELEVANCE = 0.01  # of a dimension that is in use


def relevances(shared: Shared, m: Array, variances: Array) -> Array:
    """Return each dimension's share (Q,) of what places do to the columns' means.

    Dimension q has v_q sum_s mean_n J_nsq^2, where J is the derivative of mean_ns by x_nq at m_n,
    and v_q the mean square of x_nq under q: m and variances (N, Q).
    """
    size = np.mean(m**2 + variances, axis=0)
    J = slopes(m, shared, Inducing.of(shared))
    squares = size * np.sum(np.mean(J**2, axis=1), axis=1)
    total = squares.sum()
    share: Array = squares / total if total > 0.0 else squares
    return share
