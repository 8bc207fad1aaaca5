"""Count columns: x = floor(s softplus(w y + m)), from 0 on  [GLFM section 3.1.2].

The margin is used at the cut points: x = c when g(c) <= y < g(c + 1), with g(0) = -inf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from glfm_cli._kernels._links import fill_between, fill_between_cuts
from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.links import expectation
from glfm_cli.links.choice import choose_margin, has_hidden_tail, wants_rank
from glfm_cli.links.expectation import interval_mass
from glfm_cli.links.intervals import log_interval
from glfm_cli.links.margins import Interpolated, mean_sd
from glfm_cli.links.numeric import (
    LogDensity,
    NumericLink,
    latent_interval,
    middle,
    require_finite,
    standard_units,
)
from glfm_cli.links.observation import Params
from glfm_cli.links.real import bounds_of
from glfm_cli.links.shapes import Softplus

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig

# The smallest possible count.
LOWEST = 0.0
# Cut points kept ready for drawing; larger counts compute theirs.
MOST_CUTS = 1 << 16
# Cut points summed one by one in an expectation; beyond, the floor is replaced by its mean effect.
MOST_STEPS = 1024


@dataclass(frozen=True, eq=False)
class CountLink(NumericLink):
    """A column of integers; an observed cell gives y an interval.

    cuts : g(0), g(1), ..., up to beyond the largest observed count or MOST_CUTS of them
    """

    cuts: Array = None  # type: ignore[assignment]  # always given; fields before it have defaults

    known = False
    integral = True
    sizes: ClassVar[Mapping[str, int | None]] = {**NumericLink.sizes, "cuts": None}

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        column, x = encoded.column, encoded.inside
        rows = np.flatnonzero(~np.isnan(x))
        sample = x[rows]
        scale = 1.0 if config.link == "paper" else max(1.0, 0.5 * mean_sd(sample)[1])
        margin = choose_margin(
            column,
            sample,
            Softplus(scale),
            rank=wants_rank(column, sample, config) or has_hidden_tail(encoded, config),
            rows=rows,
            integers=True,
            intervals=encoded.ends is not None,
        )
        require_finite(column, sample, margin.to_latent(sample + 0.5), rows)
        lower, upper = bounds_of(column, margin, LOWEST)
        lower, upper = np.ceil(lower), np.floor(upper)
        if isinstance(margin, Interpolated):
            lower, upper = float(sample.min()), float(sample.max())
        low, high = latent_interval(margin, lower, upper + 1.0)
        center, unit = standard_units(sample)
        link = cls(
            name=column.name,
            margin=margin,
            lower=lower,
            upper=upper,
            latent_bounds=(-np.inf if lower <= LOWEST else low, high),
            center=center,
            scale=unit,
        )
        largest = min(float(sample.max(initial=0.0)) + 2.0, MOST_CUTS)
        object.__setattr__(link, "cuts", link.cut(np.arange(largest)))
        return link

    def cut(self, c: Array) -> Array:
        """Return g(c), the y from which on x >= c."""
        c = np.asarray(c)
        if self.cuts is not None and c.size and c.min() >= 0.0 and c.max() < self.cuts.size:
            return self.cuts[c.astype(np.intp)]
        return np.where(c <= LOWEST, -np.inf, self.margin.to_latent(c))

    def latent_ends(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return g(lower), and g of the integer after upper."""
        return self.cut(lower), self.cut(upper + 1.0)

    @property
    def fixed_bounds(self) -> bool:
        """True: the cuts beside an integer say all."""
        return True

    def start_values(self, x: Array) -> Array:
        """Return the middles of the intervals, half a unit inside open ones."""
        return np.nan_to_num(middle(*self.latent_ends(x, x)), nan=0.0)

    def augment_values(
        self, x: Array, eta: Array, var: float, rng: np.random.Generator, y: Array
    ) -> None:
        """Draw y ~ N(eta, var) given g(x) <= y < g(x + 1)."""
        sd = float(np.sqrt(var))
        if not fill_between_cuts(x, eta, sd, self.cuts, rng, y):
            fill_truncated_normal(eta, sd, *self.latent_ends(x, x), rng, y[:, 0])

    def bound_values(self, x: Array, y: Array, lower: Array, upper: Array) -> None:
        """Fill g(x) and g(x + 1)."""
        if not fill_between(x, self.cuts, lower, upper):
            lower[:, 0], upper[:, 0] = self.latent_ends(x, x)

    def value(self, y: Array) -> Array:
        """Return the integer whose interval holds y, clamped to the bounds."""
        y = np.asarray(y, dtype=np.float64)
        c = np.maximum(np.floor(self.margin.to_value(y)), LOWEST)
        # The inverse of g is rounded; the cut points decide.
        c = c + (self.cut(c + 1.0) <= y)
        c = c - (self.cut(c) > y)
        return np.clip(c, self.lower, self.upper)

    def upper_end(self, at: Array) -> Array:
        at = np.floor(np.asarray(at, dtype=np.float64))
        y = self.cut(at + 1.0)
        if isinstance(self.margin, Interpolated):
            y = np.where(at >= self.upper, np.inf, np.where(at < self.lower, -np.inf, y))
        return y

    def log_density_at(self, x: Array, params: Params) -> LogDensity:
        """Return log P(x) = log(Phi((g(x + 1) - eta) / sd) - Phi((g(x) - eta) / sd)).

        With a rank margin the tails are continued beyond the observed range, so that a larger count
        seen later has some probability; completions stay in the range.
        """
        low, high = self.cut(x), self.cut(x + 1.0)

        def log_p(eta: Array, var: Array) -> Array:
            sd = self.sd(var, params)

            def log_width(at: Array) -> Array:  # where x + 1 rounds to x there is a density
                some, spread = np.broadcast_to(x, at.shape)[at], np.broadcast_to(sd, at.shape)[at]
                return self.margin.log_slope(np.maximum(some, 1.0)) - np.log(spread)

            return log_interval((low - eta) / sd, (high - eta) / sd, log_width)

        return log_p

    def _expect(self, eta: Array, sd: Array) -> Array:
        """Return (n, 2): sums over cut points, and above MOST_STEPS of them an integral."""
        a, b = self.latent_bounds
        low, high = expectation.window(eta, sd, self.margin.sharpness)
        first, last = self.value(np.array([max(low, a), min(high, b)]))
        many = last - first > MOST_STEPS
        split = first + MOST_STEPS if many else last
        end = float(self.cut(split + 1.0)) if many else b
        c = np.arange(first + 1.0, split + 1.0)
        nodes = expectation.jump_nodes(self.cut(c), self.standard(c - 1.0), self.standard(c))
        base = float(self.standard(first))
        total = interval_mass(eta, sd, a, end)[:, None] * [base, base * base]
        total = total + expectation.integrate_steps(nodes, eta, sd, end)
        if many:
            # floor(v) = v - f with f about uniform: mean v - 1/2, variance 1/12.
            total += self.expect_above(eta, sd, end, self._smoothed)
            total[:, 1] += interval_mass(eta, sd, end, b) * ((1.0 / self.scale) ** 2 / 12.0)
        return total

    def _smoothed(self, y: Array) -> Array:
        """Return the continuous stand-in of u, half an integer below the unrounded map."""
        return self.standard(np.clip(self.margin.to_value(y) - 0.5, self.lower, self.upper))
