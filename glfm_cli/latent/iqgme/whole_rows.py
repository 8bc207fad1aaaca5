"""q of rows of which every feature is seen, all in products of two matrices.

With s what is seen, Q = E[Lam], and D the precisions of the features m that are seen with noise

    log p(s) = -(1/2) (s - mu)' A (s - mu) + ...,   A = Q - Q_.m C Q_m.,  C = (Q_mm + D)^-1
    E(f_m) = s_m - C Q_m. (s - mu),  Cov(f_m) = C

the same for all rows of an expert. Both what rows need of the experts and the sums that experts
need of the rows are therefore linear in the products of pairs of [s, 1], which never change:
O(b H P^2) for b rows, once for each of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.experts import Experts, Statistics
from glfm_cli.latent.iqgme.factors import pack, twice, unpack
from glfm_cli.latent.iqgme.local import Local, Terms
from glfm_cli.latent.iqgme.rows import Block, KnownRows


@dataclass(frozen=True, eq=False)
class SeenLaw:
    """What experts say of rows of which every feature is seen; F = P + 1.

    quadratic : (H, F, F) of [s, 1], minus twice the log density but for `constant` (H,)
    linear : (H, P, F) E(f) = linear [s, 1];  cov : (H, P, P) of f
    """

    quadratic: Array
    constant: Array
    linear: Array
    cov: Array

    @classmethod
    def of(cls, q: Experts, noise: Array) -> SeenLaw:
        """Return it for features seen with noise of these variances (P,); O(H P^3)."""
        H, P = q.m.shape
        A, constant, at = q.nB, np.zeros(H), np.flatnonzero(noise > 0.0)
        J, cov = np.tile(np.eye(P), (H, 1, 1)), np.zeros((H, P, P))
        if at.size:
            D, Q = np.diag(1.0 / noise[at]), q.nB[:, at[:, None], at] if P else q.nB
            C = np.linalg.inv(Q + D)
            C = 0.5 * (C + np.swapaxes(C, 1, 2))
            pull = C @ q.nB[:, at]
            A = A - np.swapaxes(q.nB[:, at], 1, 2) @ pull
            J[:, at] -= pull
            cov[:, at[:, None], at] = C
            constant = -0.5 * (np.linalg.slogdet(Q + D)[1] + np.log(noise[at]).sum())
        return cls(_around(A, q.m), constant, _with_rest(J, q.m), cov)


def _around(A: Array, m: Array) -> Array:
    """Return the quadratic form (H, F, F) of [s, 1] that is (s - m)' A (s - m)."""
    Am = np.einsum("hpq,hq->hp", A, m)
    out = np.empty((len(m), m.shape[1] + 1, m.shape[1] + 1))
    out[:, :-1, :-1] = 0.5 * (A + np.swapaxes(A, 1, 2))
    out[:, :-1, -1] = out[:, -1, :-1] = -Am
    out[:, -1, -1] = np.einsum("hp,hp->h", Am, m)
    return out


def _with_rest(J: Array, m: Array) -> Array:
    """Return [J, m - J m] (H, P, F)."""
    rest = m - np.einsum("hpq,hq->hp", J, m)
    return np.concatenate([J, rest[:, :, None]], axis=2)


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows of a block under every expert.

    seen : (b, P);  H : experts;  log_rho : (H, b) unnormalised;  law : what they are placed by
    """

    seen: Array
    log_rho: Array
    law: SeenLaw

    @cached_property
    def inputs(self) -> Array:
        """Return what rules act on (H, b, P)."""
        return np.broadcast_to(self.seen, (len(self.log_rho), *self.seen.shape))


def place_seen(
    rows: KnownRows, block: Block, q: Experts, terms: Terms, local: Local
) -> SeenRows:
    """Return q(z) of the rows of a block and renew their t in place."""
    law: SeenLaw = terms.once(lambda: SeenLaw.of(q, rows.noise))
    log_rho = np.empty((q.H, block.rows.size))
    for part, labelled in block.parts:
        form = law.quadratic + q.K * q.Sw if labelled and q.K else law.quadratic
        log_rho[:, part] = pack(form) * twice(q.P + 1) @ block.products[part].T
    log_rho *= -0.5
    log_rho += (terms.constant + law.constant)[:, None]
    at = block.with_label
    if q.K and at.size:
        assert rows.label is not None
        which = block.rows[at]
        location = q.mw.reshape(q.H * q.K, -1) @ block.with_one[at].T
        location = np.swapaxes(location.reshape(q.H, q.K, at.size), 1, 2)
        local.t[:, which], log_z = rows.label.expect(which, np.ascontiguousarray(location))
        log_rho[:, at] += log_z
    return SeenRows(block.seen, log_rho, law)


def sum_seen(s: Statistics, block: Block, done: SeenRows, rho: Array, t: Array) -> None:
    """Add a block's rows to the sums; rho (H, b), t (H, b, K)."""
    law, F = done.law, block.seen.shape[1] + 1
    both = np.zeros_like(law.quadratic)
    for part, labelled in block.parts:
        moments = unpack(rho[:, part] @ block.products[part], F)
        both += moments
        if labelled:
            s.l_n += moments[:, -1, -1]
            s.l_x += moments[:, :-1, -1]
            s.l_xx += moments[:, :-1, :-1]
    n = both[:, -1, -1]
    s.n += n
    s.x += np.einsum("hpf,hf->hp", law.linear, both[:, :, -1])
    s.xx += law.linear @ both @ np.swapaxes(law.linear, 1, 2) + n[:, None, None] * law.cov
    at = block.with_label
    if at.size and s.tx.shape[1]:
        rt = np.swapaxes(rho[:, at, None] * t[:, at], 1, 2)
        s.tx += (rt.reshape(-1, at.size) @ block.with_one[at]).reshape(s.tx.shape)
