"""Triplets and what is known of both their sides, encoded: a matrix that is ready to be fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.matrix.missingness import missingness_features as of_missingness
from glfm_cli.completion.matrix.pairs import (
    Likeliest,
    Pairs,
    WhichPairs,
    in_parts,
    read_ids,
    read_pairs,
    unobserved,
)
from glfm_cli.completion.matrix.side import Features, SideCode, read_side
from glfm_cli.completion.prepare import Configured, as_table, configure
from glfm_cli.encoding import EncodedColumn, Ids, NotCompleted, Triplets
from glfm_cli.errors import SchemaError, UsageError
from glfm_cli.inference.sampling import Plan
from glfm_cli.latent.capabilities import HasFactors
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links import Link, LinkConfig, make_link
from glfm_cli.links.binary import BinaryLink
from glfm_cli.links.numeric import NumericLink
from glfm_cli.options import CHAINS, MatrixOptions, Sampling, gather

P_ANY = "p_any"  # of a count: the probability of at least one


@dataclass(frozen=True)
class MatrixData:
    """A matrix that is given as triplets, encoded, as `Data` is a table.

    triplets : the cells; ids at the end may be known from their features alone
    covariates : (I, p) and (J, q) of rows and columns, None without any;  names : what each is
    codes : how those from tables of features are made
    missingness : how many covariates were asked for that the pattern of observed cells gives
    known : rows and columns of the fit that others were added to; 0 where there is none
    has_cells : whether the observed cells are known; not of a fit that was saved without
    new : the cells of rows and columns that were added, in the matrix of all; None without any
    asked : with a fit, the pairs that the table lists without a value; None without any
    notes : what a user should know, one line each
    """

    triplets: Triplets
    covariates: tuple[Array | None, Array | None] = (None, None)
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    codes: tuple[SideCode | None, SideCode | None] = (None, None)
    missingness: int | None = None
    known: tuple[int, int] = (0, 0)
    has_cells: bool = True
    new: MatrixData | None = None
    asked: Pairs | None = None
    notes: tuple[str, ...] = ()
    ids: ClassVar[tuple[str, ...]] = ()
    not_completed: ClassVar[tuple[NotCompleted, ...]] = ()

    @property
    def rows(self) -> Ids:
        """Every row."""
        return self.triplets.rows

    @property
    def others(self) -> Ids:
        """Every column of the matrix."""
        return self.triplets.columns

    @property
    def n_rows(self) -> int:
        """Rows of the matrix."""
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        """Columns of the matrix."""
        return len(self.others)

    @property
    def columns(self) -> tuple[EncodedColumn]:
        """The modelled columns of the table of triplets: its values."""
        return (self.triplets.value,)

    @property
    def layout(self) -> Sparse:
        """The layout of its cells."""
        shape = (len(self.rows), len(self.others))
        entries = Entries(self.triplets.row, self.triplets.column, shape)
        zeros = self.triplets.value.column.absent is not None
        return Sparse(entries, *self.covariates, absent="zero" if zeros else "missing")

    @property
    def has_features(self) -> tuple[bool, bool]:
        """Whether rows, and columns, have features from a table."""
        return self.codes[0] is not None, self.codes[1] is not None

    def sizes(self) -> dict[str, Any]:
        """Return how large it is."""
        sizes = {"rows": len(self.rows), "columns": len(self.others)}
        return sizes | {"observed": int(self.triplets.value.observed.sum())}

    def blank(self) -> pa.Table:
        """Return one row of predictions without values: their columns and types."""
        columns = {ids.name: ids.values.slice(0, 1) for ids in (self.rows, self.others)}
        return pa.table(columns | {name: pa.nulls(1, k) for name, k in self._written().items()})

    def _written(self) -> dict[str, pa.DataType]:
        """Return the columns of predictions beside those of the ids, and their types."""
        value, binomial = self.triplets.value, self.triplets.trials is not None
        text = bool(value.levels) and not binomial
        kind = pa.string() if text else pa.float64()
        kinds = {"estimate": kind, "mean": pa.float64(), "sd": pa.float64()}
        kinds |= {"lower": kind, "upper": kind}
        kinds |= {f"p_{level}": pa.float64() for level in value.levels}
        return kinds | ({P_ANY: pa.float64()} if value.column.absent is not None else {})

    def check_names(self) -> None:
        """Raise SchemaError when an id's column has the name of one that is written beside it."""
        written = {*self._written(), "log_score"}
        for ids in (self.rows, self.others):
            if ids.name in written:
                raise SchemaError(
                    "the predictions have a column of this name, so no id can have it",
                    column=ids.name,
                    hint="Rename the column.",
                )

    def pairs(self, table: pa.Table | None, every: bool, *, file: str | None = None) -> WhichPairs:
        """Return the pairs that a table lists, or all that have no value; checked now.

        With a fit, those without a value in its table, where this lists any. Where absent pairs
        are zeros, those without a value are the missing ones.
        """
        value = self.triplets.value
        if table is not None:
            sides, given = (self.rows, self.others), self.has_features
            listed = read_pairs(table, *sides, value, features=given, file=file)
            return partial(in_parts, listed)
        if self.asked is not None:
            return partial(in_parts, self.asked)
        if value.column.absent is not None:
            cells = (self.new or self).triplets
            gone = np.flatnonzero(~cells.value.observed)
            index = (cells.row[gone], cells.column[gone])
            return partial(in_parts, Pairs(*(one.astype(np.int64) for one in index)))
        which = partial(unobserved, self.triplets, every, self.known)
        which()
        return which


def likeliest(data: MatrixData, matrix: MatrixOptions) -> Likeliest | None:
    """Return what is recommended to which rows: those listed, or all, of a fit the new ones.

    Raises GlfmError: the rows that are listed are no rows of the matrix.
    """
    if matrix.recommend is None:
        return None
    if matrix.rows is None:
        return Likeliest(matrix.recommend, np.arange(data.known[0], data.n_rows))
    table, file = as_table(matrix.rows)
    option = "--row-features" if data.has_features[0] else None
    listed = read_ids(table, data.rows, option, f"a column '{data.rows.name}'", file=file)
    return Likeliest(matrix.recommend, np.unique(listed))


def prepare_matrix(
    triplets: Triplets,
    sampling: Sampling | None = None,
    *,
    features: tuple[Features, Features] = (None, None),
    missingness_features: int | None = None,
    **options: Any,
) -> tuple[Problem, MatrixData, Plan]:
    """Check the options, and what is known of both sides; nothing is sampled yet.

    `options` are fields of `sampling`, `features` those of rows and of columns.

    Raises GlfmError: a table of features or an option is wrong.
    """
    (sampling,) = gather(options, sampling or Sampling())
    found = configured(triplets, sampling)
    if triplets.value.column.absent is not None:
        _check_no_covariates(features, missingness_features)
    link = _link(triplets.value, found.links, rates=isinstance(found.latent, HasFactors))
    rows, of_rows, row_names, row_code = _with_side(triplets.rows, features[0])
    columns, of_columns, names, code = _with_side(triplets.columns, features[1])
    if missingness_features is not None:
        entries = Entries(triplets.row, triplets.column, (len(rows), len(columns)))
        by_row, by_column = of_missingness(entries, missingness_features)
        of_rows, of_columns = _beside(of_rows, by_row), _beside(of_columns, by_column)
        row_names = (*row_names, *(f"missingness {i + 1}" for i in range(by_row.shape[1])))
        names = (*names, *(f"missingness {i + 1}" for i in range(by_column.shape[1])))
    data = MatrixData(
        replace(triplets, rows=rows, columns=columns),
        (of_rows, of_columns),
        (row_names, names),
        (row_code, code),
        missingness_features,
    )
    xs = (triplets.value.x,)
    problem = Problem(found.latent, found.config, (link,), xs, found.links, data.layout)
    return problem, data, found.plan


def configured(triplets: Triplets, sampling: Sampling) -> Configured:
    """Return the model of a matrix, its configuration, and how long it is fitted."""
    layout = "sparse" if triplets.value.column.absent is None else "counts"
    return configure(sampling, layout, [triplets.value], CHAINS, len(triplets.rows))


def _check_no_covariates(features: tuple[Features, Features], missingness: int | None) -> None:
    names = ("--row-features", "--column-features", "--missingness-features")
    for name, given in zip(names, (*features, missingness), strict=True):
        if given is not None:
            problem = f"{name} cannot be used where absent pairs are zeros: no model uses it"
            raise UsageError(problem)


def _with_side(
    ids: Ids, given: Features
) -> tuple[Ids, Array | None, tuple[str, ...], SideCode | None]:
    """Return a side's ids, those known from their features alone last; features; names; code."""
    if given is None:
        return ids, None, (), None
    assert given.schema is not None
    side = read_side(given.table, given.schema, file=given.file)
    return *side.of(ids, given.file), side.names, side.code


def _beside(features: Array | None, more: Array) -> Array:
    """Return covariates with some more at their right."""
    parts = [more] if features is None else [features, more]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _link(value: EncodedColumn, config: LinkConfig, *, rates: bool) -> Link:
    link = make_link(value, replace(config, atoms=False), rates=rates, weights=True)
    if value.column.bounds != (None, None) and isinstance(link, NumericLink):
        link = link.clamped()
    if link.n_latent != 1 or (isinstance(link, BinaryLink) and link.n_levels != 2):
        raise SchemaError(
            f"a matrix of categories needs two levels, this has {len(value.levels)}",
            column=value.column.name,
            hint="Ordered levels: `type: ordinal`.",
        )
    return link
