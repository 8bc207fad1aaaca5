"""Completed tables made elsewhere, scored against the truth."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.completion import TableLike, Types, as_table, with_types
from glfm_cli.completion.prepare import with_guess
from glfm_cli.encoding import Data, encode
from glfm_cli.errors import UsageError
from glfm_cli.evaluation.evaluation import Evaluation
from glfm_cli.evaluation.jobs import digest
from glfm_cli.evaluation.read import values_at
from glfm_cli.evaluation.results import Outcome, OutcomeId
from glfm_cli.evaluation.scoring import score_all, spans
from glfm_cli.evaluation.task import Prediction
from glfm_cli.schema import Schema

GIVEN = "given"


def compare_tables(
    tables: Mapping[str, TableLike],
    truth: TableLike,
    types: Types,
    *,
    masked: TableLike | None = None,
    reference: str | None = None,
) -> Evaluation:
    """Score completed tables against the true values.

    Parameters
    ----------
    tables : mapping of str to table, data frame or path
        Names to completed tables, with the rows of `truth` in the same order.
    truth : table, data frame or path
        The true values; cells that are empty in it are not scored.
    types : Schema, Guess, mapping or path
        What the columns mean.
    masked : table, data frame or path, optional
        The table that was completed: only its missing cells count; without it, all that `truth`
        has is scored, those that were never missing too.
    reference : str, optional
        The name that others are compared to; the first if left out.

    Returns
    -------
    Evaluation
        With one repeat, so without standard errors.

    Raises
    ------
    GlfmError
        A table does not fit the truth, or leaves a cell empty.
    """
    began = time.monotonic()
    if not tables:
        raise UsageError("nothing to compare", expected="at least one completed table")
    if reference is not None and reference not in tables:
        raise UsageError("--reference", value=f"'{reference}'", expected=" or ".join(tables))
    read, schema = with_types(truth, types)
    true, file = as_table(read)
    data = with_guess(encode(true, schema, file=file), read)
    hidden = _cells(data, masked, schema)
    n_cells = sum(rows.size for rows in hidden.values())
    if not n_cells:
        expected = "a missing cell whose true value is known"
        raise UsageError("there is no cell to score", expected=expected)
    known = sum(int(e.observed.sum()) for e in data.columns if e.column.completed)
    rate = n_cells / known
    values = {d: data.columns[d].scored[rows] for d, rows in hidden.items()}
    span, fits = spans(data.columns), []
    for name, source in tables.items():
        table, file = as_table(source)
        columns = {d: data.columns[d] for d in hidden}
        guess = values_at(table, columns, hidden, n_rows=data.n_rows, file=file)
        scores = score_all(data.columns, span, values, {d: Prediction(x) for d, x in guess.items()})
        identity = OutcomeId(name, GIVEN, rate, 0)
        fits.append(Outcome(identity, digest(name), tuple(scores), math.nan, math.nan))
    return Evaluation(
        fits=tuple(fits),
        methods=tuple(tables),
        reference=reference or next(iter(tables)),
        mechanism=GIVEN,
        rates=(rate,),
        repeats=1,
        seed=0,
        data=data,
        stopped=None,
        seconds=time.monotonic() - began,
    )


def _cells(data: Data, masked: TableLike | None, schema: Schema) -> dict[int, Array]:
    """Return the rows to score of every completed column that has any."""
    requested = [e.observed & e.column.completed for e in data.columns]
    if masked is not None:
        table, file = as_table(masked)
        missing = encode(table, schema, file=file)
        if missing.n_rows != data.n_rows or [e.column.name for e in missing.columns] != [
            e.column.name for e in data.columns
        ]:
            raise UsageError(
                "--masked has other rows or columns than --truth", file=file,
                value=f"{missing.n_rows} rows", expected=f"{data.n_rows} rows and the same columns",
            )  # fmt: skip
        requested = [keep & e.requested for keep, e in zip(requested, missing.columns, strict=True)]
    return {d: np.flatnonzero(rows) for d, rows in enumerate(requested) if rows.any()}
