"""One pass of coordinate ascent over all rows: rows, locations, weights, their rate, columns.

Each part raises the bound given the others. The bound is that of the rows just visited, given what
the pass before left: no extra pass is needed for it.
"""

from __future__ import annotations

from glfm_cli.latent.blocks import Each
from glfm_cli.latent.cnpf.bound import bound_of
from glfm_cli.latent.cnpf.columns import update_columns
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.locations import update_locations
from glfm_cli.latent.cnpf.rows import Rows, count_columns, sum_rates, visit_rows
from glfm_cli.latent.cnpf.tables import Globals, columns_of, tables_of
from glfm_cli.latent.cnpf.weights import update_weights

FIRST_PASSES, FIRST_ROUNDS = 5, 3  # rows settle for longer in the first passes


def run_pass(
    config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts, each: Each, number: int
) -> float:
    """Renew rows and what they share, in place; return the bound after the rows.

    number : of the pass, from 0; locations and weights stay as they are before `free_pass`
    """
    tables = tables_of(config, shared, counts, columns_of(config, counts))
    visit_rows(rows, counts, tables, each, FIRST_ROUNDS if number < FIRST_PASSES else 1)
    bound = bound_of(config, shared, rows, counts)
    of_columns = count_columns(rows, counts, tables, each)
    if number >= config.free_pass:
        T, shape = config.components, config.concentration / config.components
        log_r = update_locations(shared, rows, counts, tables, each)
        log_rate = sum_rates(rows, counts, tables, tables.w, each)[0]
        R = shared.c + (log_rate - log_r)[:T]
        update_weights(shared, rows, counts, R, each, shape)
        update_rate(config, shared)
    update_columns(config, shared, rows, counts, tables, of_columns, 1.0, each)
    return bound


def update_rate(config: CnpfConfig, shared: Globals) -> None:
    """Set c to the mode of log c given the weights."""
    shape = config.concentration + config.rate_shape
    shared.c = shape / (float(shared.w.sum()) + config.rate_rate)
