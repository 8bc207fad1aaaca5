"""Where a fit starts: sparse rows and columns near the unigram, so that components come apart."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows
from glfm_cli.latent.cnpf.tables import Globals, columns_of, padded

SPARSE = 0.3  # gamma shape of the columns' first shares
EVEN = 50.0  # gamma shape of the rows' first shares
LOCATION = 0.1  # sd of the first locations


def start_shared(config: CnpfConfig, counts: Counts, rng: np.random.Generator) -> Globals:
    """Return columns about their shares of all counts, each component's by gamma factors.

    The prior rate bh makes the prior mean of sum_i a_ki what explains rows of mean size.
    """
    n_rows, n_columns = counts.shape
    T, shape, w0 = config.components, config.column_shape, config.initial_weight
    total = counts.column_totals
    size = max(total.sum() / max(n_rows, 1), 1.0)
    share = (total + 0.01) / (total + 0.01).sum()
    A = rng.gamma(SPARSE, size=(n_columns, T))
    if config.topics:
        A = shape + A * max(total.sum(), 1.0) / (T * n_columns)
        B, rate = A.sum(axis=0), 1.0
    else:
        exposure = size / (w0 * T)
        A = shape + A * share[:, None] * n_columns
        B, rate = A.sum(axis=0) / exposure, shape * n_columns / exposure
    w = np.full(T, w0)
    c = (config.concentration + config.rate_shape) / (w.sum() + config.rate_rate)
    location = LOCATION * rng.standard_normal((T, config.n_locations))
    own = np.repeat(B[None, :], columns_of(config, counts).seen.size, axis=0)
    return Globals(w, c, location, A, B, own, rate)


def start_rows(config: CnpfConfig, counts: Counts, rng: np.random.Generator) -> Rows:
    """Return rows whose counts are spread over all components, nearly evenly."""
    T = config.components
    n = rng.gamma(EVEN, 1.0 / EVEN, size=(counts.shape[0], T))
    return Rows.of(config, padded(n * (counts.row_totals / T)[:, None]))


def start_new_rows(config: CnpfConfig, counts: Counts, w: Array) -> Rows:
    """Return rows whose counts are spread over components by their weights."""
    return Rows.of(config, padded(np.outer(counts.row_totals, w / w.sum())))
