"""Ordinal columns: x = number of thresholds below y, y ~ N(eta, 1)  [GLFM section 3.1.2].

theta (R - 1,) are the increasing thresholds; a priori normal with a common variance, restricted to
their order, the first 0 when a bias feature takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr, ndtri

from glfm_cli._kernels._links import fill_between, fill_between_cuts, gather, sum_log_interval
from glfm_cli.arrays import Array
from glfm_cli.links.config import LinkConfig
from glfm_cli.links.constants import take
from glfm_cli.links.intervals import log_interval
from glfm_cli.links.law import Normal, one_number
from glfm_cli.links.levels import LevelLink, require_levels
from glfm_cli.links.observation import Params
from glfm_cli.schema import Column

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn


# Tries of the random walk a sweep, and the share that should succeed.
TRIES = 2
TARGET_ACCEPTANCE = 0.35
FARTHEST, LONGEST = 1e50, 100.0  # threshold and logarithm of a step that a chain may go on from


@dataclass(frozen=True, eq=False)
class OrdinalLink(LevelLink):
    """One latent column of unit noise, cut by sampled thresholds.

    n_levels : R, levels without observed cells included
    config : `threshold_variance` and `first_threshold_fixed` are read
    """

    name: str
    n_levels: int
    config: LinkConfig

    n_latent = 1
    unit_noise = True
    known = False
    ordered = True

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        require_levels(encoded)
        return cls(encoded.column.name, len(encoded.levels), config)

    def constants(self) -> dict[str, Array]:
        """Return nothing: the number of levels says all."""
        return {}

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        """Return the link of so many levels."""
        return cls(column.name, n_levels, config)

    def check_params(self, params: Params) -> None:
        """Raise ValueError unless these are increasing thresholds, and how they are proposed."""
        thresholds = take(params, "thresholds", self.n_levels - 1)
        if np.any(np.diff(thresholds) <= 0.0) or np.any(np.abs(thresholds) > FARTHEST):
            raise ValueError("'thresholds' does not increase, or is huge")
        expected = {"thresholds", "log_step", "tries"}
        take(params, "tries", 1)
        if abs(take(params, "log_step", 1)[0]) > LONGEST:
            raise ValueError("'log_step' is huge")
        if params.keys() != expected:
            raise ValueError(f"it has the parameters {sorted(params)}, expected {sorted(expected)}")

    def set_thresholds(self, params: Params, theta: Array) -> None:
        """Put others in place of the thresholds."""
        params["thresholds"][:] = theta

    def start(self, x: Array) -> tuple[Params, Array]:
        """Return thresholds at the normal quantiles of the level frequencies, and y amid them."""
        codes = x[~np.isnan(x)].astype(np.intp)
        # Half a cell a level: levels without observed cells need some room.
        share = np.bincount(codes, minlength=self.n_levels) + 0.5
        theta = ndtri(np.cumsum(share)[:-1] / share.sum())
        if self.config.first_threshold_fixed and theta.size:
            theta = theta - theta[0]
        params = {
            "thresholds": theta,
            "log_step": np.array([np.log(0.5 / np.sqrt(self.n_levels))]),
            "tries": np.zeros(1),
        }
        y = np.zeros((x.size, 1))
        if theta.size:
            inside = 0.5 * (theta[1:] + theta[:-1])
            middle = np.concatenate([[theta[0] - 0.5], inside, [theta[-1] + 0.5]])
            y[~np.isnan(x), 0] = middle[codes]
        return params, y

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: Generator, adapt: bool
    ) -> None:
        """Draw the thresholds with y integrated out, by a random walk on the log gaps.

        Target: the likelihood of x given eta, times the prior, times the product of the gaps, which
        is the Jacobian [Cowles 1996]. A free first threshold walks along. y
        must be drawn next. `thresholds` changes in place; `log_step` and `tries` when `adapt`.
        O(n) a try.
        """
        theta = params["thresholds"]
        free = 0 if self.config.first_threshold_fixed else 1
        n_moving = theta.size - 1 + free
        if n_moving < 1:
            return
        column, eta = eta, np.empty(eta.size)  # it is gone through several times
        gather(column, eta)
        current = self._log_target(x, eta, theta, theta[1:] - theta[:-1])
        for _ in range(TRIES):
            step = np.exp(params["log_step"][0]) * rng.standard_normal(n_moving)
            proposal = theta.copy()
            if free:
                proposal[0] += step[0]
            limited = np.maximum(np.minimum(step[free:], 300.0), -300.0)
            proposal[1:] = proposal[0] + ((theta[1:] - theta[:-1]) * np.exp(limited)).cumsum()
            target = self._log_target(x, eta, proposal, proposal[1:] - proposal[:-1])
            log_ratio = min(target - current, 0.0)
            if -rng.standard_exponential() < log_ratio:
                theta[:] = proposal
                current = target
            if adapt:
                # Robbins and Monro: the gain falls, its sum diverges.
                params["tries"][0] += 1.0
                gain = params["tries"][0] ** -0.6
                params["log_step"][0] += gain * (np.exp(log_ratio) - TARGET_ACCEPTANCE)

    @property
    def fixed_bounds(self) -> bool:
        """True: the thresholds say all."""
        return True

    def bound(
        self, x: Array, params: Params, y: Array, rng: Generator, lower: Array, upper: Array
    ) -> None:
        """Fill the thresholds around the observed levels."""
        fill_between(x, _cuts(params["thresholds"]), lower, upper)

    def scale_group(self, params: Params) -> tuple[float, float]:
        """Return sum of squares over prior variance, and number, of the free thresholds."""
        theta = params["thresholds"]
        free = theta[1:] if self.config.first_threshold_fixed else theta
        return float(free @ free) / self.config.threshold_variance, float(free.size)

    def rescale(self, params: Params, factor: float) -> None:
        """Follow the pseudo-observations' new scale."""
        params["thresholds"] *= factor

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw y ~ N(eta, var) between the thresholds of the observed level."""
        fill_between_cuts(x, eta, float(np.sqrt(var)), _cuts(params["thresholds"]), rng, y)

    def log_probability(self, x: Array, part: Normal, params: Params) -> Array:
        eta, var = one_number(part)
        cuts = _cuts(params["thresholds"])
        codes = x.astype(np.intp)
        sd = np.sqrt(var)
        return log_interval((cuts[codes] - eta) / sd, (cuts[codes + 1] - eta) / sd)

    def level_probabilities(self, part: Normal, params: Params) -> Array:
        """Return (n, R): Phi((theta_{r+1} - eta) / sd) - Phi((theta_r - eta) / sd)."""
        eta, var = one_number(part)
        t = (_cuts(params["thresholds"]) - eta[:, None]) / np.sqrt(var)[:, None]
        low, high = t[:, :-1], t[:, 1:]
        # Subtract in the smaller tail.
        flip = low > 0.0
        return ndtr(np.where(flip, -low, high)) - ndtr(np.where(flip, -high, low))

    def sample_levels(self, part: Normal, params: Params, rng: Generator) -> Array:
        eta, var = one_number(part)
        y = eta + np.sqrt(var) * rng.standard_normal(np.shape(eta))
        return np.searchsorted(params["thresholds"], y, side="left").astype(np.float64)

    def _log_target(self, x: Array, eta: Array, theta: Array, gaps: Array) -> float:
        # Thresholds closer than a rounding error have no gap to walk on.
        if gaps.min(initial=np.inf) <= 0.0:
            return -np.inf
        prior = -0.5 * float(theta @ theta) / self.config.threshold_variance
        return sum_log_interval(x, eta, _cuts(theta)) + prior + float(np.log(gaps).sum())


def _cuts(theta: Array) -> Array:
    cuts = np.empty(theta.size + 2)
    cuts[0], cuts[1:-1], cuts[-1] = -np.inf, theta, np.inf
    return cuts
