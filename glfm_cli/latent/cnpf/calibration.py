"""Whole fits outside the driver: restarts, and the factor tau of the weights of new rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli.arrays import Array
from glfm_cli.errors import TableError
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import CnpfDraw
from glfm_cli.latent.cnpf.masks import hide_columns
from glfm_cli.latent.cnpf.prediction import cell_shares, fold_in, p_any
from glfm_cli.latent.model import Progress
from glfm_cli.streams import CHECKS, FOLD, Streams

VALIDATION = 0.15  # of the rows that tau is chosen on
MOST_VALIDATED = 1_000  # rows
TAUS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
LEAST_VALIDATED = 3  # rows with counts, below which tau is 1
ALIKE = 0.01  # share of the bound by which restarts differ that predict as well
MASK = 1 << 22  # cells of new rows that are hidden or not at a time


@dataclass(frozen=True)
class Factors:
    """Finished restarts, that of the largest bound first.

    draws, bounds : of each; bounds are NaN of minibatches
    weights : of each, by which they predict together
    """

    draws: tuple[CnpfDraw, ...]
    bounds: tuple[float, ...]
    weights: tuple[float, ...]
    warnings: tuple[str, ...]

    def with_tau(self, tau: float) -> Factors:
        """Return the restarts with a factor of the weights of new rows."""
        return replace(self, draws=tuple(replace(draw, tau=tau) for draw in self.draws))

    def fold_in(self, counts: Counts, config: CnpfConfig) -> Factors:
        """Return the restarts with other rows in place of their own."""
        return replace(self, draws=tuple(fold_in(draw, counts, config) for draw in self.draws))

    def perplexity(self, seen: Counts, hidden: Counts, config: CnpfConfig) -> float:
        """Return exp(- mean log p) of the hidden counts of other rows, pooled over these.

        seen : the rows' counts, those of `hidden` missing pairs
        """
        shares = [cell_shares(draw, hidden) for draw in self.fold_in(seen, config).draws]
        p = np.average(shares, axis=0, weights=self.weights)
        return float(np.exp(-(hidden.count * np.log(p)).sum() / hidden.count.sum()))

    def rates(self, rows: slice) -> Array:
        """Return the expected counts (n, I) of a run of rows."""
        parts = zip(self.weights, self.draws, strict=True)
        total: Array = sum(
            weight * draw.size[rows, None] * (draw.mean_x[rows] @ draw.mean_a.T)
            for weight, draw in parts
        )
        return total

    def p_any(self, rows: slice) -> Array:
        """Return the probabilities (n, I) of a count of at least one, of a run of rows."""
        found = self.weights[0] * p_any(self.draws[0], rows)
        for weight, draw in zip(self.weights[1:], self.draws[1:], strict=True):
            found += weight * p_any(draw, rows)
        return found


def weights_of(bounds: Array) -> Array:
    """Return the softmax of bounds in units of what restarts as good as the best differ by.

    The average of their rates predicts better than the best alone.
    """
    weights: Array = softmax(bounds / (ALIKE * np.abs(bounds).max() + 1.0))
    return weights


def fit_factors(counts: Counts, config: CnpfConfig, seed: int, restarts: int) -> Factors:
    """Return restarts from different starts; minibatches have no bound, and are run once."""
    whole = config.minibatch_of(counts.shape[0]) == counts.shape[0]
    fits = [_ascend(counts, config, Streams(seed, i)) for i in range(restarts if whole else 1)]
    fits.sort(key=lambda fit: -fit[1])
    draws, bounds, warnings = zip(*fits, strict=True)
    weights = weights_of(np.array(bounds)) if whole else np.ones(1)
    return Factors(draws, bounds, tuple(weights.tolist()), warnings[0])


def _ascend(
    counts: Counts, config: CnpfConfig, streams: Streams
) -> tuple[CnpfDraw, float, tuple[str, ...]]:
    """Return the last snapshot of a restart, its bound, and what a user should know."""
    state = engine.start(counts, config, streams)
    progress = Progress()
    while not progress.done:
        progress = engine.step(state, counts, streams)
    bound = math.nan if progress.bound is None or progress.noisy else progress.bound
    return engine.draw(state, counts), bound, tuple(engine.warnings(state, counts))


def chosen_tau(
    counts: Counts, config: CnpfConfig, seed: int, observed: float, restarts: int
) -> float:
    """Return the tau that predicts best in rows left out, of which a share is observed.

    Fifteen per cent of the rows are left out, a thousand at most, and the rest is fitted.
    """
    rng = Streams(seed, 0).get(CHECKS)
    order = rng.permutation(counts.shape[0])
    n_out = min(int(VALIDATION * order.size), MOST_VALIDATED)
    out, rest = np.sort(order[:n_out]), np.sort(order[n_out:])
    if np.count_nonzero(counts.row_totals[out]) < LEAST_VALIDATED:
        return 1.0
    parts = list(_hidden(counts.take(out), observed, rng))
    if not parts or not counts.row_totals[rest].any():
        return 1.0
    fitted = fit_factors(counts.take(rest), config, seed, restarts)
    found = {tau: _pooled(fitted.with_tau(tau), parts, config) for tau in TAUS}
    return min(found, key=lambda tau: found[tau])


def held_out_perplexity(
    fitted: Factors, counts: Counts, config: CnpfConfig, observed: float, seed: int
) -> float:
    """Return the perplexity of new rows' columns hidden at random, given the others.

    A column is observed with probability `observed`, in each row by itself, zeros included; p is
    over all columns, and rows are pooled.
    """
    return _pooled(fitted, _hidden(counts, observed, Streams(seed, 0).get(FOLD)), config)


def _hidden(
    counts: Counts, observed: float, rng: np.random.Generator
) -> Iterator[tuple[Counts, Counts]]:
    """Yield runs of rows with columns hidden at random, and what is hidden, where counts are.

    Memory for cells of `MASK` at a time; which are hidden does not depend on it.
    """
    n_rows, n_columns = counts.shape
    size = max(1, MASK // n_columns)
    for start in range(0, n_rows, size):
        part = counts.take(np.arange(start, min(start + size, n_rows)))
        seen, hidden = hide_columns(part, rng.random(part.shape) < observed)
        if hidden.count.size:
            yield seen, hidden


def _pooled(
    fitted: Factors, parts: Iterable[tuple[Counts, Counts]], config: CnpfConfig
) -> float:
    """Return the perplexity of the hidden counts of all parts together.

    Raises TableError: there are none.
    """
    log_p = total = 0.0
    for seen, hidden in parts:
        y = float(hidden.count.sum())
        log_p -= y * float(np.log(fitted.perplexity(seen, hidden, config)))
        total += y
    if not total:
        raise TableError("no count is hidden", hint="Give more rows, or a smaller `observed`.")
    return float(np.exp(-log_p / total))


def likeliest(p: Array, n: int, counts: Counts, start: int) -> tuple[Array, Array]:
    """Return the columns (rows, n) of the largest p where a row has no count yet, and these.

    p : (rows, I), overwritten where there is a count;  start : number of the first row
    """
    side = counts.rows
    ends = side.indptr[start : start + p.shape[0] + 1]
    row = np.repeat(np.arange(p.shape[0]), np.diff(ends))
    p[row, side.index[ends[0] : ends[-1]]] = -np.inf
    column = np.argsort(-p, axis=1, kind="stable")[:, :n]
    value = np.take_along_axis(p, column, axis=1)
    nothing = np.isneginf(value)
    return np.where(nothing, -1, column), np.where(nothing, np.nan, value)
