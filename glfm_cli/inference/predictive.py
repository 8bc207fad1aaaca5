"""Predictive distributions of cells: averaged over draws, or one joint draw.

Two views of the law of cells, not to be confused:

- the *marginal* predictive of a cell averages probabilities, means and distribution functions
  over draws (never draws of x): estimates, intervals, probabilities;
- a *joint* draw takes one posterior draw for all gaps: multiple imputation.

Rows are visited in blocks, so that memory does not grow with rows x draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.equations import Equations, RowsOfDraw
from glfm_cli.inference.executors import thread_pool
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.recalibration import LEAST
from glfm_cli.links import Link, RowsLaw, of_levels, of_numbers
from glfm_cli.links.averages import NumberAverage
from glfm_cli.links.observation import Average, Counting

BLOCK_ROWS = 1024
MOST_BLOCK_ROWS = 8192
KEPT = 1 << 23  # normals that are kept for quantiles at once, where all cells are missing
QUANTILE_DRAWS = 200  # draws whose averaged distribution function is inverted
TRIES = 200  # at two cells of which one is less than the other
SAMPLES = 400  # of a cell that is known to lie between two numbers

Ends = Mapping[int, Array]
NO_ENDS: Ends = {}


@dataclass(frozen=True)
class Marginal:
    """The marginal predictive of some cells of one column.

    rows : (n,) row indices
    mean, sd : (n,) of the value, or of the level code of an ordinal column; NaN for categorical.
        Of numbers a correction is of the sd alone, and only beside quantiles: means hardly gain
    quantiles : (n, Q) of the value or level code, at the probabilities asked for; NaN likewise
    probabilities : (n, R) of the levels; None for numeric columns
    relative_error : (n,) Monte Carlo standard error of the mean, or of the probability of the
        likeliest level where these have no order, over the cell's sd; NaN where one chain, or
        restarts of an ascent, do not tell
    """

    rows: Array
    mean: Array
    sd: Array
    quantiles: Array
    probabilities: Array | None
    relative_error: Array = field(default_factory=lambda: np.empty(0))

    def take(self, at: Array) -> Marginal:
        """Return that of some of the cells."""
        p = None if self.probabilities is None else self.probabilities[at]
        error = self.relative_error[at]
        return Marginal(self.rows[at], self.mean[at], self.sd[at], self.quantiles[at], p, error)

    @property
    def mcse(self) -> Array:
        """The Monte Carlo standard error (n,), in the unit of what it is of."""
        p = None if self.probabilities is None else self.probabilities.max(axis=1, initial=0.0)
        sd = self.sd if p is None else np.where(np.isnan(self.sd), np.sqrt(p * (1 - p)), self.sd)
        return self.relative_error * sd


class ChainMeans(NamedTuple):
    """What each of C chains says of n cells of a column, and in what unit that is measured.

    whole, first, second : (C, n) means of a cell over the draws of a chain, and of its halves
    sd : (n,) of the cell
    """

    whole: Array
    first: Array
    second: Array
    sd: Array

    def relative_error(self) -> Array:
        """Return (n,) the standard error of the mean over chains, in units of the sd."""
        n_chains = self.whole.shape[0]
        if n_chains < 2:
            return np.full(self.sd.size, np.nan)
        error = np.std(self.whole, axis=0, ddof=1) / np.sqrt(n_chains)
        return np.where(self.sd > 0, error / np.where(self.sd > 0, self.sd, 1.0), 0.0)


def predict(
    posterior: Posterior,
    cells: Mapping[int, Array],
    at: Sequence[float] = (),
    *,
    numeric_quantiles: bool = True,
    threads: int = 1,
    ends: Ends = NO_ENDS,
) -> dict[int, Marginal]:
    """Return the marginal predictive of the given cells.

    posterior : with at least one draw
    cells : mapping of int to (n,) int; column number (among the modelled ones) to the ascending row
        indices wanted
    at : probabilities of the quantiles wanted, each in (0, 1)
    numeric_quantiles : False leaves the quantiles of numeric columns NaN, which saves the time to
        invert their distribution functions
    threads : blocks of rows that are predicted side by side
    ends : mapping of int to (n, 2) float64; by column, what its cells are known to lie between, NaN
        at those of which nothing is known

    Returns: O(n draws) time for each column; memory O(threads x KEPT), or that of BLOCK_ROWS.
    """
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    counted = {d for d in ends if isinstance(posterior.links[d], Counting)}

    size = rows_of_block(posterior)

    def block(start: int) -> dict[int, Marginal]:
        end = min(start + size, n_rows)
        here = {d: rows[(rows >= start) & (rows < end)] for d, rows in cells.items()}
        here = {d: rows for d, rows in here.items() if rows.size}
        index = {d: rows - start for d, rows in here.items()}
        found = _average(
            posterior, slice(start, end), index, quantiles=bool(at) and numeric_quantiles
        )
        of_trials = {
            d: ends[d][(cells[d] >= start) & (cells[d] < end)] for d in ends if d in counted
        }
        return {
            d: _marginal(posterior, d, here[d], *one, at, of_trials.get(d))
            for d, one in found.items()
        }

    parts: dict[int, list[Marginal]] = {d: [] for d in cells}
    with thread_pool(threads) as pool:
        each = map if pool is None else pool.map
        for found in each(block, range(0, n_rows, size)):
            for d, part in found.items():
                parts[d].append(part)
    found = {d: _joined(posterior.links[d], part, len(at)) for d, part in parts.items()}
    between = {d: known for d, known in ends.items() if d not in counted}
    return found | {
        d: _with_ends(posterior, d, found[d], known, at) for d, known in between.items()
    }


def is_cut(posterior: Posterior, d: int) -> bool:
    """Return whether forecasts of a column of numbers are cut off at bounds."""
    return bool(np.isfinite(getattr(posterior.links[d], "latent_bounds", np.inf)).any())


def rows_of_block(posterior: Posterior) -> int:
    """Return how many rows `predict` visits at once: a power of 2, whatever is asked of them."""
    kept = max(1, len(posterior.links) * min(posterior.n_draws, QUANTILE_DRAWS))
    return max(BLOCK_ROWS, min(MOST_BLOCK_ROWS, 1 << (max(KEPT // kept, 1).bit_length() - 1)))


def chain_means(posterior: Posterior, cells: Mapping[int, Array]) -> dict[int, ChainMeans]:
    """Return what each of several chains says of some cells, few enough for one block of rows."""
    rows = np.unique(np.concatenate([np.empty(0, np.intp), *cells.values()]))
    index = {d: np.searchsorted(rows, at) for d, at in cells.items()}
    found = _average(posterior, rows, index, quantiles=False)
    return {d: _chain_means(posterior, d, *one) for d, one in found.items()}


def log_scores(
    posterior: Posterior, cells: Mapping[int, Array], truth: Mapping[int, Array]
) -> dict[int, Array]:
    """Return the log predictive density (or mass) of the true value of each cell.

    log( average over draws of p(x | draw) ), by log-sum-exp; not the average of logs. Given that
    the bounds allow the value, and recalibrated like `predict`.

    cells : mapping of int to (n,) int; column number to the ascending row indices
    truth : mapping of int to (n,) float64; the values, or level codes, at those cells
    """
    scores = {d: np.full(rows.size, -np.inf) for d, rows in cells.items()}
    forecasts: dict[int, Array] = {}  # of columns whose scores are corrected
    shares = {d: posterior.shares(d) for d in cells}
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, n_rows))
        here = {d: (rows >= block.start) & (rows < block.stop) for d, rows in cells.items()}
        for t, draw in enumerate(posterior.draws()):
            of_rows = posterior.cells_law(draw, block)
            for d, inside in here.items():
                index, share = cells[d][inside] - start, shares[d][t]
                if not index.size or not share:
                    continue
                link, params, x = posterior.links[d], draw.params[d], truth[d][inside]
                law = of_rows.column(d, index)
                log_p = link.log_density(x, law, params) + np.log(share)
                scores[d][inside] = np.logaddexp(scores[d][inside], log_p)
                if _is_corrected(posterior, d) or is_cut(posterior, d):
                    parts = link.forecast(x, law, params)
                    total = forecasts.setdefault(d, np.zeros((inside.size, parts.shape[1])))
                    total[inside] += share * parts
    logs = {d: score - np.log(posterior.n_draws) for d, score in scores.items()}
    return {d: _corrected(posterior, d, log_p, forecasts.get(d)) for d, log_p in logs.items()}


def draw_jointly(
    posterior: Posterior,
    cells: Mapping[int, Array],
    rng: np.random.Generator,
    draw: Draw | None = None,
    ends: Ends = NO_ENDS,
    less: Sequence[tuple[int, int]] = (),
    equations: Equations | None = None,
) -> dict[int, Array]:
    """Return one value or level code for each cell, all from one posterior draw.

    cells : mapping of int to (n,) int; column number to the ascending row indices
    rng : gives the values, and chooses the draw where none is given
    draw : the one to take
    ends : mapping of int to (n, 2) float64; that of `predict`
    less : columns of which the first is less than the second in every row
    equations : that hold in every row
    """
    if draw is None:
        draw = posterior.choose(rng)
    draw = posterior.for_one_table(draw, rng)
    drawn: dict[int, list[Array]] = {d: [] for d in cells}
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, n_rows))
        law = posterior.joint(draw, block, rng)
        inside = {d: (rows >= block.start) & (rows < block.stop) for d, rows in cells.items()}
        here = {d: cells[d][which] - start for d, which in inside.items() if which.any()}
        known = {d: ends[d][inside[d]] for d in ends if d in here}
        sample = partial(_sample, posterior, draw, law, rng, here, known)
        found = {d: sample(d, np.arange(rows.size)) for d, rows in here.items()}
        for first, second in less:
            if first in here and second in here:
                _redraw((first, second), here, found, sample)
        if equations is not None and equations.moved:
            equations.redraw(RowsOfDraw(block, draw, law, here, known), found, rng)
        for d, x in found.items():
            drawn[d].append(x)
    return {d: np.concatenate(part) if part else np.empty(0) for d, part in drawn.items()}


# ------------------------------------------------------------------------------ accumulation


def _sample(
    posterior: Posterior,
    draw: Draw,
    law: RowsLaw,
    rng: np.random.Generator,
    rows: Mapping[int, Array],
    ends: Ends,
    d: int,
    at: Array,
) -> Array:
    """Return draws of the cells `at` of those of a column, inside their ends if there are some."""
    link, params, own = posterior.links[d], draw.params[d], law.column(d, rows[d][at])
    x = link.sample(own, params, rng)
    if d in ends:
        which, known = _known(ends[d][at])
        x[which] = of_numbers(link).sample_between(own.take(which), params, rng, known)
    return x


def _redraw(
    pair: tuple[int, int],
    rows: Mapping[int, Array],
    found: Mapping[int, Array],
    sample: Callable[[int, Array], Array],
) -> None:
    """Draw both cells of a row anew until the first is less than the second, in place.

    So they are drawn given that it is; what is left after `TRIES` times is made equal.
    """
    first, second = pair
    _, low, high = np.intersect1d(rows[first], rows[second], return_indices=True)
    for _ in range(TRIES):
        wrong = found[first][low] >= found[second][high]
        low, high = low[wrong], high[wrong]
        if not low.size:
            return
        found[first][low], found[second][high] = sample(first, low), sample(second, high)
    found[first][low] = np.minimum(found[first][low], found[second][high])


def _known(ends: Array) -> tuple[Array, Array]:
    """Return where something is known, and what."""
    at = np.flatnonzero(~np.isnan(ends[:, 0]))
    return at, ends[at]


def _with_ends(
    posterior: Posterior, d: int, whole: Marginal, ends: Array, at: Sequence[float]
) -> Marginal:
    """Return a marginal, its cells that lie between known ends by one sample of each of some draws.

    A draw's law of such a cell is that of a cell of which nothing is known, cut off at the ends;
    draws keep their weights, since they were made knowing them.
    """
    inside, known = _known(ends)
    link, rng = of_numbers(posterior.links[d]), np.random.default_rng(0)
    below = np.cumsum(list(posterior.shares(d)))
    picked = np.searchsorted(below / below[-1], (np.arange(SAMPLES) + 0.5) / SAMPLES)
    times = dict(zip(*np.unique(picked, return_counts=True), strict=True))
    mean, sd, quantiles = whole.mean.copy(), whole.sd.copy(), whole.quantiles.copy()
    error = whole.relative_error.copy()
    error[inside] = np.nan
    draws = list(posterior.draws())
    for start in range(0, inside.size, BLOCK_ROWS):
        some = slice(start, start + BLOCK_ROWS)
        samples = []
        for t, n in times.items():
            law, params = posterior.cells_law(draws[t], whole.rows[inside[some]]), draws[t].params
            own = law.column(d)
            samples += [link.sample_between(own, params[d], rng, known[some]) for _ in range(n)]
        x, cells = np.array(samples), inside[some]
        mean[cells], sd[cells] = x.mean(axis=0), x.std(axis=0)
        found = np.quantile(x, np.array(at), axis=0).T
        quantiles[cells] = np.rint(found) if link.integral else found
    return Marginal(whole.rows, mean, sd, quantiles, None, error)


def _is_corrected(posterior: Posterior, d: int) -> bool:
    by = posterior.recalibration
    return by is not None and bool(by.exponents[d] != 1.0 or by.tilts[d].any())


def _corrected(posterior: Posterior, d: int, log_p: Array, forecast: Array | None) -> Array:
    """Return log scores inside bounds and recalibrated, given the sums of the forecasts' parts."""
    by = posterior.recalibration
    if forecast is None:
        return log_p
    if not posterior.links[d].discrete:
        within = np.clip(forecast[:, 1] / posterior.n_draws, LEAST, 1.0)
        log_p = log_p - np.log(within)
        if not _is_corrected(posterior, d):
            return log_p
        assert by is not None
        u, v = forecast[:, [0, 2]].T / posterior.n_draws / within
        return log_p + by.log_factor(d, u, v)
    assert by is not None
    a = by.exponents[d]
    p = forecast / forecast.sum(axis=1, keepdims=True)
    return a * log_p - np.log(np.sum(p**a, axis=1))


Sums = dict[int, Array]  # by the number of draws that were added


def _average(
    posterior: Posterior, rows: slice | Array, index: Mapping[int, Array], *, quantiles: bool
) -> dict[int, tuple[Average, Sums]]:
    """Return averages over draws, by column, and their sums where a chain or its half ends.

    `index` has the cells of a column as places among the rows.
    """
    n_draws = posterior.n_draws
    averages = {d: posterior.links[d].average(at.size, n_draws) for d, at in index.items()}
    n_kept = min(n_draws, QUANTILE_DRAWS) if quantiles else 0
    keep = set(np.linspace(0, n_draws - 1, n_kept).round().astype(int).tolist())
    ends = sorted({end for bounds in _halves(posterior) for end in bounds if end > 0})
    shares = {d: posterior.shares(d) for d in index}
    for t, draw in enumerate(posterior.draws()):
        law = posterior.cells_law(draw, rows)
        for d, at in index.items():
            averages[d].add(law.column(d, at), draw.params[d], shares[d][t], quantiles=t in keep)
            if t + 1 in ends:
                averages[d].mark()
    return {d: (one, dict(zip(ends, one.marked(), strict=True))) for d, one in averages.items()}


def _halves(posterior: Posterior) -> list[tuple[int, int, int]]:
    """Return draws before each chain, its half and its end; none where chains do not compare."""
    if posterior.weights is not None or not posterior.compares:
        return []
    ends = list(accumulate((len(chain) for chain in posterior.chains), initial=0))
    return [(a, (a + b) // 2, b) for a, b in pairwise(ends)]


def _chain_means(posterior: Posterior, d: int, average: Average, sums: Sums) -> ChainMeans:
    """Return what each chain says of the cells of an average, of column d."""
    upto = {0: np.zeros_like(next(iter(sums.values()))), **sums}
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # half of one draw is none
        parts = [
            [average.estimate(upto[end] - upto[start]) for start, end in ((a, c), (a, b), (b, c))]
            for a, b, c in _halves(posterior)
        ]
    whole, first, second = np.array(parts).swapaxes(0, 1)
    return _within_candidates(posterior, d, ChainMeans(whole, first, second, average.sd()))


def _within_candidates(posterior: Posterior, d: int, means: ChainMeans) -> ChainMeans:
    """Return means whose spread over chains is that of a stacked estimate.

    Chains of one candidate differ by chance, those of two because the models do. With weights v_c
    of chains, those of the C_g chains of candidate g the same, an estimate sum_c v_c m_c has the
    variance sum_c v_c^2 (m_c - mean of g)^2 C_g / (C_g - 1). Nothing tells of a candidate with a
    single chain.
    """
    of = np.array(posterior.groups)
    if np.ptp(of) == 0:
        return means
    n, v = of.size, posterior.chain_weights(d)[:, None]
    # A candidate without weight in this column has no mean there, and says nothing.
    own = [np.where(v > 0.0, one, 0.0) for one in (means.whole, means.first, means.second)]
    means = ChainMeans(own[0], own[1], own[2], means.sd)
    whole = np.empty_like(means.whole)
    for group in np.unique(of):
        here = of == group
        size = int(here.sum())
        away = means.whole[here] - means.whole[here].mean(axis=0)
        whole[here] = n * v[here] * away * np.sqrt(size / max(size - 1, 1) * (n - 1) / n)
    return ChainMeans(whole, n * v * means.first, n * v * means.second, means.sd)


def _marginal(
    posterior: Posterior,
    d: int,
    rows: Array,
    average: Average,
    sums: Sums,
    at: Sequence[float],
    of_trials: Array | None = None,
) -> Marginal:
    """Return what an average says, recalibrated; of successes among trials, their number."""
    by, link = posterior.recalibration, posterior.links[d]
    error = np.full(rows.size, np.nan)
    if sums:
        error = _chain_means(posterior, d, average, sums).relative_error()
    if of_trials is not None:
        assert isinstance(link, Counting)
        return Marginal(rows, *link.summary_between(average, of_trials, tuple(at)), error)
    if by is None:
        return Marginal(rows, *average.result(tuple(at), lambda p: p), error)
    uncorrected = tuple(by.uncorrected(d, at))
    found = average.result(uncorrected, partial(by.of_levels, d))
    if isinstance(average, NumberAverage) and average.kept and by.tilts[d].any():
        ratio = average.sd_ratio(partial(by.corrected, d))
        found, error = found._replace(sd=found.sd * ratio), error / ratio
    return Marginal(rows, *found, error)


def nothing(link: Link, n_quantiles: int) -> Marginal:
    """Return the marginal predictive of no cell at all."""
    empty = np.empty(0)
    p = np.empty((0, of_levels(link).n_levels)) if link.discrete else None
    return Marginal(np.empty(0, dtype=np.intp), empty, empty, np.empty((0, n_quantiles)), p, empty)


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
        relative_error=np.concatenate([part.relative_error for part in parts]),
    )
