"""The lower bound of the log evidence, but for the normalising constant of c's prior.

Terms of rows are those of `Rows.bound`, for which q(x) and the shares of counts are optimal.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, psi

from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows
from glfm_cli.latent.cnpf.tables import Globals, columns_of, prior_precision

ROUNDING = 1e-13  # of a sum of terms, relative to the largest of them


def rounding_of(counts: Counts) -> float:
    """Return by how much the bound may be off: large log y! cancel with its other terms."""
    return ROUNDING * counts.log_factorials


def bound_of(
    config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts, scale: float = 1.0
) -> float:
    """Return the bound of the rows as last visited, given what they share.

    scale : of how many rows each stands for
    """
    prior = prior_precision(config)
    per_row = 0.5 * float(np.log(prior).sum()) + 0.5 * prior.size
    total = float(rows.bound.sum()) + rows.bound.size * per_row - counts.log_factorials
    if config.topics:
        total += float(gammaln(counts.row_totals + 1.0).sum())
    columns = _topic_terms if config.topics else _column_terms
    return scale * total + _weight_terms(config, shared) + columns(config, shared, counts)


def _weight_terms(config: CnpfConfig, shared: Globals) -> float:
    """Return the log priors of log w, log c and the locations."""
    T, shape = config.components, config.concentration / config.components
    w, c, sl2 = shared.w, shared.c, config.location_variance
    total = T * (shape * np.log(c) - gammaln(shape)) + shape * np.log(w).sum() - c * w.sum()
    total += config.rate_shape * np.log(c) - config.rate_rate * c
    total -= 0.5 / sl2 * (shared.l**2).sum() + 0.5 * shared.l.size * np.log(2.0 * np.pi * sl2)
    return float(total)


def _column_terms(config: CnpfConfig, shared: Globals, counts: Counts) -> float:
    """Return minus the Kullback-Leibler divergence of q(a) from its prior."""
    shape, rate, A = config.column_shape, shared.column_rate, shared.A
    missing = counts.missing_columns
    mean, log_mean = shared.mean(missing), shared.log_mean(missing, topics=False)
    total = A.size * (shape * np.log(rate) - gammaln(shape))
    # psi(A) - log B is the mean of log a: the entropy is A + log Gamma(A) - A psi(A) + E log a.
    terms = shape * log_mean - rate * mean + A + gammaln(A) - A * psi(A)
    return float(total + terms.sum())


def _topic_terms(config: CnpfConfig, shared: Globals, counts: Counts) -> float:
    """Return minus the Kullback-Leibler divergence of the topics' q from their prior."""
    eta, A = config.column_shape, shared.A
    n_columns, T = A.shape
    log_mean = shared.log_mean(columns_of(config, counts), topics=True)
    total = T * (gammaln(n_columns * eta) - n_columns * gammaln(eta)) - gammaln(shared.B).sum()
    return float(total + (gammaln(A) + (eta - A) * log_mean).sum())
