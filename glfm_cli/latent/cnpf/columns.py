"""q(a): what components say of columns, given the rows; or q of topics."""

from __future__ import annotations

import numpy as np

from glfm_cli._kernels import _cnpf
from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows, mean_x, sum_rates
from glfm_cli.latent.cnpf.tables import Globals, Tables, padded


def update_columns(
    config: CnpfConfig,
    shared: Globals,
    rows: Rows,
    counts: Counts,
    tables: Tables,
    of_columns: Array,
    scale: float,
    each: Each,
) -> None:
    """Set q(a_ki) to Gamma(ah + counts, bh + sum of E x over the rows that the column has).

    scale : rows of the matrix that each of these stands for
    """
    T = config.components
    shared.A = config.column_shape + scale * of_columns
    if config.topics:
        shared.B = shared.A.sum(axis=0)
        return
    w = padded(shared.w)
    total = sum_rates(rows, counts, tables, w, each)[1]
    shared.B = shared.column_rate + scale * total[:T]
    lists = counts.missing_columns
    if lists.seen.size:
        out = np.empty((lists.seen.size, w.size))
        ends = (lists.indptr, lists.index, lists.seen)
        _cnpf.fill_exposures(0, lists.seen.size, *ends, total, mean_x(rows, tables, w), out)
        shared.own_B = shared.column_rate + scale * out[:, :T]
