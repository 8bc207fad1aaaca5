"""Which two experts could be one: what joining their rows would add to the bound.

With the rows' completed features and scores held where they are, the best q of an expert's place
and weights adds a log evidence that follows from sums over its rows; that of two experts' rows
together, less that of each, is what joining them gains.  [Hughes and Sudderth 2013]
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.experts import (
    Experts,
    Statistics,
    best_scales,
    log_wishart,
    scale_part,
)
from glfm_cli.latent.iqgme.prior import Prior


def evidence(q: Experts, prior: Prior, s: Statistics) -> Array:
    """Return what place and weights add for rows of these sums (E,), up to a constant per row."""
    P = q.P
    nu, u = prior.nu0 + s.n, prior.u0 + s.n
    m = (prior.u0 * prior.m0 + s.x) / u[:, None]
    scatter = s.xx - u[:, None, None] * m[:, :, None] * m[:, None, :]
    scatter += prior.u0 * np.outer(prior.m0, prior.m0)
    r, c, d = best_scales(prior, nu, scatter)
    log_B = -np.linalg.slogdet(r[:, None, None] * prior.B0_inv + scatter)[1]
    out = 0.5 * P * np.log(prior.u0 / u) - log_wishart(log_B, nu, P)
    out += scale_part(prior, P, c, d)
    if q.K:
        precision = np.empty((s.n.size, P + 1, P + 1))
        precision[:, :P, :P], precision[:, P, P] = s.l_xx, s.l_n
        precision[:, :P, P] = precision[:, P, :P] = s.l_x
        precision[:, np.arange(P + 1), np.arange(P + 1)] += q.lam
        linear = s.tx + q.lam * q.phi
        mean = np.linalg.solve(precision, np.swapaxes(linear, 1, 2))
        out = out + 0.5 * np.einsum("ekp,epk->e", linear, mean)
        out = out - 0.5 * q.K * np.linalg.slogdet(precision)[1]
    return np.asarray(out)


def candidates(q: Experts, prior: Prior, s: Statistics, least: float) -> list[tuple[int, int]]:
    """Return pairs of experts that hold rows and gain from being one, the best first; O(H^2 P^3).

    least : rows from which an expert counts
    """
    full = np.flatnonzero(s.n > least)
    first, second = (full[i] for i in np.triu_indices(full.size, 1))
    if not first.size:
        return []
    alone = np.zeros(s.n.size)
    alone[full] = evidence(q, prior, s.ordered(full))
    both = s.ordered(first)
    both.add(s.ordered(second))
    none = Statistics.zero(1, q.P, q.K)
    gain = evidence(q, prior, both) + evidence(q, prior, none) - alone[first] - alone[second]
    order = np.argsort(-gain, kind="stable")
    return [(int(first[i]), int(second[i])) for i in order if gain[i] > 0.0]
