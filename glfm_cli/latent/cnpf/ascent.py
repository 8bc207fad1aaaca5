"""One pass of coordinate ascent over all rows: rows, locations, weights, their rate, columns.

Each part raises the bound given the others. The bound is that of the rows just visited, given what
the pass before left: no extra pass is needed for it.
"""

from __future__ import annotations

from dataclasses import replace

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.cnpf.bound import bound_of
from glfm_cli.latent.cnpf.columns import update_columns
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.locations import update_locations
from glfm_cli.latent.cnpf.rows import LeftOut, Rows, count_columns, leave_out, sum_rates, visit_rows
from glfm_cli.latent.cnpf.tables import Globals, Tables, columns_of, padded, tables_of
from glfm_cli.latent.cnpf.weights import settle_weights, update_weights

FIRST_PASSES, FIRST_ROUNDS = 5, 3  # rows settle for longer in the first passes
LAST_PASSES, SHARPER = 50, 0.2  # that settle columns, with a share of the shape of their prior
ROWS_EVERY = 5  # of these passes renew v, locations and weights


def run_pass(
    config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts, each: Each, number: int
) -> float:
    """Renew rows and what they share, in place; return the bound after the rows.

    number : of the pass, from 0: weights and locations stay as they are in the first
    """
    tables = tables_of(config, shared, counts, columns_of(config, counts))
    visit_rows(rows, counts, tables, each, FIRST_ROUNDS if number < FIRST_PASSES else 1)
    bound = bound_of(config, shared, rows, counts)
    of_columns = count_columns(rows, counts, tables, each)
    if number >= config.free_pass:
        free = number >= config.locations_pass(counts.shape[0])
        R = move_locations(shared, rows, counts, tables, each, free)
        update_weights(shared, rows, counts, R, each, config.concentration / config.components)
        update_rate(config, shared)
    update_columns(config, shared, rows, counts, tables, of_columns, 1.0, each)
    return bound


def move_locations(
    shared: Globals, rows: Rows, counts: Counts, tables: Tables, each: Each, free: bool
) -> Array:
    """Move the locations if they are free, and renew the rates; return R (T,) of the weights."""
    log_r = update_locations(shared, rows, counts, tables, each, free)
    log_rate = sum_rates(rows, counts, tables, tables.w, each)[0]
    R: Array = shared.c + (log_rate - log_r)[: shared.w.size]
    return R


def update_rate(config: CnpfConfig, shared: Globals) -> None:
    """Set c to the mode of log c given the weights."""
    shape = config.concentration + config.rate_shape
    shared.c = shape / (float(shared.w.sum()) + config.rate_rate)


def settle(
    config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts, each: Each
) -> tuple[CnpfConfig, Tables]:
    """Settle columns, rows, locations and weights in place for forecasts.

    Returns the columns' prior, and tables.

    The prior that lets components take shape smooths columns too much where a component has few
    counts for many of them, logarithms' means make shares too certain, and each cell's own count
    confirms how it was split: passes at the end have a weaker prior, and shares of the mean step
    that rest on other cells. Weights follow, lest locations make up for weights of the bound, which
    are too small for such shares, and end all alike. They are no coordinate steps of the bound.
    """
    config = replace(config, column_shape=max(config.column_shape * SHARPER, 0.01))
    shared.column_rate *= SHARPER
    columns, parts = columns_of(config, counts), LeftOut.of(counts.count.size)
    shape = config.concentration / config.components
    for number in range(min(LAST_PASSES, config.passes_of(counts.shape[0]))):
        tables = tables_of(config, shared, counts, columns, mean_step=True)
        if number % ROWS_EVERY == 0:
            n = rows.n.copy()
            visit_rows(rows, counts, tables, each, 1, mean_step=True)
            if number:
                rows.n[:] = n
                R = move_locations(shared, rows, counts, tables, each, True)
                if config.n_locations:
                    settle_weights(shared, rows, counts, R, each, shape)
                    update_rate(config, shared)
                    tables = replace(tables, w=padded(shared.w))
        leave_out(rows, counts, tables, shared.A, parts, each)
        of_columns = count_columns(rows, counts, tables, each, parts)
        update_columns(config, shared, rows, counts, tables, of_columns, 1.0, each)
    return config, tables_of(config, shared, counts, columns, mean_step=True)
