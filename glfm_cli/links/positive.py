"""Positive columns: x = s softplus(w y + m), s a scale constant  [GLFM section 3.1.1].

A zero is a cell known only to lie below the smallest positive value: y < g(smallest), an interval
as for counts. Zeros that are no small values have a part of their own (two_part.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import log_ndtr

from glfm_cli.arrays import Array
from glfm_cli.links.choice import choose_margin, has_hidden_tail, wants_log, wants_rank
from glfm_cli.links.expectation import interval_mass
from glfm_cli.links.margins import Margin, Smooth, mean_sd
from glfm_cli.links.numeric import (
    FARTHEST,
    LogDensity,
    latent_interval,
    log_normal,
    require_finite,
    standard_units,
)
from glfm_cli.links.observation import Params
from glfm_cli.links.real import RealLink, bounds_of
from glfm_cli.links.shapes import Log, Softplus

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig
    from glfm_cli.schema import Column


SMALLEST_DOUBLE = float(np.finfo(np.float64).smallest_subnormal)
UNSEEN = 1e-3  # of the probability below the smallest positive value: of 0 where none was seen,
# of values between 0 and it where zeros were
LARGEST_CONSTANT = 1e308  # over log 2 it is still a double
# Values seen by their logarithm are completed so far beyond the largest at most, in sds of it: what
# features of a row add up to may be far beyond, and a few draws there are then all of its mean.
BEYOND = 1.0


def softplus_scale(x: Array) -> float:
    """Return half the standard deviation, or the scale that puts a constant column at v = 0."""
    return 0.5 * mean_sd(x)[1] or min(float(x[0]), LARGEST_CONSTANT) / float(np.log(2.0)) or 1.0


def reach_of(margin: Margin, sample: Array, ends: Array | None = None) -> float:
    """Return the largest value to put in, given the observed ones; infinite but for logarithms.

    ends : (N, 2) between which cells are known to lie, NaN for others; infinite if one has no end
    """
    if not (isinstance(margin, Smooth) and isinstance(margin.shape, Log) and sample.size):
        return np.inf
    largest = sample.max(keepdims=True)
    if ends is not None:
        largest = np.fmax(largest, np.nanmax(ends[:, 1], initial=0.0))
    if np.isinf(largest).any():
        return np.inf
    return float(margin.to_value(margin.to_latent(largest) + BEYOND)[0])


@dataclass(frozen=True, eq=False)
class PositiveLink(RealLink):
    """A continuous column of positive numbers, and possibly zeros.

    smallest : the smallest positive value
    cut : g(smallest), below which x is 0; -inf when there are no zeros
    reach : the largest value that is put in; infinite but for logarithms
    """

    smallest: float = 0.0
    cut: float = -np.inf
    reach: float = np.inf

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        column, x = encoded.column, encoded.inside
        rows = np.flatnonzero(x > 0.0)
        sample = x[rows]
        n_zeros = int(np.sum(x == 0.0))
        only_zeros = n_zeros > 0 and sample.size == 0
        if only_zeros:
            # No positive value is known: any unit will do, and completions are 0.
            sample, rows = np.ones(1), np.flatnonzero(x == 0.0)[:1]
        every = x[~np.isnan(x)]
        log = not n_zeros and wants_log(column, sample, config)
        skewed = wants_rank(column, every, config) or has_hidden_tail(encoded, config)
        scale = 1.0 if config.link == "paper" or sample.size == 0 else softplus_scale(sample)
        margin = choose_margin(
            column,
            sample,
            Log() if log else Softplus(scale),
            rank=not log and not only_zeros and skewed,
            rows=rows,
            n_below=n_zeros,
            intervals=encoded.ends is not None,
        )
        require_finite(column, sample, margin.to_latent(sample), rows)
        lower, upper = bounds_of(column, margin, SMALLEST_DOUBLE)
        smallest = float(sample.min()) if sample.size else 0.0
        center, scale = standard_units(every)
        low, high = latent_interval(margin, lower, upper)
        return cls(
            name=column.name,
            margin=margin,
            lower=lower,
            upper=0.0 if only_zeros else upper,
            latent_bounds=(-np.inf if n_zeros else low, high),
            center=center,
            scale=scale,
            noise=config.link_noise,
            smallest=smallest,
            cut=float(margin.to_latent(np.array(smallest))) if n_zeros else -np.inf,
            reach=reach_of(margin, sample, encoded.ends),
        )

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        constants = {"reach": np.array(np.inf), **constants}  # fits made before had none
        return super().from_constants(column, n_levels, constants, config)

    def check_cells(self, x: Array) -> None:
        super().check_cells(x)
        if np.any(x < 0.0):
            raise ValueError("a value is negative")

    def typical(self) -> Array:
        """Return positive values, and a 0 when the column has zeros."""
        values = super().typical()
        # The value of the least y is 0 then, and of no other by accident.
        least = self.value(np.array([-FARTHEST]))
        zero = least[0] == 0.0
        return np.append(values[values > 0.0], 0.0 if zero else [])

    @property
    def known(self) -> bool:
        """True when there are neither zeros nor link noise."""
        return self.noise == 0.0 and self.cut == -np.inf

    def start_values(self, x: Array) -> Array:
        """Return y = g(x); below the cut for zeros."""
        y = np.where(x == 0.0, self.cut - 0.5, self.margin.to_latent(x))
        return np.nan_to_num(y, nan=0.0, neginf=0.0)

    def bound_values(self, x: Array, y: Array, lower: Array, upper: Array) -> None:
        """Make positive cells points, and bound zeros by the cut."""
        super().bound_values(x, y, lower, upper)
        if self.noise == 0.0:
            zeros = x == 0.0
            lower[zeros, 0] = -np.inf
            upper[zeros, 0] = self.cut

    def augment_values(
        self, x: Array, eta: Array, var: float, rng: np.random.Generator, y: Array
    ) -> None:
        """Draw y given y + u < cut at zeros; at other cells as for real columns."""
        if self.noise > 0.0:
            super().augment_values(np.where(x > 0.0, x, np.nan), eta, var, rng, y)
        rows = np.flatnonzero(x == 0.0)
        if rows.size:
            lower, upper = np.full(rows.size, -np.inf), np.full(rows.size, self.cut)
            self.draw_between(rows, lower, upper, eta, var, rng, y)

    def value(self, y: Array) -> Array:
        x = np.minimum(super().value(y), self.reach)
        return np.where(np.asarray(y) < self.cut, 0.0, x)

    def upper_end(self, at: Array) -> Array:
        at = np.asarray(at, dtype=np.float64)
        is_zero = (at >= 0.0) & (at < self.smallest) & (self.cut > -np.inf)
        y = np.where(is_zero, self.cut, super().upper_end(at))
        y = np.where(at >= self.reach, np.inf, y)
        return np.where(at < 0.0, -np.inf, y)

    def log_density_at(self, x: Array, params: Params) -> LogDensity:
        """Return the log density of positive cells, the log probability of zeros.

        Of the probability below the smallest value a thousandth is that of what was not seen there,
        be it 0 or, with the density of g continued, what lies above 0: a value seen there later
        must not rule out the model.
        """
        inside = np.where(x > 0.0, x, self.smallest or self.center)  # any value of the domain
        y, log_slope = self.margin.to_latent(inside), self.margin.log_slope(inside)
        cut, of_zero = self.cut, 1.0 - UNSEEN
        if cut == -np.inf:
            cut, of_zero = float(self.margin.to_latent(np.array(self.smallest))), UNSEEN
        small, zero = x < self.smallest, ~(x > 0.0)

        def log_density(eta: Array, var: Array) -> Array:
            sd = self.sd(var, params)
            density = log_normal(y, eta, sd) + log_slope
            if small.any():
                density = np.where(small, density + np.log1p(-of_zero), density)
            if zero.any():
                below = log_ndtr((cut - eta) / sd) + np.log(of_zero)
                density = np.where(zero, below, density)
            return density

        return log_density

    def _expect(self, eta: Array, sd: Array) -> Array:
        end = float(self.margin.to_latent(np.array(self.reach))) if self.reach < np.inf else np.inf
        found = self.expect_above(
            eta, sd, self.cut, lambda y: self.standard(RealLink.value(self, y)), end
        )
        ends = (0.0, -np.inf, self.cut), (self.reach, end, self.latent_bounds[1])
        for x, low, high in ends:
            if low < high:  # values there are that end
                u = float(self.standard(np.array(x)))
                found = found + interval_mass(eta, sd, low, high)[:, None] * [u, u * u]
        return found
