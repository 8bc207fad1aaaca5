"""Whole fits outside the driver: restarts, and the factor tau of the weights of new rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import TableError
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import CnpfDraw
from glfm_cli.latent.cnpf.engine import CnpfEngine
from glfm_cli.latent.cnpf.masks import hide_columns
from glfm_cli.latent.cnpf.prediction import choose_tau, fold_in, perplexity, unigram_of
from glfm_cli.latent.model import Progress
from glfm_cli.streams import CHECKS, FOLD, Streams

VALIDATION = 0.15  # of the rows that tau is chosen on
MOST_VALIDATED = 1_000  # rows
LEAST_VALIDATED = 3  # rows with counts, below which tau is 1
MASK = 1 << 22  # cells of new rows that are hidden or not at a time

_MODEL = CnpfEngine()


@dataclass(frozen=True)
class Factors:
    """A finished fit.

    draw : of the restart of the largest bound;  bound : that bound, NaN of minibatches
    bounds : of all restarts
    """

    draw: CnpfDraw
    bound: float
    warnings: tuple[str, ...]
    bounds: tuple[float, ...] = ()


def fit_factors(counts: Counts, config: CnpfConfig, seed: int, restarts: int) -> Factors:
    """Return the restart of the largest bound; minibatches have none, and are run once."""
    whole = config.minibatch_of(counts.shape[0]) == counts.shape[0]
    fits = (
        _ascend(counts, config, Streams(seed, index)) for index in range(restarts if whole else 1)
    )
    best = next(fits)
    bounds = [best.bound]
    for other in fits:
        bounds.append(other.bound)
        if other.bound > best.bound:
            best = other
    return replace(best, bounds=tuple(bounds))


def _ascend(counts: Counts, config: CnpfConfig, streams: Streams) -> Factors:
    state = _MODEL.start(counts, config, streams)
    progress = Progress()
    while not progress.done:
        progress = _MODEL.step(state, counts, streams)
    bound = math.nan if progress.bound is None or progress.noisy else progress.bound
    return Factors(_MODEL.draw(state, counts), bound, tuple(_MODEL.warnings(state)))


def chosen_tau(counts: Counts, config: CnpfConfig, seed: int, observed: float) -> float:
    """Return the tau that predicts best in rows left out, of which a share is observed.

    Fifteen per cent of the rows are left out, a thousand at most, and the rest is fitted once.
    """
    rng = Streams(seed, 0).get(CHECKS)
    order = rng.permutation(counts.shape[0])
    n_out = min(int(VALIDATION * order.size), MOST_VALIDATED)
    out, rest = np.sort(order[:n_out]), np.sort(order[n_out:])
    if np.count_nonzero(counts.row_totals[out]) < LEAST_VALIDATED:
        return 1.0
    left = counts.take(out)
    seen, hidden = hide_columns(left, rng.random(left.shape) < observed)
    if not hidden.count.size or not counts.row_totals[rest].any():
        return 1.0
    fitted = fit_factors(counts.take(rest), config, seed, restarts=1)
    return choose_tau(fitted.draw, seen, hidden, config)[0].tau


def held_out_perplexity(
    draw: CnpfDraw, counts: Counts, config: CnpfConfig, observed: float, seed: int
) -> float:
    """Return the perplexity of new rows' columns hidden at random, given the others.

    A column is observed with probability `observed`, in each row by itself, zeros included; p is
    over all columns, and rows are pooled.
    """
    rng = Streams(seed, 0).get(FOLD)
    n_rows, n_columns = counts.shape
    size = max(1, MASK // n_columns)
    log_p = total = 0.0
    for start in range(0, n_rows, size):
        part = counts.take(np.arange(start, min(start + size, n_rows)))
        seen, hidden = hide_columns(part, rng.random(part.shape) < observed)
        if not hidden.count.size:
            continue
        value = perplexity(fold_in(draw, seen, config), hidden, unigram_of(counts))
        y = float(hidden.count.sum())
        log_p, total = log_p + y * float(np.log(value)), total + y
    if not total:
        raise TableError("no count is hidden", hint="Give more rows, or a smaller `observed`.")
    return float(np.exp(log_p / total))


def likeliest(rates: Array, n: int, counts: Counts, start: int) -> tuple[Array, Array]:
    """Return the columns and rates (rows, n) of the largest rates where a row has no count yet.

    rates : (rows, I), overwritten where there is a count;  start : number of the first row
    """
    side = counts.rows
    ends = side.indptr[start : start + rates.shape[0] + 1]
    row = np.repeat(np.arange(rates.shape[0]), np.diff(ends))
    rates[row, side.index[ends[0] : ends[-1]]] = -np.inf
    column = np.argsort(-rates, axis=1, kind="stable")[:, :n]
    value = np.take_along_axis(rates, column, axis=1)
    nothing = np.isneginf(value)
    return np.where(nothing, -1, column), np.where(nothing, np.nan, value)
