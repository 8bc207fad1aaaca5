"""What is known of the rows or the columns of a matrix, from a table of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import glfm_cli.encoding as encoding
from glfm_cli.arrays import Array
from glfm_cli.completion.prepare import as_schema, as_table
from glfm_cli.errors import SchemaError, StoreError, TableError
from glfm_cli.inference.chain import inner
from glfm_cli.latent.model import FLOAT_MAX, take
from glfm_cli.links import Link, LinkConfig, link_from, make_link
from glfm_cli.schema import COLUMN_TYPES, Column, Role, Schema, with_calendar


@dataclass(frozen=True)
class FeatureTable:
    """What is known of the rows or columns of a matrix.

    schema : its types; None where a fit has them
    """

    table: pa.Table
    schema: Schema | None
    file: str | None = None


Features = FeatureTable | None


def features_of(given: tuple[Any, Any] | Features) -> Features:
    """Return a table of features and its types, each of which may be given by its path."""
    if given is None or isinstance(given, FeatureTable):
        return given
    table, types = given
    table, file = as_table(table)
    return FeatureTable(table, None if types is None else as_schema(types), file)


@dataclass(frozen=True)
class SideCode:
    """How a table of features becomes covariates; learnt from one table, applied to others.

    columns : that are covariates, with the levels that are known
    links : of the columns of numbers, None of the others
    reference : (n,) int64, of the columns of categories the code that has no indicator
    mean, spread : (q,) of every covariate; one of spread 0 is left out
    """

    schema: Schema
    table: tuple[str, ...]
    columns: tuple[encoding.LearntColumn, ...]
    links: tuple[Link | None, ...]
    reference: Array
    mean: Array
    spread: Array

    @classmethod
    def learn(
        cls, schema: Schema, table: Sequence[str], columns: Sequence[encoding.EncodedColumn]
    ) -> SideCode:
        """Return the code of a table's own columns, which are `columns`."""
        links = tuple(
            None if c.column.levelled else make_link(c, LinkConfig(atoms=False)) for c in columns
        )
        reference = [
            int(np.argmax(np.bincount(c.x.astype(np.intp), minlength=len(c.levels))))
            if c.column.nominal
            else -1
            for c in columns
        ]
        learnt = tuple(encoding.LearntColumn(c.column, c.levels, c.typical) for c in columns)
        none = np.empty(0)
        code = cls(schema, tuple(table), learnt, links, np.array(reference, np.int64), none, none)
        raw = code._raw(columns)[0]
        return replace(code, mean=raw.mean(axis=0), spread=raw.std(axis=0))

    def features(self, columns: Sequence[encoding.EncodedColumn]) -> tuple[Array, tuple[str, ...]]:
        """Return the covariates (n, p) that vary, standardised, and their names."""
        raw, names = self._raw(columns)
        varies = np.flatnonzero(self.spread > 0.0)  # a constant says nothing
        features = (raw[:, varies] - self.mean[varies]) / self.spread[varies]
        return np.ascontiguousarray(features), tuple(names[i] for i in varies)

    def _raw(self, columns: Sequence[encoding.EncodedColumn]) -> tuple[Array, list[str]]:
        """Return all covariates (n, q) as they are, and their names.

        Numbers are seen as a model sees them (their latent scale), ordered levels by their number,
        categories as one indicator a level but the commonest.
        """
        n = columns[0].x.size if columns else 0
        parts, names = [np.empty((n, 0))], []
        for encoded, link, reference in zip(columns, self.links, self.reference, strict=True):
            name, x = encoded.column.name, encoded.x
            if link is not None:
                parts.append(link.start(x)[1][:, :1])
                names.append(name)
            elif encoded.column.ordinal:
                parts.append(x[:, None])
                names.append(name)
            else:
                codes = np.delete(np.arange(len(encoded.levels)), reference)
                parts.append((x[:, None] == codes).astype(np.float64))
                names += [f"{name}={encoded.levels[code]}" for code in codes]
        return np.concatenate(parts, axis=1), names

    def encode(self, table: pa.Table, file: str | None) -> list[encoding.EncodedColumn]:
        """Return the columns of another table; every cell must be there, every level known."""
        features = encoding.encode_rows(
            table, self.schema, self.columns, unseen_is_missing=None, file=file
        )
        found = list(features.columns)
        _check_whole(found, file)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what is text of the code, for JSON."""
        columns = [
            {"name": c.column.name, "type": str(c.column.type), "levels": list(c.levels)}
            for c in self.columns
        ]
        table = list(self.table)
        return {"types": self.schema.to_yaml(), "table": table, "columns": columns}

    def arrays(self) -> dict[str, Array]:
        """Return what is numbers of the code."""
        found = {"mean": self.mean, "spread": self.spread, "reference": self.reference}
        for d, (link, learnt) in enumerate(zip(self.links, self.columns, strict=True)):
            if link is not None:
                found |= {f"{d}.link.{name}": v for name, v in link.constants().items()}
                zeros = np.zeros(int(np.any(learnt.sample == 0.0)))
                found[f"{d}.sample"] = np.append(zeros, learnt.sample[learnt.sample != 0.0][:1])
        return found

    @classmethod
    def load(cls, entry: Mapping[str, Any], arrays: Mapping[str, Array], file: str) -> SideCode:
        """Return the code that `to_dict` and `arrays` described.

        Raises StoreError: they are not of this kind.
        """
        try:
            schema = Schema.from_yaml(str(entry["types"]), file=file)
            table = tuple(map(str, entry["table"]))
            resolved = {column.name: column for column in with_calendar(schema.resolve(table))}
            columns, links = [], []
            for d, one in enumerate(entry["columns"]):
                column = _typed(resolved[one["name"]], str(one["type"]))
                levels = tuple(map(str, one["levels"]))
                leveled = column.levelled
                some = np.empty(0)
                if not leveled:
                    some = take(arrays, f"{d}.sample", np.float64, (None,), largest=FLOAT_MAX)
                columns.append(encoding.LearntColumn(column, levels, some))
                constants = inner(arrays, f"{d}.link.")
                links.append(
                    None if leveled else link_from(column, len(levels), constants, LinkConfig())
                )
            reference = take(arrays, "reference", np.int64, (len(columns),))
            mean, spread = (
                take(arrays, name, np.float64, (None,), largest=FLOAT_MAX)
                for name in ("mean", "spread")
            )
            for c, code in zip(columns, reference, strict=True):
                categorical = c.column.nominal
                if not (0 <= code < len(c.levels) if categorical else code == -1):
                    raise ValueError("'reference' is the code of no level")
            return cls(schema, table, tuple(columns), tuple(links), reference, mean, spread)
        except (ValueError, KeyError, TypeError, SchemaError) as error:
            raise StoreError(f"cannot be used: {error}", file=file) from None


def _typed(column: Column, kind: str) -> Column:
    if column.type not in (None, kind):
        raise ValueError(f"column '{column.name}' is {column.type}, not {kind}")
    return replace(column, type=COLUMN_TYPES[kind])


@dataclass(frozen=True)
class Side:
    """Covariates of the units that a table lists.

    ids : in the table's order
    features : (n, p) float64, each with mean 0 and standard deviation 1 over the table it was
        learnt from
    names : (p,) what each is
    code : how they were made
    """

    ids: encoding.Ids
    features: Array
    names: tuple[str, ...]
    code: SideCode

    def of(self, ids: encoding.Ids, file: str | None) -> tuple[encoding.Ids, Array]:
        """Return all ids, those that only the table has behind `ids`, and their features.

        Raises TableError: the table misses some of `ids`.
        """
        known = set(self.ids.keys)
        gone = [key for key in ids.keys if key not in known]
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise TableError(
                f"has no row for {ids.name} '{gone[0]}'{more}",
                file=file,
                expected=f"a row for each of the {len(ids)} ids in column '{ids.name}'",
            )
        every = ids.with_more(self.ids)
        if self.ids.labels:
            place = self.ids.places(every.keys)
            every = replace(every, labels=tuple(self.ids.labels[i] for i in place))
        return every, self.of_keys(every.keys)

    def of_keys(self, keys: Sequence[str]) -> Array:
        """Return the features of units that the table has."""
        return np.ascontiguousarray(self.features[self.ids.places(keys)])


def read_side(table: pa.Table, schema: Schema, *, file: str | None = None) -> Side:
    """Return the covariates that a table and its types describe; every cell must be there.

    A column of role label says what the units are called.

    Raises TableError: a cell is missing or wrong, or an id is there twice; SchemaError: there is
        not just one column of role id.
    """
    ids = _ids_of(table, schema, file)
    named = next((c for c in schema.resolve(table.column_names) if c.role is Role.LABEL), None)
    if named is not None:
        texts = encoding.text_of(table[named.name].combine_chunks()).to_pylist()
        labels = (text or key for text, key in zip(texts, ids.keys, strict=True))
        ids = replace(ids, labels=tuple(labels))
    columns = encoding.encode(table, schema, file=file, labels=True).columns
    _check_whole(columns, file)
    code = SideCode.learn(schema, table.column_names, columns)
    return Side(ids, *code.features(columns), code)


def read_more(table: pa.Table, code: SideCode, *, file: str | None = None) -> Side:
    """Return the covariates of another table, by the code of the one that was learnt from."""
    ids = _ids_of(table, code.schema, file)
    return Side(ids, *code.features(code.encode(table, file)), code)


def _ids_of(table: pa.Table, schema: Schema, file: str | None) -> encoding.Ids:
    columns = schema.resolve(table.column_names)
    holders = [i for i, column in enumerate(columns) if column.role is Role.ID]
    if len(holders) != 1:
        raise SchemaError(
            f"{len(holders)} columns have role id",
            file=schema.file,
            expected="one, that says which row or column of the matrix is meant",
        )
    source = encoding.open_column(table, holders[0], columns[holders[0]], file)
    ids, of_row = encoding.encode_ids(source)
    if len(ids) < table.num_rows:
        again = np.ones(of_row.size, dtype=bool)
        again[np.unique(of_row, return_index=True)[1]] = False
        raise source.cell_error(again, "each id once", None)
    return ids


def _check_whole(columns: Sequence[encoding.EncodedColumn], file: str | None) -> None:
    """Raise TableError when a cell is empty."""
    for encoded in columns:
        missing = np.flatnonzero(~encoded.observed)
        if missing.size:
            raise TableError(
                f"{missing.size} of its cells are empty"
                if missing.size > 1
                else "the cell is empty",
                file=file,
                column=encoded.column.name,
                row=int(missing[0]) + 1,
                expected="a value in every cell of what is known beforehand",
                hint="Complete that table first: `glfm impute` does.",
            )
