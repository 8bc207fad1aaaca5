"""The evidence lower bound, and its gradient with respect to every parameter.

    bound = sum_{(n,d) observed} E_{q(x_n)} l_d(mean_n, var_n) - KL_x - KL_e + log prior
    mean_ns = b_s + a_s psi(x_n)'mu_s,   var_ns = a_s^2 (r(x_n) + sum_i (V'psi)_i^2 c_si^2) + 1e-12
    KL_x = sum_nq (m^2 + sd^2 - 1 - 2 log sd) / 2        KL_e = sum_s KL(q(e_s) || N(0, I))
    log ell_q, log rho ~ N(0, 1),  log a_s ~ N(0, 1), or N(0, 9) of levels     [CLGP eqs. 4, 5, 11]

x is sampled, f and the weights are integrated. A gradient is a dict, named as the fields of
`Shared`; `m` and `log_sd` are apart, as they belong to rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.blocks import RowBlock, each, total
from glfm_cli.latent.clgp.features import Features, Inducing
from glfm_cli.latent.clgp.likelihoods import Expected, expected
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.table import Slots

LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class EvaluatedBlock:
    """A block under given parameters: features, moments of f, and what cells say."""

    block: RowBlock
    features: Features
    mean: Array
    var: Array
    cells: Expected

    @classmethod
    def of(
        cls, block: RowBlock, features: Features, shared: Shared, slots: Slots
    ) -> EvaluatedBlock:
        """Return a block under given parameters, its features being known."""
        mean, var = moments(features, shared)
        cells = expected(block.cells, mean, var, shared, slots, block.logits)
        return cls(block, features, mean, var, cells)

    def rows(self) -> Array:
        """Return the expected log likelihood of each row (nb,)."""
        of_rows: Array = self.cells.value.reshape(self.block.samples, -1).mean(axis=0)
        return of_rows

    def value(self) -> float:
        """Return the expected log likelihood of all rows."""
        return float(self.rows().sum())


def moments(features: Features, shared: Shared) -> tuple[Array, Array]:
    """Return mean and variance (n, S) of f at places, the weights integrated."""
    a, B = np.exp(shared.log_a), features.B
    mean = B @ (shared.V.T @ (shared.mu * a))
    mean += shared.b
    var = np.outer(features.r, a * a)
    if not shared.certain:
        var += (B * B) @ (np.exp(2.0 * shared.log_c) * (a * a)[:, None]).T
    var += LEAST_VARIANCE
    return mean, var


def place(block: RowBlock, places: Places, shared: Shared, inducing: Inducing) -> Features:
    """Return the features of a block's samples."""
    return Features.of(places.of(block.rows).sample(block.places), shared, inducing)


def row_penalties(places: Places) -> Array:
    """Return KL_x of each row (n,)."""
    m, ls = places.m, places.log_sd
    of_rows: Array = 0.5 * np.sum(m * m + np.exp(2.0 * ls) - 1.0 - 2.0 * ls, axis=1)
    return of_rows


def penalty_of_weights(shared: Shared) -> float:
    """Return KL_e, the same as that of un-whitened inducing variables."""
    mu, lc = shared.mu, shared.log_c
    return 0.5 * float(np.sum(mu * mu) + np.sum(np.exp(2.0 * lc) - 1.0 - 2.0 * lc))


def log_prior(shared: Shared, slots: Slots) -> float:
    """Return the log density of lengths, rho and amplitudes, but for a constant."""
    squares = float(shared.log_a**2 @ slots.amplitude_precision)
    if shared.Z.shape[0]:
        squares += float(shared.log_ell @ shared.log_ell)
        squares += float(shared.log_rho) ** 2 * (shared.n_linear > 0)
    return -0.5 * squares


class RowsGradient(NamedTuple):
    """What belongs to the rows of a block: m and log_sd (nb, Q)."""

    m: Array
    log_sd: Array


def backward(
    local: EvaluatedBlock,
    places: Places,
    shared: Shared,
    inducing: Inducing,
    scale: float,
    penalty: float,
    of_weights: bool,
) -> tuple[RowsGradient, dict[str, Array]]:
    """Return the gradient of one block: of its rows, and the sums of what rows share.

    Parameters
    ----------
    scale : by which likelihoods of these rows count in what is shared (rows of the table over
        those of the batch); the rows' own gradients are not scaled
    penalty : weight of KL_x
    of_weights : whether mu and log_c are wanted as well
    """
    block, f = local.block, local.features
    T = block.samples
    a, C2 = np.exp(shared.log_a), np.exp(2.0 * shared.log_c)
    G1, G2 = local.cells.g1 * (scale / T), local.cells.g2 * (scale / T)
    U, H = G1 * a, G2 * (a * a)
    slope = U @ (shared.V.T @ shared.mu).T
    bend = np.zeros_like(slope) if shared.certain else H @ C2
    dX, sums = f.backward(slope, bend, H.sum(axis=1), shared, inducing)
    sums |= {
        "b": G1.sum(axis=0),
        "log_a": np.einsum("ns,ns->s", G1, local.mean - shared.b)
        + 2.0 * np.einsum("ns,ns->s", G2, local.var),
        "log_noise": local.cells.log_noise * (scale / T),
        "steps": local.cells.steps * (scale / T),
    }
    if of_weights:
        sums["mu"] = shared.V @ (f.B.T @ U)
        sums["log_c"] = 2.0 * C2 * (H.T @ (f.B * f.B))
    q = places.of(block.rows)
    sd = np.exp(q.log_sd)
    dX = dX.reshape(block.places.shape) / scale
    dm = dX.sum(axis=0) - penalty * q.m
    d_log_sd = (dX * block.places).sum(axis=0) * sd - penalty * (sd * sd - 1.0)
    return RowsGradient(dm, d_log_sd), sums


def finished(
    sums: dict[str, Array], shared: Shared, slots: Slots, inducing: Inducing
) -> dict[str, Array]:
    """Return the gradient of what rows share, priors and penalties included, from sums of rows."""
    sums = dict(sums)
    dZ, d_log_ell = inducing.backward(sums.pop("L"), shared.Z)
    sums["Z"] = sums["Z"] + dZ
    sums["log_a"] = sums["log_a"] - slots.amplitude_precision * shared.log_a
    sums["b"] = np.where(slots.has_intercept, sums["b"], 0.0)
    sums["log_noise"] = np.where(slots.has_noise, sums["log_noise"], 0.0)
    if shared.Z.shape[0]:
        sums["log_ell"] = sums["log_ell"] + d_log_ell - shared.log_ell
    if shared.Z.shape[0] and shared.n_linear:
        sums["log_rho"] = sums["log_rho"] - shared.log_rho
    else:  # rho and the amplitudes say the same
        sums["log_rho"] = np.zeros(())
    if "mu" in sums:
        sums["mu"] = sums["mu"] - shared.mu
        sums["log_c"] = sums["log_c"] - np.exp(2.0 * shared.log_c) + 1.0
    return sums


def evaluate(
    blocks: Sequence[RowBlock],
    places: Places,
    shared: Shared,
    slots: Slots,
    inducing: Inducing,
    pool: ThreadPoolExecutor | None,
) -> list[EvaluatedBlock]:
    """Return all blocks under given parameters."""

    def one(block: RowBlock) -> EvaluatedBlock:
        features = place(block, places, shared, inducing)
        return EvaluatedBlock.of(block, features, shared, slots)

    return list(each(pool, one, blocks))


def bound_of_rows(evaluated: Sequence[EvaluatedBlock], places: Places) -> float:
    """Return the part of the bound that is a sum over rows: of those of some blocks."""
    total = 0.0
    for local in evaluated:
        total += local.value() - float(row_penalties(places.of(local.block.rows)).sum())
    return total


def bound_of_shared(shared: Shared, slots: Slots) -> float:
    """Return the rest of the bound."""
    return log_prior(shared, slots) - penalty_of_weights(shared)


def gradient(
    evaluated: Sequence[EvaluatedBlock],
    places: Places,
    shared: Shared,
    slots: Slots,
    inducing: Inducing,
    scale: float = 1.0,
    penalty: float = 1.0,
    of_weights: bool = True,
    pool: ThreadPoolExecutor | None = None,
) -> tuple[RowsGradient, dict[str, Array]]:
    """Return the gradient of the bound: of the blocks' rows in their order, and of what is shared.

    O(n P (4 M + 2 P + 8 S)) flops for n stacked rows, n M exponentials and the cells.
    """
    work = partial(
        backward, places=places, shared=shared, inducing=inducing, scale=scale,
        penalty=penalty, of_weights=of_weights,
    )  # fmt: skip
    parts = list(each(pool, work, evaluated))
    rows = RowsGradient(
        *(np.concatenate(both) for both in zip(*(p[0] for p in parts), strict=True))
    )
    return rows, finished(total([p[1] for p in parts]), shared, slots, inducing)
