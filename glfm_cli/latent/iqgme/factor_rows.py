"""q of the rows given experts of many features: factors, labels, responsibilities.

    Cov(s)^-1 = E[Lam] + G o sum_{p known} e_p E[A_p A_p'] + E[w w']_ss (if labelled)
    E(s) = Cov(s) (E[Lam] m + g o sum_{p known} e_p (x_p - mu_p) A_p
                   + sum_k (t_k w_ks - E[w w']_s1) (if labelled))

with e_p the precision of the noise, g = E[d o b], G = E[(d o b)(d o b)']. Missing features are not
there. Then t is renewed given s, then the responsibilities.
O(b P L^2) for b rows, and O(H b L^3). Arrays have the experts in front: (H, b, ...).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma

from glfm_cli._kernels._iqgme_factors import place_factors
from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.iqgme.factors import FactorExperts, FactorSums, pack, unpack
from glfm_cli.latent.iqgme.gibbs_draw import LOG_2PI
from glfm_cli.latent.iqgme.local import Local, Terms, weight_spread
from glfm_cli.latent.iqgme.rows import KnownRows, RowRun

NEGLIGIBLE = 1e-14  # responsibility of an expert that is taken for none


@dataclass(frozen=True, eq=False)
class FactorTerms:
    """What the experts say of the rows, in the form that the updates use; P features, L factors.

    core : of the experts of the factors
    rel : (P,);  psi : (H,) their products are the precisions of the noise
    log_rel, log_psi : their expected logs
    gain : (H, L);  G : (H, L (L + 1) / 2), AA : (P, L (L + 1) / 2) packed
    constant : (H,) terms of log rho that are the same for all rows
    """

    core: Terms
    rel: Array
    psi: Array
    log_rel: Array
    log_psi: Array
    gain: Array
    G: Array
    AA: Array
    constant: Array

    @classmethod
    def of(cls, q: FactorExperts) -> FactorTerms:
        """Return them; O(P L^2 + H L^2 K)."""
        core = Terms.of(q.core)
        log_rel = digamma(q.rel_a) - np.log(q.rel_b)
        log_psi = digamma(q.psi_a) - np.log(q.psi_b)
        # What a place says at s = 0, and what the entropy of s has for each factor.
        constant = core.constant - 0.5 * np.einsum("hl,hl->h", q.core.m, core.Qm)
        constant += 0.5 * q.L * LOG_2PI
        G = pack(q.G)
        return cls(core, q.rel, q.psi, log_rel, log_psi, q.gain, G, q.AA, constant)


@dataclass(frozen=True, eq=False)
class FactorRows:
    """Rows of a run under every expert.

    s : (H, b, L) means;  ss : (H, b, L (L + 1) / 2) second moments, packed
    log_rho : (H, b) unnormalised
    """

    s: Array
    ss: Array
    log_rho: Array


def place_run(
    rows: KnownRows, run: RowRun, q: FactorExperts, terms: FactorTerms, local: Local
) -> FactorRows:
    """Return q(s, z) of a run's rows and renew their t in place."""
    L, at = q.L, run.with_label
    own = terms.core.Qm[:, None] + _numbers(run, q, terms)
    linear = own
    labelled = np.zeros(run.rows.size, dtype=np.uint8)
    if q.K and at.size:
        labelled[at] = 1
        linear = linear.copy()
        linear[:, at] += local.t[:, run.rows[at]] @ q.core.mw[:, :, :L]
        linear[:, at] -= terms.core.WW[:, None, :L, L]
    s, ss, log_rho, trace = _factors(run, q, terms, labelled, own, linear)
    log_rho += terms.constant[:, None] + _log_numbers(run, q, terms)
    if q.K and at.size:
        which = run.rows[at]
        assert rows.label is not None
        mw = q.core.mw
        location = s[:, at] @ np.swapaxes(mw[:, :, :L], 1, 2) + mw[:, None, :, L]
        local.t[:, which], log_z = rows.label.expect(which, location)
        log_rho[:, at] += log_z - 0.5 * (q.K * weight_spread(q.core, s[:, at]) + trace[:, at])
    return FactorRows(s, ss, log_rho)


def _factors(
    run: RowRun, q: FactorExperts, terms: FactorTerms, labelled: Array, own: Array, linear: Array
) -> tuple[Array, Array, Array, Array]:
    """Return means, second moments, log rho's part and traces of the labels' precisions."""
    H, b, L = linear.shape
    unit = (run.known * terms.rel) @ terms.AA
    W = np.ascontiguousarray(terms.core.WW[:, :L, :L])
    s, ss = np.empty((H, b, L)), np.empty((H, b, unit.shape[1]))
    value, trace = np.empty((H, b)), np.empty((H, b))
    bad = place_factors(
        pack(q.core.nB), terms.psi, terms.G, unit, W, labelled, own, linear,
        s, ss, value, trace, np.empty(L * L), np.empty(L * L), np.empty(unit.shape[1]),
    )  # fmt: skip
    if bad:
        raise NumericalError("a precision of factors is not positive definite")
    return s, ss, value, trace


def _numbers(run: RowRun, q: FactorExperts, terms: FactorTerms) -> Array:
    """Return g o sum e (x - m) A over the known numbers (H, b, L)."""
    loaded = terms.rel[:, None] * q.A
    away = run.x @ loaded - run.known @ (q.mu[:, None] * loaded)
    return np.asarray(terms.psi[:, None, None] * away * terms.gain[:, None])


def _log_numbers(run: RowRun, q: FactorExperts, terms: FactorTerms) -> Array:
    """Return what the known numbers add to log rho (H, b) at s = 0."""
    count = run.known.sum(axis=1)
    square = run.x**2 @ terms.rel - 2.0 * run.x @ (q.mu * terms.rel)
    square += run.known @ ((q.mu**2 + q.v) * terms.rel)
    log_e = np.outer(terms.log_psi, count) + run.known @ terms.log_rel
    return np.asarray(0.5 * (log_e - count * LOG_2PI - np.outer(terms.psi, square)))


def sum_run(
    s: FactorSums, run: RowRun, placed: FactorRows, rho: Array, t: Array
) -> None:
    """Add a run's rows to the sums; rho (H, b), t (H, b, K).

    O(b P L^2) for every expert that a row may be of.
    """
    L, at = placed.s.shape[2], run.with_label
    mean, second = rho[:, :, None] * placed.s, rho[:, :, None] * placed.ss
    s.n += rho.sum(axis=1)
    s.x += mean.sum(axis=1)
    s.xx += unpack(second.sum(axis=1), L)
    s.cells += rho @ run.known
    s.y += rho @ run.x
    s.yy += rho @ run.x**2
    alike = bool(run.known.all())
    if alike:  # every feature has the same sums
        s.s += mean.sum(axis=1)[:, None]
        s.ss += second.sum(axis=1)[:, None]
        s.ys += run.x.T @ mean
    for h, share in enumerate(rho[: 0 if alike else None]):
        # Many features leave little doubt: most rows are of one expert.
        of = np.flatnonzero(share > NEGLIGIBLE)
        if of.size:
            known, x = run.known[of], run.x[of]
            s.s[h] += known.T @ mean[h, of]
            s.ys[h] += x.T @ mean[h, of]
            s.ss[h] += known.T @ second[h, of]
    if at.size and s.tx.shape[1]:
        rt = rho[:, at, None] * t[:, at]
        s.l_n += rho[:, at].sum(axis=1)
        s.l_x += mean[:, at].sum(axis=1)
        s.l_xx += unpack(second[:, at].sum(axis=1), L)
        s.tx[:, :, :-1] += np.swapaxes(rt, 1, 2) @ placed.s[:, at]
        s.tx[:, :, -1] += rt.sum(axis=1)
