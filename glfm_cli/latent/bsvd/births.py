"""Births and deaths of whole components, by annealing.

A component that is missing comes hardly ever by a draw from the prior, and one that fits nothing
but noise is slow to go, for its V fits that noise too well to be given up at once. So a new one is
brought in through T laws: at temperature b its likelihood is that of the residuals E with b in the
exponent,

    pi_b(V, s) ~ p(V) p(s) prod_i Z_i,   Z_i = E_U exp(b sum_j w (s U V_j E_ij - s^2 U^2 V_j^2 / 2))

with U integrated out. It is drawn from its prior, b = 0, moved by Gibbs steps as b grows, and
accepted at b = 1 with the odds

    prod_t pi_{b_t}(x_{t-1}) / pi_{b_{t-1}}(x_{t-1})  x  prior odds  x  (K - n) / (n + 1)

for n of K components that are on; a death takes the same way back [Karagiannis and
Andrieu 2013]. Coefficients of covariates are moved with it, given their precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.bsvd.moves import (
    BsvdState,
    prior_log_odds,
    scan,
    shift,
)

TRIED = 0.5  # share of the sweeps that try one
STEPS = 30
TEMPERATURES = (np.arange(STEPS + 1) / STEPS) ** 2


def move_rank(state: BsvdState, E: Array, rng: Generator, each: Each) -> None:
    """Try to bring in a component, or to take one away; `E` (m,), the residuals, follow."""
    on, K = state.active, state.s.size
    n = on.size
    if K < 2 or rng.random() >= TRIED:  # a single component is always on
        return
    if rng.random() < 0.5:
        if n == K:
            return
        k = int(rng.choice(np.flatnonzero(~state.on)))
        path = _Path.from_prior(state, E, k, rng, each)
        log_odds = path.up() + prior_log_odds(state.config, K) + np.log((K - n) / (n + 1))
        if -rng.standard_exponential() < log_odds:
            path.keep(state)
            state.on[k] = True
            shift(state.matrix, E, -state.s[k] * state.U[:, k], path.V, each)
        return
    if n == 0:
        return
    k = int(rng.choice(on))
    U, V = state.s[k] * state.U[:, k], np.ascontiguousarray(state.V[:, k])
    shift(state.matrix, E, U, V, each)
    path = _Path.of(state, E, k, rng, each)
    log_odds = -path.down() - prior_log_odds(state.config, K) + np.log(n / (K - n + 1))
    if -rng.standard_exponential() < log_odds:
        state.on[k] = False
    else:
        shift(state.matrix, E, -U, V, each)


@dataclass
class _Path:
    """A component on its way, without the others: V, s, and what covariates say of U and V."""

    state: BsvdState
    E: Array
    k: int
    V: Array
    s: float
    b_rows: Array
    b_columns: Array
    rng: Generator
    each: Each
    sums: tuple[Array, Array] = field(init=False)  # R and Q of the rows, for V

    def __post_init__(self) -> None:
        self._sum()

    @classmethod
    def of(cls, state: BsvdState, E: Array, k: int, rng: Generator, each: Each) -> _Path:
        """Return component k as it is, `E` the residuals without it."""
        sides = state.of_rows, state.of_columns
        b_rows, b_columns = (side.factors[:, k].copy() for side in sides)
        V = np.ascontiguousarray(state.V[:, k])
        return cls(state, E, k, V, float(state.s[k]), b_rows, b_columns, rng, each)

    @classmethod
    def from_prior(cls, state: BsvdState, E: Array, k: int, rng: Generator, each: Each) -> _Path:
        """Return a component from its prior."""
        n_columns = state.matrix.shape[1]
        b_rows, b_columns = (side.renewed(rng) for side in (state.of_rows, state.of_columns))
        V = state.of_columns.X @ b_columns + rng.standard_normal(n_columns) / np.sqrt(n_columns)
        s = abs(rng.standard_normal()) / np.sqrt(state.alpha)
        return cls(state, E, k, V, float(s), b_rows, b_columns, rng, each)

    def up(self) -> float:
        """Bring it in, and return the log weight."""
        log_weight = 0.0
        for t in range(1, STEPS + 1):
            low, high = TEMPERATURES[t - 1], TEMPERATURES[t]
            log_weight += self._log_evidence(high) - self._log_evidence(low)
            if t < STEPS:
                self._step(high, forward=True)
        return log_weight

    def down(self) -> float:
        """Take it away, and return the log weight of the way back."""
        log_weight = 0.0
        for t in range(STEPS, 0, -1):
            low, high = TEMPERATURES[t - 1], TEMPERATURES[t]
            log_weight += self._log_evidence(high) - self._log_evidence(low)
            if t > 1:
                self._step(low, forward=False)
        return log_weight

    def keep(self, state: BsvdState) -> None:
        """Write it into the state, U drawn given the rest."""
        k = self.k
        state.U[:, k], state.V[:, k], state.s[k] = self._draw_U(1.0), self.V, self.s
        state.of_rows.factors[:, k], state.of_columns.factors[:, k] = self.b_rows, self.b_columns

    def _sum(self) -> None:
        self.sums = scan(self.state.matrix, self.E, self.V, self.state.precision, self.each)

    def _linear_and_spread(self, b: float) -> tuple[Array, Array, Array]:
        R, Q = self.sums
        n, m = R.size, self.state.of_rows.X @ self.b_rows
        return b * self.s * R + n * m, n + b * self.s**2 * Q, m

    def _log_evidence(self, b: float) -> float:
        linear, spread, m = self._linear_and_spread(b)
        n = m.size
        return 0.5 * float(np.sum(linear**2 / spread - n * m * m - np.log(spread / n)))

    def _draw_U(self, b: float) -> Array:
        linear, spread, _ = self._linear_and_spread(b)
        return linear / spread + self.rng.standard_normal(spread.size) / np.sqrt(spread)

    def _step(self, b: float, *, forward: bool) -> None:
        """Move V, s and coefficients given U, U drawn first: one way, or that way reversed."""
        state, rng = self.state, self.rng
        U = self._draw_U(b)
        R, Q = scan(state.matrix, self.E, U, state.precision, self.each, by_column=True)
        n = R.size

        def draw_V() -> None:
            spread = n + b * self.s**2 * Q
            linear = b * self.s * R + n * (state.of_columns.X @ self.b_columns)
            self.V = linear / spread + rng.standard_normal(n) / np.sqrt(spread)

        def draw_b() -> None:
            self.b_rows = state.of_rows.drawn_of(U, rng)

        def draw_c() -> None:
            self.b_columns = state.of_columns.drawn_of(self.V, rng)

        moves = (draw_V, draw_b, draw_c)
        for move in moves if forward else moves[::-1]:
            move()
        self._sum()
