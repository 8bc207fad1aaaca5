"""What is known of missing cells before an analysis is asked: conditions and intervals.

A column with `only_if`, a `formula` or cells that are intervals, which no regression names, stays
beside the walk: the latent model sees it as it is, missing cells and those of which only the
interval is known integrated out, and its cells are drawn last, from their law given the latent
variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.formula import AnalysisFormula
from glfm_cli.encoding import Data, EncodedColumn, Relations, bounds_of, levels_of
from glfm_cli.encoding.data import Mask
from glfm_cli.errors import UsageError


@dataclass(frozen=True)
class Limits:
    """What is known of the cells to be drawn (m,), by column.

    ends : what they lie between (m, 2), NaN where nothing is known
    levels : which levels they may have (m, R)
    beside : columns that stay beside the walk
    """

    ends: Mapping[str, Array] = field(default_factory=dict)
    levels: Mapping[str, Mask] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    @classmethod
    def of(cls, data: Data, regressions: Sequence[AnalysisFormula]) -> Limits:
        """Return those of a table."""
        names = [encoded.column.name for encoded in data.columns]
        named = {name for one in regressions for name in (*one.responses, *one.names)}
        some = {encoded.column.name for encoded in data.columns if stays_beside(encoded)}
        some |= results_of(data)
        drawn = [unknown_of(one)[one.requested] for one in data.columns]
        ends = {names[d]: ends[drawn[d]] for d, ends in bounds_of(data).items()}
        levels = {names[d]: possible[drawn[d]] for d, possible in levels_of(data).items()}
        return cls(ends, levels, frozenset(some - named))

    def broken(self, rows: Mapping[str, Array], xs: Mapping[str, Array]) -> Array:
        """Return the rows with a level that a missing cell may not have; rows : of these cells."""
        found = [np.zeros(0, dtype=np.intp)]
        for name, possible in self.levels.items():
            codes = xs[name][rows[name]].astype(np.intp)
            found.append(rows[name][~possible[np.arange(codes.size), codes]])
        return np.concatenate(found)


NO_LIMITS = Limits()


def unknown_of(encoded: EncodedColumn) -> Mask:
    """Return the cells to be drawn (n,): some that are to be completed follow from conditions."""
    return encoded.requested & ~encoded.observed


def stays_beside(encoded: EncodedColumn) -> bool:
    """Return whether no regression of a column that the formula does not name may have it."""
    return encoded.ends is not None or encoded.column.only_if is not None


def results_of(data: Data) -> set[str]:
    """Return the columns that follow from others by a formula, and tell nothing more."""
    return {data.columns[one.d].column.name for one in Relations.of(data.columns).equations}


def check_limits(regression: AnalysisFormula, data: Data) -> None:
    """Raise UsageError where the formula names a column of which a regression knows too little."""
    target, columns = regression.target, regression.columns
    start = f"--analysis '{regression.text}': "
    for name in (*regression.responses, *regression.names):
        if columns[name].column.only_if is not None:
            raise UsageError(
                f"{start}'{name}' has values in some rows alone (`only_if`)",
                hint="Complete the rows in which it has some as a table of their own.",
            )
        if columns[name].ends is not None and name in regression.responses:
            raise UsageError(
                f"{start}cells of the response '{name}' are known only to lie between two numbers",
                hint="Leave out --analysis, or list such texts under `missing:`.",
            )
        if (columns[name].between & ~columns[name].requested).any():
            raise UsageError(
                f"{start}cells of '{name}' are intervals, which are to stay as they are written",
                hint=f"Write `impute: censored` for '{name}' in the types file, so that the "
                "regression of a completed table has a number there.",
            )
    limited = {data.columns[d].column.name for d in (*bounds_of(data), *levels_of(data))}
    if target in limited:
        raise UsageError(
            f"{start}`only_if` of other columns tells what missing '{target}' may be",
            hint=f"Leave out --analysis, or give columns whose `only_if` names '{target}' "
            "`role: ignore`.",
        )
