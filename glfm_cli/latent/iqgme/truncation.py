"""What is known of Gaussian variables of unit variance: they lie between ends, or one is largest.

Both kinds answer one question, of variables t ~ N(eta, I) restricted to what is known:
their means, and the log probability of what is known. eta has the experts in front: (H, b, K).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from glfm_cli.arrays import Array

LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
NODES, WEIGHTS = np.polynomial.hermite.hermgauss(16)
NEWTON_STEPS = 5


class Truncation(Protocol):
    """What is known of K variables in each of n rows."""

    @property
    def n_latent(self) -> int:
        """Return K."""

    def expect(self, rows: Array, eta: Array) -> tuple[Array, Array]:
        """Return E[t] (H, b, K) and the log probability (H, b) of what is known of some rows.

        rows : (b,) which rows;  eta : (H, b, K) means before the restriction
        """

    def draw(self, rows: Array, eta: Array, t: Array, rng: np.random.Generator) -> Array:
        """Return t (b, K) drawn anew, leaving the law of N(eta, I) so restricted as it is.

        eta : (b, K) means;  t : (b, K) the present values
        """


@dataclass(frozen=True, eq=False)
class Between:
    """Every variable lies between two ends of its own, infinite ones allowed.

    lower, upper : (n, K) with lower < upper
    """

    lower: Array
    upper: Array

    @property
    def n_latent(self) -> int:
        """Return K."""
        return int(self.lower.shape[1])

    def expect(self, rows: Array, eta: Array) -> tuple[Array, Array]:
        """Return means and log probabilities; O(H b K)."""
        mean, _, log_z = self.moments(rows, eta, np.ones(1))
        return mean, log_z.sum(axis=-1)

    def moments(self, rows: Array, eta: Array, scale: Array) -> tuple[Array, Array, Array]:
        """Return means, variances and log probabilities (H, b, K) of N(eta, scale^2) between ends.

        scale : of a shape that goes with eta
        """
        lower, upper = self.lower[rows], self.upper[rows]
        mean, var, log_z = between_moments((lower - eta) / scale, (upper - eta) / scale)
        return np.clip(eta + scale * mean, lower, upper), scale * scale * var, log_z

    def draw(self, rows: Array, eta: Array, t: Array, rng: np.random.Generator) -> Array:
        """Return variables between their ends."""
        return self.draw_scaled(rows, eta, np.ones(1), rng)

    def draw_scaled(self, rows: Array, eta: Array, scale: Array, rng: np.random.Generator) -> Array:
        """Return draws of N(eta, scale^2) between the ends."""
        lower, upper = self.lower[rows] / scale, self.upper[rows] / scale
        return scale * draw_between(eta / scale, lower, upper, rng)


def draw_between(eta: Array, lower: Array, upper: Array, rng: np.random.Generator) -> Array:
    """Return draws of N(eta, 1) between ends, by the inverse of the distribution function."""
    a, b = lower - eta, upper - eta
    flip = a + b > 0.0  # in the smaller tail, in logs, every digit counts
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    u = 1.0 - rng.random(eta.shape)  # above 0
    with np.errstate(divide="ignore"):
        log_p = np.logaddexp(log_ndtr(high) + np.log(u), log_ndtr(low) + np.log1p(-u))
    e = np.clip(ndtri_exp(log_p), low, high)
    return np.asarray(np.clip(eta + np.where(flip, -e, e), lower, upper))


def between_moments(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return mean, variance and log P(a < e < b) of a standard normal e between a and b."""
    # In the smaller tail, where a difference of logs keeps its digits.
    flip = a + b > 0.0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    log_high, log_low = log_ndtr(high), log_ndtr(low)
    log_z = log_high + np.log1p(-np.exp(np.minimum(log_low - log_high, -1e-300)))
    with np.errstate(invalid="ignore"):
        at_low = np.where(np.isinf(low), 0.0, np.exp(_log_pdf(low) - log_z))
        at_high = np.where(np.isinf(high), 0.0, np.exp(_log_pdf(high) - log_z))
        slope = np.where(np.isinf(low), 0.0, low * at_low)
        slope -= np.where(np.isinf(high), 0.0, high * at_high)
    mean = at_low - at_high
    # Rounding, which the subtraction lets through far in the tails, stays below any use of it.
    var = np.clip(1.0 + slope - mean * mean, 0.0, 1.0)
    return np.where(flip, -mean, mean), var, log_z


def _log_pdf(t: Array) -> Array:
    return -0.5 * np.square(np.clip(t, -1e150, 1e150)) - LOG_SQRT_2PI


@dataclass(frozen=True, eq=False)
class Largest:
    """One of R utilities is the largest; the reference has mean 0, the others a variable each.

    code : (n,) which level's utility is the largest
    n_levels : R;  reference : the level without a variable of its own

    Means and probabilities are those of [Girolami and Rogers 2006], by quadrature over the noise
    of the largest, centred at its mode: relative errors below 1e-8.
    """

    code: Array
    n_levels: int
    reference: int

    @property
    def n_latent(self) -> int:
        """Return the number of levels less one."""
        return self.n_levels - 1

    @property
    def latent_levels(self) -> Array:
        """Return the level of each variable."""
        return np.delete(np.arange(self.n_levels), self.reference)

    def expect(self, rows: Array, eta: Array) -> tuple[Array, Array]:
        """Return means and log probabilities; O(H b R nodes)."""
        code = self.code[rows].astype(np.intp)
        utility = np.insert(eta, self.reference, 0.0, axis=-1)
        every = np.arange(self.n_levels)
        others = np.array([np.delete(every, r) for r in range(self.n_levels)])[code]
        at, beside = code[None, :, None], others[None]
        winner = np.take_along_axis(utility, at, axis=-1)
        rest = np.take_along_axis(utility, beside, axis=-1)
        ahead = winner - rest
        u, log_weight = _around_mode(ahead)
        t = u[..., None] + ahead[..., None, :]  # (H, b, nodes, R - 1)
        log_cdf = log_ndtr(t)
        log_all = log_weight + log_cdf.sum(axis=-1)
        top = log_all.max(axis=-1, keepdims=True)
        share = np.exp(log_all - top)
        log_z = top[..., 0] + np.log(share.sum(axis=-1))
        share /= share.sum(axis=-1, keepdims=True)
        ratio = np.exp(_log_pdf(t) - log_cdf)
        below = np.einsum("hbn,hbnr->hbr", share, ratio)  # by how much each stays below its mean
        mean = np.empty_like(utility)
        np.put_along_axis(mean, np.broadcast_to(beside, rest.shape), rest - below, axis=-1)
        won = winner + below.sum(axis=-1, keepdims=True)
        np.put_along_axis(mean, np.broadcast_to(at, won.shape), won, axis=-1)
        return np.delete(mean, self.reference, axis=-1), log_z

    def draw(self, rows: Array, eta: Array, t: Array, rng: np.random.Generator) -> Array:
        """Return utilities, one after another given the others, the reference's among them."""
        code = self.code[rows].astype(np.intp)
        mean = np.insert(eta, self.reference, 0.0, axis=1)
        utility = np.insert(t, self.reference, -np.inf, axis=1)
        every = np.arange(code.size)
        for r in (self.reference, *self.latent_levels):
            won = code == r
            highest = np.delete(utility, r, axis=1).max(axis=1)
            lower = np.where(won, highest, -np.inf)
            upper = np.where(won, np.inf, utility[every, code])
            utility[:, r] = draw_between(mean[:, r], lower, upper, rng)
        return np.delete(utility, self.reference, axis=1)


def stacked(labels: Sequence[tuple[Truncation, Array]]) -> Truncation:
    """Return what is known of some rows of each of several tables, one after another's."""
    first = labels[0][0]
    if isinstance(first, Largest):
        code = [label.code[at] for label, at in labels if isinstance(label, Largest)]
        return replace(first, code=np.concatenate(code))
    every = [(label, at) for label, at in labels if isinstance(label, Between)]
    lower = np.vstack([label.lower[at] for label, at in every])
    return Between(lower, np.vstack([label.upper[at] for label, at in every]))


def _around_mode(ahead: Array) -> tuple[Array, Array]:
    """Return nodes u (H, b, nodes) and log weights for integrals of phi(u) prod Phi(u + ahead)."""
    u = np.zeros(ahead.shape[:-1])
    curve = np.ones_like(u)
    for _ in range(NEWTON_STEPS):
        t = u[..., None] + ahead
        ratio = np.exp(_log_pdf(t) - log_ndtr(t))
        curve = 1.0 + np.sum(ratio * (ratio + t), axis=-1)
        u = u + (ratio.sum(axis=-1) - u) / curve
    scale = np.sqrt(2.0 / curve)
    nodes = u[..., None] + scale[..., None] * NODES
    log_weight = np.log(WEIGHTS) + NODES * NODES + np.log(scale)[..., None]
    return nodes, log_weight + _log_pdf(nodes)
