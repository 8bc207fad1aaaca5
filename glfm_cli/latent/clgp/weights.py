"""Update of q(e): Newton's step, which is the natural gradient step, and exact for Gaussian cells.

In the basis V, whose features are B (n, P), with w the curvature of cells (n, S), g1 and g2 their
derivatives:

    Lambda_s = I + a_s^2 B' diag(w_s) B
    V'mu_s += step Lambda_s^-1 (B'(a_s g1_s) - V'mu_s)
    1 / c_si^2 = 1 - 2 a_s^2 sum_n g2_ns B_ni^2

[Salimbeni, Eleftheriadis and Hensman 2018]. The equations are solved for all s together by
conjugate gradients, preconditioned by diag(c_s^2), without any Lambda. V holds the eigenvectors of
sum_n psi psi', in which every Lambda_s is nearly diagonal.

Given the features, the bound is a sum over columns. A column whose part of it falls, as it may
where cells are not Gaussian, goes back half the way, a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.blocks import each
from glfm_cli.latent.clgp.bound import EvaluatedBlock
from glfm_cli.latent.clgp.features import Inducing
from glfm_cli.latent.clgp.parameters import Shared
from glfm_cli.latent.clgp.table import Slots

HALVINGS = 4
ROUNDING = 1e-9  # of a column's part of the bound


def renew_basis(
    shared: Shared, evaluated: Sequence[EvaluatedBlock], inducing: Inducing
) -> tuple[list[EvaluatedBlock], Inducing]:
    """Turn V to the eigenvectors of sum_n psi psi', and with it blocks and inducing places.

    The variances in the new V are those that the old family has there.
    """
    moment = sum(local.features.B.T @ local.features.B for local in evaluated)
    turn = np.ascontiguousarray(np.linalg.eigh(moment)[1])
    shared.log_c = 0.5 * np.log(np.exp(2.0 * shared.log_c) @ turn**2)
    shared.V = shared.V @ turn
    turned = [
        replace(local, features=replace(local.features, B=local.features.B @ turn))
        for local in evaluated
    ]
    return turned, inducing.turned(turn)


def update_weights(
    shared: Shared,
    evaluated: Sequence[EvaluatedBlock],
    slots: Slots,
    scale: float,
    step: float,
    n_solves: int,
    pool: ThreadPoolExecutor | None,
) -> list[EvaluatedBlock]:
    """Move mu and log_c by a natural gradient step of size `step`; return the blocks after it.

    scale : by which the cells of these blocks count
    n_solves : steps of conjugate gradients, each of O(n P S)
    """
    mu, log_c = shared.mu, shared.log_c
    before = column_bounds(shared, evaluated, slots, scale)
    shared.mu, shared.log_c = newton(shared, evaluated, scale, step, n_solves, pool)

    def again(local: EvaluatedBlock) -> EvaluatedBlock:
        return EvaluatedBlock.of(local.block, local.features, shared, slots)

    for _ in range(HALVINGS):
        evaluated = list(each(pool, again, evaluated))
        after = column_bounds(shared, evaluated, slots, scale)
        fell = (after < before - ROUNDING * np.abs(before))[slots.column]
        if not fell.any():
            return evaluated
        shared.mu = np.where(fell, 0.5 * (shared.mu + mu), shared.mu)
        shared.log_c = np.where(fell[:, None], 0.5 * (shared.log_c + log_c), shared.log_c)
    return list(each(pool, again, evaluated))


def column_bounds(
    shared: Shared, evaluated: Sequence[EvaluatedBlock], slots: Slots, scale: float
) -> Array:
    """Return the part of the bound (D,) that each column has, given the places."""
    share = scale / evaluated[0].block.samples
    squares = np.sum(shared.mu**2, axis=0)
    squares = squares + np.sum(np.exp(2.0 * shared.log_c) - 1.0 - 2.0 * shared.log_c, axis=1)
    penalty = np.bincount(slots.column, 0.5 * squares, minlength=len(slots.kinds))
    return share * sum(local.cells.columns for local in evaluated) - penalty


def newton(
    shared: Shared,
    evaluated: Sequence[EvaluatedBlock],
    scale: float,
    step: float,
    n_solves: int,
    pool: ThreadPoolExecutor | None,
) -> tuple[Array, Array]:
    """Return mu and log_c after a natural gradient step."""
    share = scale / evaluated[0].block.samples
    a = np.exp(shared.log_a)

    def slopes(local: EvaluatedBlock) -> tuple[Array, Array]:
        cells, B = local.cells, local.features.B
        return B.T @ cells.g1, cells.g2.T @ (B * B)

    def lambda_times(D: Array) -> Array:
        def one(local: EvaluatedBlock) -> Array:
            B: Array = local.features.B
            return B.T @ (local.cells.curvature * (B @ D))

        return D + share * (a * a) * sum(each(pool, one, evaluated))

    sums = list(each(pool, slopes, evaluated))
    g = share * a * sum(part[0] for part in sums) - shared.V.T @ shared.mu
    # Sampled logits may have a convex row; no sum of them is.
    precision = 1.0 - 2.0 * share * (a * a)[:, None] * sum(part[1] for part in sums)
    precision = np.maximum(precision, 1.0)
    delta = solve(lambda_times, g, 1.0 / precision.T, n_solves)
    mixed = (1.0 - step) * np.exp(-2.0 * shared.log_c) + step * precision
    return shared.mu + step * (shared.V @ delta), -0.5 * np.log(mixed)


def solve(times: Callable[[Array], Array], g: Array, preconditioner: Array, n_solves: int) -> Array:
    """Return D (P, S) with times(D) about g, by conjugate gradients for each column.

    preconditioner : (P, S), diagonals
    """
    D, residual = np.zeros_like(g), g.copy()
    z = preconditioner * residual
    p, rz = z.copy(), np.einsum("ps,ps->s", residual, z)
    for _ in range(n_solves):
        Ap = times(p)
        alpha = _ratio(rz, np.einsum("ps,ps->s", p, Ap))
        D += alpha * p
        residual -= alpha * Ap
        z = preconditioner * residual
        new = np.einsum("ps,ps->s", residual, z)
        p = z + _ratio(new, rz) * p
        rz = new
    return D


def _ratio(a: Array, b: Array) -> Array:
    """Return a / b, 0 where a column is solved already."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
