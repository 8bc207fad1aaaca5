"""Steps from minibatches of rows, for more rows than a pass should see at once.

A minibatch of M of the U rows stands for all, scaled by s = U / M; what rows share moves a step
rate = (delay + t)^-forgetting towards what the minibatch alone would make of it
[Hoffman et al. 2013]. With all rows and rate 1 this is a pass of coordinate ascent, but that
weights make one fixed-point step and locations a whole Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.cnpf.ascent import update_rate
from glfm_cli.latent.cnpf.bound import bound_of
from glfm_cli.latent.cnpf.columns import update_columns
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.locations import (
    evaluate_locations,
    newton_step,
    sum_locations,
)
from glfm_cli.latent.cnpf.rows import Rows, count_columns, sum_rates, visit_rows
from glfm_cli.latent.cnpf.starts import start_new_rows
from glfm_cli.latent.cnpf.tables import Globals, columns_of, tables_of
from glfm_cli.latent.cnpf.weights import fixed_point, sum_rises

ROUNDS = 12  # of rows that start anew every time


@dataclass
class Averages:
    """Running averages over minibatches.

    K, R : (T,) see `weights`, R without c;  hessian : (T, D, D) minus that of the locations
    """

    K: Array
    R: Array
    hessian: Array

    @classmethod
    def of(cls, config: CnpfConfig) -> Averages:
        """Return averages of nothing."""
        T, D = config.components, config.n_locations
        return cls(np.zeros(T), np.zeros(T), np.zeros((T, D, D)))


def rate_of(config: CnpfConfig, t: int) -> float:
    """Return the size of step t, from 0."""
    return float((config.delay + t) ** -config.forgetting)


def run_minibatch(
    config: CnpfConfig,
    shared: Globals,
    averages: Averages,
    counts: Counts,
    n_rows: int,
    rate: float,
    first: bool,
    free: bool,
    each: Each,
    rows: Rows | None = None,
    rounds: int = ROUNDS,
) -> float:
    """Move what rows share towards what a minibatch says, in place; return a noisy bound.

    counts : of the minibatch;  n_rows : U
    first : locations and weights move for the first time: their averages are the minibatch's own
    free : whether they move at all;  rows : q to go on from, None: anew
    """
    T, scale = config.components, n_rows / counts.shape[0]
    rows = start_new_rows(config, counts, shared.w) if rows is None else rows
    tables = tables_of(config, shared, counts, columns_of(config, counts))
    visit_rows(rows, counts, tables, each, rounds)
    bound = bound_of(config, shared, rows, counts, scale)
    of_columns = count_columns(rows, counts, tables, each)
    if free:
        blend = 1.0 if first else rate
        if config.n_locations:
            gradient, hessian = sum_locations(rows, counts, tables, each)
            averages.hessian += blend * (scale * hessian - averages.hessian)
            sl2 = config.location_variance
            step = newton_step(shared.l, scale * gradient, averages.hessian, sl2)
            shared.l = shared.l + rate * step
        log_r = evaluate_locations(shared.l, rows, counts, tables, each, rows.x)[1]
        rows.rho, rows.x = rows.x, rows.rho
        log_rate = sum_rates(rows, counts, tables, tables.w, each)[0]
        rises = sum_rises(rows, counts, shared.w, each)
        averages.R += blend * (scale * (log_rate - log_r)[:T] - averages.R)
        averages.K += blend * (scale * rises[1] - averages.K)
        shape = config.concentration / T
        shared.w = fixed_point(averages.K, shared.c + averages.R, shape)
        update_rate(config, shared)
    goal = shared.copy()
    update_columns(config, goal, rows, counts, tables, of_columns, scale, each)
    shared.A += rate * (goal.A - shared.A)
    shared.B += rate * (goal.B - shared.B)
    shared.own_B += rate * (goal.own_B - shared.own_B)
    return bound
