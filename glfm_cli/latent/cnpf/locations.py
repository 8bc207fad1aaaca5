"""The locations l_k: a Newton step for each component, q(x) held, and their line search.

    sum_u [ w_k E log r_uk - E x_uk E r_uk ] - |l_k|^2 / (2 sl2)

of which each component has its own. Afterwards q(x) is renewed with the new rates.
"""

from __future__ import annotations

import numpy as np

from glfm_cli._kernels import _cnpf
from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows, sum_blocks
from glfm_cli.latent.cnpf.tables import Globals, Tables, loadings_of, products_of

TRIES = 7
ROUNDING = 1e-13
TINY = 1e-100


def sum_locations(rows: Rows, counts: Counts, tables: Tables, each: Each) -> tuple[Array, Array]:
    """Return what rows say of the locations: gradient (T, D) and minus the Hessian (T, D, D)."""
    config, K = tables.config, tables.w.size
    T, D = config.components, config.n_locations
    pairs = D * (D + 1) // 2

    def work(start: int, end: int, out: Array) -> None:
        _cnpf.add_locations(
            *(start, end, tables.w, tables.loadings, tables.products, *tables.exposures, rows.g),
            *(*tables.link, config.diagonal, *rows.gaussian, rows.rho, out[:D], out[D:]),
            np.empty(_cnpf.work_size(K, rows.m.shape[1])),
        )

    sums = sum_blocks(counts.rows, each, (D + pairs, K), work)[:, :T]
    i, j = np.tril_indices(D)
    hessian = np.empty((T, D, D))
    hessian[:, i, j] = hessian[:, j, i] = sums[D:].T
    return np.ascontiguousarray(sums[:D].T), hessian


def evaluate_locations(
    locations: Array, rows: Rows, counts: Counts, tables: Tables, each: Each, out: Array
) -> Array:
    """Fill `out` (U, K) with the rates of some locations.

    Returns (2, K): the objective without the prior, and the sums over rows of E log r.
    """
    K = tables.w.size
    loadings = loadings_of(tables.config, locations)
    products = products_of(loadings)

    def work(start: int, end: int, sums: Array) -> None:
        _cnpf.evaluate_locations(
            *(start, end, tables.w, loadings, products, *tables.exposures, rows.g, *tables.link),
            *(tables.config.diagonal, *rows.gaussian, rows.rho, out, sums),
            np.empty(_cnpf.work_size(K, rows.m.shape[1])),
        )

    return sum_blocks(counts.rows, each, (2, K), work)


def update_locations(
    shared: Globals, rows: Rows, counts: Counts, tables: Tables, each: Each, free: bool = True
) -> Array:
    """Move every location uphill and renew the rates; return the sums (K,) of E log r.

    free : whether they move

    `rows.x` is overwritten: counts of columns must have been taken before.
    """
    config = tables.config
    T, sl2 = config.components, config.location_variance

    def evaluate(at: Array) -> tuple[Array, Array]:
        sums = evaluate_locations(at, rows, counts, tables, each, rows.x)
        return sums[0, :T] - 0.5 / sl2 * (at**2).sum(axis=1), sums[1]

    old, log_sum = evaluate(shared.l)
    if config.n_locations and free:
        step = newton_step(shared.l, *sum_locations(rows, counts, tables, each), sl2)
        accepted, factor = np.zeros(T, dtype=bool), np.ones(T)
        at = shared.l
        for attempt in range(TRIES):
            # Whoever has found no higher place at the last but one stays where it was.
            factor[~accepted] = 3.0**-attempt if attempt < TRIES - 1 else 0.0
            at = shared.l + factor[:, None] * step
            new, log_sum = evaluate(at)
            accepted |= new >= old - ROUNDING * np.abs(old)
            if accepted.all():
                break
        # A location that shrinks for ever would come to products that are denormal.
        shared.l = np.where(np.abs(at) > TINY, at, 0.0)
    rows.rho, rows.x = rows.x, rows.rho
    return log_sum


def newton_step(locations: Array, gradient: Array, hessian: Array, sl2: float) -> Array:
    """Return the Newton step (T, D), the prior included."""
    hessian = hessian + np.eye(locations.shape[1]) / sl2
    gradient = gradient - locations / sl2
    step: Array = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    return step
