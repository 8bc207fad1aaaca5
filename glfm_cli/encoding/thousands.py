"""Rows in which one column is a thousand times what another says: written in another unit.

Of two columns of numbers above 0 that go together, log10(a / b) lies near its median in nearly all
rows. Where a respondent wrote thousands, or a laboratory milligrams for grams, it lies 3 away, and
hardly any row lies between. Nothing is corrected: which of the two is wrong the numbers do not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.io.row_notes import RowsNote

LEAST_ROWS = 50  # in which both are known
MOST_COLUMNS = 30
SAMPLE = 2_000  # rows that show how columns go together
MOST_ROWS = 100_000  # of larger tables every other row, or fewer, is looked at
THOUSAND = 3.0  # log10
AWAY = 1.2  # log10, at least, of one of two numbers that are 3 apart, from its column's median
WIDEST = 0.35  # spread of log10(a / b) of columns that go together
NEAR = 2.0  # spreads from a thousand
FAR = 4.0  # spreads from the median, from which a row is not like the others
RAREST, MOST = 0.02, 0.1  # of the spread; share of rows that are wrong
MOST_NOTES = 3


def thousands_notes(columns: Sequence[EncodedColumn]) -> list[RowsNote]:
    """Return the warnings, of each pair of columns that explains rows which no other did."""
    found = []
    logs = {one.column.name: x for one in columns if (x := _log10(one)) is not None}
    step = -(-max((x.size for x in logs.values()), default=1) // MOST_ROWS)
    names = [name for name, x in logs.items() if np.isfinite(x[::step]).any()][:MOST_COLUMNS]
    away = {name: _from_median(logs[name][::step]) for name in names}
    apart = {name for name in names if np.nanmax(np.abs(away[name])) >= AWAY}
    for a, b in combinations(names, 2):
        if not apart.isdisjoint((a, b)):
            both = away[a] - away[b]
            found += [((a, b), both > 0, rows) for rows in (_hits(both),) if rows.any()]
    told: list[RowsNote] = []
    while found and len(told) < MOST_NOTES:
        (a, b), above, rows = max(found, key=lambda one: int(one[2].sum()))
        for (large, small), way in (((a, b), rows & above), ((b, a), rows & ~above)):
            if way.any():
                at = np.flatnonzero(way) * step + 1
                told.append(RowsNote(_in_rows, (large, small), at.size, at))
        found = [(pair, up, left) for pair, up, one in found if (left := one & ~rows).any()]
    return told


def _log10(encoded: EncodedColumn) -> Array | None:
    """Return log10 of the numbers of a column (N,), NaN of others; None of other columns."""
    column = encoded.column
    if not column.numeric or column.moment is not None or column.calendar is not None:
        return None
    x = np.where(encoded.observed & (encoded.x > 0.0), encoded.x, np.nan)
    enough = np.isfinite(x).sum() >= LEAST_ROWS and not np.any(encoded.x < 0.0)
    return np.log10(x) if enough else None


def _from_median(x: Array) -> Array:
    return np.asarray(x - np.nanmedian(x))


def _hits(difference: Array) -> Array:
    """Return the rows (N,) of log10(a / b) that lie 3 from the median, if the others are near it.

    None where rows between are as many: so a long tail looks.
    """
    known = difference[np.isfinite(difference)]
    none = np.zeros(difference.size, dtype=bool)
    if known.size < LEAST_ROWS:
        return none
    some = known[:: -(-known.size // SAMPLE)]
    centre = np.median(some)
    spread = max(1.4826 * float(np.median(np.abs(some - centre))), RAREST)
    if spread > WIDEST:
        return none
    with np.errstate(invalid="ignore"):
        size = np.abs(difference - centre)
        hits = np.abs(size - THOUSAND) <= NEAR * spread + RAREST
        between = (size > FAR * spread) & ~hits
    good = 0 < hits.sum() <= MOST * known.size and 2 * between.sum() <= hits.sum()
    return hits if good else none


def _in_rows(about: tuple[str, str], count: int, rows: tuple[int, ...]) -> str:
    large, small = about
    shown = ", ".join(map(str, rows)) + (", ..." if count > len(rows) else "")
    where = f"row {shown}" if count == 1 else f"{count} rows ({shown})"
    return (
        f"columns '{large}' and '{small}': in {where} the first is about 1,000 times what it is "
        "beside the second in all others: is one of them written in another unit?"
    )
