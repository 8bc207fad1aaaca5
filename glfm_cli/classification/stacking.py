"""Weights of forecasts that are to be mixed, from labels that each of them has foretold.

    p(y_n) = sum_k w_k p_k(y_n),  w ~ Dirichlet(1, ..., 1)

p_k(y_n) is what forecast k gave to label n, which it had not seen. The weights that make these
labels most probable, as in [Yao and others 2018], follow the noise of few labels; their posterior
mean keeps to equal weights as far as the labels do not say. With r_nk the probability that
forecast k is the one for label n, q(w) prod q(r_n) is the best of its kind where

    r_nk ~ p_k(y_n) exp(digamma(a_k)),  q(w) = Dirichlet(a),  a_k = 1 + sum_n r_nk
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, softmax

from glfm_cli.arrays import Array

ROUNDS = 1000
SETTLED = 1e-6  # labels by which a moves in a round


def stacking_weights(log_p: Array) -> Array:
    """Return the weights (K,) of forecasts by the log probabilities (n, K) of n labels."""
    n, K = log_p.shape
    a = np.full(K, 1.0 + n / K)
    for _ in range(ROUNDS):
        before = a
        a = 1.0 + softmax(log_p + digamma(a), axis=1).sum(axis=0)
        if np.abs(a - before).max() < SETTLED:
            break
    return np.asarray(a / a.sum())
