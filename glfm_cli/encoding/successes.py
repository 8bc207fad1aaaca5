"""Columns of successes, with the trials that another column holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Mask
from glfm_cli.encoding.numeric import Numbers, encode_numbers
from glfm_cli.encoding.source import Source, open_column
from glfm_cli.encoding.trials import MOST_TRIALS
from glfm_cli.errors import TableError
from glfm_cli.schema import Column, Role


class Successes(NamedTuple):
    """The cells of a column of successes.

    successes, trials : (n_rows,) whole numbers, NaN where they are missing
    left : (n_rows,) bool, successes that are missing by a code with `impute: false`
    """

    successes: Array
    trials: Array
    left: Mask


def encode_successes(table: pa.Table, columns: Sequence[Column], source: Source) -> Successes:
    """Return the successes of a column of the table, and their trials.

    Raises TableError: a cell is no whole number from 0, there are successes without trials, or more
        than these, or there are more trials than `MOST_TRIALS`.
    """
    column = source.column
    index = table.column_names.index(str(column.trials))
    of_trials = open_column(table, index, columns[index], source.file)
    hits = _counted(source, "hits")
    successes = hits.x
    trials = _counted(of_trials, "trials").x
    unknown = np.isnan(trials) & ~np.isnan(successes)
    more = successes > trials
    for bad, expected in ((unknown, "the number of trials where there are successes"), (more, "")):
        if bad.any():
            row = int(np.argmax(bad))
            raise TableError(
                file=source.file,
                row=row + 1,
                column=column.name,
                value=f"{successes[row]:g} successes",
                expected=expected or f"at most the {trials[row]:g} trials in '{column.trials}'",
            )
    many = trials > MOST_TRIALS
    if many.any():
        raise of_trials.cell_error(
            many,
            f"at most {MOST_TRIALS} trials",
            "With so many trials, give the rate itself: "
            "`type: positive` with a transform, or `type: real`.",
        )
    return Successes(successes, trials, hits.left)


def shares(found: Successes) -> tuple[Array, Array, Mask]:
    """Return shares of successes, trials, and which cells must stay missing.

    Those without trials, too; no trials have no share.
    """
    trials = found.trials
    with np.errstate(invalid="ignore"):
        x = np.where(trials > 0.0, found.successes / np.where(trials > 0.0, trials, 1.0), np.nan)
    return x, trials, found.left | np.isnan(trials) | ~np.isnan(found.successes)


def _counted(source: Source, what: str) -> Numbers:
    """Return a column of hits or trials.

    Raises TableError: a cell is no whole number from 0.
    """
    plain = replace(source.column.of_numbers(), trials=None, role=Role.FEATURE)
    found = encode_numbers(replace(source, column=plain))
    bad = ~np.isnan(found.x) & ((found.x < 0.0) | (found.x != np.floor(found.x)))
    if bad.any():
        raise source.cell_error(
            bad,
            f"a whole number of {what}, from 0",
            "If it stands for a missing cell, list it under `missing:` in the types file.",
        )
    return found
