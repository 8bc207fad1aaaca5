"""How far off are forecasts? Observed cells tell, forecast as if they had been missing.

Some rows are taken once more with an eighth of their observed cells hidden, and again, up to four
times in all, with other eighths: more at once would leave rows less complete than they are. Under a
few draws of every chain their latent variables are drawn anew from the cells that are left
(folding.py), so that a forecast of a hidden cell owes nothing to the cell but its part in what all
rows share. Of R rows that is about K / R for K weights a column: where all rows are taken, what
they share is drawn anew, too, by a few sweeps of the chain without the hidden cells (resuming.py).
Weighting draws that had seen the cell by 1 / p(cell | draw) would be cheaper, and wrong: in most
tables the tails of such weights have no mean [Vehtari et al. 2024], since few columns let a cell
determine its row's features.
Where gaps are runs of rows, hidden cells are such gaps, not single ones (gap_runs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit, softmax

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Problem
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.gap_runs import cells_in_runs, series_order
from glfm_cli.inference.holding_back import held_tilts
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.recalibration import (
    LEAST,
    Recalibration,
    log_mass,
    polynomials,
    tilt_moments,
)
from glfm_cli.inference.resuming import regrown, resumed
from glfm_cli.inference.scoring import forecasts, scores_and_forecasts
from glfm_cli.inference.stacking import stacked
from glfm_cli.latent.capabilities import Candidates

ROWS = 1000  # taken once more, drawn at random,
TIMES = 4  # each time with other cells hidden, under other draws
ALL_ROWS, OF_MANY = 2000, 2  # all of up to so many rows instead, of more than `ROWS` so many times
HIDDEN = 0.125  # of the observed cells, each time
DRAWS = 64  # of all chains and times together, each time at least one of each chain,
OF_CANDIDATES = 3  # or so many: forecasts of fewer trees say too little of those of all
FEWEST_DRAWS = 20
# Sweeps that forget a cell in what rows share, and of fewer rows, where it counts more: up to so
# many, so many rows together; draws of each chain after them.
SWEEPS, MOST_SWEEPS, ROW_SWEEPS, OF_RESUMED = 10, 20, 3000, 7
OF_REGROWN = 2  # of models whose draws take longer than sweeps, or one of many rows
EXPONENT_SD = 0.3  # of a normal prior of log a around 0
EXPONENT_RANGE = 1.0  # of log a
# Prior probability that levels need no correction: weak evidence is no reason to correct.
NO_CORRECTION = 0.9
Prior = Mapping[str | float, float]
# Of the tilt of one column: that there is none, that it is the one all share, and that it is normal
# around that one, with these sds of its first coefficient.
TILT_PRIOR: Prior = {"none": 0.45, "shared": 0.45, 0.1: 0.0499, 0.2: 0.0499, 1.0: 2e-4}
SHARED_PRIOR: Prior = {"none": 0.8, 0.1: 0.08, 0.2: 0.08, 0.4: 0.04}  # of that one itself
DECAY = 1.0 / np.sqrt(np.arange(1, 5))  # of sds by degree: smooth corrections are likelier
EVEN = np.array([0.0, 1.0, 0.0, 1.0])  # what columns may share: how wide forecasts are, not where
STEP = 1e-3  # of log a, to see how its loss bends
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
TOLERANCE = 1e-6  # of log a

Hidden = dict[int, tuple[Array, Array]]  # by column: places among the rows, true values


def recalibrate(posterior: Posterior, problem: Problem, *, threads: int = 1) -> Posterior:
    """Return the posterior with its forecasts recalibrated by those of observed cells.

    posterior : draws given the cells of `problem`
    problem : the cells; `link_config.recalibrate` False leaves the posterior as it is
    threads : chains that are worked on at the same time; the result does not depend on it

    Returns: the same draws. Columns of numbers and of levels have a correction each; those where
        one value takes most cells have none. O(ROWS DRAWS) times the cost of
        folding in a row, for each chain; where all rows are taken, a few DRAWS sweeps.
    """
    few = posterior.weights is not None or posterior.n_draws < FEWEST_DRAWS
    if few or not problem.link_config.recalibrate:
        return posterior
    all_rows = problem.n_rows <= ALL_ROWS or series_order(problem) is not None
    times = OF_MANY if problem.groups is None and problem.n_rows > ROWS and all_rows else TIMES
    parts = [without_cells(posterior, problem, time, threads=threads) for time in range(times)]
    truth = {d: np.concatenate([hidden[d][1] for _, hidden in parts]) for d in parts[0][1]}
    truth = {d: x for d, x in truth.items() if x.size}
    weights = None
    if isinstance(posterior.model, Candidates):
        forecast, weights = stacked_forecasts(parts, truth, len(posterior.model.candidates))
    else:
        forecast = _below([forecasts(*part) for part in parts], truth)
    exponents, tilts = np.ones(len(problem.links)), np.zeros((len(problem.links), DECAY.size))
    places, rng = {}, np.random.default_rng(0)
    for d, x in truth.items():
        if problem.links[d].discrete:
            p = forecast[d] / forecast[d].sum(axis=1, keepdims=True)
            exponents[d] = fit_exponent(p, x.astype(np.intp))
        else:
            below, within, under = forecast[d].T
            u, v = below / np.maximum(within, LEAST), under / np.maximum(within, LEAST)
            places[d] = v + rng.random(u.size) * (u - v)
    for d, tilt in held_tilts(fit_tilts(places), places, parts).items():
        tilts[d] = tilt
    return replace(posterior, recalibration=Recalibration(exponents, tilts, weights))


def _below(parts: Sequence[Mapping[int, Array]], columns: Collection[int]) -> dict[int, Array]:
    """Return what each part says of the hidden cells of columns, below each other."""
    return {d: np.concatenate([part[d] for part in parts if d in part]) for d in columns}


def stacked_forecasts(
    parts: Sequence[tuple[Posterior, Hidden]], truth: Mapping[int, Array], n_candidates: int
) -> tuple[dict[int, Array], Array]:
    """Return stacked forecasts of the hidden cells, and the weights (D, M) of the candidates.

    truth : the true values, by column
    """
    first = parts[0][0]
    there = np.isin(np.arange(n_candidates), first.groups)
    scores = {d: np.full((x.size, n_candidates), -np.inf) for d, x in truth.items()}
    averages = {}
    for which in np.flatnonzero(there).tolist():
        logs, means = [], []
        for folded, hidden in parts:
            own = folded.of_candidate(which)
            log_p, sums = scores_and_forecasts(own, hidden, truth)
            logs.append(log_p)
            means.append({d: total / own.n_draws for d, total in sums.items()})
        averages[which] = _below(means, truth)
        for d, column in _below(logs, truth).items():
            scores[d][:, which] = column
    weights = stacked(scores, len(first.links), there)
    pooled = {
        d: sum(weights[d, which] * mean[d] for which, mean in averages.items()) for d in truth
    }
    return pooled, weights


def without_cells(
    posterior: Posterior, problem: Problem, time: int = 0, *, threads: int = 1
) -> tuple[Posterior, Hidden]:
    """Return draws of some rows given but a part of their observed cells, and the hidden ones.

    Of the columns whose forecasts may be corrected. `time`, below `TIMES`, says which part. Of few
    rows nothing else in the draws has seen those, either.
    """
    series = series_order(problem)
    rows, chosen = _chosen(problem, time, series)
    groups = problem.groups
    if groups is not None:
        groups = groups.take(rows).as_new()  # what they share has seen the hidden cells
    xs, hidden = [], {}
    for d, (link, column) in enumerate(zip(problem.links, problem.xs, strict=True)):
        x, at = column[rows], np.flatnonzero(chosen[:, d])
        # What an interval hides is not known, and numbers beside some are not as they would be.
        if column.ndim == 1 and link.correctable(column[~np.isnan(column)]):
            hidden[d] = at, x[at]
        x[at] = np.nan
        xs.append(x)
    for d, date in problem.beside:  # which says a part of the date that is hidden
        xs[d][np.isnan(xs[date])] = np.nan
        hidden.pop(d, None)
    for columns in problem.equations:
        gone = np.sum([np.isnan(xs[d] if xs[d].ndim == 1 else xs[d][:, 0]) for d in columns], 0)
        for d in hidden.keys() & set(columns):  # one alone would follow: it is no missing cell
            at, x = hidden[d]
            hidden[d] = at[gone[at] > 1], x[gone[at] > 1]
    chains = tuple(chain[time % 2 :: 2] or chain for chain in posterior.chains)
    least = OF_CANDIDATES if isinstance(posterior.model, Candidates) else 1
    thinned = replace(posterior, chains=chains).thinned(max(DRAWS // TIMES, least * len(chains)))
    again = replace(problem, xs=tuple(xs), groups=groups, of_fit=rows)
    sweeps = int(np.clip(ROW_SWEEPS // max(problem.n_rows, 1), SWEEPS, MOST_SWEEPS))
    how = {"seed": time, "sweeps": sweeps, "draws": OF_RESUMED, "threads": threads}
    if groups is None and rows.size == problem.n_rows:
        folded = resumed(thinned, again, **how)
    else:
        folded = fold_in(thinned, again, seed=time, threads=threads)
    if series is not None:
        whole = tuple(_with(x, rows, part) for x, part in zip(problem.xs, xs, strict=True))
        how["draws"] = OF_REGROWN if rows.size == problem.n_rows else 1
        folded = regrown(folded, thinned, replace(problem, xs=whole), rows, **how)
    return folded, hidden


def _chosen(problem: Problem, time: int, series: Array | None) -> tuple[Array, Array]:
    """Return some rows (n,), and which of their cells (n, D) are hidden.

    series : the rows one after another, where gaps are runs of them (`series_order`): then hidden
        cells are such gaps, for single ones have neighbours
    """
    rng, rows, seen = np.random.default_rng(0), np.arange(problem.n_rows), problem.seen
    if series is not None:
        key = np.empty(seen.shape)
        key[series] = cells_in_runs(seen[series], HIDDEN, time, rng)
        if rows.size > ALL_ROWS:
            rows = np.sort(np.argsort(key.min(axis=1), kind="stable")[:ALL_ROWS])
        return rows, np.isfinite(key[rows])
    if problem.groups is not None:
        rows = problem.groups.some_rows(ROWS, rng)
    elif rows.size > ALL_ROWS:
        rows = np.sort(rng.choice(rows.size, ROWS, replace=False))
    parts = [np.floor(rng.random(rows.size) / HIDDEN) == time for _ in problem.links]
    return rows, seen[rows] & np.column_stack(parts)


def _with(x: Array, rows: Array, part: Array) -> Array:
    """Return a column with other cells in some rows."""
    x = x.copy()
    x[rows] = part
    return x


def fit_exponent(p: Array, codes: Array) -> float:
    """Return the a that gives the forecasts p (n, R) of the true codes (n,) the best log score.

    log a is the mode of a normal part, times that part's posterior probability.
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


def fit_tilts(places: Mapping[int, Array]) -> dict[int, Array]:
    """Return, by column, the b that the forecasts' distribution functions call for.

    places : by column their values (n,) where the cells are: uniform where forecasts are right

    Returns: posterior means (4,), by Laplace's method, under `TILT_PRIOR`; what columns share is
        learnt, for each, from the others.
    """
    sums = {d: polynomials(np.clip(u, 0.0, 1.0)).sum(axis=1) for d, u in places.items()}
    whole, cells = np.sum(list(sums.values()), axis=0), sum(u.size for u in places.values())
    found = {}
    for d, total in sums.items():
        n, none = places[d].size, np.zeros(DECAY.size)
        shared = fit_tilt(EVEN * (whole - total), cells - n, SHARED_PRIOR, none)
        found[d] = fit_tilt(total, n, TILT_PRIOR, shared)
    return found


def fit_tilt(total: Array, n: int, prior: Prior, shared: Array) -> Array:
    """Return the posterior mean of b, given the sums `total` (4,) of the polynomials at n places.

    `prior` has the probabilities of `TILT_PRIOR`.
    """
    log_odds, modes = [], []
    for kind, probability in prior.items():
        b, evidence = np.zeros(DECAY.size), 0.0
        if kind == "shared":
            b, evidence = shared, float(shared @ total) - n * log_mass(shared)
        elif not isinstance(kind, str):
            b, evidence = _mode(total, n, shared, (kind * DECAY) ** -2)
        log_odds.append(np.log(probability) + evidence)
        modes.append(b)
    return softmax(log_odds) @ np.array(modes)


def _mode(total: Array, n: int, mean: Array, precision: Array) -> tuple[Array, float]:
    """Return the likeliest b under a normal prior, and the log of that prior's evidence."""

    def loss(b: Array, total_mass: float) -> float:
        return n * total_mass - float(b @ total) + 0.5 * float(precision @ (b - mean) ** 2)

    mode, step = mean, np.ones(total.size)
    while np.abs(step).max() > TOLERANCE:  # the loss is convex: Newton's method finds its place
        mass, moments, covariance = tilt_moments(mode)
        curvature = n * covariance + np.diag(precision)
        step = np.linalg.solve(curvature, total - n * moments - precision * (mode - mean))
        here = loss(mode, mass)
        while loss(mode + step, log_mass(mode + step)) > here and np.abs(step).max() > TOLERANCE:
            step = step / 2.0
        mode = mode + step
    log_det = np.linalg.slogdet(curvature)[1] - np.log(precision).sum()
    return mode, -loss(mode, log_mass(mode)) - 0.5 * float(log_det)


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
