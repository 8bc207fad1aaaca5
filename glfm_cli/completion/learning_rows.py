"""Which rows what all rows share is learnt from: of a table, or of a file that is read in batches.

Every row has a random key. Those with the smallest are a simple random sample; but for a tenth of
it: rows that raise what is rare in the sample to `FEWEST` rows where there are so many. Rare are
levels, known or missing cells of a column, and in memory patterns of missing cells that several
rows share. Of what few rows hold, all are taken first. O(n + rare rows) memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.streams import LEARN, Streams

AUTO_ROWS = 10_000  # what "auto" takes of a table with more than twice as many
FEWEST = 20  # rows of a level or pattern
SHARE = 0.1  # of the sample, for what is rare

# Of what, the code of each row, and what the codes from 0 on stand for; higher ones for nothing.
Codes = tuple[str, Array, Sequence[str | None]]


def rows_to_learn(learn_rows: int | str | None, n_rows: int) -> int | None:
    """Return how many rows are learnt from; None where all are."""
    if learn_rows == "auto":
        return AUTO_ROWS if n_rows > 2 * AUTO_ROWS else None
    if learn_rows is None or isinstance(learn_rows, str) or learn_rows >= n_rows:
        return None
    return int(learn_rows)


def choose_rows(data: Data, n: int, seed: int) -> Array:
    """Return n rows of a table with more, ascending; O(cells) time."""
    chooser = RowChooser(n, seed)
    chooser.add(data.n_rows, _codes(data))
    return chooser.chosen()


def _codes(data: Data) -> Iterator[Codes]:
    """Yield levels, or known and missing cells, of each column, and what patterns are shared."""
    known = np.column_stack([c.observed | c.between for c in data.columns])
    for d, column in enumerate(data.columns):
        if column.levels:
            code = np.where(column.observed, column.x, len(column.levels)).astype(np.intp)
            yield column.column.name, code, [*column.levels, None]
        else:
            yield column.column.name, (~known[:, d]).astype(np.intp), ["known", "missing"]
    packed = np.packbits(known, axis=1)
    _, of_row, counts = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
    shared = np.where(counts >= FEWEST, np.cumsum(counts >= FEWEST) - 1, counts.size)
    yield "", shared[of_row.ravel()], [str(i) for i in range(int(np.sum(counts >= FEWEST)))]


class _Stratum(NamedTuple):
    """Rows that share something: how many there are, and of the first keys and rows, ascending."""

    size: int
    key: Array
    row: Array

    def joined(self, other: _Stratum) -> _Stratum:
        key = np.concatenate([self.key, other.key])
        first = np.argsort(key)[:FEWEST]
        row = np.concatenate([self.row, other.row])
        return _Stratum(self.size + other.size, key[first], row[first])


class RowChooser:
    """The rows that may be among the n that are learnt from, of those seen so far.

    row, key : of these rows, ascending, the number and the key
    """

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.rng, self.n_rows = n, Streams(seed, 0).get(LEARN), 0
        self.key, self.row = np.empty(0), np.empty(0, dtype=np.int64)
        self.strata: dict[tuple[str, str | None], _Stratum] = {}

    def add(self, size: int, codes: Iterable[Codes], must: Sequence[int] = ()) -> Array:
        """Take in the next rows; return the places of those to hold, after those held before.

        must : numbers of rows that are held in any case
        """
        key, row = self.rng.random(size), self.n_rows + np.arange(size)
        for name, code, labels in codes:
            for label, stratum in _first_of_each(code, labels, key, row):
                known = self.strata.get((name, label))
                self.strata[name, label] = stratum if known is None else known.joined(stratum)
        self.n_rows += size
        self.key, self.row = np.append(self.key, key), np.append(self.row, row)
        rare = np.concatenate([*(one.row for one in self.strata.values()), must])
        kept = np.flatnonzero(np.isin(self.row, rare) | self._smallest(self.n))
        self.key, self.row = self.key[kept], self.row[kept]
        return kept

    def chosen(self, must: Sequence[int] = ()) -> Array:
        """Return the rows that are learnt from, ascending: n, or more where `must` has more."""
        taken = self._smallest(self.n - int(SHARE * self.n)) | np.isin(self.row, must)
        budget = max(0, self.n - int(taken.sum()))
        for stratum in sorted(self.strata.values(), key=lambda one: one.size):
            if not budget:
                break
            some = stratum.row[~np.isin(stratum.row, self.row[taken])][:budget]
            taken |= np.isin(self.row, some)
            budget -= some.size
        rest = np.flatnonzero(~taken)
        taken[rest[np.argsort(self.key[rest])][:budget]] = True
        return self.row[taken]

    def _smallest(self, n: int) -> Array:
        """Return which of the held rows have the n smallest keys."""
        if n >= self.key.size:
            return np.ones(self.key.size, dtype=bool)
        return self.key <= np.partition(self.key, n - 1)[n - 1] if n else self.key < 0


def _first_of_each(
    code: Array, labels: Sequence[str | None], key: Array, row: Array
) -> Iterator[tuple[str | None, _Stratum]]:
    """Yield the stratum of each label, of some rows."""
    order = np.lexsort((key, code))
    starts = np.searchsorted(code[order], np.arange(len(labels) + 1))
    for label, start, end in zip(labels, starts[:-1], starts[1:], strict=True):
        if end > start:
            first = order[start : min(end, start + FEWEST)]
            yield label, _Stratum(int(end - start), key[first], row[first])
