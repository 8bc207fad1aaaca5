"""Blocked Gibbs sampling of the mixture of experts: exact, for comparison with the bound.

A sweep, with everything that rows share in one draw of the experts (`Drawn`):

    z | y, x_known, label         missing features and the label's variable integrated out
    t | z, y, x_known, label      missing features integrated out
    x missing | z, t, y           jointly in a row
    f | z, x                      of features seen with noise
    V, alpha, r, (mu, Lam), w, (zeta, lam)    each from its conditional law

With y what is told of gaps, of precision N, A the precision of x = f + noise, Q = A + w w' + N, and
x* the completed row where the exponent is least for t = 0,

    log p(y, x_known, label | h) = (1/2) (log|A| - log|Q| - |x* - mu|_A^2 - |y - x*|_N^2)
        + log of the integral over t (`see_label`) + constant

and x missing is x* + Q^-1 w t plus noise of covariance Q^-1: the solution of the same linear system
with noise of covariance Q on its right-hand side. A label of more than two levels has several
variables t; they stand as given while z and x are drawn, and are drawn given x.
[iQGME section 3.3, in blocks]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array, log_sum
from glfm_cli.latent.iqgme.gaps import Gaps
from glfm_cli.latent.iqgme.gibbs_draw import Drawn, draw_places, draw_prior, draw_sticks
from glfm_cli.latent.iqgme.local import ScoreLaw, see_label
from glfm_cli.latent.iqgme.prior import IqgmeConfig, Prior
from glfm_cli.latent.iqgme.rows import Block, KnownRows
from glfm_cli.latent.iqgme.seen_law import SeenLaw


@dataclass(eq=False)
class GibbsState:
    """Where a chain stands.

    q : the experts;  z : (n,) of the rows;  x : (n, P) known, or drawn
    t : (n, K) of labelled rows
    """

    q: Drawn
    z: Array
    x: Array
    t: Array


def start_gibbs(
    rows: KnownRows, prior: Prior, config: IqgmeConfig, rng: np.random.Generator
) -> GibbsState:
    """Return rows scattered over the experts, gaps at the mean, and experts drawn given them."""
    n, P = rows.x.shape
    q = draw_prior(prior, config.experts, rows.n_label, rng)
    t = np.zeros((n, rows.n_label))
    labelled = np.flatnonzero(rows.labelled)
    if rows.label is not None and labelled.size:
        t[labelled] = rows.label.expect(labelled, np.zeros((1, labelled.size, rows.n_label)))[0][0]
    q.lam, q.zeta = np.ones(P + 1), np.zeros((rows.n_label, P + 1))
    z = rng.integers(0, config.experts, size=(n,))
    state = GibbsState(q, z, rows.x.copy(), t)
    draw_experts(state, rows, prior, rng)
    return state


def sweep(state: GibbsState, rows: KnownRows, prior: Prior, rng: np.random.Generator) -> float:
    """Draw everything once; return the log likelihood from before, up to a constant.

    O(n H (P^2 + c^2) + patterns H c^3).
    """
    log_p = draw_rows(state, rows, rng)
    draw_experts(state, rows, prior, rng)
    return log_p


def draw_rows(state: GibbsState, rows: KnownRows, rng: np.random.Generator) -> float:
    """Draw z, the gaps and t of every row; return the log likelihood that `sweep` returns."""
    with np.errstate(divide="ignore"):
        log_pi = np.log(state.q.pi)
    WW = np.einsum("hkp,hkq->hpq", state.q.mw, state.q.mw)
    law = SeenLaw.of(state.q, rows.noise)
    constant = log_pi + 0.5 * state.q.log_det + law.constant
    return sum(_draw_block(state, rows, block, law, WW, constant, rng) for block in rows.blocks)


def _draw_block(
    state: GibbsState,
    rows: KnownRows,
    block: Block,
    law: SeenLaw,
    WW: Array,
    constant: Array,
    rng: np.random.Generator,
) -> float:
    q, at, lab = state.q, block.rows, block.with_label
    P = q.P
    x = np.tile(block.seen, (q.H, 1, 1))
    log_p = np.repeat(constant[:, None], at.size, axis=1)
    together = rows.n_label == 1 and bool(lab.size)
    linear = _linear(state, block, law, WW, with_t=not together)
    missing, along = None, np.zeros((q.H, block.labelled.size, P))
    if block.missing.size:
        missing = Gaps.of(block, law.A, WW, block.labelled)
        missing.fill(block, linear, x)
        log_p -= 0.5 * np.repeat(missing.log_det, np.diff(block.start), axis=1)
    log_p -= 0.5 * (law.squares(x) + block.misfit(x))
    if together:
        along = along if missing is None else missing.along(block, q.mw[:, 0, :P], block.labelled)
        seen = see_label(rows, block, q, x, along)
        log_p[:, lab] += seen.log_z
    elif lab.size:
        off = state.t[at[lab]] - _scores(q.mw, x[:, lab])
        log_p[:, lab] -= 0.5 * np.einsum("hbk,hbk->hb", off, off)
    norm = log_sum(log_p, axis=0)
    share = np.exp(log_p - norm)
    z = (rng.random(at.size) > np.cumsum(share, axis=0)[:-1]).sum(axis=0)
    state.z[at] = z
    if missing is not None:
        _scatter(state, block, law, linear, rng)
        missing.fill(block, linear, x)
    state.x[at] = x[z, np.arange(at.size)]
    if together:
        _draw_scores(state, rows, block, seen, along, rng)
    elif lab.size and rows.label is not None:
        which = at[lab]
        w = q.mw[state.z[which]]
        eta = np.einsum("bkp,bp->bk", w[:, :, :P], state.x[which]) + w[:, :, P]
        state.t[which] = rows.label.draw(which, eta, rng)
    return float(norm.sum())


def _scatter(
    state: GibbsState, block: Block, law: SeenLaw, linear: Array, rng: np.random.Generator
) -> None:
    """Add noise of covariance Q to the right-hand sides (H, b, P)."""
    q, b, lab = state.q, block.rows.size, block.with_label
    linear += rng.standard_normal((b, q.P)) @ np.swapaxes(law.root, 1, 2)
    if lab.size:
        linear[:, lab] += rng.standard_normal((lab.size, q.K)) @ q.mw[:, :, : q.P]
    if block.noise is not None:
        linear += rng.standard_normal((b, q.P)) * np.sqrt(block.noise)


def _draw_scores(
    state: GibbsState,
    rows: KnownRows,
    block: Block,
    seen: ScoreLaw,
    along: Array,
    rng: np.random.Generator,
) -> None:
    """Draw t of the labelled rows under their experts, and let their gaps go along."""
    assert rows.label is not None
    lab = block.with_label
    which, each = block.rows[lab], np.arange(lab.size)
    z = state.z[which]
    location, scale = seen.location[z, each, None], seen.scale[z, each, None]
    t = rows.label.draw_scaled(which, location, scale, rng)
    pattern = np.repeat(np.arange(block.labelled.size), np.diff(block.start))[lab]
    state.t[which] = t
    state.x[which] += t * along[z, pattern]


def _linear(
    state: GibbsState, block: Block, law: SeenLaw, WW: Array, *, with_t: bool
) -> Array:
    """Return the right-hand side (H, b, P) of the system that completes rows; else for t = 0."""
    q, at, lab, P = state.q, block.rows, block.with_label, state.q.P
    linear = law.Am[:, None, :] - block.seen @ law.A
    if q.K and lab.size:
        rule = -WW[:, None, :P, P] - block.seen[lab] @ WW[:, :P, :P]
        if with_t:
            rule += state.t[at[lab]] @ q.mw[:, :, :P]
        linear[:, lab] += rule
    linear += block.pull
    return linear


def _scores(mw: Array, x: Array) -> Array:
    """Return w' [x, 1] (H, b, K)."""
    return x @ np.swapaxes(mw[:, :, :-1], 1, 2) + mw[:, None, :, -1]


# --------------------------------------------------------------------------------- experts


def draw_experts(
    state: GibbsState, rows: KnownRows, prior: Prior, rng: np.random.Generator
) -> None:
    """Draw all that rows share, given the rows; O(n P^2 + H P^3)."""
    q, z = state.q, state.z
    f = SeenLaw.of(q, rows.noise).draw(z, state.x, rng)
    (H, P), K = q.m.shape, q.K
    n = np.bincount(z, minlength=H).astype(np.float64)
    q.sticks = draw_sticks(n, q.alpha, rng)
    rest = float(np.log1p(-q.sticks).sum())
    q.alpha = rng.gamma(prior.t1 + H - 1) / (prior.t2 - rest)
    c = prior.c0 + 0.5 * P * prior.nu0
    q.r = rng.gamma(c, size=H) / (prior.c0 + 0.5 * np.einsum("pq,hqp->h", prior.B0_inv, q.nB))
    u, B_inv = prior.u0 + n, np.empty((H, P, P))
    m = np.empty((H, P))
    outer = prior.u0 * np.outer(prior.m0, prior.m0)
    for h in range(H):
        own = f[z == h]
        m[h] = (prior.u0 * prior.m0 + own.sum(axis=0)) / u[h]
        B_inv[h] = q.r[h] * prior.B0_inv + own.T @ own + outer - u[h] * np.outer(m[h], m[h])
    B_inv = 0.5 * (B_inv + np.swapaxes(B_inv, 1, 2))
    q.m, q.nB, q.root = draw_places(m, u, prior.nu0 + n, B_inv, rng)
    if K:
        _draw_weights(state, rows, prior, rng)


def _draw_weights(
    state: GibbsState, rows: KnownRows, prior: Prior, rng: np.random.Generator
) -> None:
    """Draw w, beta, then (zeta, lam) without w of experts that have no label, and then these.

    Given theirs, lam would only creep along: they say nothing that it did not tell them.
    """
    q, z = state.q, state.z
    (H, P), K = q.m.shape, q.K
    full = np.bincount(z[rows.labelled], minlength=H) > 0
    xb = np.column_stack([state.x, np.ones(z.size)])
    for h in np.flatnonzero(full):
        own = rows.labelled & (z == h)
        precision = np.diag(q.lam) + xb[own].T @ xb[own]
        L = np.linalg.cholesky(precision)
        linear = q.lam * q.zeta + state.t[own].T @ xb[own]
        mean = np.linalg.solve(precision, linear.T)
        q.mw[h] = (mean + np.linalg.solve(L.T, rng.standard_normal((P + 1, K)))).T
    w = q.mw[full]
    g = prior.g0 + len(w)
    phi = w.sum(axis=0) / g
    rate = np.append(np.full(P, draw_common_rate(q.lam[:P], prior, rng)), prior.b0)
    rate += 0.5 * ((w**2).sum(axis=(0, 1)) - g * (phi**2).sum(axis=0))
    q.lam = rng.gamma(prior.a0 + 0.5 * len(w) * K, size=P + 1) / rate
    q.zeta = phi + rng.standard_normal((K, P + 1)) / np.sqrt(g * q.lam)
    empty = rng.standard_normal((int(np.sum(~full)), K, P + 1))
    q.mw[~full] = q.zeta + empty / np.sqrt(q.lam)


def draw_common_rate(lam: Array, prior: Prior, rng: np.random.Generator) -> float:
    """Return beta given the precisions lam (P,) of the features' weights."""
    return float(rng.gamma(prior.s0 + lam.size * prior.a0) / (prior.s0 / prior.b0 + lam.sum()))
