"""Binomial columns of tables: successes h among n known trials, at rates that vary between rows.

    h ~ Binomial(n, p),   p = Phi(z),   z = m + w y,   y ~ N(eta, noise)

Rows alike in all that the model knows have rates that differ, as the noise says: counts vary more
than those of one rate would. No cell has a weight, so that every model of Gaussian cells can see
it. y given h, n and eta has a log-concave density and is drawn exactly (tangents.py). A cell's x
stands for h and n both (encoding/trials.py). Forecasts are of rates, and of successes where the
trials of a missing cell are known: it then lies between 0 and n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import Generator
from scipy.special import betainc, betaln, erfcx, log_ndtr, ndtr, ndtri, owens_t

from glfm_cli.arrays import Array
from glfm_cli.encoding import is_trials, successes_of, trials_of
from glfm_cli.links.averages import NumberAverage
from glfm_cli.links.law import CellLaw, Normal, of_latent, one_number
from glfm_cli.links.margins import Smooth
from glfm_cli.links.numeric import LogDensity, NumericLink
from glfm_cli.links.observation import Params, Summary
from glfm_cli.links.shapes import Probit
from glfm_cli.links.tangents import draw_log_concave

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig

LEAST_SPREAD = 0.1  # of z that rates may have, beside that of their trials
NEWTON_STEPS = 50
HALVINGS = 6
CLOSE = 1e-9  # of the mode, in standard deviations
PANELS = 7  # of 8 nodes each, to either side of a mode, on 0 to 1
_AT, _WEIGHTS = np.polynomial.legendre.leggauss(8)
NODES = ((np.arange(PANELS)[:, None] + 0.5 * (1.0 + _AT)) / PANELS).ravel()
WEIGHTS = np.tile(_WEIGHTS, PANELS) / (2 * PANELS)
DROP = 30.0  # of a log density, beyond which nothing is left to integrate
GRID = (np.arange(100) + 0.5) / 100  # quantiles of a rate over which a law of successes averages
CHUNK = 4096  # cells that are looked at together
_ROOT2 = np.sqrt(2.0)


@dataclass(frozen=True, eq=False)
class ProbitNormalLink(NumericLink):
    """One latent column with noise, in units in which y has mean about 0 and deviation about 1."""

    known = False

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        """Return the link with the mean and spread of z that the observed cells show."""
        x = encoded.cells[encoded.observed]
        h, n = successes_of(x), trials_of(x)
        p = (h + 0.5) / (n + 1.0)
        z = ndtri(p)
        # The variance of z by the trials alone [delta method].
        own = p * (1.0 - p) / (n + 1.0) * 2.0 * np.pi * np.exp(z * z)
        m = float(np.average(z, weights=1.0 / (0.1 + own)))
        var = float(np.average((z - m) ** 2 - own, weights=1.0 / (0.1 + own) ** 2))
        return cls(
            name=encoded.column.name,
            margin=Smooth(Probit(), m, float(np.sqrt(max(var, LEAST_SPREAD**2)))),
            lower=0.0,
            upper=1.0,
            latent_bounds=(-np.inf, np.inf),
            center=float(h.sum() / n.sum()),
            scale=float(np.std(p)) or 0.1,
        )

    def check_cells(self, x: Array) -> None:
        """Raise ValueError unless all are successes among as many trials or more."""
        if not is_trials(x):
            raise ValueError("a value is not successes among trials")

    def correctable(self, x: Array) -> bool:
        return False

    def start_values(self, x: Array) -> Array:
        """Return y at the share of successes, drawn in a little from 0 and 1."""
        p = (successes_of(x) + 0.5) / (trials_of(x) + 1.0)
        return np.nan_to_num(self.margin.to_latent(p))

    def bound_values(self, x: Array, y: Array, lower: Array, upper: Array) -> None:
        """Hold y as it is: successes leave no interval of it."""
        lower[:] = upper[:] = y

    def augment_values(self, x: Array, eta: Array, var: float, rng: Generator, y: Array) -> None:
        """Draw y given h, n and eta; a few microseconds a cell.

        Where rounding leaves no envelope of the density, y stays as it is.
        """
        seen = np.flatnonzero(~np.isnan(x))
        m, w = self._place
        for start in range(0, seen.size, CHUNK):
            rows = seen[start : start + CHUNK]
            density = PosteriorDensity(x[rows], m + w * eta[rows], w * w * var)
            z, failed = draw_log_concave(density, rng)
            y[rows[~failed], 0] = (z[~failed] - m) / w

    def standard_moments(
        self, eta: Array, var: float | Array, params: Params
    ) -> tuple[Array, Array, Array]:
        """Return 1 and two moments of rates in standard units, in closed form.

        E[Phi(z)] = Phi(a), E[Phi(z)^2] = Phi(a) - 2 T(a, 1 / sqrt(1 + 2 s^2)), z ~ N(., s^2),
        a the mean of z over sqrt(1 + s^2), T that of Owen [1956].
        """
        m, w = self._place
        square = w * w * np.broadcast_to(np.asarray(var, dtype=np.float64), np.shape(eta))
        a = (m + w * np.asarray(eta)) / np.sqrt(1.0 + square)
        p = ndtr(a)
        both = p - 2.0 * owens_t(a, 1.0 / np.sqrt(1.0 + 2.0 * square))
        c, s = self.center, self.scale
        return np.ones_like(p), (p - c) / s, (both - 2.0 * c * p + c * c) / (s * s)

    def log_density_at(self, x: Array, params: Params) -> LogDensity:
        """Return log P(h | n), by quadrature to both sides of the mode of z's density."""
        m, w = self._place
        h, n = successes_of(x), trials_of(x)
        log_ways: Array = -np.log(n + 1.0) - betaln(n - h + 1.0, h + 1.0)

        def log_p(eta: Array, var: Array) -> Array:
            mean, variance = m + w * eta, np.broadcast_to(w * w * var, eta.shape)
            out = np.empty(x.size)
            for start in range(0, x.size, CHUNK):
                part = slice(start, start + CHUNK)
                out[part] = PosteriorDensity(x[part], mean[part], variance[part]).log_total()
            return out + log_ways - 0.5 * np.log(2.0 * np.pi * variance)

        return log_p

    def forecast(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return P(successes <= those of x | trials) and 1, (n, 2)."""

        def below(part: Normal) -> Array:
            eta, var = one_number(part)
            rates = self.value(eta[:, None] + np.sqrt(np.reshape(var, (-1, 1))) * ndtri(GRID))
            return at_most(successes_of(x)[:, None], trials_of(x)[:, None], rates).mean(axis=1)

        return np.column_stack([of_latent(law, 1).average(below), np.ones(x.size)])

    def sample_between(self, law: CellLaw, params: Params, rng: Generator, ends: Array) -> Array:
        """Return one draw a row of the successes among `ends[:, 1]` trials."""
        successes: Array = rng.binomial(ends[:, 1].astype(np.int64), self.sample(law, params, rng))
        return successes.astype(np.float64)

    def summary_between(
        self, average: NumberAverage, ends: Array, at: tuple[float, ...]
    ) -> Summary:
        """Return what an average of rates says of the successes among `ends[:, 1]` trials.

        Quantiles are those of binomial laws, averaged over quantiles of the rate.
        """
        n, (p, sd) = ends[:, 1], average.moments()
        spread = np.sqrt(n * p * (1.0 - p) + n * (n - 1.0) * sd**2)
        quantiles = np.full((n.size, len(at)), np.nan)
        if average.kept and at:
            rates = average.quantiles(np.broadcast_to(GRID, (n.size, GRID.size)))
            low, high = np.full(quantiles.shape, -1.0), np.tile(n[:, None], len(at))
            while np.any(high - low > 1.0):
                middle = np.floor(0.5 * (low + high))
                below = at_most(middle[:, :, None], n[:, None, None], rates[:, None, :])
                enough = below.mean(axis=2) >= np.array(at)
                high, low = np.where(enough, middle, high), np.where(enough, low, middle)
            quantiles = high
        return Summary(n * p, spread, quantiles, None)

    @property
    def _place(self) -> tuple[float, float]:
        """Return m and w."""
        assert isinstance(self.margin, Smooth)
        return self.margin.m, self.margin.w


def at_most(h: Array, n: Array, rates: Array) -> Array:
    """Return P(successes <= h) of n trials at some rates; h from -1 to n."""
    k = np.clip(h, 0.0, np.maximum(n - 1.0, 0.0))
    inside = betainc(np.maximum(n - k, 0.5), k + 1.0, 1.0 - rates)
    return np.where(h < 0.0, 0.0, np.where(h >= n, 1.0, inside))


class PosteriorDensity:
    """The densities of z ~ N(prior, prior_var) given successes among trials x (n,), up to a factor.

    mean, var : (n,) the modes, and variances by the curvature there
    """

    def __init__(self, x: Array, prior: Array, prior_var: Array | float) -> None:
        prior_var = np.broadcast_to(np.asarray(prior_var, dtype=np.float64), prior.shape)
        h, n = successes_of(x), trials_of(x)
        self.given = np.stack([h, n - h, prior, prior_var])
        self.mean = _mode(self.given, ndtri((h + 0.5) / (n + 1.0)))
        self.var = 1.0 / _slopes(self.given, self.mean)[1]

    def log_total(self) -> Array:
        """Return the logs (n,) of their integrals."""
        top, parts = _log_p(self.given, self.mean), []
        for side in (-1.0, 1.0):
            # Where log p has fallen by DROP: no nearer than its curvature there, no farther than
            # that of the prior, says.
            near, far = (np.sqrt(2.0 * DROP * v) for v in (self.var, self.given[3]))
            for _ in range(HALVINGS):
                middle = np.sqrt(near * far)
                inside = top - _log_p(self.given, self.mean + side * middle) < DROP
                near, far = np.where(inside, middle, near), np.where(inside, far, middle)
            at = self.mean[:, None] + side * far[:, None] * NODES
            p = np.exp(_log_p(self.given[:, :, None], at) - top[:, None])
            parts.append(far * (p @ WEIGHTS))
        return top + np.log(parts[0] + parts[1])

    def log(self, which: Array, at: Array) -> tuple[Array, Array]:
        """Return log p and its derivative of some of them at points."""
        given = self.given[:, which]
        return _log_p(given, at), _slopes(given, at)[0]


def _log_p(given: Array, z: Array) -> Array:
    """Return h log Phi(z) + (n - h) log Phi(-z) - (z - prior)^2 / (2 prior_var)."""
    successes, failures, prior, var = given
    return successes * log_ndtr(z) + failures * log_ndtr(-z) - 0.5 * (z - prior) ** 2 / var


def _slopes(given: Array, z: Array) -> tuple[Array, Array]:
    """Return the first derivative of `_log_p`, and minus the second."""
    successes, failures, prior, var = given
    r, q = (np.sqrt(2.0 / np.pi) / erfcx(-sign * z / _ROOT2) for sign in (1.0, -1.0))
    first = successes * r - failures * q - (z - prior) / var
    return first, successes * r * (r + z) + failures * q * (q - z) + 1.0 / var


def _mode(given: Array, z: Array) -> Array:
    """Return the modes (n,), from z by Newton's steps between ends that close in on them."""
    low, high = np.full(z.size, -1e300), np.full(z.size, 1e300)
    for _ in range(NEWTON_STEPS):
        first, second = _slopes(given, z)
        low, high = np.where(first > 0.0, z, low), np.where(first < 0.0, z, high)
        there = z + first / second
        # A step that leads out of the ends is one half-way between them, or to the prior's mean.
        middle = np.where(high - low < 1e300, 0.5 * (low + high), 0.5 * (z + given[2]))
        there = np.where((there > low) & (there < high), there, middle)
        close = np.all(np.abs(there - z) * np.sqrt(second) < CLOSE)
        z = there
        if close:
            break
    return z
