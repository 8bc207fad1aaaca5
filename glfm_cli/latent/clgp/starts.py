"""Where an ascent starts: rows at the leading components of the completed table of scores.

Missing scores are completed by a matrix of rank Q, in turns, its singular values shrunken; later
restarts turn and shake the places that the first one has.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.table import ObservedTable, Slots

ROUNDS = 25  # of completion
SHRINK = 0.5  # of the Q-th singular value, taken off each
FIRST_SD = 0.2  # of places
FIRST_NOISE = 0.3
FIRST_WEIGHT = 0.01  # sd of mu
SHAKEN = 0.4  # sd of what is added to the places of a later restart
NEAR = 0.01  # sd of an inducing place around the row it is taken from
OUTSIDE = 0.5  # how far inside an open interval its score lies


def scores(table: ObservedTable) -> Array:
    """Return the cells (N, S) as numbers of mean 0 and variance 1, NaN where missing.

    A point is itself, an interval its middle, an ordered level its normal score; the other levels
    are indicators, which share the variance 1 of their column.
    """
    slots = table.slots
    out = np.full((table.n_rows, slots.n_latent), np.nan)
    for d, kind in enumerate(slots.kinds):
        lower, upper = table.lower[d], table.upper[d]
        seen, span = ~np.isnan(lower), slots.spans[d]
        low, high = lower[seen], upper[seen]
        if kind.kind == "number":
            both = np.isinf(low) & np.isinf(high)  # nothing is known
            low, high = np.where(both, -OUTSIDE, low), np.where(both, OUTSIDE, high)
            low = np.where(np.isinf(low), high - OUTSIDE, low)
            high = np.where(np.isinf(high), low + OUTSIDE, high)
            out[seen, span.start] = np.nan_to_num(0.5 * low + 0.5 * high)
        elif kind.kind == "ordered":
            share = np.bincount(low.astype(np.intp), minlength=kind.n_levels) + 0.5
            middle = (np.cumsum(share) - 0.5 * share) / share.sum()
            out[seen, span.start] = ndtri(middle)[low.astype(np.intp)]
        else:
            others = np.arange(1, kind.n_levels)
            out[seen, span] = (low[:, None] == others) / np.sqrt(max(kind.n_latent, 1))
    for s in range(slots.n_latent):
        y = out[:, s]
        y -= np.nanmean(y) if np.any(~np.isnan(y)) else 0.0
        sd = np.sqrt(np.nanmean(y * y)) if np.any(~np.isnan(y)) else 0.0
        width = np.sqrt(max(slots.kinds[slots.column[s]].n_latent, 1))
        y /= width * sd if sd > 0.0 else 1.0
    return out


def components(y: Array, n: int) -> Array:
    """Return the leading `n` components (N, n) of y with gaps, of mean square 1 each.

    O(N S^2) a round. Components that y does not have are 0.
    """
    seen = ~np.isnan(y)
    full = np.where(seen, y, 0.0)
    k = min(n, y.shape[1])
    for _ in range(ROUNDS):
        values, vectors = np.linalg.eigh(full.T @ full)
        size, V = np.sqrt(np.maximum(values[::-1][:k], 0.0)), vectors[:, ::-1][:, :k]
        kept = np.maximum(1.0 - SHRINK * size[-1] / np.where(size > 0.0, size, 1.0), 0.0)
        full = np.where(seen, y, (full @ V * kept) @ V.T)
    left = full @ V
    out = np.zeros((y.shape[0], n))
    some = size > 1e-8 * max(float(size[0]), 1e-300)
    out[:, :k][:, some] = left[:, some] / size[some] * np.sqrt(y.shape[0])
    return out


def first_places(
    table: ObservedTable, n_dimensions: int, shaken: bool, rng: np.random.Generator
) -> Places:
    """Return where rows start; when `shaken`, turned and moved at random."""
    shape = (table.n_rows, n_dimensions)
    m = components(scores(table), n_dimensions) if table.slots.n_latent else np.zeros(shape)
    if shaken:
        turn = np.linalg.qr(rng.standard_normal((n_dimensions, n_dimensions)))[0]
        m = (m @ turn + SHAKEN * rng.standard_normal(shape)) / np.sqrt(1.0 + SHAKEN**2)
    else:
        m = m + NEAR * rng.standard_normal(shape)
    return Places(m, np.full(shape, np.log(FIRST_SD)))


def first_shared(
    table: ObservedTable, places: Places, config: ClgpConfig, rng: np.random.Generator
) -> Shared:
    """Return what rows share at the start: inducing places at some rows, weights about 0."""
    slots = table.slots
    N, Q = places.m.shape
    M = config.n_inducing(N)
    P = M + (0 if config.kernel == "rbf" else Q)
    rows = np.sort(rng.permutation(N)[:M])
    S = slots.n_latent
    return Shared(
        Z=places.m[rows] + NEAR * rng.standard_normal((M, Q)),
        log_ell=np.full(Q, 0.5 * np.log(Q)),
        log_rho=np.zeros(()),
        log_a=np.zeros(S),
        b=np.zeros(S),
        log_noise=np.where(slots.has_noise, np.log(FIRST_NOISE), 0.0),
        steps=first_steps(table, slots),
        mu=FIRST_WEIGHT * rng.standard_normal((P, S)),
        log_c=np.zeros((S, P)),
        V=np.eye(P),
    )


def first_steps(table: ObservedTable, slots: Slots) -> Array:
    """Return thresholds at the normal quantiles of the levels' frequencies, as `Shared.steps`."""
    steps = np.zeros(slots.n_thresholds)
    for d, kind in enumerate(slots.kinds):
        if kind.n_thresholds:
            codes = table.lower[d][~np.isnan(table.lower[d])].astype(np.intp)
            # Half a cell a level: levels without observed cells need some room.
            share = np.bincount(codes, minlength=kind.n_levels) + 0.5
            theta = ndtri(np.cumsum(share)[:-1] / share.sum())
            steps[slots.thresholds[d]] = np.concatenate([theta[:1], np.log(np.diff(theta))])
    return steps
