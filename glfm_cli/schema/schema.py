"""The types file as a whole, and what it says of the columns of one table."""

from __future__ import annotations

import fnmatch
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import glfm_cli.schema.text as yaml_text
from glfm_cli.errors import SchemaError
from glfm_cli.schema.columns import Column, MissingCode, Role
from glfm_cli.schema.parse import ColumnParser
from glfm_cli.schema.phrases import did_you_mean, listed
from glfm_cli.schema.relations import check_relations

VERSION = "1"
REST = "*"  # what the entry `rest:` is a pattern for
_KEYS = ("glfm", "missing", "rest", "columns")
_LONGEST_FILE = 64 * 2**20  # bytes; a longer file is a table given by mistake
_ONCE = (
    *(Role.TARGET, Role.GROUP, Role.TIME, Role.TASK, Role.SPLIT, Role.LABEL, Role.WEIGHT),
    *(Role.ROW, Role.COLUMN, Role.VALUE),
)
_TRIPLET = (Role.ROW, Role.COLUMN, Role.VALUE)

# Keys whose value is that of the column's field.
_PLAIN = (
    *("atom", "censored_below", "censored_above", "formula", "only_if", "otherwise", "less_than"),
    *("missingness", "parts_of", "trials", "absent", "decimal", "thousands", "unit", "format"),
    *("label",),
)


@dataclass(frozen=True, repr=False)
class Schema:
    """What each column of a table means: a types file, checked.

    Make one with `read_schema`, `Schema.from_yaml` or `Schema.from_dict`, which check it.

    Parameters
    ----------
    columns : tuple of Column
        One for each entry, in the order written; `name` is a column's name or a pattern, and
        `missing` is the table's list where the entry has none of its own.
    rest : Column, optional
        What the columns are that no entry names; None when all must be named.
    missing : tuple of MissingCode
        The table's list, besides the empty cell.
    file : str, optional
        Where it was read from, for messages.
    """

    columns: tuple[Column, ...] = ()
    rest: Column | None = None
    missing: tuple[MissingCode, ...] = ()
    file: str | None = field(default=None, compare=False)

    @classmethod
    def from_yaml(cls, text: str, *, file: str | None = None) -> Schema:
        """Return the schema that the text of a types file describes."""
        return _parse(yaml_text.read_tree(text, file), file)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, file: str | None = None) -> Schema:
        """Return the schema that a types file written as nested dicts and lists describes.

        Numbers, booleans and None may stand for their text: `{"missing": [-9]}` is
        `{"missing": ["-9"]}`.
        """
        return _parse(_as_text(content), file)

    def without_time(self) -> Schema:
        """Return the schema with the column of role time as a feature: rows one by one."""
        columns = (
            replace(one, role=Role.FEATURE) if one.role is Role.TIME else one
            for one in self.columns
        )
        return replace(self, columns=tuple(columns))

    def resolve(self, names: Sequence[str]) -> tuple[Column, ...]:
        """Return one `Column` for each column of a table, in the table's order.

        An entry with a column's exact name wins; among patterns, the first that matches; then
        `rest`.

        Raises
        ------
        SchemaError
            A column is not covered, an entry matches nothing, or two columns have a role that
            only one may have.
        """
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise SchemaError("two columns of the table have this name", column=repeated[0])
        there = set(names)
        exact = {column.name: column for column in self.columns if column.name in there}
        patterns = [
            (column, re.compile(fnmatch.translate(column.name)))
            for column in self.columns
            if column.name not in exact and is_pattern(column.name)
        ]
        self._check_matched(names, exact, patterns)
        found = []
        for name in names:
            column = exact.get(name) or next((c for c, p in patterns if p.match(name)), self.rest)
            if column is None:
                raise self._uncovered(name, names)
            found.append(replace(column, name=name))
        self._check_roles(found, "the table")
        self._check_trials(found)
        check_relations(found, self.file)
        return tuple(found)

    def __repr__(self) -> str:
        """Return the types file, so that a notebook shows it."""
        return self.to_yaml()

    def to_yaml(self) -> str:
        """Return the text of a types file that reads back as this schema."""
        lines = [f"glfm: {VERSION}"]
        if self.missing:
            lines.append(yaml_text.entry("missing", _codes_out(self.missing)))
        if self.rest is not None:
            lines.append(yaml_text.entry("rest", self.entry(self.rest)))
        if self.columns:
            lines.append("columns:")
        lines += [yaml_text.entry(c.name, self.entry(c), "  ") for c in self.columns]
        return "\n".join(lines) + "\n"

    def entry(self, column: Column) -> str | dict[str, Any]:
        """Return what the types file says of one of this schema's columns, as nested values."""
        entry: dict[str, Any] = {}
        if column.type is not None:
            entry["type"] = column.moment or str(column.type)
        if column.role is not Role.FEATURE:
            entry["role"] = str(column.role)
        if column.levels is not None:
            entry["levels"] = list(column.levels)
        if column.aliases:
            named = dict.fromkeys(level for _, level in column.aliases)
            entry["aliases"] = {
                level: [text for text, own in column.aliases if own == level] for level in named
            }
        if column.transform is not None:
            entry["transform"] = str(column.transform)
        if column.reflect is not None:
            entry["reflect"] = column.reflect
        if column.bounds != (None, None):
            entry["bounds"] = [
                limit if limit is None or column.moments is None else column.moments.text(limit)
                for limit in column.bounds
            ]
        if column.impute_censored:
            entry["impute"] = "censored"
        if column.missing != self.missing:
            entry["missing"] = _codes_out(column.missing)
        for key in _PLAIN:
            if (value := getattr(column, key)) is not None:
                entry[key] = value
        if column.seen_as:
            entry["as"] = list(column.seen_as)
        if column.percent:
            entry["percent"] = True
        # A word alone says a type or a role.
        return next(iter(entry.values())) if set(entry) in ({"type"}, {"role"}) else entry

    def _check_matched(
        self,
        names: Sequence[str],
        exact: Mapping[str, Column],
        patterns: Sequence[tuple[Column, re.Pattern[str]]],
    ) -> None:
        matching = {c.name for c, pattern in patterns if any(map(pattern.match, names))}
        for column in self.columns:
            if column.name in exact or column.name in matching:
                continue
            if is_pattern(column.name):
                raise SchemaError(
                    f"the pattern '{column.name}' matches no column of the table",
                    file=self.file,
                    hint=f"The table has {_sample(names)}.",
                )
            raise SchemaError(
                "the table has no such column",
                file=self.file,
                column=column.name,
                hint=did_you_mean(column.name, names) or f"The table has {_sample(names)}.",
            )

    def _uncovered(self, name: str, names: Sequence[str]) -> SchemaError:
        return SchemaError(
            "the types file has no entry for this column of the table",
            file=self.file,
            column=name,
            expected=f"an entry for each of its {len(names)} columns",
            hint=f"Add a line such as `{yaml_text.scalar(name)}: real`, "
            "or `rest: ignore` above `columns:` to leave out all that are not named.",
        )

    def _check_roles(self, columns: Sequence[Column], where: str) -> None:
        """Raise SchemaError when a role that stands once is held twice, or a triplet is torn."""
        holders: dict[Role, str] = {}
        for column in columns:
            if column.role in _ONCE and column.role in holders:
                raise SchemaError(
                    f"two columns have role {column.role}",
                    file=self.file,
                    value=f"'{holders[column.role]}' and '{column.name}'",
                    expected="one",
                )
            holders.setdefault(column.role, column.name)
        if not any(c.modelled or c.role is Role.VALUE for c in columns):
            raise SchemaError(
                f"no column of {where} is modelled: all are {_roles_of(columns)}",
                file=self.file,
                expected="at least one column with a type",
                hint="Give a column a type, for example `age: count`.",
            )
        present = [role for role in _TRIPLET if role in holders]
        if present and len(present) < len(_TRIPLET):
            absent = next(role for role in _TRIPLET if role not in holders)
            raise SchemaError(
                f"a column has role {present[0]}, but none has role {absent}",
                file=self.file,
                expected="roles row, column and value together, for a table of triplets",
            )

    def _check_trials(self, columns: Sequence[Column]) -> None:
        names = [column.name for column in columns]
        for column in columns:
            if column.binomial and column.trials not in names:
                raise SchemaError(
                    f"`trials` names '{column.trials}', which the table does not have",
                    file=self.file,
                    column=column.name,
                    hint=did_you_mean(str(column.trials), names),
                )


def is_pattern(name: str) -> bool:
    """Return whether a name of the types file may stand for many columns."""
    return any(char in name for char in "*?[")


def read_schema(path: str | Path) -> Schema:
    """Return the schema in a types file (UTF-8 YAML), or in standard input when it is `-`.

    Raises
    ------
    SchemaError
        The file cannot be read, is not UTF-8 YAML, or says something wrong.
    """
    file = str(path)
    hint = "`glfm types DATA -o types.yaml` writes a types file from a table."
    try:
        if file == "-":
            file, content = "standard input", sys.stdin.buffer.read(_LONGEST_FILE + 1)
        else:
            with Path(path).open("rb") as stream:
                content = stream.read(_LONGEST_FILE + 1)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise SchemaError(problem, file=file, hint=hint) from None
    if b"\0" in content or len(content) > _LONGEST_FILE:
        raise SchemaError("is not a types file", file=file, expected="YAML text", hint=hint)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SchemaError(
            f"line {line} is not UTF-8 text",
            file=file,
            value=f"byte 0x{content[error.start]:02x}",
            hint="Save the types file as UTF-8.",
        ) from None
    return Schema.from_yaml(text, file=file)


def _parse(tree: Any, file: str | None) -> Schema:
    """Return the checked schema of a whole types file, given as nested text."""
    if not isinstance(tree, Mapping):
        raise SchemaError(
            "is not a types file",
            file=file,
            value=yaml_text.describe(tree),
            expected="a mapping with `columns:`",
            hint="`glfm types DATA -o types.yaml` writes a types file from a table.",
        )
    for key in tree:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) or (
                f"Columns are named below `columns:`, indented: `  {yaml_text.scalar(key)}: real`."
            )
            raise SchemaError(
                "unknown key", file=file, value=f"'{key}'", expected=listed(_KEYS), hint=hint
            )
    if tree.get("glfm", VERSION) != VERSION:
        raise SchemaError(
            "this version of the format is not known",
            file=file,
            value=f"glfm: {tree['glfm']}" if isinstance(tree["glfm"], str) else "no number",
            expected=f"glfm: {VERSION}",
        )
    whole = ColumnParser(REST, file, (), shown=None)
    missing = whole.codes(tree.get("missing", []))
    rest = None
    if "rest" in tree:
        rest = ColumnParser(REST, file, missing, shown="rest").parse(tree["rest"])
    entries = tree.get("columns", {} if rest is not None else "")
    if not isinstance(entries, Mapping) or not (entries or rest):
        raise SchemaError(
            "`columns`" if "columns" in tree else "`columns` is missing",
            file=file,
            value=yaml_text.describe(entries) if "columns" in tree else None,
            expected="a mapping from column names to types",
            hint="For example `columns:`, then, indented, `  age: count`.",
        )
    columns = tuple(
        ColumnParser(name, file, missing, shown=name).parse(entry)
        for name, entry in entries.items()
    )
    schema = Schema(columns, rest, missing, file)
    schema._check_roles(columns if rest is None else (*columns, rest), "the types file")
    return schema


def _codes_out(codes: Sequence[MissingCode]) -> list[Any]:
    return [c.text if c.impute else {"value": c.text, "impute": False} for c in codes]


def _sample(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in islice(names, 6))
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _roles_of(columns: Sequence[Column]) -> str:
    return listed(sorted({str(column.role) for column in columns})) if columns else "missing"


def _as_text(value: Any) -> Any:
    """Return nested Python values as the nested text a YAML file of them would give."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return _as_text(value.tolist())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, Mapping):
        texts = {_as_text(key): _as_text(item) for key, item in value.items()}
        if len(texts) < len(value):
            raise SchemaError("two names are the same once written as text")
        return texts
    if isinstance(value, Sequence):
        return [_as_text(item) for item in value]
    raise SchemaError(
        value=f"a {type(value).__name__}", expected="text, a number, a list or a mapping"
    )
