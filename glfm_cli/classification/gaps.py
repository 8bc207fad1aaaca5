"""Gaps that tell of the label: indicators of missing cells, and what shows where they are wanted.

Experts take cells for missing at random. A test that is made of those who look ill breaks that:
being measured tells more than the value. `indicators` make it a feature; without them, residuals of
forecasts p of the labels y say where it would tell. For a column with gaps g (0 or 1) and level k

    z = sum_i (g_i - w) (y_ik - p_ik) / sqrt(v),   w = sum_i g_i u_i / sum_i u_i,  u = p (1 - p)

is the score test of one more coefficient beside the intercept; v is the larger of the sums of
(g - w)^2 u and of (g - w)^2 (y - p)^2, so that forecasts that are too sure raise no alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.level_codes import level_codes
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import counted
from glfm_cli.schema import Role

CLEAR = 4.0  # |z| from which gaps tell of the label: chance does so once in 16,000 columns
FEWEST = 10  # rows with a gap, and without, from which z is near a normal number


@dataclass(frozen=True, eq=False)
class Indicators:
    """Features that say which cells are missing.

    columns : (G,) places, among the columns that are seen, of those whose gaps are features
    codes : (G, 2) the feature of a cell that is there, and of one that is missing
    noise : (G,) variance with which experts see it, as of levels
    """

    columns: Array = field(default_factory=lambda: np.empty(0, np.int64))
    codes: Array = field(default_factory=lambda: np.empty((0, 2)))
    noise: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, xs: Sequence[Array]) -> Indicators:
        """Return those of columns (n,) or (n, 2): of alike gaps once, none without both kinds."""
        gaps = [missing(x) for x in xs]
        first = {min(g.tobytes(), (~g).tobytes()): d for d, g in reversed([*enumerate(gaps)])}
        kept = sorted(d for d in first.values() if 0 < gaps[d].sum() < gaps[d].size)
        if not kept:
            return cls()
        count = [np.bincount(gaps[d], minlength=2) for d in kept]
        codes, noise = zip(*(level_codes(one, (), ordered=True) for one in count), strict=True)
        return cls(np.array(kept), np.stack(codes)[:, :, 0], np.concatenate(noise))

    def values(self, xs: Sequence[Array]) -> Array:
        """Return the features (n, G) of rows."""
        gaps = np.stack([missing(xs[d]) for d in self.columns], axis=1)
        return np.where(gaps, self.codes[:, 1], self.codes[:, 0])


def missing(x: Array) -> Array:
    """Return which cells (n,) or (n, 2) are missing."""
    return np.asarray(np.isnan(x) if x.ndim == 1 else np.isnan(x).all(axis=1))


def telling_gaps(
    columns: Sequence[EncodedColumn], code: Array, p: Array, levels: Sequence[str]
) -> tuple[str, ...]:
    """Return a note on the column whose gaps tell most of the label, where one does clearly.

    code : (n,) levels of the label, NaN where missing;  p : (n, R) forecasts of them
    """
    known = np.flatnonzero(~np.isnan(code))
    hit = np.eye(len(levels))[code[known].astype(np.intp)]
    p, clear = p[known], []
    for e in columns:
        gap = ~(e.observed | e.between)[known]
        if e.column.role is not Role.TASK and FEWEST <= gap.sum() <= gap.size - FEWEST:
            z = np.abs(score_test(gap, hit, p))
            clear.append((float(z.max()), e.column.name, gap, int(z.argmax())))
    clear = sorted((one for one in clear if one[0] > CLEAR), key=lambda one: -one[0])
    if not clear:
        return ()
    _, name, gap, k = clear[0]
    share, told = (f"{100.0 * one[gap, k].mean():.0f} %" for one in (hit, p))
    more = f"; likewise for {counted(len(clear) - 1, 'more column')}" if clear[1:] else ""
    return (
        f"whether '{name}' is missing predicts the label: of {counted(int(gap.sum()), 'row')} "
        f"without it {share} are '{levels[k]}', where the other features predict {told}{more}; "
        "--set indicators=true makes it a feature",
    )


def score_test(gap: Array, hit: Array, p: Array) -> Array:
    """Return z (R,) of gaps (n,) and the hits (n, R) of forecasts p (n, R)."""
    rest, spread = hit - p, p * (1.0 - p)
    away = gap[:, None] - (gap @ spread) / np.maximum(spread.sum(axis=0), 1e-300)
    square = np.square(away)
    variance = np.maximum((square * spread).sum(axis=0), (square * rest * rest).sum(axis=0))
    return np.asarray((away * rest).sum(axis=0) / np.sqrt(np.maximum(variance, 1e-300)))
