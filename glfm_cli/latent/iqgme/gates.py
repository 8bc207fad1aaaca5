"""New rows: which expert they belong to, what their label is, what their gaps hold.

The gate of expert h is the posterior predictive of the row's features under it: a Student t
density of the known ones (exact under q, whichever are missing), times the probability of the
discrete ones given those (its variational bound). Given an expert the missing features are normal,
and the label's variables have exact first two moments: the uncertainty of missing features and of
the expert's weights widens the probit.  [iQGME section 3.4.3, with both uncertainties]
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.local import over
from glfm_cli.latent.iqgme.rows import Group, Rows

Array = NDArray[Any]

ROUNDS = 30  # of q(y) and q(x) of the discrete features
SETTLED = 1e-6
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """What the mixture says of rows whose labels it does not know.

    gate : (H, n) probabilities of the experts
    mean, var : (H, n, K) of the label's variables under each, noise included
    x, x_var : (H, n, P) means and variances of the features; (H, 0, P) unless asked for
    """

    gate: Array
    mean: Array
    var: Array
    x: Array
    x_var: Array

    def probability_above(self) -> Array:
        """Return (n,) the probability that a label's only variable is above 0."""
        p = ndtr(self.mean[:, :, 0] / np.sqrt(self.var[:, :, 0]))
        return np.einsum("hn,hn->n", self.gate, p)

    def probabilities(self, reference: int) -> Array:
        """Return (n, R) the probabilities of each of R = K + 1 utilities to be the largest.

        The utilities are taken as independent; the reference's has mean 0 and variance 1.
        """
        H, n, K = self.mean.shape
        mean = np.insert(self.mean, reference, 0.0, axis=2)
        sd = np.insert(np.sqrt(self.var), reference, 1.0, axis=2)
        weight = WEIGHTS / WEIGHTS.sum()
        p = np.empty((H, n, K + 1))
        for r in range(K + 1):
            at = mean[:, :, r, None] + sd[:, :, r, None] * NODES
            below = (at[..., None] - mean[:, :, None, :]) / sd[:, :, None, :]
            below[..., r] = np.inf
            p[:, :, r] = np.exp(log_ndtr(below).sum(axis=-1)) @ weight
        p /= p.sum(axis=2, keepdims=True)
        return np.einsum("hn,hnr->nr", self.gate, p)


def label_law(
    rows: Rows, q: Experts, *, features: bool = False, pool: ThreadPoolExecutor | None = None
) -> LabelLaw:
    """Return the law of the labels of rows, nothing being known of them.

    Parameters
    ----------
    rows : Rows
        Labels, where there are any, are not looked at.
    q : Experts
    features : bool
        Whether the law of the features is wanted, too.
    pool : ThreadPoolExecutor, optional
        Works on batches of rows.
    """
    rows = rows.without_label()
    n = len(rows.x)
    gate, mean = np.empty((q.H, n)), np.empty((q.H, n, q.K))
    var = np.empty_like(mean)
    x = np.empty((q.H, n if features else 0, q.P))
    x_var = np.zeros_like(x)

    def work(batch: tuple[Group, ...]) -> None:
        for group in batch:
            log_gate, at, cov = _place(rows, group, q)
            members = group.rows
            gate[:, members] = np.exp(log_gate - logsumexp(log_gate, axis=0))
            mean[:, members], var[:, members] = _label(group, q, at, cov)
            if features:
                x[:, members] = at
                spread = np.diagonal(cov, axis1=1, axis2=2)
                x_var[:, members[:, None], group.gaps] = spread[:, None, :]

    list(over(pool, work, rows.batches))
    return LabelLaw(gate, mean, var, x, x_var)


def _place(rows: Rows, group: Group, q: Experts) -> tuple[Array, Array, Array]:
    """Return log gates (H, b), completed rows (H, b, P) and covariances of gaps (H, c, c)."""
    o, m = group.known, group.gaps
    x = np.broadcast_to(rows.x[group.rows], (q.H, group.rows.size, q.P)).copy()
    with np.errstate(divide="ignore"):
        log_gate = np.log(q.pi)[:, None] + _student(rows, group, q)
    if not m.size:
        return log_gate, x, np.zeros((q.H, 0, 0))
    precision = q.nB[:, m[:, None], m]
    cov = np.linalg.inv(precision)
    center = np.repeat(q.m[:, None, m], group.rows.size, axis=1)
    if o.size:
        known = rows.x[np.ix_(group.rows, o)] - q.m[:, None, o]
        center -= known @ np.swapaxes(cov @ q.nB[:, m[:, None], o], 1, 2)
    if group.halves:
        center, cov, log_p = _see_halves(rows, group, precision, cov, center)
        log_gate = log_gate + log_p
    x[:, :, m] = center
    return log_gate, x, cov


def _student(rows: Rows, group: Group, q: Experts) -> Array:
    """Return log densities (H, b) of the known features: t with nu + 1 - P degrees of freedom."""
    o = group.known
    if not o.size:
        return np.zeros((q.H, group.rows.size))
    df = q.nu + 1.0 - q.P
    scale = q.B_inv[:, o[:, None], o] * ((q.u + 1.0) / (q.u * df))[:, None, None]
    chol = np.linalg.cholesky(scale)
    log_det = 2.0 * np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
    away = rows.x[np.ix_(group.rows, o)] - q.m[:, None, o]
    z = np.linalg.solve(chol, np.swapaxes(away, 1, 2))
    square = np.einsum("hob,hob->hb", z, z)
    total = 0.5 * (df + o.size)
    constant = gammaln(total) - gammaln(0.5 * df) - 0.5 * (o.size * np.log(df * np.pi) + log_det)
    return constant[:, None] - total[:, None] * np.log1p(square / df[:, None])


def _see_halves(
    rows: Rows, group: Group, precision: Array, cov: Array, center: Array
) -> tuple[Array, Array, Array]:
    """Condition gaps on what is half known; return means, covariance and the bound on its log p."""
    c = group.gaps.size
    place = np.full(rows.n_features, -1)
    place[group.gaps] = np.arange(c)
    seen = precision + np.diag(group.noisy)
    new_cov = np.linalg.inv(seen)
    prior_part = center @ precision
    mean, y = center, np.zeros_like(center)
    for _ in range(ROUNDS):
        for i in group.halves:
            at = place[rows.halves[i].at]
            y[:, :, at], _ = rows.halves[i].what.expect(group.rows, mean[:, :, at])
        before, mean = mean, (prior_part + y * group.noisy) @ new_cov
        if np.abs(mean - before).max() < SETTLED:
            break
    log_p = np.zeros(center.shape[:2])
    for i in group.halves:
        half = rows.halves[i]
        log_p += half.what.expect(group.rows, mean[:, :, place[half.at]])[1]
    away = mean - center
    log_p -= 0.5 * np.einsum("hbc,hbc->hb", away @ precision, away)
    shrink = np.linalg.slogdet(new_cov)[1] - np.linalg.slogdet(cov)[1]
    return mean, new_cov, log_p + 0.5 * shrink[:, None]


def _label(group: Group, q: Experts, x: Array, cov: Array) -> tuple[Array, Array]:
    """Return mean and variance (H, b, K) of the label's variables, noise included."""
    P, m = q.P, group.gaps
    mean = x @ np.swapaxes(q.mw[:, :, :P], 1, 2) + q.mw[:, None, :, P]
    xb = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=2)
    var = 1.0 + np.einsum("hbp,hbp->hb", xb @ q.Sw, xb)[:, :, None]
    var = np.repeat(var, q.K, axis=2)
    if m.size:
        w = q.mw[:, :, m]
        var += np.einsum("hkc,hcd,hkd->hk", w, cov, w)[:, None, :]
        var += np.einsum("hcd,hcd->h", q.Sw[:, m[:, None], m], cov)[:, None, None]
    return mean, var
