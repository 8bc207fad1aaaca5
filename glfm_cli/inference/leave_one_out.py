"""How far off are forecasts? Observed cells tell, forecast as if each had been missing.

A draw given all cells becomes one given all but cell i by the weight 1 / p(x_i | draw): importance
sampling leave-one-out  [Gelfand, Dey and Chang, Bayesian Statistics 4 (1992)]. Weights are bounded,
and where few draws carry them all, the column's forecasts are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from glfm_cli.arrays import Array
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.recalibration import (
    LEAST,
    Recalibration,
    log_mass,
    polynomials,
    tilt_covariance,
    tilt_moments,
)
from glfm_cli.latent.model import Problem
from glfm_cli.links import Link

ROWS = 1500  # whose cells are forecast, drawn at random
FEWEST_CELLS = 30  # of a column, from which anything is learnt
FEWEST_DRAWS = 20.0  # that carry the weight, in the median over a column's cells
LARGEST_WEIGHT = 1e6  # of a level's probability of 1, and of a density at its mode
EXPONENT_SD, TILT_SD = 0.3, 0.1  # of normal priors around no correction; the first of log a
EXPONENT_RANGE = 1.0  # of log a
# Prior probability that a column's numbers need no correction: forecasts by importance weights are
# off by a few percent in coverage themselves, so that weak evidence is no reason to correct.
NO_TILT = 0.9


def recalibrate(posterior: Posterior, problem: Problem, *, threads: int = 1) -> Posterior:
    """Return the posterior with its forecasts recalibrated by those of observed cells.

    Parameters
    ----------
    posterior : Posterior
        Draws given the cells of `problem`.
    problem : Problem
        The cells; `link_config.recalibrate` False leaves the posterior as it is.
    threads : int
        Chains that are worked on at the same time; the result does not depend on it.

    Returns
    -------
    Posterior
        The same draws. Real and positive columns, and those of levels, have a correction each;
        counts, and columns where one value is common, have none. O(ROWS) cells a column, each
        under every draw.
    """
    few = posterior.weights is not None or posterior.n_draws < FEWEST_DRAWS
    if few or not problem.link_config.recalibrate:
        return posterior
    n_rows = problem.n_rows
    rows = np.arange(n_rows)
    if n_rows > ROWS:
        rows = np.sort(np.random.default_rng(0).choice(n_rows, ROWS, replace=False))
    exponents, tilts = np.ones(len(problem.links)), np.zeros((len(problem.links), 2))
    for d, left_out in leave_one_out(posterior, problem, rows, threads=threads).items():
        if np.median(left_out.n_draws) < FEWEST_DRAWS:
            continue
        if problem.links[d].discrete:
            codes = problem.xs[d][rows][left_out.index].astype(np.intp)
            exponents[d] = fit_exponent(left_out.probabilities(), codes)
        else:
            tilts[d] = fit_tilt(left_out.distribution())
    return replace(posterior, recalibration=Recalibration(exponents, tilts))


def leave_one_out(
    posterior: Posterior, problem: Problem, rows: Array, *, threads: int = 1
) -> dict[int, LeftOut]:
    """Return forecasts of the observed cells in some rows, each made without the cell.

    Parameters
    ----------
    posterior, problem, threads
        As for `recalibrate`.
    rows : (n,) int
        Ascending row indices.

    Returns
    -------
    dict of int to LeftOut
        Of the columns whose forecasts may be corrected.
    """
    columns = _columns(problem, rows)

    def job(chain: Sequence[Draw]) -> Callable[[], dict[int, LeftOut]]:
        return lambda: _over_draws(posterior, chain, rows, columns)

    jobs = [job(chain) for chain in posterior.chains]
    first, *others = run_jobs(jobs, threads=threads, on_interrupt=lambda: None)
    return {d: sum((part[d] for part in others), start) for d, start in first.items()}


def fit_exponent(p: Array, codes: Array) -> float:
    """Return the a that gives the forecasts p (n, R) of the true codes (n,) the best log score."""
    log_p = np.log(np.maximum(p, LEAST))
    true = log_p[np.arange(codes.size), codes].sum()

    def loss(log_a: float) -> float:
        a = np.exp(log_a)
        total = np.log(np.exp(a * (log_p - log_p.max(axis=1, keepdims=True))).sum(axis=1))
        normaliser = float(np.sum(a * log_p.max(axis=1) + total))
        return normaliser - a * float(true) + 0.5 * float((log_a / EXPONENT_SD) ** 2)

    bounds = (-EXPONENT_RANGE, EXPONENT_RANGE)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def fit_tilt(u: Array) -> Array:
    """Return the b that the forecasts' distribution functions u (n,) at the true values call for.

    Its posterior mean when b is 0 with probability `NO_TILT`, else normal: the mode of the normal
    part times that part's posterior probability, by Laplace's method.
    """
    total, n = polynomials(np.clip(u, 0.0, 1.0)).sum(axis=1), u.size

    def loss(b: Array) -> tuple[float, Array]:
        value = n * log_mass(b) - float(b @ total) + 0.5 * float(np.sum((b / TILT_SD) ** 2))
        return value, n * tilt_moments(b) - total + b / TILT_SD**2

    mode: Array = minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    bend = n * tilt_covariance(mode) + np.eye(2) / TILT_SD**2
    log_odds = -loss(mode)[0] - 2.0 * np.log(TILT_SD) - 0.5 * np.linalg.slogdet(bend)[1]
    return mode * expit(log_odds + np.log1p(-NO_TILT) - np.log(NO_TILT))


@dataclass(frozen=True)
class _Column:
    """A column's observed cells among the chosen rows: `index` of the row, and the value."""

    link: Link
    index: Array
    x: Array


@dataclass(frozen=True)
class LeftOut:
    """Forecasts of n observed cells of a column: sums over draws.

    index : (n,) which of the rows asked for
    weight, square : (n,) sums of the weights and of their squares
    weighted : (n, R) of weights times the probabilities of the levels; for numbers (n, 2), times
        the probability of what lies below and of all that the bounds allow
    """

    index: Array
    weight: Array
    square: Array
    weighted: Array

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(
            self.index,
            self.weight + other.weight,
            self.square + other.square,
            self.weighted + other.weighted,
        )

    @property
    def n_draws(self) -> Array:
        """Return how many equally weighted draws the weights are worth, of each cell."""
        out: Array = self.weight**2 / self.square
        return out

    def probabilities(self) -> Array:
        """Return the forecasts (n, R) of levels."""
        out: Array = self.weighted / self.weight[:, None]
        return out

    def distribution(self) -> Array:
        """Return the forecasts' distribution functions (n,) at the values of numbers."""
        below, whole = self.weighted.T
        out: Array = below / np.maximum(whole, LEAST)
        return out


def _columns(problem: Problem, rows: Array) -> dict[int, _Column]:
    """Return the columns that may have a correction."""
    found = {}
    for d, (link, column) in enumerate(zip(problem.links, problem.xs, strict=True)):
        x = column[rows]
        index = np.flatnonzero(~np.isnan(x))
        x = x[index]
        if x.size >= FEWEST_CELLS and link.correctable(x):
            found[d] = _Column(link, index, x)
    return found


def _over_draws(
    posterior: Posterior, draws: Sequence[Draw], rows: Array, columns: dict[int, _Column]
) -> dict[int, LeftOut]:
    sums: dict[int, LeftOut] = {}
    for draw in draws:
        law = posterior.cells_law(draw, rows)
        for d, column in columns.items():
            own = law.column(d, column.index)
            forecast, density = column.link.forecast(column.x, own, draw.params[d], LARGEST_WEIGHT)
            weight = 1.0 / density
            new = LeftOut(column.index, weight, weight**2, weight[:, None] * forecast)
            sums[d] = sums[d] + new if d in sums else new
    return sums
