"""What the links of real, positive and count columns share: x is an increasing map of one y.

A cell is a number, or known only to lie between two. The second kind gives y an interval, whatever
the type of the column: its likelihood is the probability of the interval, and y is drawn inside it.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

import glfm_cli.links.expectation as expectation
from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.errors import TableError
from glfm_cli.links.averages import NumberAverage
from glfm_cli.links.constants import SCALAR, margin_in, margin_out, take
from glfm_cli.links.intervals import log_interval
from glfm_cli.links.law import CellLaw, Normal, of_latent, one_number
from glfm_cli.links.margins import Interpolated, Margin, Smooth, mean_sd
from glfm_cli.links.observation import Params
from glfm_cli.links.plain import PlainLink
from glfm_cli.links.shapes import LARGEST, Identity
from glfm_cli.schema import Column

if TYPE_CHECKING:
    from glfm_cli.links.config import LinkConfig


LARGEST_UNITS = 1e145
# Latent bounds beyond it are no bounds.
FARTHEST = 1e100
LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
# A row whose truncated mass is smaller is put at the nearest end of the bounds.
LEAST_MASS = 1e-14
# An interpolated margin with more knots is thinned, evenly on the latent scale, for expectations.
MOST_KNOTS = 512
# A share of one value from which a column has no density to speak of.
TIED = 0.6

LogDensity = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False)
class NumericLink(PlainLink, ABC):
    """One latent column; y = g(x), or an interval of y.

    margin : g, calibrated
    lower, upper : the values that completions may take
    latent_bounds : the same on the latent scale; the predictive distribution is truncated to them
    noise : variance of the link noise u, x = g^-1(y + u)
    center, scale : standard units of `standard_moments`, about the observed mean and deviation
    """

    name: str
    margin: Margin
    lower: float
    upper: float
    latent_bounds: tuple[float, float]
    center: float
    scale: float
    noise: float = 0.0

    n_latent = 1
    unit_noise = False
    discrete = False
    ordered = True
    integral = False
    selects = False  # whether cells may be missing by their value (selection.py)
    # Sizes of the constants that are not one number; None for any.
    sizes: ClassVar[Mapping[str, int | None]] = {"latent_bounds": 2}

    def constants(self) -> dict[str, Array]:
        """Return the fields and the margin as named arrays."""
        found = {
            field.name: np.asarray(getattr(self, field.name), dtype=np.float64)
            for field in dataclasses.fields(self)
            if field.name not in {"name", "margin"}
        }
        return found | margin_out(self.margin)

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        parts: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            if field.name in {"name", "margin"}:
                continue
            size = cls.sizes.get(field.name, SCALAR)
            value = take(constants, field.name, size, infinite=True)
            parts[field.name] = value if size is None else _plain(value)
        for name, least in (("scale", 0.0), ("noise", -1.0)):
            if not least < parts[name] < np.inf:
                raise ValueError(f"'{name}' is {parts[name]:g}")
        if not np.isfinite(parts["center"]) or not parts["lower"] <= parts["upper"]:
            raise ValueError("'center', 'lower' and 'upper' do not fit together")
        for name in cls.sizes:
            ends = np.asarray(parts[name])
            if np.any(np.isfinite(ends) & (np.abs(ends) > FARTHEST)):
                raise ValueError(f"'{name}' is too far from 0")
            if np.any(ends[1:] < ends[:-1]) or np.inf in ends[:1] or -np.inf in ends[1:]:
                raise ValueError(f"'{name}' does not increase")
        return cls(name=column.name, margin=margin_in(constants), **parts)

    def check_cells(self, x: Array) -> None:
        """Raise ValueError unless all are finite, and whole numbers where they should be."""
        if not np.isfinite(x).all():
            raise ValueError("a value is not a finite number")
        if self.integral and np.any((x != np.floor(x)) | (x < 0.0)):
            raise ValueError("a value is not a whole number from 0")

    def typical(self) -> Array:
        """Return values in the middle and two standard deviations to either side."""
        return self.value(np.array([-2.0, 0.0, 2.0]))  # y has mean 0 and variance 1, or nearly

    def value(self, y: Array) -> Array:
        """Return the x of given y, clamped to support and bounds."""
        return np.clip(self.margin.to_value(y), self.lower, self.upper)

    def upper_end(self, at: Array) -> Array:
        """Return the end of the y with x <= at, before bounds: -inf for none, inf for all."""
        at = np.asarray(at, dtype=np.float64)
        y = self.margin.to_latent(at)
        if isinstance(self.margin, Interpolated):
            # Completions stay in the observed range.
            low, high = self.margin.x[0], self.margin.x[-1]
            y = np.where(at < low * self.margin.unit, -np.inf, y)
            y = np.where(at >= high * self.margin.unit, np.inf, y)
        return y

    def latent_ends(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return the ends of the y with lower <= x <= upper."""
        low, high = self.margin.to_latent(lower), self.margin.to_latent(upper)
        first, last = self.margin.latent_range  # beyond them lie the ends of the domain
        return np.where(low <= first, -np.inf, low), np.where(high >= last, np.inf, high)

    def between(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the rows of cells x (n, 2) that are intervals, and the ends of their y."""
        rows = np.flatnonzero((x[:, 0] < x[:, 1]) & np.isfinite(x).any(axis=1))
        return rows, *self.latent_ends(*x[rows].T)

    @abstractmethod
    def start_values(self, x: Array) -> Array:
        """Return y (n,) to start with of cells x (n,), 0 where they are NaN."""

    def start(self, x: Array) -> tuple[Params, Array]:
        """Return no parameters, and y; of intervals the middle, half a unit inside open ones."""
        y = self.start_values(values_of(x))
        if x.ndim == 2:
            rows, low, high = self.between(x)
            y[rows] = middle(low, high)
        return {}, y[:, None]

    @abstractmethod
    def bound_values(self, x: Array, y: Array, lower: Array, upper: Array) -> None:
        """Fill the ends (n, 1) of what cells x (n,) say of y (n, 1)."""

    def bound(
        self, x: Array, params: Params, y: Array, rng: Generator, lower: Array, upper: Array
    ) -> None:
        """Fill the ends of y; with link noise a cell is a point, held where it is."""
        self.bound_values(values_of(x), y, lower, upper)
        if x.ndim == 2 and self.noise == 0.0:
            rows, low, high = self.between(x)
            lower[rows, 0], upper[rows, 0] = low, high

    @abstractmethod
    def augment_values(self, x: Array, eta: Array, var: float, rng: Generator, y: Array) -> None:
        """Draw y (n, 1) of cells x (n,), in place, none where they are NaN."""

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw y given what is known of it: y + u = g(x), or its interval."""
        self.augment_values(values_of(x), eta, var, rng, y)
        if x.ndim == 2:
            self.draw_between(*self.between(x), eta, var, rng, y)

    def draw_between(
        self, rows: Array, low: Array, high: Array, eta: Array, var: float, rng: Generator, y: Array
    ) -> None:
        """Draw y given low < y + u < high at some rows, in place."""
        total = np.empty(rows.size)
        sd = float(np.sqrt(var + self.noise))
        fill_truncated_normal(np.ascontiguousarray(eta[rows]), sd, low, high, rng, total)
        y[rows, 0] = self.without_noise(total, eta[rows], var, rng)

    def without_noise(self, total: Array, eta: Array, var: float, rng: Generator) -> Array:
        """Return draws of y given y + u = total."""
        if self.noise == 0.0:
            return total
        v = 1.0 / (1.0 / var + 1.0 / self.noise)
        mean = v * (eta / var + total / self.noise)
        return mean + np.sqrt(v) * rng.standard_normal(total.size)

    def cdf(self, at: Array, law: CellLaw, params: Params) -> Array:
        """Return P(x <= at) (n,), not truncated to the bounds."""
        end = self.upper_end(at)

        def below(part: Normal) -> Array:
            eta, var = one_number(part)
            return ndtr((end - eta) / self.sd(var, params))

        return of_latent(law, 1).average(below)

    def log_density(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return log p(x), or log P(x) of integers and intervals, not truncated to the bounds."""
        log_density = self.log_density_at(values_of(x), params)
        intervals = self.between(x) if x.ndim == 2 else None

        def log_p(part: Normal) -> Array:
            eta, var = one_number(part)
            out = log_density(eta, var)
            if intervals is not None:
                rows, low, high = intervals
                eta = eta[rows]
                sd = np.broadcast_to(self.sd(var, params), out.shape)[rows]
                out[rows] = log_interval((low - eta) / sd, (high - eta) / sd)
            return out

        return of_latent(law, 1).log_average(log_p)

    @abstractmethod
    def log_density_at(self, x: Array, params: Params) -> LogDensity:
        """Return log p(x) (n,) as a function of eta and var, of y ~ N(eta, var).

        What x alone decides is found once, for laws of several normals.
        """

    def average(self, n: int, n_draws: int) -> NumberAverage:
        return NumberAverage(self, n, n_draws)

    def expected(self, law: CellLaw, params: Params) -> Array:
        """Return the mean, given that bounds allow the value."""
        mass, first = self._mass_and_first(law, params)
        return first / np.where(mass > 0.0, mass, 1.0)

    def pooled_mean(self, law: CellLaw, params: Params) -> float:
        parts = self._mass_and_first(law, params)
        mass, first = (float(np.sum(part / part.size)) for part in parts)  # sums could overflow
        return first / mass if mass > 0.0 else np.nan

    def _mass_and_first(self, law: CellLaw, params: Params) -> tuple[Array, Array]:
        """Return P(in) and E[x; in]."""
        found = of_latent(law, 1).average(
            lambda part: np.stack(self.moments(*one_number(part), params)[:2], axis=1)
        )
        return found[:, 0].copy(), found[:, 1].copy()

    def masses(self, at: Array, law: CellLaw, params: Params) -> Array:
        """Return the probabilities (n, G) of bins that end at `at` (G - 1,), before truncation."""
        ends = self.upper_end(at)

        def bins(part: Normal) -> Array:
            eta, var = one_number(part)
            sd = self.sd(var, params)
            below = ndtr((ends[None, :] - eta[:, None]) / sd[:, None])
            zero, one = np.zeros((eta.size, 1)), np.ones((eta.size, 1))
            return np.diff(np.concatenate([zero, below, one], axis=1), axis=1)

        return of_latent(law, 1).average(bins)

    def correctable(self, x: Array) -> bool:
        """Return whether no value has most of the probability."""
        return x.size > 0 and np.unique(x, return_counts=True)[1].max() <= TIED * x.size

    def forecast(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return P(bounds allow X, X <= x), P(bounds allow X), P(bounds allow X, X < x), (n, 5).

        Beside them the first and second moments of the latent number, bounds or not.
        """
        ends = self.upper_end(x), self.upper_end(np.nextafter(x, -np.inf))

        def parts(part: Normal) -> Array:
            eta, var = one_number(part)
            sd = self.sd(var, params)
            low, high = (ndtr((bound - eta) / sd) for bound in self.latent_bounds)
            upto, under = (np.clip(ndtr((end - eta) / sd), low, high) - low for end in ends)
            square = eta**2 + np.broadcast_to(sd, eta.shape) ** 2
            return np.column_stack([upto, high - low, under, eta, square])

        return of_latent(law, 1).average(parts)

    def moments(self, eta: Array, var: float | Array, params: Params) -> tuple[Array, Array, Array]:
        """Return P(in), E[x; in], E[x^2; in], in: y in latent_bounds; cut off at 1.8e308.

        A variance from these cancels when mean / sd is large: then use `standard_moments`.
        """
        mass, first, second = self.standard_moments(eta, var, params)
        c, s = self.center, self.scale
        with np.errstate(over="ignore", invalid="ignore"):
            m1 = c * mass + s * first
            m2 = c * c * mass + 2.0 * c * s * first + s * s * second
        # inf - inf can only come from squares that are too large.
        m2 = np.where(np.isnan(m2), np.inf, m2)
        return mass, np.clip(m1, -LARGEST, LARGEST), np.clip(m2, 0.0, LARGEST)

    def standard_moments(
        self, eta: Array, var: float | Array, params: Params
    ) -> tuple[Array, Array, Array]:
        """Return P(in), E[u; in], E[u^2; in], u = (x - center) / scale, in: y in latent_bounds.

        Closed form for affine margins, else quadrature good to 1e-6 of the spread of u and better
        (expectation.py). O(n M), M a few hundred; for one `var`, O(n) beyond some thousand rows.
        """
        eta = np.asarray(eta, dtype=np.float64)
        sd = np.broadcast_to(self.sd(var, params), eta.shape)
        a, b = self.latent_bounds
        mass = expectation.interval_mass(eta, sd, a, b)
        if eta.size == 0:
            return mass, eta.copy(), eta.copy()
        if isinstance(self.margin, Smooth) and isinstance(self.margin.shape, Identity):
            first, second = self._affine_moments(eta, sd)
        else:
            first, second = expectation.tabulate(self._expect, eta, sd).T
        outside = mass < LEAST_MASS
        if outside.any():
            end = self.standard(self.value(np.clip(eta[outside], a, b)))
            first, second = first.copy(), second.copy()
            first[outside] = mass[outside] * end
            second[outside] = mass[outside] * end * end
        return mass, first, second

    def sample(self, law: CellLaw, params: Params, rng: Generator) -> Array:
        """Return one draw of x a row, truncated to the bounds."""
        if self.latent_bounds == (-np.inf, np.inf):
            eta, var = one_number(of_latent(law, 1).pick(rng))
            return self.value(eta + self.sd(var, params) * rng.standard_normal(np.shape(eta)))
        return self._sample_inside(law, params, rng, *self.latent_bounds)

    def sample_between(self, law: CellLaw, params: Params, rng: Generator, ends: Array) -> Array:
        """Return one draw a row of cells that are known to lie between ends (n, 2).

        The law must be one given that they do.
        """
        a, b = self.latent_bounds
        low, high = self.latent_ends(*ends.T)
        x = self._sample_inside(law, params, rng, np.clip(low, a, b), np.clip(high, a, b))
        return np.clip(x, np.maximum(ends[:, 0], self.lower), np.minimum(ends[:, 1], self.upper))

    def _sample_inside(
        self, law: CellLaw, params: Params, rng: Generator, low: float | Array, high: float | Array
    ) -> Array:
        """Return draws of x, y truncated to low .. high."""
        eta, var = one_number(of_latent(law, 1).pick(rng))
        sd = self.sd(var, params)
        t = np.empty(np.shape(eta))
        a, b = (np.ascontiguousarray((end - eta) / sd) for end in (low, high))
        fill_truncated_normal(np.zeros(t.shape), 1.0, a, b, rng, t)
        return self.value(eta + sd * t)

    def standard(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            u = np.asarray(x) / self.scale - self.center / self.scale
        return np.clip(u, -LARGEST_UNITS, LARGEST_UNITS)

    def variance(self, var: float | Array, params: Params) -> Array:
        """Return the variance of what the margin maps to x: that of y, and what the link adds."""
        return np.asarray(var, dtype=np.float64) + self.noise

    def sd(self, var: float | Array, params: Params) -> Array:
        """Return the root of `variance`."""
        return np.sqrt(self.variance(var, params))

    def _affine_moments(self, eta: Array, sd: Array) -> tuple[Array, Array]:
        """Return E[u; in], E[u^2; in] for u = p + q y between the ends of u, in closed form."""
        p, p_plus_q = self.standard(self.margin.to_value(np.array([0.0, 1.0])))
        q = p_plus_q - p
        a, b = self.latent_bounds
        low, high = latent_interval(self.margin, self.lower, self.upper)
        inside = max(a, low), min(b, high)
        mass = expectation.interval_mass(eta, sd, *inside)
        y1, y2 = expectation.linear_moments(eta, sd, *inside)
        first, second = p * mass + q * y1, p * p * mass + 2.0 * p * q * y1 + q * q * y2
        for end, beyond in ((self.lower, (a, low)), (self.upper, (high, b))):
            if beyond[0] < beyond[1]:  # values there are that end
                mass, u = (
                    expectation.interval_mass(eta, sd, *beyond),
                    float(self.standard(np.array(end))),
                )
                first, second = first + mass * u, second + mass * u * u
        return first, second

    def clamped(self) -> Self:
        """Return the link by which values beyond the bounds are at them, not impossible.

        So that values heaped at the ends of a scale, as ratings are, lie inside their intervals.
        """
        return dataclasses.replace(self, latent_bounds=self.margin.latent_range)

    def without_bounds(self) -> Self:
        """Return the link whose values are cut off nowhere but at the ends of the support."""
        free = dataclasses.replace(self, latent_bounds=(-np.inf, np.inf))
        if isinstance(self.margin, Interpolated):
            return free
        lowest, largest = self.margin.to_value(np.array([-np.inf, np.inf]))
        return dataclasses.replace(free, lower=float(lowest), upper=float(largest))

    def _expect(self, eta: Array, sd: Array) -> Array:
        """Return (n, 2): E[u; in], E[u^2; in] by quadrature."""
        return self.expect_above(eta, sd, -np.inf, lambda y: self.standard(self.value(y)))

    def expect_above(
        self, eta: Array, sd: Array, start: float, u: Any, end: float = np.inf
    ) -> Array:
        """Return (n, 2): E[u(y)^k; start < y < end, in] of a function u that follows the margin.

        end : of a smooth margin
        """
        a, b = self.latent_bounds
        a, b = max(a, start), min(b, end)
        sharpness = self.margin.sharpness
        low, high = expectation.window(eta, sd, sharpness)
        if isinstance(self.margin, Interpolated):
            knots = _thin(self.margin.y)
            knots = np.union1d(max(knots[0], a), knots[knots > a])
            nodes = expectation.segment_nodes(knots, u(knots), float(sd.min()))
            base = float(u(knots[0]))
            below = expectation.interval_mass(eta, sd, a, np.inf)[:, None] * [base, base * base]
            return below + expectation.integrate_steps(nodes, eta, sd)
        low, high = max(low, a), min(high, b)
        if not low < high:
            return np.zeros((eta.size, 2))
        nodes = expectation.smooth_nodes(u, low, high, float(sd.min()), sharpness)
        return expectation.integrate_density(nodes, eta, sd, sharpness)


def values_of(x: Array) -> Array:
    """Return the cells (n,) that are numbers, NaN where they are missing or an interval."""
    return x if x.ndim == 1 else np.where(x[:, 0] == x[:, 1], x[:, 0], np.nan)


def middle(low: Array, high: Array) -> Array:
    """Return a y inside each interval, half a unit from the finite end of open ones."""
    both = (low == -np.inf) & (high == np.inf)  # >0 in a positive column says nothing
    low, high = np.where(both, -1.0, low), np.where(both, 1.0, high)
    low = np.where(low == -np.inf, high - 1.0, low)
    high = np.where(high == np.inf, low + 1.0, high)
    return 0.5 * low + 0.5 * high


def _thin(y: Array) -> Array:
    """Return at most about MOST_KNOTS of increasing knots, even on their own scale, ends kept."""
    if y.size <= MOST_KNOTS:
        return y
    at = np.searchsorted(y, np.linspace(y[0], y[-1], MOST_KNOTS))
    return y[np.unique(np.clip(at, 0, y.size - 1))]


def _plain(value: Array) -> Any:
    """Return one number, or a pair of them, as Python's own."""
    return float(value) if value.ndim == 0 else tuple(float(part) for part in value)


def log_normal(y: Array, eta: Array, sd: Array) -> Array:
    """Return log N(y; eta, sd^2), -inf where y is infinite or too far."""
    with np.errstate(over="ignore"):
        t = (y - eta) / sd
        return -0.5 * t * t - np.log(sd) - LOG_SQRT_2PI


def standard_units(x: Array) -> tuple[float, float]:
    """Return center and scale of a sample; a constant one has its magnitude, or 1, as scale."""
    center, sd = mean_sd(x)
    return center, sd or abs(center) or 1.0


def require_finite(column: Column, x: Array, y: Array, rows: Array) -> None:
    """Raise if an observed value has no finite latent value."""
    bad = np.flatnonzero(~np.isfinite(y))
    if bad.size:
        raise TableError(
            "the value cannot be placed on the model's scale",
            column=column.name,
            row=int(rows[bad[0]]) + 1,
            value=float(x[bad[0]]),
            hint=f"Rescale '{column.name}', or try `transform: rank`.",
        )


def latent_interval(margin: Margin, lower: float, upper: float) -> tuple[float, float]:
    """Return the y that an interval of x allows; everything when it has no width."""
    a, b = (float(v) for v in margin.to_latent(np.array([lower, upper])))
    if isinstance(margin, Interpolated):  # the outermost values may have a share of their own
        a = a if lower > margin.x[0] * margin.unit else -np.inf
        b = b if upper < margin.x[-1] * margin.unit else np.inf
    low, high = margin.latent_range
    a, b = max(a, low), min(b, high)
    # No normal gets that far, and its square would overflow.
    a = a if a > -FARTHEST else -np.inf
    b = b if b < FARTHEST else np.inf
    return (a, b) if a < b else (-np.inf, np.inf)
