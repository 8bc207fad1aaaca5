"""Which corrections forecasts of cells call for whose values are known: posterior means.

Priors hold a correction at none, or at one for all cells of a column, where the cells do not say
otherwise. Where they do, it may depend on how certain a forecast is: tilts of numbers are constant
above a bend, and linear in the log of the forecast's sd below it, the bend being averaged over;
powers of levels are linear in `certainty`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from glfm_cli.arrays import Array
from glfm_cli.inference.recalibration import (
    KNOTS,
    LEAST,
    STEPS,
    certainty,
    polynomials,
    steps_between,
    tilt_moments,
)

Prior = Mapping[str | float, float]
# Of the tilt of one column above the bend: that there is none, that it is the one all share, and
# that it is normal around that one, with these sds of its first coefficient.
TILT_PRIOR: Prior = {"none": 0.45, "shared": 0.45, 0.1: 0.0499, 0.2: 0.0499, 1.0: 2e-4}
SHARED_PRIOR: Prior = {"none": 0.8, 0.1: 0.08, 0.2: 0.08, 0.4: 0.04}  # of that one itself
SLOPE_PRIOR: Prior = {"none": 0.97, 0.2: 0.015, 1.0: 0.015}  # below it, for each unit of the log
NO_SLOPE: Prior = {"none": 1.0}
BENDS = np.arange(1, KNOTS) / (KNOTS - 1)  # as shares of the way from the least log sd
DECAY = 1.0 / np.sqrt(np.arange(1, 5))  # of sds by degree: smooth corrections are likelier
EVEN = np.array([0.0, 1.0, 0.0, 1.0])  # what columns may share: how wide forecasts are, not where
FEW = 0.05  # of the cells, the most certain ones, whose tilt is that of the next
# Forecasts that are more certain, in units of the least certain one's sd, have twins that not every
# column has, and do not count in what columns share.
LEAST_SHARED = 0.25
TOLERANCE = 1e-6

# Log powers of levels where nothing is known, and what certainty adds to them, with their prior
# probabilities: weak evidence is no reason to correct.
LOG_POWERS, ADDED = np.linspace(-0.9, 0.9, 13), np.linspace(-3.0, 3.0, 25)
POWER_SD, ADDED_SD = 0.3, 0.7  # of normal priors around 0,
NO_CORRECTION = 0.9  # and the probability of 0 itself


class Binned(NamedTuple):
    """Forecasts of known values, those about as certain together.

    log_sd : (J,) ascending, of latent numbers
    total : (J, 4) sums of the polynomials of their distribution functions at the values
    n : (J,) numbers of cells
    ends : (2,) the least log sd but for `FEW`, and the greatest
    """

    log_sd: Array
    total: Array
    n: Array
    ends: Array

    @classmethod
    def of(cls, u: Array, sd: Array, count: float = 1.0) -> Binned:
        """Return them by u (n,), uniform where forecasts are right, and the sds (n,).

        count : as how many independent cells each counts
        """
        log_sd = np.log(sd)
        ends = np.quantile(log_sd, [FEW, 1.0])
        steps, which = np.unique(steps_between(ends, log_sd), return_inverse=True)
        f = polynomials(np.clip(u, 0.0, 1.0))
        total = count * np.stack([np.bincount(which, own) for own in f], axis=1)
        at = ends[0] + (ends[1] - ends[0]) * steps / STEPS
        return cls(at, total, count * np.bincount(which), ends)

    def uncertain(self) -> Binned:
        """Return those that tell what columns share, whatever their certainty."""
        kept = self.log_sd >= self.ends[1] + np.log(LEAST_SHARED)
        return Binned(
            self.ends[1:], self.total[kept].sum(axis=0)[None], self.n[kept].sum()[None], self.ends
        )


def fit_tilts(
    places: Mapping[int, Array], sds: Mapping[int, Array], counts: Array | None = None
) -> dict[int, tuple[Array, Array]]:
    """Return, by column, the b (KNOTS, 4) that forecasts call for, and the log sds at its ends.

    places : by column the forecasts' distribution functions (n,) where the cells are: uniform where
        forecasts are right
    sds : by column those of the cells' latent numbers (n,)
    counts : by column as how many independent cells each cell counts, 1 if left out

    Returns: posterior means, by Laplace's method, under `TILT_PRIOR` and `SLOPE_PRIOR`; what
        columns share is learnt, for each, from the others.
    """
    each = {d: 1.0 if counts is None else float(counts[d]) for d in places}
    cells = {d: Binned.of(u, sds[d], each[d]) for d, u in places.items()}
    own = [part.uncertain() for part in cells.values()]
    total = np.array([one.total for one in own])
    n = np.array([one.n for one in own])
    found = {}
    for k, (d, part) in enumerate(cells.items()):
        shared, others = np.zeros(DECAY.size), np.arange(len(own)) != k
        if others.any():
            of_others = EVEN * total[others].sum(axis=0), n[others].sum(axis=0)
            together = Binned(np.zeros(1), *of_others, np.zeros(2))
            shared = fit_tilt(together, SHARED_PRIOR, shared, NO_SLOPE)[-1]
        found[d] = fit_tilt(part, TILT_PRIOR, shared), part.ends
    return found


def fit_tilt(cells: Binned, prior: Prior, shared: Array, slopes: Prior = SLOPE_PRIOR) -> Array:
    """Return the posterior mean of b at the knots (KNOTS, 4).

    prior : the probabilities of `TILT_PRIOR`;  slopes : those of `SLOPE_PRIOR`
    """
    low, high = cells.ends
    knots = np.linspace(low, high, KNOTS)
    chance, bends, means, sds = [], [], [], []
    for kind, probability in prior.items():
        mean, sd = np.zeros((2, DECAY.size)), np.zeros((2, DECAY.size))
        if kind != "none":
            mean[0] = shared
        if not isinstance(kind, str):
            sd[0] = kind * DECAY
        for slope, share in slopes.items():
            here, sd[1] = BENDS[-1:], 0.0
            if not isinstance(slope, str):
                here, sd[1] = BENDS, slope * DECAY
            chance += [probability * share / here.size] * here.size
            bends += (low + (high - low) * here).tolist()
            means += [mean] * here.size
            sds += [sd.copy()] * here.size
    x = np.array([_basis(cells.log_sd, bend) for bend in bends])
    thetas, evidence = _modes(cells, x, np.array(means), np.array(sds))
    curves = np.array([_basis(knots, bend) for bend in bends]) @ thetas
    return np.tensordot(softmax(np.log(chance) + evidence), curves, 1)


def _basis(log_sd: Array, bend: float) -> Array:
    """Return what b and its slope below the bend are multiplied by (J, 2)."""
    return np.column_stack([np.ones_like(log_sd), np.minimum(log_sd - bend, 0.0)])


def _modes(cells: Binned, x: Array, mean: Array, sd: Array) -> tuple[Array, Array]:
    """Return the likeliest theta (C, 2, 4) of b = x theta, and the logs of evidence (C,).

    Of C priors, each by itself.
    x : (C, J, 2);  mean, sd : (C, 2, 4) of normal priors; an sd of 0 holds theta at the mean
    """
    n_priors, size = len(x), mean[0].size
    sd = sd.reshape(n_priors, size)
    free = sd > 0.0
    precision = np.where(free, np.where(free, sd, 1.0) ** -2, 0.0)
    held = np.eye(size) * ~free[:, None]  # in the place of their curvature
    both = free[:, :, None] & free[:, None, :]

    def at(theta: Array, which: Array) -> tuple[Array, Array, Array]:
        """Return the losses of some priors, and the moments of the tilts."""
        b = x[which] @ theta
        mass, moments, covariance = tilt_moments(b.reshape(-1, DECAY.size))
        away = (theta - mean[which]).reshape(-1, size)
        loss = mass.reshape(b.shape[:2]) @ cells.n - np.sum(b * cells.total, axis=(1, 2))
        loss += 0.5 * np.sum(precision[which] * away**2, axis=1)
        return loss, moments.reshape(b.shape), covariance.reshape(*b.shape[:2], -1)

    theta, log_det = mean.copy(), np.zeros(n_priors)
    loss, moments, covariance = at(theta, np.arange(n_priors))
    going = np.flatnonzero(free.any(axis=1))
    while going.size:  # the losses are convex: Newton's method finds their places
        xs, precise = x[going], precision[going]
        slope = xs.transpose(0, 2, 1) @ (cells.total - cells.n[:, None] * moments[going])
        slope = slope.reshape(-1, size) - precise * (theta - mean)[going].reshape(-1, size)
        squares = (cells.n[:, None, None] * xs[:, :, :, None] * xs[:, :, None, :]).reshape(
            going.size, -1, 4
        )
        bend = (squares.transpose(0, 2, 1) @ covariance[going]).reshape(-1, 2, 2, 4, 4)
        bend = bend.transpose(0, 1, 3, 2, 4).reshape(-1, size, size)
        bend += precise[:, :, None] * np.eye(size)
        curvature = np.where(both[going], bend, held[going])
        step = np.linalg.solve(curvature, np.where(free[going], slope, 0.0)[:, :, None])
        move, short = step.reshape(-1, *mean.shape[1:]), np.arange(going.size)
        log_det[going] = np.linalg.slogdet(curvature)[1]
        before = loss[going]
        while short.size:
            some = going[short]
            loss[some], moments[some], covariance[some] = at(theta[some] + move[short], some)
            worse = loss[some] > before[short]
            short = short[worse & (np.abs(move[short]).max(axis=(1, 2)) > TOLERANCE)]
            move[short] /= 2.0
        theta[going] += move
        going = going[np.abs(move).max(axis=(1, 2)) > TOLERANCE]
    log_det -= np.sum(np.log(np.where(free, precision, 1.0)), axis=1)
    return theta, -loss - 0.5 * log_det


def fit_powers(p: Array, codes: Array, count: float = 1.0) -> Array:
    """Return a (2,) where nothing is known and where all is, as forecasts of levels call for.

    p : (n, R) forecasts of the true codes (n,), each of which counts as so many independent ones

    Returns: exp of the posterior means of log a, by sums over a grid, O(n R) times its size.
    """
    log_p, known = np.log(np.maximum(p, LEAST)), certainty(p)
    log_p -= log_p.max(axis=1, keepdims=True)
    own = log_p[np.arange(codes.size), codes]
    log_odds = np.empty((LOG_POWERS.size, ADDED.size))
    for j, added in enumerate(ADDED):
        for i, log_power in enumerate(LOG_POWERS):
            a = np.exp(log_power + added * known)
            log_odds[i, j] = a @ own - np.log(np.exp(a[:, None] * log_p).sum(axis=1)).sum()
    log_odds *= count
    log_odds += _log_prior(LOG_POWERS, POWER_SD)[:, None] + _log_prior(ADDED, ADDED_SD)
    share = softmax(log_odds)
    first = share.sum(axis=1) @ LOG_POWERS
    return np.exp([first, first + share.sum(axis=0) @ ADDED])


def _log_prior(at: Array, sd: float) -> Array:
    """Return that of places on a grid, 0 in the middle."""
    p = np.exp(-0.5 * (at / sd) ** 2)
    p *= (1.0 - NO_CORRECTION) / p.sum()
    p[at.size // 2] += NO_CORRECTION
    return np.log(p)
