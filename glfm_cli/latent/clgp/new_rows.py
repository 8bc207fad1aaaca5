"""Where new rows lie, everything that rows share being fixed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.adam import GradientMoments, rate_at
from glfm_cli.latent.clgp.blocks import RowBlock, cut, each
from glfm_cli.latent.clgp.bound import EvaluatedBlock, backward, moments, place, row_penalties
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.draws import ClgpDraw
from glfm_cli.latent.clgp.features import Features, Inducing
from glfm_cli.latent.clgp.likelihoods import expected
from glfm_cli.latent.clgp.parameters import MOST_LOG, Places
from glfm_cli.latent.clgp.spreads import spreads
from glfm_cli.latent.clgp.starts import FIRST_SD
from glfm_cli.latent.clgp.table import ObservedTable
from glfm_cli.streams import FOLD, Streams

SCORED = 128  # rows of the fit that are tried as starts
TOGETHER = 8  # of them at a time: memory
NEAREST = 3  # of them that are ascended from, beside the origin
ITERATIONS, RATE = 60, 0.1  # iterations of a start, and their largest rate
COMPARED = 16  # samples that decide between starts


def fold_in(
    draw: ClgpDraw,
    config: ClgpConfig,
    table: ObservedTable,
    streams: Streams,
    pool: ThreadPoolExecutor | None = None,
) -> ClgpDraw:
    """Return the draw with the rows of another table, each where its bound is largest.

    Starts are the places of the fit's rows that explain a row's cells best, and the origin. The
    row's own part of the bound decides between them, under the same samples. O(n P S) an iteration.

    table : columns as those of the fit
    """
    if table.kinds != draw.kinds:
        raise ValueError("the columns are not those of the fit")
    inducing = Inducing.of(draw.shared)
    parts = cut(np.arange(table.n_rows))

    def one(number: int) -> Places:
        rng = streams.get(FOLD, number)
        return _placed(draw, config, table, parts[number], inducing, rng)

    found = list(each(pool, one, range(len(parts))))
    Q = draw.m.shape[1]
    m = np.concatenate([np.zeros((0, Q)), *(places.m for places in found)])
    log_sd = np.concatenate([np.zeros((0, Q)), *(places.log_sd for places in found)])
    places = Places(m, log_sd)
    return replace(draw, m=m, spread=spreads(table, places, draw.shared, config, pool))


def _placed(
    draw: ClgpDraw,
    config: ClgpConfig,
    table: ObservedTable,
    rows: Array,
    inducing: Inducing,
    rng: np.random.Generator,
) -> Places:
    """Return the places of a block of rows."""
    Q, n = draw.m.shape[1], rows.size
    own = np.arange(n)

    def drawn(samples: int) -> RowBlock:
        block = RowBlock.drawn(table, rows, samples, config.category_samples, Q, rng)
        return replace(block, rows=own)

    starts = _starts(draw, drawn, inducing, n)
    judge = drawn(COMPARED)
    best, value = Places(np.zeros((n, Q)), np.zeros((n, Q))), np.full(n, -np.inf)
    for m in starts:
        places = Places(m.copy(), np.full((n, Q), np.log(FIRST_SD)))
        moments_of = {name: GradientMoments.of(m) for name in ("m", "log_sd")}
        for t in range(ITERATIONS):
            local = _evaluated(draw, drawn(config.samples), places, inducing)
            g, _ = backward(local, places, draw.shared, inducing, 1.0, 1.0, of_weights=False)
            rate = rate_at(t, ITERATIONS, RATE)
            places.m += moments_of["m"].ascend(g.m, rate, t + 1)
            places.log_sd += moments_of["log_sd"].ascend(g.log_sd, rate, t + 1)
            places.log_sd = np.clip(places.log_sd, -MOST_LOG, 0.0)
        reached = _evaluated(draw, judge, places, inducing).rows() - row_penalties(places)
        better = reached > value
        value = np.where(better, reached, value)
        best.m[better], best.log_sd[better] = places.m[better], places.log_sd[better]
    return best


def _starts(
    draw: ClgpDraw, drawn: Callable[[int], RowBlock], inducing: Inducing, n: int
) -> list[Array]:
    """Return the places (n, Q) to ascend from: of the fit's rows that explain cells best, and 0."""
    N, Q = draw.m.shape
    origin = [np.zeros((n, Q))]
    tried = draw.m[np.unique(np.linspace(0, N - 1, min(SCORED, N)).astype(np.intp))]
    if not tried.size:
        return origin
    features = Features.of(tried, draw.shared, inducing)
    mean, var = moments(features, draw.shared)
    scores = []
    for start in range(0, tried.shape[0], TOGETHER):
        some = slice(start, start + TOGETHER)
        block = drawn(mean[some].shape[0])
        at = np.repeat(mean[some], n, axis=0), np.repeat(var[some], n, axis=0)
        cells = expected(block.cells, *at, draw.shared, draw.slots, block.logits)
        scores.append(cells.value.reshape(-1, n))
    score = np.concatenate(scores)
    first = np.argsort(-score, axis=0, kind="stable")[:NEAREST]
    return [tried[row] for row in first] + origin


def _evaluated(
    draw: ClgpDraw, block: RowBlock, places: Places, inducing: Inducing
) -> EvaluatedBlock:
    """Return a block under a draw."""
    features = place(block, places, draw.shared, inducing)
    return EvaluatedBlock.of(block, features, draw.shared, draw.slots)
