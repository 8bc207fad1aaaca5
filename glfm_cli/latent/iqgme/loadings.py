"""Where experts of many features start: at principal components, on clusters of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.experts import Experts, Statistics
from glfm_cli.latent.iqgme.factors import PARTS, FactorExperts
from glfm_cli.latent.iqgme.prior import FactorPrior

USED = 1.0 - 1e-3  # an expert's probability to use a factor; from an even one few are ever used
MOST_ROWS = 1000  # from which components are taken
TRIFLE = 1e-2  # of the variance of all features together, that a factor explains
LEAST = 0.05  # share of a feature's variance that is noise


def one_expert(prior: FactorPrior, x: Array, K: int) -> FactorExperts:
    """Return one expert of all completed rows x (n, P), its factors the principal components."""
    n = len(x)
    q = FactorExperts.from_prior(prior, 1, K)
    sd, loading = principal(x, prior.L)
    q.A = loading
    q.C = np.tile(np.eye(prior.L) * (1e-2 / prior.P), (prior.P, 1, 1))
    q.d, q.vd = sd, np.full(prior.L, 1e-2)
    q.beta_b = prior.d0 + 0.5 * (q.d**2 + q.vd)
    q.theta = np.full((1, prior.L), USED)
    left = np.mean(x**2, axis=0) - ((loading * sd) ** 2).sum(axis=1)
    q.psi_a, q.psi_b = np.full(1, float(n)), np.full(1, n * max(float(np.mean(left)), LEAST))
    q.v = np.full(prior.P, 1.0 / n)
    return q


def split(prior: FactorPrior, q: FactorExperts, s: Array, rho: Array) -> FactorExperts:
    """Return experts at clusters of rows, in all else like the one of q.

    s : (n, L) the rows' factors
    rho : (H, n) responsibilities
    """
    H, first = len(rho), np.zeros(len(rho), dtype=np.intp)
    core = Experts.from_prior(prior.core, H, q.K)
    sums = Statistics.zero(H, prior.L, 0)
    sums.n, sums.x, sums.xx = rho.sum(axis=1), rho @ s, np.einsum("hn,nk,nl->hkl", rho, s, s)
    core.update_places(prior.core, sums)
    core.mw[:], core.Sw[:] = q.core.mw, q.core.Sw
    core.phi, core.b = q.core.phi, q.core.b
    core.refresh()
    return replace(q, core=core, **{name: getattr(q, name)[first] for name in PARTS})


def used(q: FactorExperts) -> Array:
    """Return the factors (.,) that features depend on by more than a trifle, at least one."""
    strength = (q.gain**2).max(axis=0) * (q.A**2).sum(axis=0)
    return np.flatnonzero(strength >= min(TRIFLE, float(strength.max())))


def principal(x: Array, L: int) -> tuple[Array, Array]:
    """Return standard deviations (L,) and directions (P, L) of rows about 0, unused ones 0.

    O(n^2 P) for n rows, of which at most `MOST_ROWS`, evenly spread, are looked at.
    """
    x = x[np.linspace(0, len(x) - 1, min(len(x), MOST_ROWS)).astype(np.intp)]
    value, vector = np.linalg.eigh(x @ x.T)
    top = np.argsort(-value, kind="stable")[:L]
    size = np.sqrt(np.maximum(value[top], 1e-12))
    directions = (x.T @ vector[:, top]) / size
    sd, loading = np.zeros(L), np.zeros((x.shape[1], L))
    sd[: top.size], loading[:, : top.size] = size / np.sqrt(len(x)), directions
    # The sign of a direction is arbitrary; that of its largest entry makes it the same everywhere.
    largest = np.take_along_axis(loading, np.abs(loading).argmax(axis=0)[None], axis=0)
    return sd, loading * np.where(largest < 0, -1.0, 1.0)
