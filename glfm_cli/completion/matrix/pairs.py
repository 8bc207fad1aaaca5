"""Which cells of a matrix are asked for, and their predictive distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn, Ids, Triplets, encode_ids, open_column
from glfm_cli.encoding.levels import encode_known_levels
from glfm_cli.encoding.numeric import encode_numbers
from glfm_cli.errors import TableError, UsageError
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.latent.capabilities import HasFactors
from glfm_cli.latent.model import Pairs
from glfm_cli.schema import Column

MOST_PAIRS = 10_000_000
PART = 1 << 17  # pairs predicted and written at a time


WhichPairs = partial[Iterator[Pairs]]


@dataclass(frozen=True)
class Likeliest:
    """So many of the best columns of some rows, ascending numbers of them."""

    n: int
    rows: Array


def read_pairs(
    table: pa.Table,
    rows: Ids,
    columns: Ids,
    value: EncodedColumn,
    *,
    features: tuple[bool, bool],
    file: str | None = None,
) -> Pairs:
    """Return the pairs that a table lists, in columns named as those of the ids.

    features : whether rows, and columns, have any

    With the values of the pairs, NaN where there is none, if the table has a column of their name;
    of levels their codes, NaN of one that is not known. Not of successes.

    Raises TableError: a column of ids is missing, an id is not known, or a value is none.
    """
    named = f"columns '{rows.name}' and '{columns.name}'"
    found = [
        read_ids(table, ids, f"--{side}-features" if given else None, named, file=file)
        for ids, side, given in zip((rows, columns), ("row", "column"), features, strict=True)
    ]
    column = value.column
    if column.name not in table.column_names or column.binomial:
        return Pairs(found[0], found[1])
    source = open_column(table, table.column_names.index(column.name), column, file)
    if column.numeric:
        x = encode_numbers(source, zeros=True)[0]
    else:
        x = encode_known_levels(source, value.levels, unseen_is_missing=True)[0]
    return Pairs(found[0], found[1], x)


def with_ids_of(
    triplets: Triplets, pairs: pa.Table, file: str | None
) -> tuple[Triplets, tuple[str, ...]]:
    """Return triplets that know the ids of pairs, too, and a note of those without any cell.

    What is wrong with the pairs is said by `read_pairs`.
    """
    sides, notes = [], []
    for ids in (triplets.rows, triplets.columns):
        more = ids
        if ids.name in pairs.column_names:
            at = pairs.column_names.index(ids.name)
            more = ids.with_more(encode_ids(open_column(pairs, at, Column(ids.name), file))[0])
        n = len(more) - len(ids)
        if n:
            known = f"{n} ids" if n > 1 else "1 id"
            first = f"'{more.keys[len(ids)]}'" + (" and others" if n > 1 else "")
            notes.append(
                f"column '{ids.name}': {known} of --pairs without any cell ({first}), predicted "
                "from what others have in common, and from features if there are some"
            )
        sides.append(more)
    return replace(triplets, rows=sides[0], columns=sides[1]), tuple(notes)


def read_ids(
    table: pa.Table, ids: Ids, option: str | None, expected: str, *, file: str | None = None
) -> Array:
    """Return the numbers of the ids that a table lists in the column of their name.

    Raises TableError: the column is missing, or an id is not known; it could come from the table
        of cells, or where there are features from that for `option`.
    """
    if ids.name not in table.column_names:
        raise TableError(
            "the table has no such column", file=file, column=ids.name, expected=expected
        )
    source = open_column(table, table.column_names.index(ids.name), Column(ids.name), file)
    own, of_row = encode_ids(source)
    place = ids.places(own.keys)[of_row]
    if (place < 0).any():
        raise source.cell_error(
            place < 0,
            f"an id of the table's column '{ids.name}'",
            "List a new id in that table, too, with its values or without"
            + (f", or in {option}." if option else "."),
        )
    return np.asarray(place)


def unobserved(triplets: Triplets, every: bool, known: tuple[int, int] = (0, 0)) -> Iterator[Pairs]:
    """Yield all pairs that have no value, in parts, ascending by row, then by column.

    Of the first `known` rows and columns, those of a fit, no pairs are yielded.

    Raises UsageError: there are more than ten million and not `every` one is asked for.
    """
    rows, columns = triplets.rows, triplets.columns
    n_rows, n_columns = len(rows), len(columns)
    old = (triplets.row < known[0]) & (triplets.column < known[1])
    n_pairs = n_rows * n_columns - triplets.row.size - known[0] * known[1] + int(old.sum())
    if n_pairs > MOST_PAIRS and not every:
        raise UsageError(
            f"{n_pairs} pairs of {rows.name} and {columns.name} have no value",
            expected=f"at most {MOST_PAIRS}",
            hint="List the pairs you want in a file for --pairs, or add --all-pairs.",
        )
    return _unobserved(triplets, (n_rows, n_columns), known)


def _unobserved(
    triplets: Triplets, shape: tuple[int, int], known: tuple[int, int]
) -> Iterator[Pairs]:
    n_rows, n_columns = shape
    step = max(1, PART // n_columns)
    for start in range(0, n_rows, step):
        end = min(start + step, n_rows)
        blank = np.ones((end - start, n_columns), dtype=bool)
        low, high = np.searchsorted(triplets.row, [start, end])
        blank[triplets.row[low:high] - start, triplets.column[low:high]] = False
        blank[: max(known[0] - start, 0), : known[1]] = False
        row, column = np.nonzero(blank)
        if row.size:
            yield Pairs(row + start, column)


def recommended(posterior: Posterior, triplets: Triplets, asked: Likeliest) -> Iterator[Pairs]:
    """Yield the columns of each row that is asked for, the best first.

    Of those alone in which the row has no value yet, nor is missing a count. Of counts the
    likeliest to have one, a probability averaged over draws: a large rate under a few of them is no
    reason to list a column. Of other values the highest expected. O(rows x columns) time, in blocks
    of rows.
    """
    n_columns = len(triplets.columns)
    step = max(1, PART // n_columns)
    for start in range(0, asked.rows.size, step):
        rows = asked.rows[start : start + step]
        worth = _worth(posterior, rows, n_columns)
        low, high = np.searchsorted(triplets.row, [rows[0], rows[-1] + 1])
        at = np.searchsorted(rows, triplets.row[low:high])
        here = rows[at] == triplets.row[low:high]
        worth[at[here], triplets.column[low:high][here]] = -np.inf
        best = np.argsort(-worth, axis=1, kind="stable")[:, : asked.n]
        there = np.isfinite(np.take_along_axis(worth, best, axis=1))
        row = np.broadcast_to(rows[:, None], best.shape)
        yield Pairs(row[there], best[there].astype(np.int64))


def _worth(posterior: Posterior, rows: Array, n_columns: int) -> Array:
    """Return how likely a count is in every cell of some rows, or what its value is expected to be.

    Of levels their mean place on the scale.
    """
    model = posterior.model
    if isinstance(model, HasFactors):
        shares = zip(posterior.draws(), posterior.shares(), strict=True)
        parts = [share * model.p_any(draw.latent, rows) for draw, share in shares if share > 0.0]
        return np.sum(parts, axis=0)
    pairs = Pairs(np.repeat(rows, n_columns), np.tile(np.arange(n_columns), rows.size))
    return predict_pairs(posterior, pairs, ()).mean.reshape(rows.size, n_columns)


def in_parts(pairs: Pairs) -> Iterator[Pairs]:
    """Yield runs of the pairs that are predicted at once."""
    for start in range(0, pairs.row.size, PART):
        yield pairs.take(slice(start, start + PART))


def predict_pairs(posterior: Posterior, pairs: Pairs, at: Sequence[float]) -> Marginal:
    """Return the marginal predictive of some pairs; of binomial values, that of the hit rate."""
    return predict(posterior.at(pairs), {0: np.arange(pairs.row.size)}, at)[0]
