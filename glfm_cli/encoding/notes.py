"""What a user should know of a table before trusting its completion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.encoding.thousands import thousands_notes
from glfm_cli.io.row_notes import RowsNote
from glfm_cli.schema.atoms import atom_of, with_end_atom

MANY_LEVELS = 100
MOST_NAMED = 3
FEWEST_CODED = 3  # cells with a number far from all others
ALIKE = 0.9  # rows of the rarest value, of those of the commonest
FEWEST_BESIDE = 30  # cells of a column
ONE_COLUMN = "only one column is modelled, so missing cells follow its distribution alone"


def column_notes(encoded: EncodedColumn, slips: int, *, has_parts: bool = False) -> list[str]:
    """Return the warnings about one column, `slips` of whose zeros are taken for such.

    has_parts : whether it is a sum of others, which may be the same in every row, as 100 is
    """
    values = encoded.x[encoded.observed]
    notes = []
    if values.size == 1:
        if encoded.requested.any():
            notes.append("only one cell is observed; its completed cells all rest on it")
    elif values.size and np.all(values == values[0]) and not has_parts:
        shown = f"{values[0]:.12g}"
        if encoded.levels:
            shown = f"'{encoded.levels[int(values[0])]}'"
        notes.append(f"every observed cell is {shown}, so the column says nothing about others")
    zeros = int(np.sum(values == 0.0))
    is_low = encoded.column.positive and encoded.column.reflect is None
    if is_low and zeros and atom_of(encoded.column, values) is None:
        cells = "cell is" if zeros == 1 else "cells are"
        notes.append(f"{zeros} {cells} 0, taken as below the smallest positive value")
    if slips:
        notes.append(_slips_text(slips))
    notes += _far_value(encoded, values)
    if encoded.column.positive and encoded.requested.any() and encoded.ends is None:
        notes += _end_atom(encoded, values)
    if len(encoded.levels) > MANY_LEVELS:
        notes.append(
            f"{len(encoded.levels)} levels make the model slow and each level rare; "
            "an id or free text should have role id or ignore"
        )
    return [f"column '{encoded.column.name}': {text}" for text in notes]


def between_notes(columns: Sequence[EncodedColumn]) -> list[str]:
    """Return the note, one of all columns, that cells known to lie in an interval stay."""
    cells = {e.column.name: int(e.between.sum()) for e in columns if not e.column.impute_censored}
    names = [name for name, n in cells.items() if n]
    if not names:
        return []
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        shown += f" and {len(names) - MOST_NAMED} more"
    total = sum(cells.values())
    are = "cell is" if total == 1 else "cells are"
    return [
        f"column{'s' if len(names) > 1 else ''} {shown}: {total} {are} known only to lie in an "
        "interval, used as such and left as written (`impute: censored` in the types file "
        "completes them)"
    ]


def _far_value(encoded: EncodedColumn, values: Array) -> list[str]:
    """Return the warning that one number of several cells lies farther off than all others apart.

    So codes for missing cells do, such as -999.25 of logs of boreholes.
    """
    column = encoded.column
    if not column.numeric or column.atom is not None or column.moment is not None:
        return []
    found, counts = np.unique(values, return_counts=True)
    if values.size < FEWEST_BESIDE or found.size <= FEWEST_CODED:
        return []
    # Each value in as many rows is one of a place or person, of which one may be far from others.
    if counts.min() >= max(FEWEST_CODED, ALIKE * counts.max()):
        return []
    half = 0.5 * found  # the largest doubles differ by more than the largest
    for end, rest in ((0, half[1:]), (-1, half[:-1])):
        away = np.abs(half[end] - rest).min()
        if counts[end] >= FEWEST_CODED and found[end] != 0.0 and away > rest[-1] - rest[0]:
            at = f"{found[end]:.12g}"
            return [
                f"{counts[end]} cells are {at}, far from all others; if that stands for missing "
                f"cells, set `missing: [{at}]`"
            ]
    return []


def _end_atom(encoded: EncodedColumn, values: Array) -> list[str]:
    """Return the warning that a positive column has a ceiling or floor, which it cannot express."""
    if (better := with_end_atom(encoded.column, values)) is None:
        return []
    at = float(better.atom or 0.0)
    end = "largest" if at == better.bounds[1] else "smallest"
    bounds = ", ".join("null" if one is None else f"{one:.12g}" for one in better.bounds)
    share = 100 * np.mean(values == at)
    return [
        f"{share:.0f} % of the observed cells are {at:.12g}, the {end}, which completed cells "
        "of type positive are too rarely; "
        f"`{{type: real, bounds: [{bounds}], atom: {at:.12g}}}` gives it a probability of its own"
    ]


def _without_values(_: None, count: int, rows: tuple[int, ...]) -> str:
    what = f"row {rows[0]} has" if count == 1 else f"{count} rows (the first: row {rows[0]}) have"
    return f"{what} no observed value and can only follow the columns' distributions"


def slips_note(column: str, slips: int) -> str:
    """Return the warning that some zeros of a column are taken for slips."""
    return RowsNote(_slips, column, slips)


def _slips(column: str, slips: int, _: tuple[int, ...]) -> str:
    return f"column '{column}': {_slips_text(slips)}"


def _slips_text(slips: int) -> str:
    cells = "cell is" if slips == 1 else "cells are"
    return (
        f"{slips} {cells} 0, far below all others: taken for errors, not used, and left as "
        "they are (`atom: 0` in the types file if they are values)"
    )


def table_notes(columns: Sequence[EncodedColumn], n_rows: int) -> list[str]:
    """Return the warnings about the table as a whole, one line each."""
    notes: list[str] = []
    empty = np.ones(n_rows, dtype=bool)
    for encoded in columns:
        empty &= ~encoded.observed & ~encoded.between
    if empty.any():
        notes.append(RowsNote(_without_values, None, int(empty.sum()), np.flatnonzero(empty) + 1))
    if len(columns) == 1:
        notes.append(ONE_COLUMN)
    notes += thousands_notes(columns)
    return notes
