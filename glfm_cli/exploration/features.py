"""What each feature of an explanation does, and how much it explains.

The effect of a feature on a column compares two tables: one in which every row has the feature,
and one in which none has it, all else as in the explanation. What a feature explains is the log
likelihood that is lost when it is replaced, in every row, by its average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.explanation import Explanation
from glfm_cli.exploration.scales import Profile, Scale
from glfm_cli.exploration.stability import Matches, some_rows
from glfm_cli.inference.posterior import Posterior

STABLE = 0.5  # the stability from which a feature or pattern counts as found again

_AT_MOST_SHOWN = 8
_LEAST_SCORE = 0.01  # of the first feature's; what scores less is told in a line
_ALONE = 0.9  # the part of what a feature explains that makes it one of a single column
_EFFECT_ROWS = 400
_LIKELIHOOD_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Effect:
    """What switching a feature on does to one column.

    off, on : the column's distribution when no row has the feature, and when all have it
    size : total variation distance of the two, in [0, 1]
    agreement : share of the draws with this feature in which it moves the column the same way
    """

    scale: Scale
    off: Profile
    on: Profile
    agreement: float

    @property
    def size(self) -> float:
        """Return how much of the column's distribution is moved."""
        return self.on.distance(self.off)

    @property
    def change(self) -> float:
        """Return the change of the mean, in the column's own unit or in levels; NaN without."""
        return self.on.mean - self.off.mean

    @property
    def gained(self) -> int:
        """Return the level (or bin) that gains the most probability."""
        return int(np.argmax(self.on.mass - self.off.mass))

    @property
    def lost(self) -> int:
        """Return the level (or bin) that loses the most probability."""
        return int(np.argmin(self.on.mass - self.off.mass))

    @property
    def direction(self) -> str:
        """Return "higher" or "lower", "shifted" where there is no order, "none" for no effect."""
        if self.size < 1e-9:
            return "none"
        if not self.scale.ordered or self.change == 0 or np.isnan(self.change):
            return "shifted"
        return "higher" if self.change > 0 else "lower"


@dataclass(frozen=True, eq=False)
class Feature:
    """A feature of the explanation that is shown.

    name : "F1" for the first; index : its column of the explanation's Z
    share : of the rows that have it
    explained : log likelihood per observed cell that is lost without it, in nats
    stability : share of the draws of other chains that contain it
    likeness : the correlation of its best match in those draws, on average
    probability : (N,) share of the draws with the feature in which the row has it
    effects : one a column, the largest first
    """

    name: str
    index: int
    share: float
    explained: float
    stability: float
    likeness: float
    probability: Array
    effects: tuple[Effect, ...]

    @property
    def stable(self) -> bool:
        """True when most draws of other chains contain it."""
        return self.stability >= STABLE


def explained(shown: Explanation, scales: Sequence[Scale]) -> Array:
    """Return (K, D): the log likelihood lost in each column when a feature is averaged out.

    Per observed cell of the table. O(K N S), with at most 2,000 rows.
    """
    rows = some_rows(shown.Z.shape[0], _LIKELIHOOD_ROWS)
    eta, Z = shown.eta[rows], shown.Z[rows].astype(np.float64)
    whole = _log_likelihood(eta, rows, shown, scales)
    lost = np.empty((Z.shape[1], len(scales)))
    for k, (z, b) in enumerate(zip(Z.T, shown.B, strict=True)):
        without = eta + np.outer(z.mean() - z, b)
        lost[k] = whole - _log_likelihood(without, rows, shown, scales)
    n_cells = sum(int(np.sum(~np.isnan(scale.encoded.x[rows]))) for scale in scales)
    return lost / max(n_cells, 1)


def _log_likelihood(eta: Array, rows: Array, shown: Explanation, scales: Sequence[Scale]) -> Array:
    """Return the log likelihood (D,) of the observed cells of each column."""
    total = np.zeros(len(scales))
    for i, scale in enumerate(scales):
        if scale.link.n_latent == 0:
            continue
        x = scale.encoded.x[rows]
        seen = ~np.isnan(x)
        var, params = float(shown.noise[scale.d]), shown.params[scale.d]
        density = scale.link.log_density(x[seen], scale.law(eta[seen], var), params)
        total[i] = np.sum(density)
    return total


def alone_in(lost: Array) -> int | None:
    """Return the column that holds nearly all of what a feature explains, None for no such.

    Such a feature describes the shape of that column's distribution, say a tail, and no bond
    between columns; it is not among those shown.

    lost : (D,) what it explains of each column
    """
    gained = np.maximum(lost, 0.0)
    first = int(np.argmax(gained))
    if gained.size > 1 and gained[first] >= _ALONE * gained.sum() > 0:
        return first
    return None


def rank(lost: Array, likeness: Array) -> Array:
    """Return the features worth showing, the first first: by what they explain x how alike.

    At most 8; none that scores under a hundredth of the first.
    """
    score = np.maximum(lost, 0.0) * likeness
    if score.size == 0 or score.max() <= 0:
        return np.empty(0, dtype=int)
    order = np.argsort(-score, kind="stable")[:_AT_MOST_SHOWN]
    return order[score[order] >= _LEAST_SCORE * score[order[0]]]


def effects(
    shown: Explanation, k: int, scales: Sequence[Scale], directions: Array
) -> tuple[Effect, ...]:
    """Return the effects of a feature on all columns, the largest first.

    directions : (T, S) its weights in the draws that contain it, the draw shown included
    """
    rows = some_rows(shown.Z.shape[0], _EFFECT_ROWS)
    off = shown.eta[rows] - np.outer(shown.Z[rows, k], shown.B[k])
    on = off + shown.B[k]
    found = []
    for scale in scales:
        if scale.link.n_latent == 0:
            continue
        var, params = float(shown.noise[scale.d]), shown.params[scale.d]
        start, end = scale.span
        ours, theirs = shown.B[k, start:end], directions[:, start:end]
        # One latent column: the same sign. Several: weights that point to the same side.
        agreement = float(np.mean(theirs @ ours > 0)) if theirs.size else np.nan
        found.append(
            Effect(
                scale,
                scale.profile(off, var, params),
                scale.profile(on, var, params),
                agreement,
            )
        )
    return tuple(sorted(found, key=lambda effect: -effect.size))


def weights_elsewhere(
    posterior: Posterior, shown: Explanation, matches: Matches, k: int, weights: Sequence[Array]
) -> Array:
    """Return (T, S): the weights of a feature in the draws that contain it, turned as here.

    weights : per draw of `matches`, B without the bias row
    """
    there = [
        np.sign(matches.phi[i, k]) * weights[i][matches.match[i, k]]
        for i in range(matches.chain.size)
        if matches.found[i, k]
    ]
    return np.stack(there) if there else shown.B[k][None, :]
