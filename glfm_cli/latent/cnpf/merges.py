"""Components alike are tried as one, and stay so where the bound is higher then.

Coordinate ascent splits a component of the data among several of its own and hardly ever joins
them: between the two lies a lower bound.
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.cnpf.ascent import run_pass
from glfm_cli.latent.cnpf.bound import bound_of
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows, visit_rows
from glfm_cli.latent.cnpf.tables import Globals, columns_of, tables_of

ALIKE = 0.7  # Hellinger affinity of two components' columns
PAIRS = 8  # tried at a time
SETTLE = 4  # passes before a merge is judged
DEAD = 1e-3  # share of the counts below which a component is none


def merge_components(
    config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts, each: Each, number: int
) -> tuple[Globals, Rows, int]:
    """Return the fit after the merges that raised its bound, and how many those were."""
    merged = 0
    pairs = alike(config, shared, rows, counts)
    if not pairs:
        return shared, rows, merged
    bound = _evaluate(config, shared, rows, counts, each)
    gone: set[int] = set()
    for j, k in pairs:
        if gone & {j, k} or not rows.n[:, [j, k]].any(axis=0).all():  # by the passes of another
            continue
        trial, trial_rows = shared.copy(), rows.copy()
        join(config, trial, trial_rows, j, k)
        for _ in range(SETTLE):
            run_pass(config, trial, trial_rows, counts, each, number)
        new = _evaluate(config, trial, trial_rows, counts, each)
        if new > bound:
            shared, rows, bound, merged = trial, trial_rows, new, merged + 1
            gone.add(k)
    return shared, rows, merged


def alike(config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts) -> list[tuple[int, int]]:
    """Return the pairs of live components with the most similar columns, the larger one first."""
    T = shared.w.size
    share = rows.n.sum(axis=0)[:T]
    mean = shared.mean(columns_of(config, counts))
    root = np.sqrt(mean / mean.sum(axis=0))
    affinity = np.tril(root.T @ root, -1)
    dead = share <= DEAD * share.sum()
    affinity[dead] = affinity[:, dead] = 0.0
    best = np.argsort(-affinity, axis=None, kind="stable")[:PAIRS]
    found = []
    for one, other in zip(*np.unravel_index(best, affinity.shape), strict=True):
        if affinity[one, other] > ALIKE:
            j, k = (one, other) if share[one] >= share[other] else (other, one)
            found.append((int(j), int(k)))
    return found


def join(config: CnpfConfig, shared: Globals, rows: Rows, j: int, k: int) -> None:
    """Give component j the counts of component k, in place, and k its prior."""
    share = rows.n[:, [j, k]].sum(axis=0)
    part = share / share.sum()
    exposure = (shared.A / shared.B).sum(axis=0)[[j, k]] @ part
    shared.A[:, j] += shared.A[:, k] - config.column_shape
    shared.A[:, k] = config.column_shape
    if config.topics:
        shared.B[[j, k]] = shared.A[:, [j, k]].sum(axis=0)
    else:
        before = shared.B[[j, k]].copy()
        shared.B[j], shared.B[k] = shared.A[:, j].sum() / exposure, shared.column_rate
        shared.own_B[:, [j, k]] *= shared.B[[j, k]] / before
    shared.w[j] += shared.w[k]
    shared.w[k] = config.concentration / (50.0 * config.components)
    shared.l[j] = part @ shared.l[[j, k]]
    shared.l[k] = 0.0
    rows.n[:, j] += rows.n[:, k]
    rows.n[:, k] = 0.0


def shares(rows: Rows, T: int) -> Array:
    """Return the share (T,) of all counts that each component explains."""
    n = rows.n.sum(axis=0)[:T]
    share: Array = n / max(float(n.sum()), 1e-300)
    return share


def _evaluate(config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts, each: Each) -> float:
    """Visit the rows once more and return the bound."""
    visit_rows(rows, counts, tables_of(config, shared, counts, columns_of(config, counts)), each, 1)
    return bound_of(config, shared, rows, counts)
