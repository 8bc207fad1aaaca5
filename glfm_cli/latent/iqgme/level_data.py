"""A column of levels as the experts see it: what a level says of normal variables t ~ N(eta, I).

They lie in an interval, of a link with one latent column, or are what the link itself expects of
several. eta has the experts in front: (H, b, K).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array, log_sum
from glfm_cli.links import Link, Params, of_levels
from glfm_cli.links.intervals import interval_moments
from glfm_cli.links.link import Expecting

N_NODES, WIDTHS = (3, 5, 8, 16), (0.15, 0.5, 1.2)  # that integrate shifts so wide
_hermite = cache(np.polynomial.hermite_e.hermegauss)


@dataclass(frozen=True, eq=False)
class LevelData:
    """The levels of n rows, seen through a link of unit noise.

    x : (n,) level codes; of rows that are not asked for, any
    slips : share of rows of which any level is as probable, wherever t lies
    """

    link: Link
    params: Params
    x: Array
    slips: float = 0.0

    @property
    def n_latent(self) -> int:
        """Return the number K of variables."""
        return self.link.n_latent

    @cached_property
    def interval(self) -> tuple[Array, Array]:
        """Return the ends (n, 1) of the only variable."""
        ends = np.empty((self.x.size, 1)), np.empty((self.x.size, 1))
        self.link.bound(self.x, self.params, np.zeros((self.x.size, 1)), _NO_RNG, *ends)
        return ends

    def _no_slip(self, log_z: Array) -> tuple[Array, Array]:
        """Return log P(level) with slips, by that without, and the probability of none."""
        meant = np.log1p(-self.slips) + log_z
        log_p = np.logaddexp(meant, np.log(self.slips / of_levels(self.link).n_levels))
        return log_p, np.exp(meant - log_p)

    def expect(self, rows: Array, eta: Array) -> tuple[Array, Array]:
        """Return E[t] (H, b, K) and log P(level) (H, b) of some rows (b,).

        eta : (H, b, K) means before the levels are known
        """
        if self.n_latent == 1:
            mean, _, log_z = self.moments(rows, eta, np.ones(1))
            return mean, log_z.sum(axis=-1)
        assert isinstance(self.link, Expecting)
        mean, log_z = self.link.expect(self.x[rows], eta, self.params)
        if not self.slips:
            return mean, log_z
        log_z, meant = self._no_slip(log_z)
        return eta + meant[..., None] * (mean - eta), log_z

    def expect_shifted(
        self, rows: Array, eta: Array, wide: Array, held: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return E[t], Cov(t, z) (H, b, K) and log P(level) (H, b) of t ~ N(eta + wide z, I).

        z ~ N(0, 1). Narrow shifts are integrated by fewer nodes. 0 where not `held` (H, b).
        """
        (H, b, K), kind = eta.shape, np.searchsorted(WIDTHS, np.linalg.norm(wide, axis=2).ravel())
        rows, eta, wide = np.tile(rows, H), eta.reshape(-1, K), wide.reshape(-1, K)
        mean, cov, log_p = np.zeros((H * b, K)), np.zeros((H * b, K)), np.zeros(H * b)
        if held is not None:
            kind[~held.ravel()] = -1
        for i in np.unique(kind[kind >= 0]):
            at = np.flatnonzero(kind == i)
            node, weight = _hermite(N_NODES[i])
            each, log_z = self.expect(rows[at], eta[at] + node[:, None, None] * wide[at])
            log_z += np.log(weight / weight.sum())[:, None]
            log_p[at] = log_sum(log_z, axis=0)
            share = np.exp(log_z - log_p[at])
            mean[at] = np.einsum("jl,jlk->lk", share, each)
            cov[at] = np.einsum("j,jl,jlk->lk", node, share, each - mean[at])
        return mean.reshape(H, b, K), cov.reshape(H, b, K), log_p.reshape(H, b)

    def moments(self, rows: Array, eta: Array, scale: Array) -> tuple[Array, Array, Array]:
        """Return means, variances and log P(level) (H, b, 1) of the only t ~ N(eta, scale^2)."""
        lower, upper = (end[rows] for end in self.interval)
        mean, var, log_z = interval_moments((lower - eta) / scale, (upper - eta) / scale)
        mean, var = np.clip(eta + scale * mean, lower, upper), scale * scale * var
        if not self.slips:
            return mean, var, log_z
        log_z, meant = self._no_slip(log_z)
        away = mean - eta
        var = meant * var + (1.0 - meant) * (scale * scale + meant * away * away)
        return eta + meant * away, var, log_z

    def draw(self, rows: Array, eta: Array, rng: np.random.Generator) -> Array:
        """Return draws (b, K) of t given the levels; eta (b, K)."""
        if self.n_latent == 1:
            return self.draw_scaled(rows, eta, np.ones((1, 1)), rng)
        t = np.empty(eta.shape)
        self.link.augment(self.x[rows], eta, 1.0, dict(self.params), rng, t)
        if self.slips:
            assert isinstance(self.link, Expecting)
            meant = self._no_slip(self.link.expect(self.x[rows], eta, self.params)[1])[1]
            free = rng.random(len(t)) > meant
            t[free] = eta[free] + rng.standard_normal((int(free.sum()), self.n_latent))
        return t

    def draw_scaled(self, rows: Array, eta: Array, scale: Array, rng: np.random.Generator) -> Array:
        """Return draws (b, 1) of the only t ~ N(eta, scale^2) given the levels."""
        mean, lower, upper = (
            np.ascontiguousarray((one / scale)[:, 0])
            for one in (eta, *(end[rows] for end in self.interval))
        )
        if self.slips:
            log_z = interval_moments(lower - mean, upper - mean)[2]
            free = rng.random(mean.size) > self._no_slip(log_z)[1]
            lower[free], upper[free] = -np.inf, np.inf
        t = np.empty(len(eta))
        fill_truncated_normal(mean, 1.0, lower, upper, rng, t)
        return t[:, None] * scale


_NO_RNG = np.random.default_rng(0)  # intervals draw nothing


def stacked(parts: Sequence[tuple[LevelData, Array]]) -> LevelData:
    """Return some rows of each of several tables, one after another's, seen through one link."""
    return replace(parts[0][0], x=np.concatenate([data.x[at] for data, at in parts]))
