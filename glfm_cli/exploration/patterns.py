"""Patterns: which combinations of features occur, how often, and what their rows look like.

A pattern says of each *main* feature whether it is on. Main are the features that are credible and
stable; where they are fewer than four, the next credible ones as well, up to four in all. The other
features are not part of a pattern: its profiles average over them as they occur in its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.explanation import Explanation, memberships
from glfm_cli.exploration.features import STABLE, Feature
from glfm_cli.exploration.scales import ColumnProfile, Scale
from glfm_cli.exploration.stability import MATCH, Matches, by_chain, some_rows
from glfm_cli.inference.posterior import Posterior

LEAST_MAIN = 4
_PROFILE_ROWS = 400


@dataclass(frozen=True, eq=False)
class Pattern:
    """Rows with the same main features.

    bits : (M,) uint8, one a main feature
    rows : (n,) row indices
    share, cumulative : of all rows, and with the more frequent patterns
    stability : share of the draws of other chains that contain it; NaN for patterns not asked for
    profiles : what the draw shown says of each column, in the order of the scales; empty for
        patterns not asked for
    typical : the same of the observed cells, as far as there are any: one draw's averages are off
        by its own errors, too
    """

    bits: Array
    rows: Array
    share: float
    cumulative: float
    stability: float
    profiles: tuple[ColumnProfile, ...]
    typical: tuple[ColumnProfile, ...]

    @property
    def name(self) -> str:
        """Return the bits as "(0100)", "()" when there is no feature at all."""
        return f"({''.join(str(bit) for bit in self.bits)})"

    @property
    def stable(self) -> bool:
        """True when most draws of other chains contain it."""
        return self.stability >= STABLE


def main_features(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """Return the features that make up patterns, in the order shown."""
    credible = [feature for feature in features if feature.credible]
    stable = [feature.index for feature in credible if feature.stable]
    others = [feature.index for feature in credible if not feature.stable]
    chosen = {*stable, *others[: max(0, LEAST_MAIN - len(stable))]}
    return tuple(feature for feature in features if feature.index in chosen)


def find_patterns(
    posterior: Posterior,
    shown: Explanation,
    matches: Matches,
    main: Sequence[Feature],
    scales: Sequence[Scale],
    *,
    top: int,
    bias: bool,
) -> tuple[Pattern, ...]:
    """Return all patterns, the commonest first; the first `top` with stability and profiles.

    Shares and profiles are those of the population, where rows have weights.
    """
    columns = [feature.index for feature in main]
    bits, code = np.unique(shown.Z[:, columns], axis=0, return_inverse=True)
    code = code.reshape(-1)
    weight = scales[0].counts(np.arange(code.size))
    count = np.bincount(code, weight, minlength=bits.shape[0])
    shares = count / count.sum()
    order = np.lexsort((*bits.T[::-1], -count)) if bits.shape[1] else np.arange(bits.shape[0])
    order = order[np.argsort(-count[order], kind="stable")]
    found = _stability(posterior, matches, code, order[:top], columns, bias=bias)
    eta = shown.eta
    patterns, total = [], 0.0
    for place, number in enumerate(order):
        rows = np.flatnonzero(code == number)
        total += float(shares[number])
        requested = place < top
        profiles = _profiles(shown, eta, rows, scales) if requested else ()
        patterns.append(
            Pattern(
                bits=bits[number],
                rows=rows,
                share=float(shares[number]),
                cumulative=total,
                stability=float(found[place]) if requested else np.nan,
                profiles=profiles,
                typical=_typical(rows, scales, profiles),
            )
        )
    return tuple(patterns)


def _profiles(
    shown: Explanation, eta: Array, rows: Array, scales: Sequence[Scale]
) -> tuple[ColumnProfile, ...]:
    return tuple(
        scale.profile(
            eta[scale.some_of(rows, _PROFILE_ROWS)],
            float(shown.noise[scale.d]),
            shown.params[scale.d],
        )
        for scale in scales
    )


def _typical(
    rows: Array, scales: Sequence[Scale], profiles: Sequence[ColumnProfile]
) -> tuple[ColumnProfile, ...]:
    """Return the profiles of the cells observed in some rows, those given where there is none.

    Columns with intervals keep those given: their other cells are those that no limit has hidden.
    """
    return tuple(
        scale.weighted(scale.encoded.x[rows], scale.counts(rows))
        if scale.counts(rows)[scale.encoded.observed[rows]].any()
        and scale.encoded.ends is None
        else profile
        for scale, profile in zip(scales, profiles, strict=False)  # none where none is asked for
    )


def _stability(
    posterior: Posterior,
    matches: Matches,
    code: Array,
    requested: Array,
    columns: Sequence[int],
    *,
    bias: bool,
) -> Array:
    """Return how often draws of other chains contain each wanted pattern, by its rows.

    A draw's patterns are those of its features that match the main ones; it contains a pattern of
    ours when one of its own has much the same rows, phi >= `MATCH`.
    """
    if not columns:
        return np.ones(requested.size)  # all rows, in every draw
    rows = some_rows(code.size)
    mine = code[rows]
    contains = np.zeros((matches.chain.size, requested.size), dtype=bool)
    for i in np.flatnonzero(matches.others):
        there = [k for k in columns if matches.found[i, k]]
        if not there:
            continue
        draw = posterior.chains[int(matches.chain[i])][int(matches.draw[i])]
        Z = memberships(posterior, draw, rows, bias=bias)[:, matches.match[i, there]]
        _, theirs = np.unique(Z, axis=0, return_inverse=True)
        contains[i] = best_overlap(mine, theirs.reshape(-1), requested) >= MATCH
    return by_chain(contains, matches.chain, matches.others).mean(axis=0)


def best_overlap(mine: Array, theirs: Array, requested: Array) -> Array:
    """Return, for each wanted group of rows, the best phi with a group of another partition."""
    n = mine.size
    table = np.zeros((int(mine.max()) + 1, int(theirs.max()) + 1))
    np.add.at(table, (mine, theirs), 1.0)
    p, q = table.sum(axis=1) / n, table.sum(axis=0) / n
    scale = np.sqrt(np.outer(p * (1 - p), q * (1 - q)))
    covariance = table / n - np.outer(p, q)
    phi = np.divide(covariance, scale, out=np.zeros_like(table), where=scale > 1e-12)
    best = np.zeros(requested.size)
    inside = requested < phi.shape[0]  # a pattern may have none of the rows compared
    best[inside] = phi[requested[inside]].max(axis=1)
    return best
