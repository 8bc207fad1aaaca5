"""Binomial cells: hits among known trials, each a hit if y > 0, y ~ N(eta, 1)  [BSVD, section 5.4].

A cell stands for as many pseudo-observations as it has trials; a model sees their mean, with the
number of trials as its weight. The mean of many is drawn at once (`sums`). A cell's x is the number
of a (hits, trials) pair, so that whoever holds an x can look both up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import betaln, log_ndtr, ndtr, ndtri

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.links.sums import draw_sums

if TYPE_CHECKING:
    from glfm_cli.links.link import Params


CHUNK = 1 << 20  # trials drawn at a time
MANY = 400  # trials of a cell from which their sum is drawn at once


@dataclass(frozen=True, eq=False)
class BinomialLink:
    """One latent column of unit noise, P(hit) = Phi(eta).

    hits, trials : (R,) float64, the distinct pairs; trials >= 1
    """

    name: str
    successes: Array
    trials: Array

    n_latent = 1
    unit_noise = True
    known = False
    discrete = False
    spread = 1.0

    @classmethod
    def calibrate(cls, name: str, successes: Array, trials: Array) -> tuple[Self, Array]:
        """Return the link of cells with these hits among these trials, and their x (n,)."""
        pairs, code = np.unique(np.stack([successes, trials]), axis=1, return_inverse=True)
        return cls(name, pairs[0].copy(), pairs[1].copy()), code.ravel().astype(np.float64)

    def weight(self, x: Array) -> Array:
        """Return the trials (n,) of cells; 1 where x is NaN."""
        return np.where(np.isnan(x), 1.0, self.trials[np.nan_to_num(x).astype(np.intp)])

    def start(self, x: Array, rng: np.random.Generator) -> tuple[Params, Array]:
        """Return no parameters, and y at the share of hits, drawn in a little from 0 and 1."""
        y = np.zeros((x.size, 1))
        seen = ~np.isnan(x)
        code = x[seen].astype(np.intp)
        y[seen, 0] = ndtri((self.successes[code] + 0.5) / (self.trials[code] + 1.0))
        return {}, y

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: np.random.Generator, adapt: bool
    ) -> None:
        """Leave the parameters alone: there are none."""

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: np.random.Generator, y: Array
    ) -> None:
        """Draw the mean of the trials' pseudo-observations, exactly.

        Each of them is drawn, about 60 ns each; from `MANY` trials on their sum is drawn instead,
        some 27 microseconds a cell.
        """
        rows = np.flatnonzero(~np.isnan(x))
        many = rows[self.trials[x[rows].astype(np.intp)] >= MANY]
        if many.size:
            code, sd = x[many].astype(np.intp), float(np.sqrt(var))
            n = self.trials[code]
            sums, failed = draw_sums(self.successes[code], n, eta[many] / sd, rng)
            done = many[~failed]
            y[done, 0] = sd * (sums / n)[~failed]
            rows = np.setdiff1d(rows, done, assume_unique=True)
        self._augment_singly(x, eta, var, rows, rng, y)

    def _augment_singly(
        self, x: Array, eta: Array, var: float, rows: Array, rng: np.random.Generator, y: Array
    ) -> None:
        """Draw the pseudo-observation of every trial of some rows, and their means."""
        code = x[rows].astype(np.intp)
        trials = self.trials[code].astype(np.int64)
        ends = np.cumsum(trials)
        cuts = np.searchsorted(ends, np.arange(CHUNK, int(ends[-1]) if ends.size else 0, CHUNK))
        for part in np.split(np.arange(rows.size), np.unique(cuts)):
            if part.size == 0:
                continue
            n = trials[part]
            of = np.repeat(np.arange(part.size), n)
            number = np.arange(of.size) - np.repeat(np.cumsum(n) - n, n)
            hit = number < self.successes[code[part]][of]
            drawn = np.empty(of.size)
            lower, upper = np.where(hit, 0.0, -np.inf), np.where(hit, np.inf, 0.0)
            fill_truncated_normal(
                eta[rows[part]][of], float(np.sqrt(var)), lower, upper, rng, drawn
            )
            y[rows[part], 0] = np.bincount(of, weights=drawn, minlength=part.size) / n

    def bound(
        self,
        x: Array,
        params: Params,
        y: Array,
        rng: np.random.Generator,
        lower: Array,
        upper: Array,
    ) -> None:
        """Hold y as it is: a mean of several is no single interval."""
        lower[:] = upper[:] = y

    def scale_group(self, params: Params) -> tuple[float, float]:
        """Return nothing that shares the scale of y."""
        return 0.0, 0.0

    def rescale(self, params: Params, factor: float) -> None:
        """Do nothing: there are no parameters."""

    def log_density(self, x: Array, eta: Array, var: float | Array, params: Params) -> Array:
        """Return log P(hits | trials)."""
        code = x.astype(np.intp)
        h, n = self.successes[code], self.trials[code]
        t = eta / np.sqrt(var)
        ways = -np.log(n + 1.0) - betaln(n - h + 1.0, h + 1.0)
        return ways + h * log_ndtr(t) + (n - h) * log_ndtr(-t)

    def rate(self, eta: Array, var: float | Array) -> Array:
        """Return the probability of a hit."""
        return ndtr(eta / np.sqrt(var))

    def moments(self, eta: Array, var: float | Array, params: Params) -> tuple[Array, Array, Array]:
        """Return 1, and the rate and its square, as `NumericLink` does for values."""
        rate = self.rate(eta, var)
        return np.ones(np.shape(rate)), rate, rate * rate

    def sample(
        self, eta: Array, var: float | Array, params: Params, rng: np.random.Generator
    ) -> Array:
        """Return rates: how many trials an unseen cell has is not known."""
        return self.rate(eta, var)
