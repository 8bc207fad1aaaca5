"""What each feature of an explanation does, and how much it explains.

The effect of a feature on a column compares the observed cells of rows that have the feature with
those of rows that do not, as rows and columns apart tell it (crossfit.py): each row counts as much
in either as it is probable to be there. What a feature explains is the log likelihood that is lost
when it is replaced, in every row, by its average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.crossfit import CrossFit
from glfm_cli.exploration.explanation import Explanation
from glfm_cli.exploration.scales import ColumnProfile, Scale
from glfm_cli.exploration.stability import some_rows

STABLE = 0.5  # the stability from which a feature or pattern counts as found again

_LIKELIHOOD_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Effect:
    """What sets rows with a feature apart from rows without it, in one column.

    off, on : the column's distribution in rows without and in rows with the feature
    z : the evidence for it;  credible : whether that is more than chance gives
    """

    scale: Scale
    off: ColumnProfile
    on: ColumnProfile
    z: float
    credible: bool

    @property
    def size(self) -> float:
        """Return how much of the column's distribution is moved, in [0, 1].

        The largest difference of the probabilities of "at most x", or of any set of levels.
        """
        moved = self.on.mass - self.off.mass
        if self.scale.ordered:
            return float(np.abs(np.cumsum(moved)).max(initial=0.0))
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
    explained : what it explains, as a part of what all features explain
    stability, stability_error : share of the draws of other chains that contain it
    halves, halves_error : share of the draws given half of the rows that contain it
    credible : whether it binds columns together by more than chance and the features before it
    probability : (N,) share of the draws with the feature in which the row has it
    effects : one a column, the largest first; none where no half contains the feature
    """

    name: str
    index: int
    share: float
    explained: float
    stability: float
    stability_error: float
    halves: float
    halves_error: float
    credible: bool
    probability: Array
    effects: tuple[Effect, ...]

    @property
    def stable(self) -> bool:
        """True when most draws of other chains contain it."""
        return self.stability >= STABLE


def explained(shown: Explanation, scales: Sequence[Scale]) -> Array:
    """Return (K,): the log likelihood lost when a feature is averaged out, as parts of all.

    O(K N S), with at most 2,000 rows.
    """
    rows = some_rows(shown.Z.shape[0], _LIKELIHOOD_ROWS)
    eta, Z = shown.eta[rows], shown.Z[rows].astype(np.float64)
    whole = _log_likelihood(eta, rows, shown, scales)
    lost = np.zeros(Z.shape[1])
    for k, (z, b) in enumerate(zip(Z.T, shown.B, strict=True)):
        without = eta + np.outer(z.mean() - z, b)
        lost[k] = max(whole - _log_likelihood(without, rows, shown, scales), 0.0)
    return lost / lost.sum() if lost.any() else lost


def _log_likelihood(eta: Array, rows: Array, shown: Explanation, scales: Sequence[Scale]) -> float:
    """Return the log likelihood of the observed cells of some rows."""
    total = 0.0
    for scale in scales:
        if scale.link.n_latent == 0:
            continue
        x = scale.encoded.scored[rows]
        seen = ~np.isnan(x)
        var, params = float(shown.noise[scale.d]), shown.params[scale.d]
        density = scale.link.log_density(x[seen], scale.law(eta[seen], var), params)
        total += float(np.sum(density))
    return total


def effects(
    crossed: Sequence[CrossFit], k: int, scales: Sequence[Scale], z: Array, credible: Array
) -> tuple[Effect, ...]:
    """Return the effects of a feature on all columns, the largest first.

    z, credible : (D,) the evidence
    """
    those = [one for one in crossed if one.known[k]]
    if not those:
        return ()
    rows = np.concatenate([one.rows for one in those])
    found = []
    for i, scale in enumerate(scales):
        if scale.link.n_latent == 0:
            continue
        x = scale.encoded.inside[rows]
        p = np.concatenate([one.probability[i, :, k] for one in those])
        n = scale.counts(rows)
        off, on = (scale.weighted(x, n * weight) for weight in (1.0 - p, p))
        found.append(Effect(scale, off, on, float(z[i]), bool(credible[i])))
    return tuple(sorted(found, key=lambda effect: -effect.size))
