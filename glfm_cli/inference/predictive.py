"""Predictive distributions of cells, averaged over draws: estimates, intervals, probabilities.

Probabilities, means and distribution functions are averaged, never draws of x. What hangs together
in a row is lost so; joint draws keep it (one_draw.py).

Rows are visited in blocks, so that memory does not grow with rows x draws.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from glfm_cli.arrays import Array
from glfm_cli.inference.chain_means import ChainMeans, Sums, ends_of_halves, means_of_chains
from glfm_cli.inference.executors import thread_pool
from glfm_cli.inference.lone_cells import parts_of
from glfm_cli.inference.one_draw import BLOCK_ROWS, NO_ENDS, Ends, known_of
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.recalibration import sd_of
from glfm_cli.links import Link, of_levels, of_numbers
from glfm_cli.links.averages import NumberAverage
from glfm_cli.links.observation import Average, Counting

MOST_BLOCK_ROWS = 8192
KEPT = 1 << 23  # normals that are kept for quantiles at once, where all cells are missing
QUANTILE_DRAWS = 200  # draws whose averaged distribution function is inverted
LEAST_LEVEL = 1e-12  # probability of a level that is possible
ROUNDING = 1e-12
SAMPLES = 400  # of a cell that is known to lie between two numbers


@dataclass(frozen=True)
class Marginal:
    """The marginal predictive of some cells of one column.

    rows : (n,) row indices
    mean, sd : (n,) of the value, or of the level code of an ordinal column; NaN for categorical.
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

    def at_levels(self, numbers: Array) -> Marginal:
        """Return that of ordered levels with mean and sd of their numbers (R,), not of their codes.

        The relative error stays that of the mean code, which it is where numbers are evenly spaced.
        """
        assert self.probabilities is not None
        mean = self.probabilities @ numbers
        away = numbers - mean[:, None]
        return replace(self, mean=mean, sd=np.sqrt(np.sum(self.probabilities * away**2, axis=1)))

    def among(self, possible: NDArray[np.bool_], at: Sequence[float]) -> Marginal:
        """Return that of levels given that they are among those possible (n, R).

        at : the probabilities of the quantiles
        """
        assert self.probabilities is not None
        p = np.where(possible, np.maximum(self.probabilities, LEAST_LEVEL), 0.0)
        p /= p.sum(axis=1, keepdims=True)
        cut = ~possible.all(axis=1)
        p[~cut] = self.probabilities[~cut]
        if np.isnan(self.mean).all():
            return replace(self, probabilities=p)
        codes, quantiles = np.arange(p.shape[1]), self.quantiles.copy()
        upto = np.cumsum(p[cut], axis=1)
        for k, one in enumerate(at):
            quantiles[cut, k] = np.sum(upto < one - ROUNDING, axis=1)
        found = replace(self, probabilities=p).at_levels(codes.astype(np.float64))
        mean, sd = (np.where(cut, a, b) for a, b in ((found.mean, self.mean), (found.sd, self.sd)))
        return replace(found, mean=mean, sd=sd, quantiles=quantiles)

    @property
    def mcse(self) -> Array:
        """The Monte Carlo standard error (n,), in the unit of what it is of."""
        p = None if self.probabilities is None else self.probabilities.max(axis=1, initial=0.0)
        sd = self.sd if p is None else np.where(np.isnan(self.sd), np.sqrt(p * (1 - p)), self.sd)
        return self.relative_error * sd


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
    found: dict[int, list[Marginal]] = {d: [] for d in cells}
    parts = parts_of(posterior, cells)
    for part, places in parts:
        some = {d: rows[places[d]] for d, rows in cells.items()}
        known = {d: own[places[d]] for d, own in ends.items()}
        for d, one in _predict(part, some, at, numeric_quantiles, threads, known).items():
            found[d].append(one)
    if len(parts) == 1:
        return {d: one for d, (one,) in found.items()}
    whole = {d: _joined(posterior.links[d], own, len(at)) for d, own in found.items()}
    return {d: one.take(np.argsort(one.rows, kind="stable")) for d, one in whole.items()}


def _predict(
    posterior: Posterior,
    cells: Mapping[int, Array],
    at: Sequence[float],
    numeric_quantiles: bool,
    threads: int,
    ends: Ends,
) -> dict[int, Marginal]:
    """Return what `predict` does, of cells that have the same corrections."""
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    counted = {d for d in ends if isinstance(posterior.links[d], Counting)}

    size, by = rows_of_block(posterior), posterior.recalibration
    wanted = {d: at if numeric_quantiles or posterior.links[d].discrete else () for d in cells}
    kept = {d for d in cells if wanted[d] or (by is not None and by.tilts[d].any())}

    def block(start: int) -> dict[int, Marginal]:
        end = min(start + size, n_rows)
        inside = {d: slice(*np.searchsorted(rows, [start, end])) for d, rows in cells.items()}
        here = {d: rows[inside[d]] for d, rows in cells.items()}
        here = {d: rows for d, rows in here.items() if rows.size}
        index = {d: rows - start for d, rows in here.items()}
        found = _average(posterior, slice(start, end), index, kept)
        of_trials = {d: ends[d][inside[d]] for d in counted}
        return {
            d: _marginal(posterior, d, here[d], *one, wanted[d], of_trials.get(d))
            for d, one in found.items()
        }

    parts: dict[int, list[Marginal]] = {d: [] for d in cells}
    with thread_pool(threads) as pool:
        each = map if pool is None else pool.map
        for found in each(block, range(0, n_rows, size)):
            for d, part in found.items():
                parts[d].append(part)
    found = {d: _joined(posterior.links[d], part, len(wanted[d])) for d, part in parts.items()}
    for d, one in found.items():
        if len(wanted[d]) < len(at):
            found[d] = replace(one, quantiles=np.full((one.rows.size, len(at)), np.nan))
    between = {d: known for d, known in ends.items() if d not in counted}
    return found | {
        d: _with_ends(posterior, d, found[d], known, at) for d, known in between.items()
    }


def rows_of_block(posterior: Posterior) -> int:
    """Return how many rows `predict` visits at once: a power of 2, whatever is asked of them."""
    kept = max(1, len(posterior.links) * min(posterior.n_draws, QUANTILE_DRAWS))
    return max(BLOCK_ROWS, min(MOST_BLOCK_ROWS, 1 << (max(KEPT // kept, 1).bit_length() - 1)))


def chain_means(posterior: Posterior, cells: Mapping[int, Array]) -> dict[int, ChainMeans]:
    """Return what each of several chains says of some cells, few enough for one block of rows."""
    rows = np.unique(np.concatenate([np.empty(0, np.intp), *cells.values()]))
    index = {d: np.searchsorted(rows, at) for d, at in cells.items()}
    found = _average(posterior, rows, index, ())
    return {d: means_of_chains(posterior, d, *one) for d, one in found.items()}


def _with_ends(
    posterior: Posterior, d: int, whole: Marginal, ends: Array, at: Sequence[float]
) -> Marginal:
    """Return a marginal, its cells that lie between known ends by one sample of each of some draws.

    A draw's law of such a cell is that of a cell of which nothing is known, cut off at the ends;
    draws keep their weights, since they were made knowing them.
    """
    inside, known = known_of(ends)
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
            every = np.tile(np.arange(known[some].shape[0]), n)  # so the link is asked once
            own = law.column(d).take(every)
            samples.append(link.sample_between(own, params[d], rng, known[some][every]))
        x, cells = np.concatenate(samples).reshape(SAMPLES, -1), inside[some]
        mean[cells], sd[cells] = x.mean(axis=0), x.std(axis=0)
        found = np.quantile(x, np.array(at), axis=0).T
        quantiles[cells] = np.rint(found) if link.integral else found
    return Marginal(whole.rows, mean, sd, quantiles, None, error)


def _average(
    posterior: Posterior, rows: slice | Array, index: Mapping[int, Array], kept: Collection[int]
) -> dict[int, tuple[Average, Sums]]:
    """Return averages over draws, by column, and their sums where a chain or its half ends.

    `index` has the cells of a column as places among the rows, `kept` the columns of numbers whose
    distribution functions are needed.
    """
    n_draws = posterior.n_draws
    averages = {d: posterior.links[d].average(at.size, n_draws) for d, at in index.items()}
    n_kept = min(n_draws, QUANTILE_DRAWS) if kept else 0
    keep = set(np.linspace(0, n_draws - 1, n_kept).round().astype(int).tolist())
    ends = sorted({end for bounds in ends_of_halves(posterior) for end in bounds if end > 0})
    shares = {d: posterior.shares(d) for d in index}
    for t, draw in enumerate(posterior.draws()):
        law = posterior.cells_law(draw, rows)
        for d, at in index.items():
            keeps = t in keep and d in kept
            averages[d].add(law.column(d, at), draw.params[d], shares[d][t], quantiles=keeps)
            if t + 1 in ends:
                averages[d].mark()
    return {d: (one, dict(zip(ends, one.marked(), strict=True))) for d, one in averages.items()}


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
        error = means_of_chains(posterior, d, average, sums).relative_error()
    if of_trials is not None:
        assert isinstance(link, Counting)
        return Marginal(rows, *link.summary_between(average, of_trials, tuple(at)), error)
    if by is None:
        return Marginal(rows, *average.result(tuple(at), lambda p: p), error)
    if not (isinstance(average, NumberAverage) and average.kept and by.tilts[d].any()):
        return Marginal(rows, *average.result(tuple(at), partial(by.of_levels, d)), error)
    sd = sd_of(*average.latent_moments())
    found = average.result(by.uncorrected(d, at, sd), lambda p: p)
    mean, ratio = average.corrected(lambda F: by.corrected(d, F, sd))
    return Marginal(rows, *found._replace(mean=mean, sd=found.sd * ratio), error / ratio)


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
