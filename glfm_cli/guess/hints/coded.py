"""A column by its different values, and which of them each row has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.guess.profile import tidy
from glfm_cli.guess.verdict import Verdict

MOST_COLUMNS = 60  # of levels, and of numbers, that are compared


class Coded(NamedTuple):
    """A column's values, and which of them each row has, -1 of a missing cell (n,)."""

    values: pa.StringArray
    rows: NDArray[np.int64]

    @property
    def levels(self) -> list[str]:
        """The values as a list, of columns that have few."""
        return list(self.values.to_pylist())


def coded(column: pa.ChunkedArray, verdict: Verdict) -> Coded:
    """Return a column by its distinct texts, aliases as the levels that they stand for."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = tidy(column.cast(pa.string()).combine_chunks()).dictionary_encode()
    texts, level = encoded.dictionary, dict(verdict.column.aliases)
    place = np.arange(len(texts))
    if level:
        meant = pa.array([level.get(text, text) for text in texts.to_pylist()], pa.string())
        again = meant.dictionary_encode()
        texts, place = again.dictionary, again.indices.to_numpy()
    missing = {"", "nan", *(code.text for code in verdict.column.missing)}
    kept = ~pc.is_in(texts, value_set=pa.array(sorted(missing))).to_numpy(zero_copy_only=False)
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1)[place], -1)
    rows = number[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return Coded(texts.filter(pa.array(kept)), rows)
