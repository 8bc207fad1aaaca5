"""How far off are forecasts? Observed cells tell, forecast as if they had been missing.

Some rows are taken once more with a quarter of their observed cells hidden. Under a few draws of
every chain their latent variables are drawn anew from the cells that are left (folding.py), so that
a forecast of a hidden cell owes nothing to the cell but its small part in what all rows share.
Weighting draws that had seen the cell by 1 / p(cell | draw) would be cheaper, and wrong: in most
tables the tails of such weights have no mean [Vehtari et al. 2024], since few columns let a cell
determine its row's features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import expit

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Problem
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import log_scores
from glfm_cli.inference.recalibration import (
    LEAST,
    Recalibration,
    log_mass,
    polynomials,
    tilt_covariance,
    tilt_moments,
)
from glfm_cli.inference.stacking import stacked
from glfm_cli.latent.capabilities import Candidates

ROWS = 1000  # taken once more, drawn at random
HIDDEN = 0.25  # of their observed cells
DRAWS = 32  # of all chains together, at least two of each
FEWEST_CELLS = 30  # of a column, from which anything is learnt
FEWEST_DRAWS = 20
EXPONENT_SD, TILT_SD = 0.3, 0.1  # of normal priors around no correction; the first of log a
EXPONENT_RANGE = 1.0  # of log a
# Prior probability that a column needs no correction: weak evidence is no reason to correct.
NO_CORRECTION = 0.9
STEP = 1e-3  # of log a, to see how its loss bends
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
TOLERANCE = 1e-6  # of log a

Hidden = dict[int, tuple[Array, Array]]  # by column: places among the rows, true values


def recalibrate(posterior: Posterior, problem: Problem, *, threads: int = 1) -> Posterior:
    """Return the posterior with its forecasts recalibrated by those of observed cells.

    posterior : draws given the cells of `problem`
    problem : the cells; `link_config.recalibrate` False leaves the posterior as it is
    threads : chains that are worked on at the same time; the result does not depend on it

    Returns: the same draws. Real and positive columns, and those of levels, have a correction each;
        counts, and columns where one value is common, have none. O(ROWS DRAWS) times the cost of
        folding in a row, for each chain.
    """
    few = posterior.weights is not None or posterior.n_draws < FEWEST_DRAWS
    if few or not problem.link_config.recalibrate:
        return posterior
    folded, hidden = without_cells(posterior, problem, threads=threads)
    weights = None
    if isinstance(posterior.model, Candidates):
        weights = _stacked(folded, hidden, len(posterior.model.candidates))
    exponents, tilts = np.ones(len(problem.links)), np.zeros((len(problem.links), 2))
    folded = replace(folded, recalibration=Recalibration(exponents, tilts, weights))
    for d, forecast in forecasts(folded, hidden).items():
        true = hidden[d][1]
        if problem.links[d].discrete:
            p = forecast / forecast.sum(axis=1, keepdims=True)
            exponents[d] = fit_exponent(p, true.astype(np.intp))
        else:
            tilts[d] = fit_tilt(forecast[:, 0] / np.maximum(forecast[:, 1], LEAST))
    return replace(posterior, recalibration=Recalibration(exponents, tilts, weights))


def _stacked(folded: Posterior, hidden: Hidden, n_candidates: int) -> Array:
    """Return the weights (D, M) of candidates, by what each says of the hidden cells."""
    cells = {d: at for d, (at, _) in hidden.items()}
    truth = {d: x for d, (_, x) in hidden.items()}
    scores = {d: np.full((at.size, n_candidates), -np.inf) for d, at in cells.items()}
    there = np.isin(np.arange(n_candidates), folded.groups)
    for which in np.flatnonzero(there).tolist():
        for d, log_p in log_scores(folded.of_candidate(which), cells, truth).items():
            scores[d][:, which] = log_p
    return stacked(scores, len(folded.links), there)


def without_cells(
    posterior: Posterior, problem: Problem, *, threads: int = 1
) -> tuple[Posterior, Hidden]:
    """Return draws of some rows given but a part of their observed cells, and the hidden ones.

    Of the columns whose forecasts may be corrected, those of which enough cells are hidden.
    """
    rng = np.random.default_rng(0)
    rows: Array = np.arange(problem.n_rows)
    groups = problem.groups
    if groups is not None:
        rows = groups.some_rows(ROWS, rng)
        groups = groups.take(rows).as_new()  # what they share has seen the hidden cells
    elif rows.size > ROWS:
        rows = np.sort(rng.choice(rows.size, ROWS, replace=False))
    xs, hidden = [], {}
    for d, (link, column) in enumerate(zip(problem.links, problem.xs, strict=True)):
        x = column[rows]
        seen = ~np.isnan(x if x.ndim == 1 else x[:, 0])
        at = np.flatnonzero(seen & (rng.random(rows.size) < HIDDEN))
        # What an interval hides is not known, and numbers beside some are not as they would be.
        few = at.size < FEWEST_CELLS or column.ndim == 2
        if not few and link.correctable(column[~np.isnan(column)]):
            hidden[d] = at, x[at]
        x[at] = np.nan
        xs.append(x)
    thinned = posterior.thinned(max(DRAWS, 2 * len(posterior.chains)))
    again = replace(problem, xs=tuple(xs), groups=groups, of_fit=rows)
    return fold_in(thinned, again, seed=0, threads=threads), hidden


def forecasts(folded: Posterior, hidden: Hidden) -> dict[int, Array]:
    """Return the weighted sums over draws of `forecast` (n, P) of the hidden cells, by column."""
    sums: dict[int, Array] = {}
    shares = {d: folded.shares(d) for d in hidden}
    for t, draw in enumerate(folded.draws()):
        for d, (at, x) in hidden.items():
            law = folded.cells_law(draw, at).column(d)
            part = folded.links[d].forecast(x, law, draw.params[d])
            sums[d] = shares[d][t] * part + sums.get(d, 0.0)
    return sums


def fit_exponent(p: Array, codes: Array) -> float:
    """Return the a that gives the forecasts p (n, R) of the true codes (n,) the best log score.

    log a is the mode of a normal part, times that part's posterior probability as in `fit_tilt`.
    """
    log_p = np.log(np.maximum(p, LEAST))
    true = log_p[np.arange(codes.size), codes].sum()

    def loss(log_a: float) -> float:
        a = np.exp(log_a)
        total = np.log(np.exp(a * (log_p - log_p.max(axis=1, keepdims=True))).sum(axis=1))
        normaliser = float(np.sum(a * log_p.max(axis=1) + total))
        return normaliser - a * float(true) + 0.5 * float((log_a / EXPONENT_SD) ** 2)

    mode = _lowest(loss, -EXPONENT_RANGE, EXPONENT_RANGE)
    curvature = (loss(mode + STEP) - 2.0 * loss(mode) + loss(mode - STEP)) / STEP**2
    log_odds = loss(0.0) - loss(mode) - np.log(EXPONENT_SD) - 0.5 * np.log(max(curvature, 1.0))
    return float(np.exp(mode * _probability(float(log_odds))))


def fit_tilt(u: Array) -> Array:
    """Return the b that the forecasts' distribution functions u (n,) at the true values call for.

    Its posterior mean when b is 0 with probability `NO_CORRECTION`, else normal: the mode of the
    normal part times that part's posterior probability, by Laplace's method.
    """
    total, n = polynomials(np.clip(u, 0.0, 1.0)).sum(axis=1), u.size

    def loss(b: Array) -> float:
        return n * log_mass(b) - float(b @ total) + 0.5 * float(np.sum((b / TILT_SD) ** 2))

    mode, step = np.zeros(2), np.ones(2)
    while np.abs(step).max() > TOLERANCE:  # the loss is convex: Newton's method finds its place
        curvature = n * tilt_covariance(mode) + np.eye(2) / TILT_SD**2
        step = np.linalg.solve(curvature, total - n * tilt_moments(mode) - mode / TILT_SD**2)
        while loss(mode + step) > loss(mode) and np.abs(step).max() > TOLERANCE:
            step = step / 2.0
        mode = mode + step
    log_odds = -loss(mode) - 2.0 * np.log(TILT_SD) - 0.5 * np.linalg.slogdet(curvature)[1]
    return mode * _probability(float(log_odds))


def _lowest(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one valley is lowest, by golden sections."""
    x = [low, high - GOLDEN * (high - low), low + GOLDEN * (high - low), high]
    y = [loss(x[1]), loss(x[2])]
    while x[3] - x[0] > TOLERANCE:
        if y[0] < y[1]:
            x = [x[0], x[2] - GOLDEN * (x[2] - x[0]), x[1], x[2]]
            y = [loss(x[1]), y[0]]
        else:
            x = [x[1], x[2], x[1] + GOLDEN * (x[3] - x[1]), x[3]]
            y = [y[1], loss(x[2])]
    return (x[0] + x[3]) / 2.0


def _probability(log_odds: float) -> float:
    """Return that of a correction, given its evidence against that of none."""
    return float(expit(log_odds + np.log1p(-NO_CORRECTION) - np.log(NO_CORRECTION)))
