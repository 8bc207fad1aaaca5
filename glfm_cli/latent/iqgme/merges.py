"""Which two experts could be one: what joining their rows would add to the bound.

With the rows' completed features and scores held where they are, the best q of an expert's place
and weights adds a log evidence that follows from sums over its rows; that of two experts' rows
together, less that of each, is one part of what joining them gains. The other is that assignments
need no longer tell the two apart.  [Hughes and Sudderth 2013]

Scores that came from two rules fit a common rule worse than the labels do, so that what rules lose
is overestimated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.special import xlogy

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.experts import (
    Experts,
    Statistics,
    best_scales,
    log_wishart,
    scale_part,
)
from glfm_cli.latent.iqgme.prior import Prior

FEW = 1e-4  # rows of a task from which an expert counts there


def place_evidence(prior: Prior, P: int, s: Statistics) -> Array:
    """Return what places add for rows of these sums (E,), up to a constant per row."""
    nu, u = prior.nu0 + s.n, prior.u0 + s.n
    m = (prior.u0 * prior.m0 + s.x) / u[:, None]
    scatter = s.xx - u[:, None, None] * m[:, :, None] * m[:, None, :]
    scatter += prior.u0 * np.outer(prior.m0, prior.m0)
    r, c, d = best_scales(prior, nu, scatter)
    log_B = -np.linalg.slogdet(r[:, None, None] * prior.B0_inv + scatter)[1]
    out = 0.5 * P * np.log(prior.u0 / u) - log_wishart(log_B, nu, P)
    return np.asarray(out + scale_part(prior, P, c, d))


def rule_evidence(q: Experts, s: Statistics) -> Array:
    """Return what coefficients add for rows of these sums (E,), their prior that of q."""
    P = q.P
    if not q.K:
        return np.zeros(s.n.size)
    precision = np.empty((s.n.size, P + 1, P + 1))
    precision[:, :P, :P], precision[:, P, P] = s.l_xx, s.l_n
    precision[:, :P, P] = precision[:, P, :P] = s.l_x
    precision[:, np.arange(P + 1), np.arange(P + 1)] += q.lam
    linear = s.tx + q.lam * q.phi
    mean = np.linalg.solve(precision, np.swapaxes(linear, 1, 2))
    out = 0.5 * np.einsum("ekp,epk->e", linear, mean)
    return np.asarray(out - 0.5 * q.K * np.linalg.slogdet(precision)[1])


def assignment_gain(shares: Sequence[Array], first: Array, second: Array) -> Array:
    """Return what assignments gain if the experts of a pair are one (e,), at least 0; O(e n).

        g(n_a, n_b) - sum over rows of g(r_a, r_b)
        g(a, b) = (a + b) log(a + b) - a log a - b log b

    is added up over tasks, for responsibilities r and their sums n: the shares' log evidence rises
    by the first (but for what one stick less adds), the rows' entropy falls by the second.

    shares : responsibilities (H, n) of the rows of each task
    """
    gain = np.zeros(first.size)
    for rho in shares:
        n = rho.sum(axis=1)
        for e in np.flatnonzero(np.minimum(n[first], n[second]) > FEW):
            a, b = first[e], second[e]
            both = (rho[a] > 0.0) & (rho[b] > 0.0)
            gain[e] += float(_g(n[a], n[b]) - _g(rho[a, both], rho[b, both]).sum())
    return gain


def _g(a: Array, b: Array) -> Array:
    return np.asarray(xlogy(a + b, a + b) - xlogy(a, a) - xlogy(b, b))


def candidates(
    q: Experts, prior: Prior, s: Statistics, shares: Sequence[Array], least: float
) -> list[tuple[int, int]]:
    """Return pairs of experts that hold rows and may gain from being one; O(H^2 (P^3 + n)).

    Those that gain most come first; last those that gain only if rules lose nothing.

    shares : responsibilities (H, n) of the rows of each task
    least : rows from which an expert counts
    """
    full = np.flatnonzero(s.n > least)
    first, second = (full[i] for i in np.triu_indices(full.size, 1))
    if not first.size:
        return []
    alone, both, none = s.ordered(full), s.ordered(first), Statistics.zero(1, q.P, q.K)
    both.add(s.ordered(second))

    def gain(evidence: Callable[[Statistics], Array]) -> Array:
        each = np.zeros(s.n.size)
        each[full] = evidence(alone)
        return evidence(both) + evidence(none) - each[first] - each[second]

    of_places = gain(partial(place_evidence, prior, q.P)) + assignment_gain(shares, first, second)
    gained = of_places + gain(partial(rule_evidence, q))
    order, most = np.argsort(-gained, kind="stable"), np.maximum(gained, of_places)
    return [(int(first[i]), int(second[i])) for i in order if most[i] > 0.0]
