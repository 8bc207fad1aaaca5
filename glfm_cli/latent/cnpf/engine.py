"""A fit of the Poisson factorization: its start, its steps, and the snapshot that it ends with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glfm_cli.errors import NumericalError
from glfm_cli.latent.blocks import Each, thread_pool
from glfm_cli.latent.cnpf.ascent import run_pass, settle
from glfm_cli.latent.cnpf.bound import rounding_of
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import CnpfDraw, draw_of
from glfm_cli.latent.cnpf.excess import excess_of
from glfm_cli.latent.cnpf.merges import DEAD, merge_components, shares
from glfm_cli.latent.cnpf.rows import visit_rows
from glfm_cli.latent.cnpf.starts import start_new_rows, start_rows, start_shared
from glfm_cli.latent.cnpf.state import WINDOW, CnpfState
from glfm_cli.latent.cnpf.stochastic import Averages, rate_of, run_minibatch
from glfm_cli.latent.cnpf.tables import columns_of, tables_of
from glfm_cli.latent.model import Progress
from glfm_cli.streams import ROWS, START, Streams

FALL = 1e-8  # relative fall of the bound that is more than rounding
ROUNDS = 25  # of rows that start anew
NOTHING = 1e-12  # a weight
HEAVY = 0.2  # share of the counts in the largest hundredth of the cells that hides the others


def start(counts: Counts, config: CnpfConfig, streams: Streams) -> CnpfState:
    """Return columns near the unigram, and rows spread over the components."""
    rng = streams.get(START)
    if config.minibatch_of(counts.shape[0]) == counts.shape[0]:
        rows = start_rows(config, counts, rng)
        return CnpfState(config, start_shared(config, counts, rng), rows)
    shared = start_shared(config, counts, rng)
    order = np.arange(counts.shape[0])
    return CnpfState(config, shared, None, order=order, averages=Averages.of(config))


def step(state: CnpfState, counts: Counts, streams: Streams) -> Progress:
    """Make one pass over all rows, or one step from a minibatch of them.

    Raises NumericalError: the bound is no number, or it fell.
    """
    with thread_pool(counts.threads) as each:
        if state.rows is None:
            return _minibatch(state, counts, streams, each)
        return _pass(state, counts, each)


def _pass(state: CnpfState, counts: Counts, each: Each) -> Progress:
    config, rows = state.config, state.rows
    assert rows is not None
    bound = run_pass(config, state.shared, rows, counts, each, state.steps)
    rounding = rounding_of(counts)
    _check(bound, state.bounds, rounding)
    state.bounds = [*state.bounds, bound][-WINDOW:]
    state.steps += 1
    rise = bound - state.bounds[0]
    free = config.locations_pass(counts.shape[0])
    settled = state.steps >= free + WINDOW and len(state.bounds) == WINDOW
    settled = settled and rise < config.tolerance * abs(bound)
    every = config.merge_every
    if every and state.steps > config.free_pass and (settled or state.steps % every == 0):
        found = merge_components(config, state.shared, rows, counts, each, state.steps)
        state.shared, state.rows, merged = found
        settled = settled and not merged
    last = state.steps >= config.passes_of(counts.shape[0])
    return Progress(bound, settled or last, rounding=rounding)


def _minibatch(state: CnpfState, counts: Counts, streams: Streams, each: Each) -> Progress:
    config, n_rows = state.config, counts.shape[0]
    size = config.minibatch_of(n_rows)
    per_epoch = n_rows // size
    epoch, place = divmod(state.steps, per_epoch)
    if place == 0:
        state.order = streams.get(ROWS).permutation(n_rows)
    rows = np.sort(state.order[place * size : (place + 1) * size])
    assert state.averages is not None
    bound = run_minibatch(
        config,
        state.shared,
        state.averages,
        counts.take(rows),
        n_rows,
        rate_of(config, state.steps),
        first=state.steps == per_epoch,
        free=epoch > 0,
        each=each,
    )
    state.steps += 1
    done = state.steps >= config.passes_of(n_rows) * per_epoch
    return Progress(bound, done, noisy=True)


def draw(state: CnpfState, counts: Counts) -> CnpfDraw:
    """Return a snapshot, columns and rows settled for forecasts."""
    config, shared = state.config, state.shared.copy()
    columns = columns_of(config, counts)
    with thread_pool(counts.threads) as each:
        if state.rows is None:
            rows = start_new_rows(config, counts, shared.w)
            visit_rows(rows, counts, tables_of(config, shared, counts, columns), each, ROUNDS)
        else:
            rows = state.rows.copy()
        dead = shares(rows, shared.w.size) <= DEAD
        shared.w[dead] = NOTHING  # lest shares that rest on other cells bring it back
        rows.n[:, np.flatnonzero(dead)] = 0.0
        config, tables = settle(config, shared, rows, counts, each)
        visit_rows(rows, counts, tables, each, 1, mean_step=True)
    draw = draw_of(config, shared, columns, rows, tables, counts.row_totals, config.tau)
    return replace(draw, excess=excess_of(config, draw, counts))


def trace(state: CnpfState) -> dict[str, float]:
    """Return the bound, the live components, the sum of weights and their rate c."""
    w = state.shared.w
    own = {"weight_sum": float(w.sum()), "weight_rate": state.shared.c}
    if state.bounds:
        own["bound"] = state.bounds[-1]
    if state.rows is not None:
        live = shares(state.rows, w.size) > DEAD
        own["components"] = float(live.sum())
    return own


def warnings(state: CnpfState, counts: Counts) -> list[str]:
    """Return what a user should know of a finished fit."""
    T, found = state.config.components, []
    if state.rows is not None and bool(np.all(shares(state.rows, T) > DEAD)):
        found.append(f"all {T} components are in use; the setting `components` allows more")
    few = -(-counts.count.size // 100)
    largest = float(np.sort(counts.count)[-few:].sum()) / max(counts.count.sum(), 1)
    if few > 1 and largest > HEAVY:
        found.append(
            f"{largest:.0%} of all counts are in 1 % of the cells, which the fit is about; "
            "with 1 + floor(log2 count) in their place every cell says about as much"
        )
    return found


def _check(bound: float, before: list[float], rounding: float) -> None:
    """Raise NumericalError when the bound is no number or fell by more than rounding."""
    if not np.isfinite(bound):
        raise NumericalError("the bound of the Poisson factorization is not a finite number")
    if before and bound < before[-1] - max(FALL * abs(bound), rounding):
        raise NumericalError(
            f"the bound of the Poisson factorization fell from {before[-1]:.10g} to {bound:.10g}"
        )
