"""The rules by which the columns of a table are guessed, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.errors import TableError
from glfm_cli.guess.codes import AMONG_NUMBERS, GAP_WORDS, gap_words, writes_none
from glfm_cli.guess.codes import declared as missing_by_file
from glfm_cli.guess.dependence import evidence_of
from glfm_cli.guess.hints import hints_of
from glfm_cli.guess.hints.asked import skips_of
from glfm_cli.guess.judge import judge
from glfm_cli.guess.notes import notes_of
from glfm_cli.guess.numerals import recognise
from glfm_cli.guess.panel_roles import as_panel
from glfm_cli.guess.profile import Kind, Profile, empty_rows, profile, runs_of
from glfm_cli.guess.series import as_series
from glfm_cli.guess.triplets import as_triplets
from glfm_cli.guess.types_file import Guess
from glfm_cli.guess.verdict import Verdict
from glfm_cli.io.arrow_types import computable_table
from glfm_cli.io.declared import declared
from glfm_cli.io.dialect import dialect_of
from glfm_cli.io.units import CURRENCIES, labels_of, unit_in, units_of
from glfm_cli.schema import MissingCode, Role, Schema
from glfm_cli.schema.phrases import is_number
from glfm_cli.schema.text import scalar

MANY_COLUMNS = 3  # that have a code from which it is one of the whole table


def guess_columns(table: pa.Table, *, features: bool) -> Guess:
    """Guess what each column means; of `features` few are ids, and the table holds no triplets.

    Raises TableError: as `guess_schema`.
    """
    names = table.column_names
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise TableError("two columns of the table have this name", column=repeated[0])
    if not names or not table.num_rows:
        raise TableError("the table has no rows", expected="at least one row of data")
    table = computable_table(table)
    dialect = dialect_of(table)
    units, labels = units_of(table), labels_of(table)
    empty = empty_rows(table)
    columns = [
        replace(
            profile(field.name, table.column(i)),
            declared=declared(field)._replace(label=labels[field.name])
            if field.name in labels
            else declared(field),
            unit=unit_in(units.get(field.name, "")),
            runs=runs_of(table.column(i)),
            n_empty=empty.size,
            is_feature=features,
        )
        for i, field in enumerate(table.schema)
    ]
    columns = recognise(columns, None if dialect is None else dialect.delimiter)
    if writes_none(columns):
        columns = [replace(column, none_is_gap=True) for column in columns]
    evidence = evidence_of(table, columns)
    columns = [replace(one, evidence=evidence.get(i)) for i, one in enumerate(columns)]
    verdicts = [judge(one) for one in columns]
    verdicts = _as_elsewhere(verdicts, columns)
    if not features:
        triplets = as_triplets(table, columns, verdicts)
        verdicts = triplets or as_panel(table, columns, as_series(table, columns, verdicts))
    if not any(v.column.modelled or v.column.role is Role.VALUE for v in verdicts):
        first = next((v for v in verdicts if v.column.role is Role.IGNORE), verdicts[0])
        raise TableError(
            f"no column of the table can be modelled: {scalar(first.column.name)} is "
            + (first.reason if first.column.role is Role.IGNORE else f"an id ({first.reason})"),
            expected="at least one column of numbers or categories that vary",
        )
    return Guess(
        _schema(verdicts, columns),
        {verdict.column.name: verdict.reason for verdict in verdicts},
        table.num_rows,
        hints_of(table, columns, verdicts),
        notes_of(table, verdicts, empty),
        skips_of(table, columns, verdicts),
        _codes(verdicts, columns),
    )


def _as_elsewhere(verdicts: Sequence[Verdict], profiles: Sequence[Profile]) -> list[Verdict]:
    """Return guesses in which words such as n.d. are no levels where they are codes elsewhere.

    So they are among the numbers of several columns.
    """
    numeric = [verdict.column for verdict in verdicts if verdict.column.numeric]
    times = Counter(code for column in numeric for code in column.missing)
    shared = {code.text: code for code, n in times.items() if n >= MANY_COLUMNS}
    known = {text: code for text, code in shared.items() if text.lower() in AMONG_NUMBERS}
    found = list(verdicts)
    for i, (verdict, whole) in enumerate(zip(verdicts, profiles, strict=True)):
        gone = [text for text in verdict.column.levels or () if text in known]
        if not gone or not (verdict.column.modelled and whole.kind is Kind.TEXT):
            continue
        rest = judge(whole.keep(np.array([text not in gone for text in whole.words()])))
        if rest.column.levelled and rest.column.modelled:
            missing = (*rest.column.missing, *(known[text] for text in gone))
            shown = ", ".join(map(scalar, gone))
            reason = f"{rest.reason}; {shown} taken as among the numbers of other columns"
            found[i] = Verdict(replace(rest.column, missing=missing), reason)
    return found


def _codes(
    verdicts: Sequence[Verdict], profiles: Sequence[Profile]
) -> dict[str, tuple[Sequence[str], int]]:
    """Return the values guessed to stand for missing cells of a column, and how many have them."""
    found: dict[str, tuple[Sequence[str], int]] = {}
    for verdict, whole in zip(verdicts, profiles, strict=True):
        codes = [code.text for code in verdict.column.missing if code.impute]
        if not codes or not verdict.column.modelled:
            continue
        guessed = np.asarray(pc.is_in(whole.texts, value_set=pa.array(codes, pa.string())))
        clear = gap_words(whole)
        if verdict.column.unit in CURRENCIES:
            clear &= ~whole.matches("^[-–—]$")  # which is 0 of accounts
        column = whole.keep(guessed & ~clear & ~missing_by_file(whole))
        if column.n_distinct:
            found[column.name] = column.words(), column.n_observed
    return found


def _schema(verdicts: Sequence[Verdict], profiles: Sequence[Profile]) -> Schema:
    """Return the schema of all guesses, what is missing in any column listed once for all."""
    words = _shared_codes(verdicts, profiles)
    shared = tuple(MissingCode(word) for word in words)
    columns = []
    for verdict in verdicts:
        column = verdict.column
        own = column.missing
        safe = not set(column.levels or ()) & set(words)
        # A column without codes of its own goes by the table's list, when that harms no level.
        if safe and set(own) <= set(shared):
            column = replace(column, missing=shared)
        columns.append(column)
    return Schema(tuple(columns), missing=shared)


def _shared_codes(verdicts: Sequence[Verdict], profiles: Sequence[Profile]) -> list[str]:
    """Return what stands for a missing cell in every column: words, and numbers of many columns.

    A number that is a value of some column is a code of others alone.
    """
    codes = [{c.text for c in verdict.column.missing if c.impute} for verdict in verdicts]
    times = Counter(text for own in codes for text in own)
    values = {
        text
        for own, profile in zip(codes, profiles, strict=True)
        for text in {*times} - own
        if text in profile.words() or (is_number(text) and float(text) in profile.numbers)
    }
    found = {
        code.text: None
        for verdict in verdicts
        for code in verdict.column.missing
        if code.impute
        and (
            code.text.strip().lower() in GAP_WORDS
            or (times[code.text] >= MANY_COLUMNS and code.text not in values)
        )
    }
    return list(found)
