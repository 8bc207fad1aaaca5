"""Observed numbers of new rows far beyond those that a fit has seen, which it can only extrapolate.

A column has a reach: the range of its fitted values, and MARGIN times its width to either side. Of
heavy tails, whose next value may well be twice the largest, it is OF_HEAVY times that of
s log(1 + |z|), where |z| is the distance from the median, in units of the median of such distances,
and s its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.io.row_notes import RowsNote
from glfm_cli.links.margins import standard_moment

LEAST = 50  # fitted values; fewer show too little of their tails
MARGIN, OF_HEAVY = 1.5, 1.0  # in widths of the range
SKEWED, HEAVY = 0.6, 4.0  # skewness and kurtosis beyond which tails are heavy


@dataclass(frozen=True)
class Reach:
    """The least and the largest fitted value of a column, and whether its tails are heavy.

    middle, spread : the median, and that of distances from it; spread 0 where tails are light
    """

    low: float
    high: float
    middle: float = 0.0
    spread: float = 0.0

    def is_beyond(self, x: Array) -> Array:
        """Return which values (n,) lie beyond the range by more than the margin."""
        low, high = self._scaled(np.array([self.low, self.high]))
        at = self._scaled(x)
        margin = MARGIN if self.spread == 0.0 else OF_HEAVY
        with np.errstate(invalid="ignore"):
            return np.maximum(at - high, low - at) > margin * (high - low)

    def _scaled(self, x: Array) -> Array:
        if self.spread == 0.0:
            unit = max(abs(self.low), abs(self.high))  # no difference of doubles overflows in it
            return x / unit
        z = x / self.spread - self.middle / self.spread
        return np.copysign(np.log1p(np.abs(z)), z)


def reach_of(encoded: EncodedColumn) -> Reach | None:
    """Return the reach of a column; None of levels, successes, dates, which go on, and constants.
    """
    column, x = encoded.column, encoded.x[encoded.observed]
    left_out = column.binomial or column.moment == "date" or column.calendar is not None
    if not column.numeric or left_out or x.size < LEAST or x.min() == x.max():
        return None
    low, high = float(x.min()), float(x.max())
    skewed = abs(standard_moment(x, 3)) > SKEWED or standard_moment(x, 4) > HEAVY
    if not skewed:
        return Reach(low, high)
    middle = float(np.median(x))
    with np.errstate(over="ignore"):
        apart = np.abs(x - middle)
    return Reach(low, high, middle, float(np.median(apart[apart > 0.0])))


def beyond_notes(data: Data, reaches: Sequence[Reach | None]) -> tuple[RowsNote, ...]:
    """Return a warning a column with observed numbers far beyond the fitted ones.

    reaches : of each modelled column
    """
    notes = []
    for encoded, reach in zip(data.columns, reaches, strict=True):
        if reach is None:
            continue
        rows = np.flatnonzero(reach.is_beyond(encoded.x))
        if rows.size:
            shown = [_text(encoded, x) for x in (reach.low, reach.high, encoded.x[rows[0]])]
            about = _Beyond(encoded.column.name, *shown)
            notes.append(RowsNote(_words, about, rows.size, rows + 1))
    return tuple(notes)


@dataclass(frozen=True)
class _Beyond:
    """A column, the ends of its fitted values, and the first value beyond."""

    column: str
    low: str
    high: str
    first: str = field(compare=False)  # that of the first batch stands for all


def _words(about: _Beyond, count: int, rows: tuple[int, ...]) -> str:
    cells = f"{about.first} lies" if count == 1 else f"{count} numbers lie"
    shown = f"row {rows[0]}" if count == 1 else f"rows {', '.join(map(str, rows))}"
    shown += ", ..." if count > len(rows) else ""
    first = "" if count == 1 else f", the first {about.first}"
    return (
        f"column '{about.column}': {cells} far beyond the fitted values, {about.low} to "
        f"{about.high} ({shown}{first}): an error, or a row of another kind, to which the fit "
        "can only extrapolate"
    )


def _text(encoded: EncodedColumn, x: float) -> str:
    moments = encoded.column.moments
    return f"{x:.6g}" if moments is None else moments.text(float(x))
