"""q of the rows given the experts: missing features, labels, responsibilities.

For a row with pattern (known o, gaps m) under expert h:

    Cov(x_m) = (Q_mm)^-1,   Q = E[Lam] + E[w w']_xx (if labelled) + 1 at half-known columns
    E(x_m)   = Cov(x_m) (c_m - Q_mo x_o)

Then t and y are renewed given x, then the responsibilities. One inverse for each pattern and
expert; O(b H (P^2 + P c)) for b rows with c gaps. Arrays have the experts in front: (H, b, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from glfm_cli.latent.iqgme.experts import LOG_2PI, Experts, Statistics
from glfm_cli.latent.iqgme.rows import Group, Rows

Array = NDArray[Any]


@dataclass(eq=False)
class Local:
    """What is kept of q of the rows from one iteration to the next.

    rho : (H, n) responsibilities
    t : (H, n, K) means of the label's variables;  y : (H, n, P) of noisy half-known columns, or
        (H, 0, P) where no feature is discrete
    """

    rho: Array
    t: Array
    y: Array

    def ordered(self, order: Array) -> Local:
        """Return the same of some experts, in another order."""
        return Local(self.rho[order], self.t[order], self.y[order])


@dataclass(frozen=True, eq=False)
class Completed:
    """Rows of one group under every expert.

    x : (H, b, P) means;  cov : (H, c, c) covariance of the gaps;  log_rho : (H, b) unnormalised
    """

    x: Array
    cov: Array
    log_rho: Array


@dataclass(frozen=True, eq=False)
class Terms:
    """What the experts say of the rows, in the form that the updates use.

    WW : (H, P + 1, P + 1) sum over k of E[w_k w_k'];  Qm : (H, P) E[Lam] m
    constant : (H,) terms of log rho that are the same for all rows
    """

    WW: Array
    Qm: Array
    constant: Array

    @classmethod
    def of(cls, q: Experts) -> Terms:
        """Return them; O(H P^2 (K + 1))."""
        WW = q.K * q.Sw + np.einsum("hkp,hkq->hpq", q.mw, q.mw)
        Qm = np.einsum("hpq,hq->hp", q.nB, q.m)
        constant = q.log_pi + 0.5 * (q.log_Lam - q.P * LOG_2PI - q.P / q.u)
        return cls(WW, Qm, constant)


def complete_group(rows: Rows, group: Group, q: Experts, terms: Terms, local: Local) -> Completed:
    """Return q(x, z) of a group's rows and renew their t and y in place."""
    P, c = q.P, group.gaps.size
    K = q.K if group.labelled else 0
    x = np.broadcast_to(rows.x[group.rows], (q.H, group.rows.size, P))
    x = x.copy() if c else x
    cov = np.zeros((q.H, c, c))
    log_rho = np.repeat(terms.constant[:, None], group.rows.size, axis=1)
    if c:
        cov, log_det = _fill_gaps(rows, group, q, terms, local, x)
        trace = np.einsum("hcd,hcd->h", q.nB[:, group.gaps[:, None], group.gaps], cov)
        log_rho += 0.5 * (c * (1.0 + LOG_2PI) - log_det - trace)[:, None]
    away = np.matmul(x - q.m[:, None, :], q.root)
    log_rho -= 0.5 * np.einsum("hbp,hbp->hb", away, away)
    if K:
        log_rho += _label_terms(rows, group, q, terms, local, x, cov)
    if group.halves:
        log_rho += _half_terms(rows, group, local, x, cov)
    return Completed(x, cov, log_rho)


def _fill_gaps(
    rows: Rows, group: Group, q: Experts, terms: Terms, local: Local, x: Array
) -> tuple[Array, Array]:
    """Put E(x_m) into x; return Cov(x_m) (H, c, c) and log|Q_mm| (H,)."""
    P, m, o = q.P, group.gaps, group.known
    at = (slice(None), m[:, None], m)
    Q_mm = q.nB[at].copy()
    Q_mo = q.nB[:, m[:, None], o]
    linear = np.repeat(terms.Qm[:, None, m], group.rows.size, axis=1)
    if group.labelled and q.K:
        Q_mm += terms.WW[at]
        Q_mo = Q_mo + terms.WW[:, m[:, None], o]
        linear += local.t[:, group.rows] @ q.mw[:, :, m] - terms.WW[:, None, m, P]
    if group.halves:
        Q_mm[:, np.arange(m.size), np.arange(m.size)] += group.noisy
        linear += local.y[:, group.rows][:, :, m] * group.noisy
    if o.size:
        linear -= rows.x[np.ix_(group.rows, o)] @ np.swapaxes(Q_mo, 1, 2)
    chol = np.linalg.cholesky(Q_mm)
    log_det = 2.0 * np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
    inverse = np.linalg.inv(chol)
    cov = np.swapaxes(inverse, 1, 2) @ inverse
    x[:, :, m] = linear @ cov
    return cov, log_det


def _label_terms(
    rows: Rows, group: Group, q: Experts, terms: Terms, local: Local, x: Array, cov: Array
) -> Array:
    """Renew t at its new location; return E[log p(t | x)] plus the entropy of q(t), (H, b)."""
    P, K, m = q.P, q.K, group.gaps
    assert rows.label is not None
    location = x @ np.swapaxes(q.mw[:, :, :P], 1, 2) + q.mw[:, None, :, P]
    local.t[:, group.rows], log_z = rows.label.expect(group.rows, location)
    ones = np.ones((*x.shape[:2], 1))
    xb = np.concatenate([x, ones], axis=2)
    spread = K * np.einsum("hbp,hbp->hb", xb @ q.Sw, xb)
    if m.size:
        spread += np.einsum("hcd,hcd->h", terms.WW[:, m[:, None], m], cov)[:, None]
    return log_z - 0.5 * spread


def _half_terms(rows: Rows, group: Group, local: Local, x: Array, cov: Array) -> Array:
    """Renew y at its new location; return E[log p(y | x)] plus the entropy of q(y), (H, b)."""
    out = np.zeros(x.shape[:2])
    for i in group.halves:
        half = rows.halves[i]
        mean, log_z = half.what.expect(group.rows, x[:, :, half.at])
        local.y[:, group.rows[:, None], half.at] = mean
        out += log_z
    return out - 0.5 * np.einsum("hcc,c->h", cov, group.noisy)[:, None]


# ------------------------------------------------------------------------------- statistics


def sum_group(s: Statistics, group: Group, done: Completed, rho: Array, t: Array) -> None:
    """Add a group's rows to the sums; rho (H, b), t (H, b, K)."""
    weighted = rho[:, :, None] * done.x
    n, x, m = rho.sum(axis=1), weighted.sum(axis=1), group.gaps
    xx = np.swapaxes(weighted, 1, 2) @ done.x
    if m.size:
        xx[:, m[:, None], m] += n[:, None, None] * done.cov
    s.n += n
    s.x += x
    s.xx += xx
    if group.labelled:
        s.l_n += n
        s.l_x += x
        s.l_xx += xx
        rt = rho[:, :, None] * t
        s.tx[:, :, :-1] += np.swapaxes(rt, 1, 2) @ done.x
        s.tx[:, :, -1] += rt.sum(axis=1)


def local_step(
    rows: Rows, q: Experts, local: Local, pool: ThreadPoolExecutor | None = None
) -> Statistics:
    """Update q of all rows in place and return the sums that the experts' updates need.

    Batches of rows are worked on by the pool's threads and summed in their order, so that the
    result does not depend on their number.
    """
    terms = Terms.of(q)

    def work(batch: Sequence[Group]) -> Statistics:
        s = Statistics.zero(q.H, q.P, q.K)
        for group in batch:
            done = complete_group(rows, group, q, terms, local)
            norm = logsumexp(done.log_rho, axis=0)
            rho = np.exp(done.log_rho - norm)
            local.rho[:, group.rows] = rho
            sum_group(s, group, done, rho, local.t[:, group.rows])
            s.log_norm += float(norm.sum())
        return s

    total = Statistics.zero(q.H, q.P, q.K)
    for part in over(pool, work, rows.batches):
        total.add(part)
    return total


def over(
    pool: ThreadPoolExecutor | None, work: Callable[[Any], Any], batches: Sequence[Any]
) -> Any:
    """Return the results of `work` on every batch, in order."""
    return map(work, batches) if pool is None else pool.map(work, batches)
