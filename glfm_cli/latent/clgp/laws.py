"""The law of cells under a kept restart, by kind of column."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import expit, gammaincinv, ndtr, ndtri

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.table import Slots
from glfm_cli.links.law import ALL, CellLaw, NormalMixture, Probabilities

LOGITS = 8  # draws of the logits of a cell at each of its places
PART = 1 << 20  # doubles of logits at a time
TAIL = 16.0  # degrees of freedom of numbers' noise in what is told of cells
SCALES = 16  # of noise, of a row that has one place
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@cache
def spread_normals(n: int, n_dimensions: int) -> Array:
    """Return n points (n, Q) spread as N(0, I) is, in antithetic pairs; n is even.

    A lattice of the powers of the root of x^(Q + 1) = x + 1 in the unit cube [Roberts 2018], mapped
    by normal quantiles: the same for all rows, chains and seeds.
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (n_dimensions + 1))
    steps = root ** -np.arange(1.0, n_dimensions + 1)
    half = ndtri((0.5 + np.outer(np.arange(1, n // 2 + 1), steps)) % 1.0)
    points: Array = np.concatenate([half, -half])
    points /= np.sqrt(np.mean(points**2, axis=0))
    points.flags.writeable = False
    return points


@cache
def noise_scales(n: int) -> Array:
    """Return by what n components (n,) multiply a noise variance, so that Student's law results.

    An ascent finds one variance of a column, and too little where rows and weights fit it.
    """
    scales: Array = 0.5 * TAIL / gammaincinv(0.5 * TAIL, ndtr(spread_normals(n, 1)[:, 0]))
    scales.flags.writeable = False
    return scales


class ClgpLaw:
    """Cells of n rows, each a mixture over C places of its row, and scales of numbers' noise.

    slots : columns and where their latent numbers stand;  noise : (D,) variances
    mean, var : (n, C, S) of the latent numbers at these places; var None where they are given
    """

    def __init__(self, slots: Slots, noise: Array, mean: Array, var: Array | None) -> None:
        self.slots, self.noise, self.mean, self.var = slots, noise, mean, var

    def column(self, d: int, at: Array | slice = ALL) -> CellLaw:
        """Return normals of y = f + noise, or the probabilities of levels without an order."""
        span = self.slots.spans[d]
        mean = self.mean[:, :, span][at]
        var = np.zeros((1, 1, 1)) if self.var is None else self.var[:, :, span][at]
        kind = self.slots.kinds[d]
        if kind.kind == "levels":
            return Probabilities(softmax_mean(mean, var)[:, kind.codes])
        scales = np.ones(1)
        if kind.kind == "number":
            if mean.shape[1] == 1:
                mean = np.repeat(mean, SCALES, axis=1)
            scales = noise_scales(mean.shape[1])
        C = mean.shape[1]
        weights = np.full((1, C), 1.0 / C)
        return NormalMixture(weights, mean, var + self.noise[d] * scales[:, None])


def softmax_mean(mean: Array, var: Array) -> Array:
    """Return the mean over places of E softmax(0, f), f ~ N(mean, diag var), as (n, K + 1).

    One logit by quadrature, more by the same points everywhere. O(n C K) times `LOGITS`.

    mean : (n, C, K) float64
    var : broadcasts with it; of one number, 0, where f is given
    """
    n, C, K = mean.shape
    if K == 0:
        return np.ones((n, 1))
    sd = np.sqrt(var)
    if K == 1:
        nodes, weights = (NODES, WEIGHTS) if sd.any() else (np.zeros(1), np.ones(1))
        p = (expit(mean + sd * nodes) @ weights).mean(axis=1)
        return np.stack([1.0 - p, p], axis=1)
    points = np.zeros((C, 1, K))
    if sd.any():
        points = spread_normals(C * LOGITS, K).reshape(LOGITS, C, K).transpose(1, 0, 2)
    out = np.empty((n, K + 1))
    size = max(1, PART // (C * points.shape[1] * K))
    for start in range(0, n, size):
        part = slice(start, start + size)
        own = sd[part] if sd.size > 1 else sd
        f = mean[part][:, :, None, :] + own[:, :, None, :] * points
        top = np.maximum(f.max(axis=3, keepdims=True), 0.0)
        e, first = np.exp(f - top), np.exp(-top)
        total = first + e.sum(axis=3, keepdims=True)
        out[part, 0] = (first / total)[..., 0].mean(axis=(1, 2))
        out[part, 1:] = (e / total).mean(axis=(1, 2))
    return out
