"""What a column holds, reduced to its distinct values: all that guessing needs to see.

A column of 100,000 cells mostly has few distinct values, and what is asked of it (is every
value a whole number? which text looks like a missing cell?) is a question about those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.io.arrow_types import holds_anything
from glfm_cli.io.declared import NOTHING_DECLARED, Declared
from glfm_cli.io.dialect import NUMBER
from glfm_cli.io.numerals import PLAIN, Numerals

# As levels, 11 and 11.0 are one, and so are `a` and ` a `.
_SPACES = "".join(char for char in map(chr, range(0x3001)) if char.isspace())
_WHOLE = r"^(-?(?:0|[1-9][0-9]*))\.0+$"
_NEGATIVE_ZERO = r"^-0\.0+$"


class Kind(Enum):
    """What the cells of a column are stored as."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "a date"
    DURATION = "a time of day or a duration"
    OTHER = "neither text nor numbers"
    ANY = "of several types"


@dataclass(frozen=True)
class Profile:
    """The distinct values of one column.

    kind : what its cells are stored as
    texts : distinct observed values in order of first appearance, as the text of a types file: no
        spaces around, a whole number without a decimal point, a boolean as `true` or `false`
    counts : (n_distinct,) int64; how many cells hold each
    numbers : (n_distinct,) float64; their values as numbers, NaN where the text is none
    n_blank : cells that hold nothing but spaces; they count as empty
    order : the levels of an ordered dictionary, from low to high
    raw, raw_counts : pyarrow.StringArray, (n_raw,) int64; the distinct texts of a column of text
        without the spaces around them, not tidied else, and how many cells hold each
    written : how the numbers are written
    mixture : why the numbers cannot be read, though they are some
    declared : what the file says of the column
    runs : how often the value changes from one row to the next, and one
    evidence : what the other columns tell of few whole numbers, see `evidence_of`
    unit : the unit that stands below its name
    n_empty : rows of the table in which no column has a value
    none_is_gap : whether the table writes `None` in missing cells
    is_feature : whether its values say something of the rows even if they seem to number them
    is_category : whether they are numbers in a dictionary, as categories of pandas may be
    """

    name: str
    kind: Kind
    n_rows: int
    texts: pa.StringArray
    counts: NDArray[np.int64]
    numbers: NDArray[np.float64]
    n_blank: int = 0
    order: tuple[str, ...] | None = None
    raw: pa.StringArray = field(default_factory=lambda: pa.array([], pa.string()))
    raw_counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    written: Numerals = PLAIN
    mixture: str | None = None
    declared: Declared = NOTHING_DECLARED
    unit: str | None = None
    evidence: str | None = None
    runs: int = 0
    n_empty: int = 0
    none_is_gap: bool = False
    is_feature: bool = False
    is_category: bool = False

    @property
    def n_distinct(self) -> int:
        return len(self.counts)

    @property
    def n_observed(self) -> int:
        return int(self.counts.sum())

    @property
    def is_number(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.numbers)

    @property
    def all_whole(self) -> bool:
        """True when every value is a whole number."""
        return bool(np.all(self.numbers == np.floor(self.numbers)))

    @property
    def all_different(self) -> bool:
        """True when no row is without a value, but for empty ones, and no two share one."""
        return self.n_distinct == self.n_rows - self.n_empty

    def keep(self, mask: NDArray[np.bool_]) -> Profile:
        """Return the profile of the cells whose value is marked."""
        if mask.all():
            return self
        return replace(
            self,
            texts=self.texts.filter(pa.array(mask)),
            counts=self.counts[mask],
            numbers=self.numbers[mask],
        )

    def matches(self, pattern: str) -> NDArray[np.bool_]:
        """Return which distinct texts hold a match of a regular expression (RE2)."""
        return _to_numpy(pc.match_substring_regex(self.texts, pattern))

    def words(self) -> list[str]:
        """Return the distinct texts."""
        return self.texts.to_pylist()

    def in_order(self) -> tuple[str, ...]:
        """Return the distinct texts, numbers by size and before words by the alphabet."""
        words = self.words()
        keys = [(math.isnan(x), 0.0 if math.isnan(x) else x) for x in self.numbers.tolist()]
        return tuple(words[i] for i in sorted(range(len(words)), key=lambda i: (keys[i], words[i])))


def runs_of(column: pa.ChunkedArray) -> int:
    """Return how many runs of equal values a column has."""
    whole = pa.types.is_integer(column.type) or _kind(column.type) is Kind.TEXT
    if not whole or not len(column):
        return 0
    of_row = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
    return 1 + int(np.count_nonzero(np.diff(of_row.to_numpy(zero_copy_only=False))))


def empty_rows(table: pa.Table) -> NDArray[np.intp]:
    """Return the places of the rows in which no column has a value: null, NaN or spaces alone."""
    rows = np.arange(table.num_rows)
    for column in table.columns:
        cells = column.combine_chunks().take(pa.array(rows))
        empty = pc.is_null(cells, nan_is_null=pa.types.is_floating(cells.type))
        if _kind(cells.type) is Kind.TEXT and not pa.types.is_null(cells.type):
            blank = pc.equal(pc.utf8_trim(cells.cast(pa.string()), characters=_SPACES), "")
            empty = pc.or_(empty, pc.fill_null(blank, True))
        rows = rows[_to_numpy(empty)]
        if not rows.size:
            break
    return rows


def profile(name: str, column: pa.ChunkedArray) -> Profile:
    """Return the distinct values of a column; the empty cell, null and NaN are left out."""
    order, of_dictionary = None, False
    # Arrow does not take values such as intervals of pandas out of a dictionary.
    if pa.types.is_dictionary(column.type) and _kind(column.type.value_type) is not Kind.OTHER:
        order, of_dictionary = _dictionary_order(column), True
        column = column.cast(column.type.value_type)
    kind = _kind(column.type)
    if kind in (Kind.OTHER, Kind.ANY):
        counts, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
        return Profile(name, kind, len(column), pa.array([], pa.string()), counts, numbers)
    if kind is Kind.TEXT:
        raw, raw_counts, n_blank = _distinct_texts(column)
        texts, counts = _merged(tidy(raw), raw_counts)
        numbers = _parse_numbers(texts)
        n_rows = len(column)
        return Profile(name, kind, n_rows, texts, counts, numbers, n_blank, order, raw, raw_counts)
    values, counts = _distinct(column)
    if pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    if kind in (Kind.BOOLEAN, Kind.DATE, Kind.DURATION):
        texts, numbers = values.cast(pa.string()), np.full(len(values), np.nan)
    else:
        numbers = _as_numbers(values)
        texts = _number_texts(values)
    is_category = of_dictionary and kind is Kind.NUMBER
    return Profile(
        name, kind, len(column), texts, counts, numbers, order=order, is_category=is_category
    )


def _kind(kind: pa.DataType) -> Kind:
    types = pa.types
    if holds_anything(kind):
        return Kind.ANY
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Kind.TEXT
    if types.is_boolean(kind):
        return Kind.BOOLEAN
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return Kind.NUMBER
    if types.is_null(kind):
        return Kind.TEXT
    if types.is_date(kind) or types.is_timestamp(kind):
        return Kind.DATE
    return Kind.DURATION if types.is_time(kind) or types.is_duration(kind) else Kind.OTHER


def _distinct(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the distinct values of a column but null and NaN, and how many cells hold each."""
    found = pc.value_counts(column.combine_chunks())
    values, counts = found.field("values"), found.field("counts").to_numpy()
    is_float = pa.types.is_floating(values.type)
    kept = pc.invert(pc.is_null(values, nan_is_null=is_float))
    return values.filter(kept), counts[_to_numpy(kept)]


def _distinct_texts(column: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int64], int]:
    """Return the distinct texts without spaces around them, their counts, and the blank cells."""
    values, counts = _distinct(column.cast(pa.string()))
    bare = pc.utf8_trim(values, characters=_SPACES)
    blank = _to_numpy(pc.equal(bare, ""))
    n_blank = int(counts[blank & _to_numpy(pc.not_equal(values, ""))].sum())
    return *_merged(bare.filter(pa.array(~blank)), counts[~blank]), n_blank


def _merged(texts: pa.Array, counts: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return texts without repetitions, and the sums of their counts."""
    encoded = texts.dictionary_encode()
    merged = np.bincount(encoded.indices.to_numpy(), counts, len(encoded.dictionary))
    return encoded.dictionary, merged.astype(np.int64)


def tidy(texts: pa.Array) -> pa.Array:
    """Return texts without spaces around them and whole numbers without decimals."""
    bare = pc.utf8_trim(texts, characters=_SPACES)
    bare = pc.replace_substring_regex(bare, _NEGATIVE_ZERO, "0")
    return pc.replace_substring_regex(bare, _WHOLE, r"\1")


def _dictionary_order(column: pa.ChunkedArray) -> tuple[str, ...] | None:
    """Return the levels of an ordered dictionary of text or numbers."""
    kind = column.type
    stored = _kind(kind.value_type)
    if not kind.ordered or stored not in (Kind.TEXT, Kind.NUMBER) or not column.num_chunks:
        return None
    values = column.unify_dictionaries().chunk(0).dictionary
    texts = tidy(values.cast(pa.string())) if stored is Kind.TEXT else _number_texts(values)
    levels = texts.to_pylist()
    return tuple(dict.fromkeys(level for level in levels if level))


def _parse_numbers(texts: pa.Array) -> NDArray[np.float64]:
    """Return texts as numbers, NaN where one is no number or beyond the largest double."""
    numbers = np.full(len(texts), np.nan)
    valid = pc.match_substring_regex(texts, f"^(?:{NUMBER})$")
    digits = texts.filter(valid)
    try:
        found = digits.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # some versions of Arrow refuse a plus sign that NUMBER allows
        found = np.array([float(text) for text in digits.to_pylist()])
    numbers[_to_numpy(valid)] = np.where(np.isfinite(found), found, np.nan)
    return numbers


def _as_numbers(values: pa.Array) -> NDArray[np.float64]:
    return values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _number_texts(values: pa.Array) -> pa.Array:
    """Return the text of each stored number; 11 and 11.0 are both `11`."""
    if pa.types.is_integer(values.type):
        return values.cast(pa.string())
    numbers = _as_numbers(values)
    whole = np.isfinite(numbers) & (np.abs(numbers) < 2**53) & (numbers == np.trunc(numbers))
    texts = values.cast(pa.string())
    as_whole = pa.array(np.where(whole, numbers, 0).astype(np.int64)).cast(pa.string())
    return pc.if_else(pa.array(whole), as_whole, texts)


def _to_numpy(mask: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool)
