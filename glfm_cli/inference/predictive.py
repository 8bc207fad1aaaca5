"""Predictive distributions of cells: averaged over draws, or one joint draw.

Two views of the law of cells, not to be confused:

- the *marginal* predictive of a cell averages probabilities, means and distribution functions
  over draws (never draws of x): estimates, intervals, probabilities;
- a *joint* draw takes one posterior draw for all gaps: multiple imputation.

Rows are visited in blocks, so that memory does not grow with rows x draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.executors import thread_pool
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.recalibration import LEAST
from glfm_cli.links import Link, of_levels
from glfm_cli.links.observation import Average

BLOCK_ROWS = 1024
QUANTILE_DRAWS = 200  # draws whose averaged distribution function is inverted


@dataclass(frozen=True)
class Marginal:
    """The marginal predictive of some cells of one column.

    rows : (n,) row indices
    mean, sd : (n,) of the value, or of the level code of an ordinal column; NaN for categorical
    quantiles : (n, Q) of the value or level code, at the probabilities asked for; NaN likewise
    probabilities : (n, R) of the levels; None for numeric columns
    """

    rows: Array
    mean: Array
    sd: Array
    quantiles: Array
    probabilities: Array | None


def predict(
    posterior: Posterior,
    cells: Mapping[int, Array],
    at: Sequence[float] = (),
    *,
    numeric_quantiles: bool = True,
    threads: int = 1,
) -> dict[int, Marginal]:
    """Return the marginal predictive of the given cells.

    Parameters
    ----------
    posterior : Posterior
        With at least one draw.
    cells : mapping of int to (n,) int
        Column number (among the modelled ones) to the ascending row indices wanted.
    at : sequence of float
        Probabilities of the quantiles wanted, each in (0, 1).
    numeric_quantiles : bool
        False leaves the quantiles of numeric columns NaN, which saves the time to invert their
        distribution functions.
    threads : int
        Blocks of rows that are predicted side by side.

    Returns
    -------
    dict of int to Marginal
        O(n draws) time for each column; memory O(threads x BLOCK_ROWS x columns x QUANTILE_DRAWS).
    """
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)

    def block(start: int) -> dict[int, Marginal]:
        end = min(start + BLOCK_ROWS, n_rows)
        here = {d: rows[(rows >= start) & (rows < end)] for d, rows in cells.items()}
        here = {d: rows for d, rows in here.items() if rows.size}
        return _predict_block(posterior, slice(start, end), here, at, numeric_quantiles)

    parts: dict[int, list[Marginal]] = {d: [] for d in cells}
    with thread_pool(threads) as pool:
        each = map if pool is None else pool.map
        for found in each(block, range(0, n_rows, BLOCK_ROWS)):
            for d, part in found.items():
                parts[d].append(part)
    return {d: _joined(posterior.links[d], part, len(at)) for d, part in parts.items()}


def log_scores(
    posterior: Posterior, cells: Mapping[int, Array], truth: Mapping[int, Array]
) -> dict[int, Array]:
    """Return the log predictive density (or mass) of the true value of each cell.

    log( average over draws of p(x | draw) ), by log-sum-exp; not the average of logs. Recalibrated
    like `predict`.

    Parameters
    ----------
    posterior : Posterior
    cells : mapping of int to (n,) int
        Column number to the ascending row indices.
    truth : mapping of int to (n,) float64
        The values, or level codes, at those cells.
    """
    scores = {d: np.full(rows.size, -np.inf) for d, rows in cells.items()}
    forecasts: dict[int, Array] = {}  # of columns whose scores are corrected
    shares = posterior.shares()
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, n_rows))
        here = {d: (rows >= block.start) & (rows < block.stop) for d, rows in cells.items()}
        for draw, share in zip(posterior.draws(), shares, strict=True):
            of_rows = posterior.cells_law(draw, block)
            for d, inside in here.items():
                index = cells[d][inside] - start
                if not index.size:
                    continue
                link, params, x = posterior.links[d], draw.params[d], truth[d][inside]
                law = of_rows.column(d, index)
                log_p = link.log_density(x, law, params) + np.log(share)
                scores[d][inside] = np.logaddexp(scores[d][inside], log_p)
                if _is_corrected(posterior, d):
                    parts, _ = link.forecast(x, law, params)
                    total = forecasts.setdefault(d, np.zeros((inside.size, parts.shape[1])))
                    total[inside] += share * parts
    logs = {d: score - np.log(posterior.n_draws) for d, score in scores.items()}
    return {d: _corrected(posterior, d, log_p, forecasts.get(d)) for d, log_p in logs.items()}


def draw_jointly(
    posterior: Posterior,
    cells: Mapping[int, Array],
    rng: np.random.Generator,
    draw: Draw | None = None,
) -> dict[int, Array]:
    """Return one value or level code for each cell, all from one posterior draw.

    Parameters
    ----------
    posterior : Posterior
    cells : mapping of int to (n,) int
        Column number to the ascending row indices.
    rng : numpy.random.Generator
        Gives the values, and chooses the draw where none is given.
    draw : Draw, optional
        The one to take.
    """
    if draw is None:
        draw = posterior.choose(rng)
    draw = posterior.for_one_table(draw, rng)
    drawn: dict[int, list[Array]] = {d: [] for d in cells}
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, n_rows))
        law = posterior.joint(draw, block, rng)
        for d, rows in cells.items():
            here = rows[(rows >= block.start) & (rows < block.stop)] - start
            if here.size:
                own = law.column(d, here)
                drawn[d].append(posterior.links[d].sample(own, draw.params[d], rng))
    return {d: np.concatenate(part) if part else np.empty(0) for d, part in drawn.items()}


# ------------------------------------------------------------------------------ accumulation


def _is_corrected(posterior: Posterior, d: int) -> bool:
    by = posterior.recalibration
    return by is not None and bool(by.exponents[d] != 1.0 or by.tilts[d].any())


def _corrected(posterior: Posterior, d: int, log_p: Array, forecast: Array | None) -> Array:
    """Return recalibrated log scores, given those before and the sums of the forecasts' parts."""
    by = posterior.recalibration
    if forecast is None or by is None:
        return log_p
    if not posterior.links[d].discrete:
        below, within = forecast.T
        return log_p + by.log_factor(d, below / np.maximum(within, LEAST))
    a = by.exponents[d]
    p = forecast / forecast.sum(axis=1, keepdims=True)
    out: Array = a * log_p - np.log(np.sum(p**a, axis=1))
    return out


def _predict_block(
    posterior: Posterior,
    block: slice,
    cells: Mapping[int, Array],
    at: Sequence[float],
    numeric_quantiles: bool,
) -> dict[int, Marginal]:
    links, n_draws = posterior.links, posterior.n_draws
    averages = {d: links[d].average(rows.size, n_draws) for d, rows in cells.items()}
    n_kept = min(n_draws, QUANTILE_DRAWS) if at and numeric_quantiles else 0
    keep = set(np.linspace(0, n_draws - 1, n_kept).round().astype(int).tolist())
    shares = posterior.shares()
    for t, draw in enumerate(posterior.draws()):
        law = posterior.cells_law(draw, block)
        for d, rows in cells.items():
            own = law.column(d, rows - block.start)
            averages[d].add(own, draw.params[d], shares[t], quantiles=t in keep)
    return {d: _marginal(posterior, d, cells[d], average, at) for d, average in averages.items()}


def _marginal(
    posterior: Posterior, d: int, rows: Array, average: Average, at: Sequence[float]
) -> Marginal:
    """Return what an average says, recalibrated."""
    by = posterior.recalibration
    if by is None:
        return Marginal(rows, *average.result(tuple(at), lambda p: p))
    uncorrected = tuple(by.uncorrected(d, at))
    return Marginal(rows, *average.result(uncorrected, partial(by.of_levels, d)))


def nothing(link: Link, n_quantiles: int) -> Marginal:
    """Return the marginal predictive of no cell at all."""
    empty = np.empty(0)
    p = np.empty((0, of_levels(link).n_levels)) if link.discrete else None
    return Marginal(np.empty(0, dtype=np.intp), empty, empty, np.empty((0, n_quantiles)), p)


def _joined(link: Link, parts: Sequence[Marginal], n_quantiles: int) -> Marginal:
    if not parts:
        return nothing(link, n_quantiles)
    levels = [part.probabilities for part in parts if part.probabilities is not None]
    return Marginal(
        rows=np.concatenate([part.rows for part in parts]),
        mean=np.concatenate([part.mean for part in parts]),
        sd=np.concatenate([part.sd for part in parts]),
        quantiles=np.concatenate([part.quantiles for part in parts]),
        probabilities=np.concatenate(levels) if levels else None,
    )
