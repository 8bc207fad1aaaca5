"""Predict cells of rows and columns that a fit has not seen, without sampling it anew.

Under each draw of the fit the new units' own factors and effects are drawn given their cells, if
they have some, and their features; what the fit's own units have is as it was. Cells between rows
and columns that the fit knows teach it nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.learnt import check_reach
from glfm_cli.completion.matrix.matrix import MatrixData
from glfm_cli.completion.matrix.pairs import Pairs
from glfm_cli.completion.matrix.saved import matrix_of_fit, same_side
from glfm_cli.completion.matrix.side import Features, Side, read_more
from glfm_cli.completion.requests import Unseen, check_unseen
from glfm_cli.encoding import EncodedColumn, Ids, LearntColumn, Triplets, encode_triplets
from glfm_cli.errors import TableError, UsageError
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.capabilities import Components
from glfm_cli.store import Fit
from glfm_cli.store.matrix import SIDES


def encode_units(
    fit: Fit,
    table: pa.Table,
    features: tuple[Features, Features] = (None, None),
    *,
    unseen: Unseen = "error",
    file: str | None = None,
) -> MatrixData:
    """Return the matrix of a saved fit and of a table of triplets, whose units may be new.

    table : triplets with the columns of the fit's; units that it has not seen are new
    features : (rows, columns); what is known of new units, and must be where the fit was made with
        features; others than those of `table` may be there, and are new, too
    unseen : {"error", "missing"}; what a value of a level is that the fit does not know

    Raises GlfmError: it is no fit of triplets, or the tables are not like its own.
    """
    old = matrix_of_fit(fit)
    value, (link,) = old.triplets.value, fit.links
    triplets = encode_triplets(
        table,
        fit.schema,
        learnt=LearntColumn(value.column, value.levels, link.typical()),
        unseen_is_missing=check_unseen(unseen) == "missing",
        file=file,
    )
    check_reach(fit.links, (triplets.value.x,), file)
    sides = _read_sides(fit, old, features)
    own = (triplets.rows, triplets.columns)
    units = [
        _extended(ids, mine, side)
        for ids, mine, side in zip((old.rows, old.others), own, sides, strict=True)
    ]
    known = (len(old.rows), len(old.others))
    _check_columns(old, units[1], file)
    cells, new, notes = _together(old, triplets, (units[0], units[1]))
    data = replace(old, triplets=cells, notes=notes, asked=_asked(triplets, units[0], units[1]))
    if (len(units[0]), len(units[1])) == known:
        return data
    covariates = [
        _covariates(fit.posterior, old, which, ids, side)
        for which, (ids, side) in enumerate(zip(units, sides, strict=True))
    ]
    return replace(data, known=known, new=MatrixData(new, (covariates[0], covariates[1])))


def _asked(given: Triplets, rows: Ids, columns: Ids) -> Pairs | None:
    """Return the pairs that a table lists without a value, in its order; None without any."""
    row, column = given.blank
    if not row.size:
        return None
    places = rows.places(given.rows.keys), columns.places(given.columns.keys)
    return Pairs(places[0][row].astype(np.int64), places[1][column].astype(np.int64))


def _read_sides(
    fit: Fit, old: MatrixData, features: tuple[Features, Features]
) -> list[Side | None]:
    """Return the covariates of new units that the tables of features describe."""
    found: list[Side | None] = []
    for given, side, code in zip(features, SIDES, old.codes, strict=True):
        if given is None:
            found.append(None)
            continue
        same_side(given, side, None if code is None else code.to_dict(), fit.path)
        assert code is not None
        found.append(read_more(given.table, code, file=given.file))
    return found


def _extended(known: Ids, named: Ids, side: Side | None) -> Ids:
    """Return the ids of a fit, behind them those that only the new tables have."""
    more = known.with_more(named)
    return more if side is None else more.with_more(side.ids)


def _together(
    old: MatrixData, given: Triplets, units: tuple[Ids, Ids]
) -> tuple[Triplets, Triplets, tuple[str, ...]]:
    """Return the cells of the fit and the table, those of new units alone, and notes."""
    row = units[0].places(given.rows.keys)[given.row].astype(np.int32)
    column = units[1].places(given.columns.keys)[given.column].astype(np.int32)
    n_columns = len(units[1])
    is_new = (row >= len(old.rows)) | (column >= len(old.others))
    flat = row.astype(np.int64) * n_columns + column
    of_fit = old.triplets.row.astype(np.int64) * n_columns + old.triplets.column
    every = np.union1d(flat, of_fit)
    both = replace(
        old.triplets,
        rows=units[0],
        columns=units[1],
        row=(every // n_columns).astype(np.int32),
        column=(every % n_columns).astype(np.int32),
        value=_values_at(every, [(flat, given.value), (of_fit, old.triplets.value)]),
    )
    order = np.flatnonzero(is_new)[np.argsort(flat[is_new])]
    value, x = given.value, given.value.x[order]
    new = replace(
        given,
        rows=units[0],
        columns=units[1],
        row=row[order],
        column=column[order],
        value=replace(value, x=x, observed=~np.isnan(x), requested=np.zeros(x.size, dtype=bool)),
    )
    idle = int(np.sum(~is_new & ~np.isin(flat, of_fit))) if old.has_cells else 0
    if not idle:
        return both, new, ()
    cells = "1 cell" if idle == 1 else f"{idle} cells"
    note = f"{cells} of rows and columns that the fit knows were not used: a fit does not change"
    return both, new, (note,)


def _values_at(every: Array, parts: Sequence[tuple[Array, EncodedColumn]]) -> EncodedColumn:
    """Return the values at some places, by places and values; the last of those at one place."""
    x = np.full(every.size, np.nan)
    for place, value in parts:
        x[np.searchsorted(every, place)] = value.x
    return replace(
        parts[-1][1], x=x, observed=~np.isnan(x), requested=np.zeros(every.size, dtype=bool)
    )


def _check_columns(old: MatrixData, columns: Ids, file: str | None) -> None:
    """Raise TableError for a column of counts that the fit has not seen: nothing tells its law."""
    new = columns.keys[len(old.others) :]
    if new and old.triplets.value.column.absent is not None:
        raise TableError(
            "the fit does not know this column of counts",
            file=file,
            column=columns.name,
            value=f"'{new[0]}'",
            hint="Leave its counts out, or fit again with them.",
        )


def _covariates(
    posterior: Posterior, old: MatrixData, which: int, ids: Ids, side: Side | None
) -> Array | None:
    """Return the covariates (n, p) of all units of a side, without the intercepts."""
    model, draw = posterior.model, next(posterior.draws()).latent
    names = old.names[which]
    if not names:
        return None
    assert isinstance(model, Components)  # no other takes covariates
    parts = model.parts(draw)
    of_fit = parts.R if which == 0 else parts.C
    of_fit = of_fit[:, of_fit.shape[1] - len(names) :]
    new = ids.keys[of_fit.shape[0] :]
    option = f"--{SIDES[which]}-features"
    if new and old.missingness is not None:
        raise UsageError(
            f"{ids.name} '{new[0]}' is new, and the fit was made with --missingness-features",
            hint="Where such covariates of a new unit would lie is not known; fit without them.",
        )
    if new and side is None:
        raise UsageError(
            f"{option} FILE is missing: {ids.name} '{new[0]}' is new to a fit with features",
            hint="Its types are saved with the fit.",
        )
    if side is None:
        return of_fit
    _check_known(side, new, ids)
    return np.ascontiguousarray(np.concatenate([of_fit, side.of_keys(new)]))


def _check_known(side: Side, keys: Sequence[str], ids: Ids) -> None:
    listed = set(side.ids.keys)
    gone = [key for key in keys if key not in listed]
    if gone:
        raise TableError(
            f"the features have no row for {ids.name} '{gone[0]}', which is new",
            expected=f"a row for each new id in column '{ids.name}'",
        )
