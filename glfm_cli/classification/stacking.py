"""Weights of forecasts that are to be mixed, from labels that each of them has foretold.

    p(y_n) = sum_k w_k p_k(y_n),  w ~ Dirichlet(1, ..., 1)

p_k(y_n) is what forecast k gave to label n, which it had not seen. The weights that make these
labels most probable, as in [Yao and others 2018], follow the noise of few labels; their posterior
mean keeps to equal weights as far as the labels do not say. With r_nk the probability that
forecast k is the one for label n, q(w) prod q(r_n) is the best of its kind where

    r_nk ~ p_k(y_n) exp(digamma(a_k)),  q(w) = Dirichlet(a),  a_k = 1 + sum_n r_nk

and log p(y) is at least sum_n log sum_k p_k(y_n) exp(E log w_k) - KL(q(w) || prior), the bound.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from glfm_cli.arrays import Array

ROUNDS = 1000
SETTLED = 1e-6  # labels by which a moves in a round


def stacked(log_p: Array) -> tuple[Array, float]:
    """Return weights (K,) of forecasts and the bound of log p(y).

    log_p : (n, K) log probabilities of n labels
    """
    n, K = log_p.shape
    largest = log_p.max(axis=1)
    p = np.exp(log_p - largest[:, None])
    a = np.full(K, 1.0 + n / K)
    for _ in range(ROUNDS):
        before, w = a, np.exp(digamma(a) - digamma(a.sum()))
        a = 1.0 + w * ((1.0 / (p @ w)) @ p)
        if np.abs(a - before).max() < SETTLED:
            break
    log_w = digamma(a) - digamma(a.sum())
    divergence = gammaln(a.sum()) - gammaln(a).sum() - gammaln(K) + (a - 1.0) @ log_w
    bound = (largest + np.log(p @ np.exp(log_w))).sum() - divergence
    return np.asarray(a / a.sum()), float(bound)


def stacking_weights(log_p: Array) -> Array:
    """Return the weights (K,) of forecasts by the log probabilities (n, K) of n labels."""
    return stacked(log_p)[0]
