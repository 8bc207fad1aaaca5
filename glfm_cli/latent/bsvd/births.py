"""Births and deaths of whole components, by annealing.

A component that is missing comes hardly ever by a draw from the prior, and one that fits nothing
but noise is slow to go, for its V fits that noise too well to be given up at once. So a new one is
drawn from a law q of what the residuals E show, and brought in through T laws: at temperature b

    pi_b(V, s) ~ q(V, s)^(1-b) [p(V) p(s)]^b prod_i Z_i,
    Z_i = E_U exp(b sum_j w (s U V_j E_ij - s^2 U^2 V_j^2 / 2))

with U integrated out. Drawn from q, b = 0, it is moved by Gibbs steps as b grows, and accepted at
b = 1 with the odds

    prod_t pi_{b_t}(x_{t-1}) / pi_{b_{t-1}}(x_{t-1})  x  prior odds

A death takes the same way back, q of the residuals without the component [Karagiannis and Andrieu
2013]. Coefficients of covariates are moved with it, given their precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.bsvd.config import SMALLEST
from glfm_cli.latent.bsvd.moves import (
    BsvdState,
    positive_normal,
    prior_log_odds,
    shift,
)
from glfm_cli.latent.bsvd.residuals import Residuals, leading_vector

FEWEST_STEPS, MOST_STEPS = 16, 128  # of temperature
UNITS = 100  # rows and columns that a step is for
A_SWEEP = 32  # steps a sweep at most, on average: a larger matrix has fewer tries
FITS = 8  # turns of U and V for q, which begin with
ALONG = 0.5  # of V, of length 1, along a singular vector


def move_rank(state: BsvdState, E: Array, rng: Generator, each: Each) -> None:
    """Try to bring in some component or to take it away; `E` (m,), the residuals, follow.

    In some sweeps only, drawn whatever the state is, where a try takes more than `A_SWEEP` steps.
    """
    K = state.s.size
    if K > 1 and n_steps(state) * rng.random() < A_SWEEP:  # a single component is always on
        k = int(rng.integers(K))
        (take_away if state.on[k] else bring_in)(state, E, k, rng, each)


def n_steps(state: BsvdState) -> int:
    """Return how many temperatures a component takes from 0 to 1."""
    return int(np.clip(sum(state.matrix.shape) // UNITS, FEWEST_STEPS, MOST_STEPS))


def bring_in(state: BsvdState, E: Array, k: int, rng: Generator, each: Each) -> bool:
    """Try to bring in component k, and return whether it came."""
    path = _Path.begun(state, E, k, rng, each)
    if -rng.standard_exponential() >= path.up() + prior_log_odds(state.config, state.s.size):
        return False
    path.keep(state)
    state.on[k] = True
    shift(state.matrix, E, -state.s[k] * state.U[:, k], path.V, each)
    return True


def take_away(state: BsvdState, E: Array, k: int, rng: Generator, each: Each) -> None:
    """Try to take component k away."""
    U, V = state.s[k] * state.U[:, k], np.ascontiguousarray(state.V[:, k])
    shift(state.matrix, E, U, V, each)
    path = _Path.of(state, E, k, rng, each)
    if -rng.standard_exponential() < -path.down() - prior_log_odds(state.config, state.s.size):
        state.on[k] = False
    else:
        shift(state.matrix, E, -U, V, each)


@dataclass(frozen=True)
class ResidualLaw:
    """q: independent normal V of these means and variances (J,), normal s so far above 0 that it is
    not below.
    """

    V: Array
    variance: Array
    s: float
    sd_of_s: float

    @classmethod
    def of(cls, seen: Residuals, alpha: float, rng: Generator) -> ResidualLaw:
        """Return the law of the component that residuals show; covariates have no say.

        V, and U alike, in turn, with means and variances of the other side [Lesieur, Krzakala and
        Zdeborova 2017]:  V_j = s sum_i w E U_i / (J + s^2 sum_i w (U_i^2 + var U_i)),
        var V_j = 1 / (J + s^2 sum_i w U_i^2), and s such that both have length 1.
        """
        (n_rows, n_columns), sums = seen.shape, seen.sums

        def told(mean: Array, variance: Array, by_column: bool) -> tuple[Array, Array]:
            """Return means and variances of one side, given those of the other."""
            along, square = sums(s * mean, by_column=by_column)
            precision = along.size + square
            _, beside = sums(s * np.sqrt(variance), by_column=by_column)
            return along / (precision + beside), 1.0 / precision

        of_rows, of_columns = (
            sums(np.ones(n), by_column=by_column)[1] / n
            for n, by_column in ((n_columns, False), (n_rows, True))
        )
        # Below s^2 noise hides a component [Baik, Ben Arous and Peche 2005]; twice that.
        hidden = np.sqrt(n_rows * n_columns) / max(float(of_rows.mean()), SMALLEST)
        s = np.sqrt(min(2.0 * hidden, 1.0 / alpha))
        a, b = ((n.size + s * s * n) ** -0.5 for n in (of_rows, of_columns))
        V = b * leading_vector(
            lambda x: a * sums(b * x)[0],
            lambda x: b * sums(a * x, by_column=True)[0],
            rng.standard_normal(n_rows),
        )
        V *= ALONG / np.linalg.norm(V)
        of_V = np.full(n_columns, (1.0 - ALONG**2) / n_columns)
        for _ in range(FITS):
            U, of_U = told(V, of_V, by_column=False)
            V, of_V = told(U, of_U, by_column=True)
            square = float(np.sum(V * V + of_V))
            V, of_V = V / np.sqrt(square), of_V / square
            s *= np.sqrt(square * np.sum(U * U + of_U))
        # Where U and V have length 1, x has the size of s.
        return cls(V, of_V, float(s), float(s) / (10.0 + 3.0 * np.sqrt(n_columns)))

    def log_density(self, V: Array, s: float) -> float:
        """Return that of V and s."""
        squares = (V - self.V) ** 2 / self.variance + np.log(2.0 * np.pi * self.variance)
        of_s = ((s - self.s) / self.sd_of_s) ** 2 + np.log(2.0 * np.pi * self.sd_of_s**2)
        return -0.5 * float(np.sum(squares) + of_s)


@dataclass
class _Path:
    """A component on its way, without the others: V, s, and what covariates say of U and V."""

    state: BsvdState
    seen: Residuals
    V: Array
    s: float
    b_rows: Array
    b_columns: Array
    k: int
    first: ResidualLaw
    rng: Generator
    sums: tuple[Array, Array] = field(init=False)  # R and Q of the rows, for V

    def __post_init__(self) -> None:
        self._sum()

    @classmethod
    def of(cls, state: BsvdState, E: Array, k: int, rng: Generator, each: Each) -> _Path:
        """Return component k as it is, `E` the residuals without it."""
        sides = state.of_rows, state.of_columns
        b_rows, b_columns = (side.factors[:, k].copy() for side in sides)
        V = np.ascontiguousarray(state.V[:, k])
        seen = Residuals.of(state, E, each)
        q, s = ResidualLaw.of(seen, state.alpha, rng), float(state.s[k])
        return cls(state, seen, V, s, b_rows, b_columns, k, q, rng)

    @classmethod
    def begun(cls, state: BsvdState, E: Array, k: int, rng: Generator, each: Each) -> _Path:
        """Return a component where b is 0."""
        seen = Residuals.of(state, E, each)
        q = ResidualLaw.of(seen, state.alpha, rng)
        b_rows, b_columns = (side.renewed(rng) for side in (state.of_rows, state.of_columns))
        V = q.V + rng.standard_normal(q.V.size) * np.sqrt(q.variance)
        s = positive_normal(q.s, q.sd_of_s, rng)
        return cls(state, seen, V, s, b_rows, b_columns, k, q, rng)

    @property
    def temperatures(self) -> Array:
        """Return b, from 0 to 1; work lost on the way is as the numbers moved over their steps."""
        n = n_steps(self.state)
        return np.arange(n + 1) / n

    def up(self) -> float:
        """Bring it in, and return the log weight."""
        log_weight = 0.0
        for low, high in pairwise(self.temperatures):
            log_weight += self._log_ratio(low, high)
            if high < 1.0:
                self._step(high, forward=True)
        return log_weight

    def down(self) -> float:
        """Take it away, and return the log weight of the way back."""
        log_weight = 0.0
        for high, low in pairwise(self.temperatures[::-1]):
            log_weight += self._log_ratio(low, high)
            if low > 0.0:
                self._step(low, forward=False)
        return log_weight

    def keep(self, state: BsvdState) -> None:
        """Write it into the state, U drawn given the rest."""
        k = self.k
        state.U[:, k], state.V[:, k], state.s[k] = self._draw_U(1.0), self.V, self.s
        state.of_rows.factors[:, k], state.of_columns.factors[:, k] = self.b_rows, self.b_columns

    def _sum(self) -> None:
        self.sums = self.seen.sums(self.V)

    def _linear_and_spread(self, b: float) -> tuple[Array, Array]:
        R, Q = self.sums
        return b * self.s * R + R.size * self._mean, R.size + b * self.s**2 * Q

    @property
    def _mean(self) -> Array | float:
        """The prior mean of U (I,)."""
        means = self.state.of_rows
        return means.X @ self.b_rows if means.p else 0.0

    def _log_ratio(self, low: float, high: float) -> float:
        """Return the log density of V and s at one temperature less that at another."""
        n, alpha = self.V.size, self.state.alpha
        own = self.V - self.state.of_columns.X @ self.b_columns
        prior = n * (np.log(n / (2.0 * np.pi)) - float(own @ own))
        prior += np.log(2.0 * alpha / np.pi) - alpha * self.s**2
        gain = (high - low) * (0.5 * float(prior) - self.first.log_density(self.V, self.s))
        return gain + self._log_evidence(low, high)

    def _log_evidence(self, low: float, high: float) -> float:
        """Return the sum of log Z_i at one temperature less that at another."""
        (before, loose), (linear, spread) = map(self._linear_and_spread, (low, high))
        squares = linear**2 / spread - before**2 / loose
        return 0.5 * float(np.sum(squares - np.log(spread / loose)))

    def _draw_U(self, b: float) -> Array:
        linear, spread = self._linear_and_spread(b)
        return linear / spread + self.rng.standard_normal(spread.size) / np.sqrt(spread)

    def _step(self, b: float, *, forward: bool) -> None:
        """Move V, s and coefficients given U, U drawn first: one way, or that way reversed."""
        state, rng, q = self.state, self.rng, self.first
        U = self._draw_U(b)
        R, Q = self.seen.sums(U, by_column=True)
        n = R.size

        def draw_V() -> None:
            before = (1.0 - b) / q.variance
            spread = before + b * (n + self.s**2 * Q)
            mean = state.of_columns.X @ self.b_columns
            linear = before * q.V + b * (self.s * R + n * mean)
            self.V = linear / spread + rng.standard_normal(n) / np.sqrt(spread)

        def draw_s() -> None:
            before = (1.0 - b) / q.sd_of_s**2
            spread = before + b * (state.alpha + float(self.V @ (self.V * Q)))
            linear = before * q.s + b * float(self.V @ R)
            self.s = positive_normal(linear / spread, spread**-0.5, rng)

        def draw_b() -> None:
            self.b_rows = state.of_rows.drawn_of(U, rng)

        def draw_c() -> None:
            self.b_columns = state.of_columns.drawn_of(self.V, rng, b)

        moves = (draw_V, draw_s, draw_b, draw_c)
        for move in moves if forward else moves[::-1]:
            move()
        self._sum()
