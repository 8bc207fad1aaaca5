"""Real columns: x = g^-1(y + u), u ~ N(0, s_u^2), by default without u  [GLFM section 3.1.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.choice import choose_margin, wants_rank
from glfm_cli.links.margins import Interpolated, Margin, power_of_two
from glfm_cli.links.numeric import (
    LogDensity,
    NumericLink,
    latent_interval,
    log_normal,
    require_finite,
    standard_units,
)
from glfm_cli.links.observation import Params
from glfm_cli.links.shapes import LARGEST, Identity
from glfm_cli.schema import Column

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig


@dataclass(frozen=True, eq=False)
class RealLink(NumericLink):
    """A continuous column; every observed cell fixes y, or y + u when there is link noise."""

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        column, x = encoded.column, encoded.inside
        rows = np.flatnonzero(~np.isnan(x))
        sample = x[rows]
        margin = choose_margin(
            column,
            sample,
            Identity(power_of_two(sample)),
            rank=wants_rank(column, sample, config),
            rows=rows,
            intervals=encoded.ends is not None,
        )
        require_finite(column, sample, margin.to_latent(sample), rows)
        lower, upper = bounds_of(column, margin, -LARGEST)
        center, scale = standard_units(sample)
        return cls(
            name=column.name,
            margin=margin,
            lower=lower,
            upper=upper,
            latent_bounds=latent_interval(margin, lower, upper)
            if column.bounds != (None, None)
            else margin.latent_range,
            center=center,
            scale=scale,
            noise=config.link_noise,
        )

    @property
    def known(self) -> bool:
        return self.noise == 0.0

    @property
    def fixed_bounds(self) -> bool:
        """True without link noise, which moves what a value says of y."""
        return self.noise == 0.0

    def start_values(self, x: Array) -> Array:
        """Return y = g(x)."""
        return np.nan_to_num(self.margin.to_latent(x), nan=0.0)

    def bound_values(self, x: Array, y: Array, lower: Array, upper: Array) -> None:
        """Make every cell a point: y is known, or held where there is link noise."""
        lower[:] = y
        upper[:] = y

    def augment_values(
        self, x: Array, eta: Array, var: float, rng: np.random.Generator, y: Array
    ) -> None:
        """Draw y given y + u = g(x)  [GLFM eqs. 14, 15]; without u there is nothing to draw."""
        if self.noise > 0.0:
            rows = np.flatnonzero(~np.isnan(x))
            y[rows, 0] = self.without_noise(self.margin.to_latent(x[rows]), eta[rows], var, rng)

    def log_density_at(self, x: Array, params: Params) -> LogDensity:
        """Return log N(g(x); eta, var + s_u^2) + log g'(x), not truncated to the bounds."""
        y, log_slope = self.margin.to_latent(x), self.margin.log_slope(x)
        return lambda eta, var: log_normal(y, eta, self.sd(var, params)) + log_slope


def bounds_of(column: Column, margin: Margin, lowest: float) -> tuple[float, float]:
    """Return the values that completions may take, `lowest` being the support's end."""
    low, high = column.bounds
    lower = lowest if low is None else max(float(low), lowest)
    upper = LARGEST if high is None else float(high)
    if isinstance(margin, Interpolated):
        lower = max(lower, float(margin.x[0]) * margin.unit)
        upper = min(upper, float(margin.x[-1]) * margin.unit)
    return lower, upper
