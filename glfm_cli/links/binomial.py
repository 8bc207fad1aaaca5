"""Binomial cells: successes among known trials; one is y > 0, y ~ N(eta, 1)  [BSVD, section 5.4].

A cell stands for as many pseudo-observations as it has trials; a model sees their mean, with the
number of trials as its weight. The mean of many is drawn at once (`sums`). A cell's x stands for
successes and trials both (encoding/trials.py). Forecasts are of the rate of successes: how many
trials an unseen cell has is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.special import betainc, betaln, log_ndtr, ndtr, ndtri, xlogy

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.encoding import is_trials, successes_of, trials_of
from glfm_cli.links.averages import RateAverage
from glfm_cli.links.law import CellLaw, Normal, of_latent, one_number
from glfm_cli.links.observation import Params
from glfm_cli.links.plain import UncalibratedLink
from glfm_cli.links.sums import draw_sums

CHUNK = 1 << 20  # trials drawn at a time
MANY = 400  # trials of a cell from which their sum is drawn at once


@dataclass(frozen=True, eq=False)
class BinomialLink(UncalibratedLink):
    """One latent column of unit noise, P(hit) = Phi(eta)."""

    n_latent = 1
    unit_noise = True
    known = False
    discrete = False
    integral = False
    ordered = True

    def check_cells(self, x: Array) -> None:
        """Raise ValueError unless all are successes among as many trials or more."""
        if not is_trials(x):
            raise ValueError("a value is not successes among trials")

    def typical(self) -> Array:
        """Return nothing: rates have a scale of their own."""
        return np.empty(0)

    def weights(self, x: Array) -> Array:
        """Return the trials (n,) of cells; 1 where x is NaN."""
        return np.where(np.isnan(x), 1.0, trials_of(np.nan_to_num(x)))

    def start(self, x: Array, rng: Generator) -> tuple[Params, Array]:
        """Return no parameters, and y at the share of successes, drawn in a little from 0 and 1."""
        y = np.zeros((x.size, 1))
        seen = ~np.isnan(x)
        y[seen, 0] = ndtri((successes_of(x[seen]) + 0.5) / (trials_of(x[seen]) + 1.0))
        return {}, y

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw the mean of the trials' pseudo-observations, exactly.

        Each of them is drawn, about 60 ns each; from `MANY` trials on their sum is drawn instead,
        some 27 microseconds a cell.
        """
        rows = np.flatnonzero(~np.isnan(x))
        many = rows[trials_of(x[rows]) >= MANY]
        if many.size:
            n, sd = trials_of(x[many]), float(np.sqrt(var))
            sums, failed = draw_sums(successes_of(x[many]), n, eta[many] / sd, rng)
            done = many[~failed]
            y[done, 0] = sd * (sums / n)[~failed]
            rows = np.setdiff1d(rows, done, assume_unique=True)
        self._augment_singly(x, eta, var, rows, rng, y)

    def _augment_singly(
        self, x: Array, eta: Array, var: float, rows: Array, rng: Generator, y: Array
    ) -> None:
        """Draw the pseudo-observation of every trial of some rows, and their means."""
        successes, trials = successes_of(x[rows]), trials_of(x[rows]).astype(np.int64)
        ends = np.cumsum(trials)
        cuts = np.searchsorted(ends, np.arange(CHUNK, int(ends[-1]) if ends.size else 0, CHUNK))
        for part in np.split(np.arange(rows.size), np.unique(cuts)):
            if part.size == 0:
                continue
            n = trials[part]
            of = np.repeat(np.arange(part.size), n)
            number = np.arange(of.size) - np.repeat(np.cumsum(n) - n, n)
            hit = number < successes[part][of]
            drawn = np.empty(of.size)
            lower, upper = np.where(hit, 0.0, -np.inf), np.where(hit, np.inf, 0.0)
            fill_truncated_normal(
                eta[rows[part]][of], float(np.sqrt(var)), lower, upper, rng, drawn
            )
            y[rows[part], 0] = np.bincount(of, weights=drawn, minlength=part.size) / n

    def bound(
        self, x: Array, params: Params, y: Array, rng: Generator, lower: Array, upper: Array
    ) -> None:
        """Hold y as it is: a mean of several is no single interval."""
        lower[:] = upper[:] = y

    def log_density(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return log P(successes | trials)."""
        h, n = successes_of(x), trials_of(x)
        log_ways = -np.log(n + 1.0) - betaln(n - h + 1.0, h + 1.0)

        def log_p(part: Normal) -> Array:
            eta, var = one_number(part)
            t = eta / np.sqrt(var)
            return log_ways + h * log_ndtr(t) + (n - h) * log_ndtr(-t)

        return of_latent(law, 1).log_average(log_p)

    def expected(self, law: CellLaw, params: Params) -> Array:
        """Return the probability of a hit (n,)."""

        def rate(part: Normal) -> Array:
            eta, var = one_number(part)
            return ndtr(eta / np.sqrt(var))

        return of_latent(law, 1).average(rate)

    def masses(self, at: Array, law: CellLaw, params: Params) -> Array:
        """Return which (n, G) of the bins of rates that end at `at` (G - 1,) holds the rate."""
        bins = np.searchsorted(at, self.expected(law, params), side="left")
        return np.eye(at.size + 1)[bins]

    def forecast(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return P(successes <= those of x | trials) and 1, (n, 2)."""
        h, n = successes_of(x), trials_of(x)
        above = betainc(h + 1.0, np.maximum(n - h, 0.5), self.expected(law, params))
        below = 1.0 - np.where(h < n, above, 0.0)
        return np.column_stack([below, np.ones(x.size)])

    def pooled_mean(self, law: CellLaw, params: Params) -> float:
        return float(self.expected(law, params).mean())

    def entropy(self, mean: Array, probabilities: Array | None) -> Array:
        """Return the entropies (n,) of one trial."""
        p = np.column_stack([mean, 1.0 - mean])
        return np.asarray(-np.sum(xlogy(p, p), axis=1))

    def sample(self, law: CellLaw, params: Params, rng: Generator) -> Array:
        """Return rates, which a draw fixes."""
        return self.expected(law, params)

    def average(self, n: int, n_draws: int) -> RateAverage:
        return RateAverage(self.expected, n)
