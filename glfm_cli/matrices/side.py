"""What is known of the rows or the columns of a matrix, from a table of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from glfm_cli.encoding import EncodedColumn, Ids, encode, encode_ids, open_column
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.latent.latent import Array
from glfm_cli.links.link import LinkConfig, make_link
from glfm_cli.schema import LEVELLED, ColumnType, Role, Schema


@dataclass(frozen=True)
class Side:
    """Covariates of the units that a table lists.

    ids : in the table's order
    features : (n, p) float64, each with mean 0 and standard deviation 1
    names : (p,) what each is
    """

    ids: Ids
    features: Array
    names: tuple[str, ...]

    def of(self, ids: Ids, file: str | None) -> tuple[Ids, Array]:
        """Return all ids, those that only the table has behind `ids`, and their features.

        Raises
        ------
        TableError
            The table misses some of `ids`.
        """
        gone = [key for key in ids.keys if key not in set(self.ids.keys)]
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise TableError(
                f"says nothing of {ids.name} '{gone[0]}'{more}",
                file=file,
                expected=f"a row for each of the {len(ids)} ids in column '{ids.name}'",
            )
        every = ids.with_more(self.ids)
        return every, np.ascontiguousarray(self.features[self.ids.places(every.keys)])


def read_side(table: pa.Table, schema: Schema, *, file: str | None = None) -> Side:
    """Return the covariates that a table and its types describe; every cell must be there.

    Numbers are seen as a model sees them (their latent scale), ordered levels by their number,
    categories as one indicator a level but the commonest.

    Raises
    ------
    TableError
        A cell is missing or wrong, or an id is there twice.
    SchemaError
        There is not just one column of role id.
    """
    columns = schema.resolve(table.column_names)
    holders = [i for i, column in enumerate(columns) if column.role is Role.ID]
    if len(holders) != 1:
        raise SchemaError(
            f"{len(holders)} columns have role id",
            file=schema.file,
            expected="one, that says which row or column of the matrix is meant",
        )
    source = open_column(table, holders[0], columns[holders[0]], file)
    ids, of_row = encode_ids(source)
    if len(ids) < table.num_rows:
        again = np.ones(of_row.size, dtype=bool)
        again[np.unique(of_row, return_index=True)[1]] = False
        raise source.cell_error(again, "each id once", None)
    parts, names = [], []
    for encoded in encode(table, schema, file=file).columns:
        gap = np.flatnonzero(~encoded.observed)
        if gap.size:
            raise TableError(
                f"{gap.size} of its cells are empty" if gap.size > 1 else "the cell is empty",
                file=file,
                column=encoded.column.name,
                row=int(gap[0]) + 1,
                expected="a value in every cell of what is known beforehand",
                hint="Complete that table first: `glfm impute` does.",
            )
        for name, values in _covariates(encoded):
            spread = float(values.std())
            if spread > 0.0:  # a constant says nothing
                parts.append((values - values.mean()) / spread)
                names.append(name)
    features = np.column_stack(parts) if parts else np.empty((table.num_rows, 0))
    return Side(ids, features, tuple(names))


def _covariates(encoded: EncodedColumn) -> list[tuple[str, Array]]:
    """Return the covariates that one column is, by name."""
    column, x = encoded.column, encoded.x
    if column.type not in LEVELLED:
        link = make_link(replace(encoded), LinkConfig())
        return [(column.name, link.start(x, np.random.default_rng(0))[1][:, 0])]
    if column.type is ColumnType.ORDINAL:
        return [(column.name, x)]
    counts = np.bincount(x.astype(np.intp), minlength=len(encoded.levels))
    return [
        (f"{column.name}={level}", (x == code).astype(np.float64))
        for code, level in enumerate(encoded.levels)
        if code != int(np.argmax(counts))
    ]
