"""Predictive distributions of cells: averaged over draws, or one joint draw.

Two views of the law of eta, not to be confused:

- the *marginal* predictive of a cell averages probabilities, means and distribution functions
  over draws (never draws of x): estimates, intervals, probabilities;
- a *joint* draw takes one posterior draw for all gaps: multiple imputation.

Rows are visited in blocks, so that memory does not grow with rows x draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from glfm_cli._kernels._predictive import mixture_quantiles
from glfm_cli.arrays import Array
from glfm_cli.inference.executors import thread_pool
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.recalibration import LEAST
from glfm_cli.latent.model import EtaLaw
from glfm_cli.links.link import Link, NumericLink, Params, of_levels, of_numbers

BLOCK_ROWS = 1024
QUANTILE_DRAWS = 200  # draws whose averaged distribution function is inverted
PENDING = 1 << 18  # cells x draws of a column whose moments are computed at once
LARGEST = np.finfo(np.float64).max

Variance = float | Array


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
    shares = posterior.shares()
    pools = {d: _Pool(posterior, d, truth[d]) for d in cells if _is_corrected(posterior, d)}
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, n_rows))
        here = {d: (rows >= block.start) & (rows < block.stop) for d, rows in cells.items()}
        for draw, share in zip(posterior.draws(), shares, strict=True):
            law = posterior.model.eta_law(draw.latent, block)
            noise = posterior.model.draw_noise(draw.latent)
            for d, inside in here.items():
                index = cells[d][inside] - start
                for c in range(law.weight.shape[1] if index.size else 0):
                    eta, var = component(posterior, d, law, index, c, float(noise[d]))
                    x = truth[d][inside]
                    log_p = posterior.links[d].log_density(x, eta, var, draw.params[d])
                    log_p = log_p + np.log(share * law.weight[index, c])
                    scores[d][inside] = np.logaddexp(scores[d][inside], log_p)
                    if d in pools:
                        weight = share * law.weight[index, c]
                        pools[d].add(inside, weight, eta, var, draw.params[d])
    logs = {d: score - np.log(posterior.n_draws) for d, score in scores.items()}
    return {d: pools[d].corrected(log_p) if d in pools else log_p for d, log_p in logs.items()}


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
    noise = posterior.model.draw_noise(draw.latent)
    drawn: dict[int, list[Array]] = {d: [] for d in cells}
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, n_rows))
        eta = posterior.model.sample_eta(draw.latent, block, rng)
        for d, rows in cells.items():
            here = rows[(rows >= block.start) & (rows < block.stop)] - start
            if here.size:
                part = eta[here, _latent_columns(posterior, d)]
                link = posterior.links[d]
                drawn[d].append(link.sample(part, float(noise[d]), draw.params[d], rng))
    return {d: np.concatenate(part) if part else np.empty(0) for d, part in drawn.items()}


def below_and_within(link: NumericLink, x: Array, eta: Array, var: Variance) -> tuple[Array, Array]:
    """Return P(bounds allow X, X <= x) and P(bounds allow X)."""
    sd = np.sqrt(np.asarray(var) + link.noise)
    low, high = (ndtr((end - eta) / sd) for end in link.latent_bounds)
    return ndtr((link.upper_end(x) - eta) / sd) - low, high - low


# ------------------------------------------------------------------------------ accumulation


def _is_corrected(posterior: Posterior, d: int) -> bool:
    by = posterior.recalibration
    return by is not None and bool(by.exponents[d] != 1.0 or by.tilts[d].any())


class _Pool:
    """What recalibrating the log score of a column's cells needs: its whole forecasts."""

    def __init__(self, posterior: Posterior, d: int, truth: Array) -> None:
        self.link = posterior.links[d]
        self.correct = posterior.recalibration
        self.d = d
        self.truth = truth
        n_parts = of_levels(self.link).n_levels if self.link.discrete else 2
        self.total = np.zeros((truth.size, n_parts))

    def add(self, cells: Array, weight: Array, eta: Array, var: Variance, params: Params) -> None:
        """Take in one component of one draw for some of the cells."""
        if self.link.discrete:
            part = of_levels(self.link).probabilities(eta, var, params)
        else:
            x = self.truth[cells]
            part = np.column_stack(below_and_within(of_numbers(self.link), x, eta, var))
        self.total[cells] += weight[:, None] * part

    def corrected(self, log_p: Array) -> Array:
        """Return the recalibrated log scores, given those before."""
        assert self.correct is not None
        if not self.link.discrete:
            below, within = self.total.T
            return log_p + self.correct.log_factor(self.d, below / np.maximum(within, LEAST))
        a = self.correct.exponents[self.d]
        p = self.total / self.total.sum(axis=1, keepdims=True)
        out: Array = a * log_p - np.log(np.sum(p**a, axis=1))
        return out


class _Levels:
    """Averages the level probabilities of some cells over draws."""

    def __init__(self, posterior: Posterior, d: int, rows: Array) -> None:
        self.link = of_levels(posterior.links[d])
        self.correct = posterior.recalibration
        self.d = d
        self.rows = rows
        self.total = np.zeros((rows.size, self.link.n_levels))

    def add(self, weight: Array, eta: Array, var: Variance, params: Params) -> None:
        p = self.link.probabilities(eta, var, params)
        self.total += weight[:, None] * p

    def probabilities(self) -> Array:
        """Return the probabilities (n, R)."""
        p: Array = self.total / self.total.sum(axis=1, keepdims=True)
        return p if self.correct is None else self.correct.of_levels(self.d, p)

    def result(self, at: Sequence[float]) -> Marginal:
        p = self.probabilities()
        n = self.rows.size
        mean = sd = np.full(n, np.nan)
        quantiles = np.full((n, len(at)), np.nan)
        if self.link.ordered:
            codes = np.arange(p.shape[1])
            mean = p @ codes
            sd = np.sqrt(np.maximum(p @ codes**2 - mean**2, 0.0))
            cdf = np.cumsum(p, axis=1)
            for j, probability in enumerate(at):
                quantiles[:, j] = np.sum(cdf < probability - 1e-12, axis=1)
            np.clip(quantiles, 0, p.shape[1] - 1, out=quantiles)
        return Marginal(self.rows, mean, sd, quantiles, p)


class _Numbers:
    """Averages two moments (standard units) of some cells, and keeps eta for quantiles."""

    def __init__(self, posterior: Posterior, d: int, rows: Array) -> None:
        self.link = of_numbers(posterior.links[d])
        self.correct = posterior.recalibration
        self.d = d
        self.rows = rows
        self.n_draws = posterior.n_draws
        self.mass, self.first, self.second = np.zeros((3, rows.size))
        self.centre = np.zeros(rows.size)  # weighted sum of eta, then its mean
        self.pending: list[tuple[Array, Array, Array]] = []
        self.kept: list[tuple[Array, Array, Array]] = []

    def add(self, weight: Array, eta: Array, var: Variance) -> None:
        """Take in one component of one draw; several are evaluated at once, which is cheaper."""
        self.pending.append((weight, eta, np.broadcast_to(var, eta.shape)))
        if len(self.pending) * eta.size >= PENDING:
            self.flush()

    def flush(self) -> None:
        weight, eta, var = (np.concatenate([part[i] for part in self.pending]) for i in range(3))
        shape = (len(self.pending), self.rows.size)
        mass, first, second = self.link.standard_moments(eta, var, {})
        self.centre += (weight * eta).reshape(shape).sum(axis=0) / self.n_draws
        self.mass += (weight * mass).reshape(shape).sum(axis=0)
        self.first += (weight * first).reshape(shape).sum(axis=0)
        self.second += (weight * second).reshape(shape).sum(axis=0)
        self.pending = []

    def keep(self, weight: Array, eta: Array, var: Variance) -> None:
        """Remember one component for the quantiles."""
        sd = np.sqrt(np.broadcast_to(var, eta.shape) + self.link.noise)
        self.kept.append((weight, eta, sd))

    def result(self, at: Sequence[float]) -> Marginal:
        if self.pending:
            self.flush()
        quantiles = np.full((self.rows.size, len(at)), np.nan)
        lower, upper = self.link.latent_bounds
        if self.kept:
            weight, mean, sd = (
                np.ascontiguousarray(np.column_stack([kept[i] for kept in self.kept]))
                for i in range(3)
            )
            weight /= weight.sum(axis=1, keepdims=True)
            if self.correct is not None:
                at = self.correct.uncorrected(self.d, at)
            mixture_quantiles(mean, sd, weight, np.array(at), lower, upper, quantiles)
            quantiles = self.link.value(quantiles)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean = self.first / self.mass
            var = self.second / self.mass - mean**2
            mean_x = self.link.center + self.link.scale * mean
            sd_x = self.link.scale * np.sqrt(np.maximum(var, 0.0))
        np.clip(mean_x, -LARGEST, LARGEST, out=mean_x)
        np.minimum(sd_x, LARGEST, out=sd_x)
        outside = np.isnan(mean_x)
        if outside.any():  # no mass between the bounds: the end that is nearest
            mean_x[outside] = self.link.value(np.clip(self.centre[outside], lower, upper))
            sd_x[outside] = 0.0
        return Marginal(self.rows, mean_x, sd_x, quantiles, None)


def _predict_block(
    posterior: Posterior,
    block: slice,
    cells: Mapping[int, Array],
    at: Sequence[float],
    numeric_quantiles: bool,
) -> dict[int, Marginal]:
    levels = {d: _Levels(posterior, d, r) for d, r in cells.items() if posterior.links[d].discrete}
    numbers = {d: _Numbers(posterior, d, r) for d, r in cells.items() if d not in levels}
    n_draws = posterior.n_draws
    n_kept = min(n_draws, QUANTILE_DRAWS) if at and numeric_quantiles else 0
    keep = set(np.linspace(0, n_draws - 1, n_kept).round().astype(int).tolist())
    shares = posterior.shares()
    for t, draw in enumerate(posterior.draws()):
        law = posterior.model.eta_law(draw.latent, block)
        noise = posterior.model.draw_noise(draw.latent)
        for d, rows in cells.items():
            index = rows - block.start
            for c in range(law.weight.shape[1]):
                weight = shares[t] * law.weight[index, c]
                eta, var = component(posterior, d, law, index, c, float(noise[d]))
                if d in levels:
                    levels[d].add(weight, eta, var, draw.params[d])
                    continue
                numbers[d].add(weight, eta, var)
                if t in keep:
                    numbers[d].keep(weight, eta, var)
    return {d: (levels[d] if d in levels else numbers[d]).result(at) for d in cells}


def component(
    posterior: Posterior, d: int, law: EtaLaw, index: Array, c: int, noise: float
) -> tuple[Array, Variance]:
    """Return eta and the total variance of y for component `c` of a law of eta, for one column.

    `index` are the rows wanted among those of the law, `noise` is the column's noise variance.
    """
    # No views of more columns than these: parts are kept, and would keep all the others alive.
    at = _latent_columns(posterior, d)
    eta = law.mean[index, c, at]
    if law.var is None:
        return eta, noise
    var = law.var[index, c, at]
    # Links of several columns take one variance a row.
    return eta, (var if var.ndim == 1 else var.mean(axis=1)) + noise


def _latent_columns(posterior: Posterior, d: int) -> int | slice:
    """Return where column `d` stands among the latent ones, so that a single one loses its axis."""
    start, end = posterior.spans[d]
    return start if posterior.links[d].n_latent == 1 else slice(start, end)


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
