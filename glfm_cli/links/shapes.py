"""Elementary increasing maps v(x), before they are shifted and scaled to the latent scale.

A shape knows its domain, its inverse, its slope, and how sharply it bends. Outside the domain
`forward` gives -inf or inf, so that the ends of an interval may lie there. All are accurate from
subnormal numbers to 1e308: no intermediate result overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, ndtr, ndtri

from glfm_cli.arrays import Array

LARGEST = float(np.finfo(np.float64).max)


class Shape(Protocol):
    """An increasing map v(x) from `domain` onto `range`."""

    bends: bool  # False: linear or quadratic, so quadrature need not resolve it

    @property
    def domain(self) -> tuple[float, float]:
        """Return the open interval of x where v is finite."""

    @property
    def range(self) -> tuple[float, float]:
        """Return the values of v at the ends of the domain."""

    def forward(self, x: Array) -> Array:
        """Return v(x), x inside the domain."""

    def inverse(self, v: Array) -> Array:
        """Return x with v(x) = v, inside the domain, finite."""

    def log_slope(self, x: Array) -> Array:
        """Return log dv/dx."""


@dataclass(frozen=True)
class Identity:
    """v = x / unit, with a power of two as unit, so that nothing is rounded."""

    unit: float = 1.0
    bends = False
    domain = (-np.inf, np.inf)
    range = (-np.inf, np.inf)

    def forward(self, x: Array) -> Array:
        return x / self.unit

    def inverse(self, v: Array) -> Array:
        return np.clip(v * self.unit, -LARGEST, LARGEST)

    def log_slope(self, x: Array) -> Array:
        return np.full(np.shape(x), -np.log(self.unit))


@dataclass(frozen=True)
class Softplus:
    """x = scale * log(1 + e^v)  [GLFM sections 3.1.1 and 3.1.2], for x > 0."""

    scale: float
    bends = True
    domain = (0.0, np.inf)
    range = (-np.inf, np.inf)

    def forward(self, x: Array) -> Array:
        """Return log(expm1(r)), r = x / scale; below 1e-8 its series, as r itself may underflow."""
        r = np.maximum(x / self.scale, 1e-8)
        large = r + np.log(-np.expm1(-r))
        return np.where(r > 1e-8, large, np.log(x) - np.log(self.scale))

    def inverse(self, v: Array) -> Array:
        x = np.where(v < -30.0, np.exp(v + np.log(self.scale)), self.scale * np.logaddexp(0.0, v))
        return np.minimum(x, LARGEST)

    def log_slope(self, x: Array) -> Array:
        r = np.maximum(x / self.scale, 1e-8)
        return np.where(r > 1e-8, -np.log(self.scale) - np.log(-np.expm1(-r)), -np.log(x))


@dataclass(frozen=True)
class Log:
    """v = log x, for x > 0."""

    bends = True
    domain = (0.0, np.inf)
    range = (-np.inf, np.inf)

    def forward(self, x: Array) -> Array:
        return np.log(x)

    def inverse(self, v: Array) -> Array:
        return np.minimum(np.exp(v), LARGEST)

    def log_slope(self, x: Array) -> Array:
        return -np.log(x)


@dataclass(frozen=True)
class Log1p:
    """v = log(1 + x), for x > -1."""

    bends = True
    domain = (-1.0, np.inf)
    range = (-np.inf, np.inf)

    def forward(self, x: Array) -> Array:
        return np.log1p(x)

    def inverse(self, v: Array) -> Array:
        return np.minimum(np.expm1(v), LARGEST)

    def log_slope(self, x: Array) -> Array:
        return -np.log1p(x)


@dataclass(frozen=True)
class Logit:
    """v = log((x - low) / (high - x)), for low < x < high."""

    low: float
    high: float
    bends = True
    range = (-np.inf, np.inf)

    @property
    def domain(self) -> tuple[float, float]:
        return self.low, self.high

    def forward(self, x: Array) -> Array:
        return np.log(x - self.low) - np.log(self.high - x)

    def inverse(self, v: Array) -> Array:
        """Return x, measured from the nearer end so that it keeps its digits there."""
        width = self.high - self.low
        return np.where(
            v < 0, self.low + width * expit(v), self.high - width * expit(-np.asarray(v))
        )

    def log_slope(self, x: Array) -> Array:
        width = self.high - self.low
        return np.log(width) - np.log(x - self.low) - np.log(self.high - x)


@dataclass(frozen=True)
class Probit:
    """v = the normal score of x, for 0 < x < 1."""

    bends = True
    domain = (0.0, 1.0)
    range = (-np.inf, np.inf)

    def forward(self, x: Array) -> Array:
        return np.asarray(ndtri(x))

    def inverse(self, v: Array) -> Array:
        return np.asarray(ndtr(v))

    def log_slope(self, x: Array) -> Array:
        return np.asarray(0.5 * ndtri(x) ** 2 + 0.5 * np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Sqrt:
    """v = sqrt(x), for x >= 0; v below 0 belongs to x = 0."""

    bends = False
    domain = (0.0, np.inf)
    range = (0.0, np.inf)

    def forward(self, x: Array) -> Array:
        return np.sqrt(x)

    def inverse(self, v: Array) -> Array:
        v = np.maximum(v, 0.0)
        return np.minimum(v * v, LARGEST)

    def log_slope(self, x: Array) -> Array:
        """Return log dv/dx, large but finite at 0, where the slope is infinite."""
        return -np.log(2.0) - 0.5 * np.log(np.maximum(x, 1e-300))
