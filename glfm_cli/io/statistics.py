"""Files of SPSS, Stata and SAS, by pyreadstat; those of SPSS and Stata are written, too.

A column all of whose values have labels holds the labels, as a dictionary (ordered where SPSS says
`ordinal`); any other keeps its numbers. User-missing values stay in their cells and are named in
the column's metadata, from where a types file takes them. What Arrow has no place for (codes,
labels, missing values, formats) travels there as well and is written back.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from string import ascii_lowercase
from typing import IO, Any

import pyarrow as pa

from glfm_cli.errors import OutputError, TableError
from glfm_cli.io.csv_read import check_names
from glfm_cli.io.declared import STATISTICS_KEY as KEY
from glfm_cli.io.declared import declare, shown_code
from glfm_cli.io.extras import need
from glfm_cli.io.mixed import cells_of, mixed_column
from glfm_cli.io.texts import check_texts
from glfm_cli.io.variable_names import variable_names

_LABEL = {"sav": 256, "dta": 80}  # characters of a label at most
_SUFFIX = {"sav": ".sav", "dta": ".dta"}
_MOMENTS = (date, datetime, time)
FIRST_DAY = datetime(1582, 10, 14)  # of the calendar of SPSS
MOST_EXACT = 2**53  # below which whole numbers are floats, of which files of SPSS and Stata are
_READERS = {"sav": "read_sav", "dta": "read_dta", "sas": "read_sas7bdat"}


def read(data: bytes, layout: str, file: str, options: Mapping[str, str]) -> pa.Table:
    """Return the table of a file.

    Raises TableError: the file is damaged, or has no rows; UsageError: pyreadstat is not installed.
    """
    pyreadstat = need("pyreadstat", "stats", file)
    reader = "read_xport" if file.lower().endswith(".xpt") else _READERS[layout]
    if data.startswith(b"$FL3"):
        file_suffix = ".zsav"
    else:
        file_suffix = Path(file).suffix
    codes = {"user_missing": True} if layout != "sas" else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table{file_suffix}")
        path.write_bytes(data)
        try:
            columns, meta = getattr(pyreadstat, reader)(str(path), output_format="dict", **codes)
        except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, UnicodeDecodeError):
            raise TableError(
                "cannot be read: it is damaged, cut off or another kind of file",
                file=file,
                hint="Copy or export it again, and check its suffix.",
            ) from None
    names = list(columns)
    if not names or not len(columns[names[0]]):
        raise TableError("has no rows", file=file)
    check_names(names, file)
    arrays, fields = [], []
    for name in names:
        values = [None if value != value else value for value in columns[name]]
        array, field = _column(name, values, meta)
        arrays.append(array)
        fields.append(field)
    about = {KEY: json.dumps({"file_label": meta.file_label or ""}).encode()}
    return pa.table(arrays, schema=pa.schema(fields, metadata=about))


def _column(name: str, values: list[Any], meta: Any) -> tuple[pa.Array, pa.Field]:
    labels = dict(meta.variable_value_labels.get(name, {}))
    gone = _missing(values, meta.missing_ranges.get(name, []))
    if meta.file_format.startswith("dta"):  # texts among numbers are `.a` to `.z`
        gone = set(meta.missing_user_values.get(name, ()))
    kept = {
        "labels": [[code, text] for code, text in labels.items()],
        "ranges": [
            {end: _seconds(value) for end, value in one.items()}
            for one in meta.missing_ranges.get(name, [])
        ],
        "measure": meta.variable_measure.get(name, "unknown"),
        "format": meta.original_variable_types.get(name),
        "type": meta.readstat_variable_types.get(name),
    }
    present = {value for value in values if value is not None and value not in gone}
    named = len(set(labels.values())) == len(labels)
    metadata: dict[bytes, bytes] = {}
    if present and named and present <= set(labels):
        texts = {**{code: shown_code(code) for code in gone}, **labels}
        ordered = kept["measure"] == "ordinal"
        # Missing values last: the levels stand in the order of their codes.
        codes = sorted(texts, key=lambda code: (code in gone, isinstance(code, str), code))
        dictionary = pa.array([texts[code] for code in codes], pa.string())
        place = {code: i for i, code in enumerate(codes)}
        indices = pa.array([None if v is None else place[v] for v in values], pa.int32())
        array = pa.DictionaryArray.from_arrays(indices, dictionary, ordered=ordered)
        kept["codes"] = [[texts[code], code] for code in codes]
    elif gone and any(isinstance(code, str) for code in gone) and not _all_text(present):
        texts_of = [None if v is None else shown_code(v) for v in values]
        array, metadata = mixed_column(values, texts_of)
        kept["codes"] = [[shown_code(code), code] for code in gone]
        texts = {code: shown_code(code) for code in gone}
        kept["moments"] = next((type(v).__name__ for v in present if type(v) in _MOMENTS), None)
    else:
        array, texts = pa.array(values), {code: shown_code(code) for code in gone}
    metadata |= {KEY: json.dumps(kept).encode()}
    metadata |= declare(
        meta.column_names_to_labels.get(name), [texts[c] for c in sorted(gone, key=shown_code)]
    )
    return array, pa.field(name, array.type, metadata=metadata)


def _seconds(value: Any) -> Any:
    """Return a date or time as the number that SPSS keeps, seconds from its first day on."""
    if isinstance(value, time):
        value = datetime.combine(FIRST_DAY, value)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    elif not isinstance(value, datetime):
        return value
    return (value - FIRST_DAY).total_seconds()


def _all_text(values: set[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _missing(values: Sequence[Any], ranges: Sequence[Mapping[str, Any]]) -> set[Any]:
    """Return the values of a column that lie in the ranges that SPSS calls missing."""
    distinct = {value for value in values if value is not None}
    return {
        value
        for value in distinct
        for one in ranges
        if isinstance(value, str) == isinstance(one["lo"], str) and one["lo"] <= value <= one["hi"]
    }


def write(table: pa.Table, file: IO[Any], layout: str, shown: str) -> None:
    """Write a table to an open binary file of SPSS (`sav`) or Stata (`dta`).

    A column whose name the program does not allow has one made from it, and the name as its label.

    Raises OutputError: the format holds no such value; UsageError: pyreadstat or pandas is
        not installed.
    """
    pyreadstat, pandas = need("pyreadstat", "stats", shown), need("pandas", "stats", shown)
    check_texts(table, layout, shown)
    about = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    frame: dict[str, Any] = {}
    options: dict[str, Any] = {
        "column_labels": {},
        "variable_value_labels": {},
        "variable_format": {},
    }
    ranges, measures, letters = {}, {}, {}
    for place, name in enumerate(variable_names(table.column_names, layout)):
        field = table.schema.field(place)
        metadata = field.metadata or {}
        kept = json.loads(metadata.get(KEY, b"{}"))
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            raise OutputError(
                f"a {_SUFFIX[layout]} file cannot hold values of type {field.type}",
                file=shown,
                column=field.name,
                hint="Write to a .parquet or .arrow file instead.",
            )
        values, labels = _values(table.column(place).combine_chunks(), field, kept)
        if b"glfm.label" in metadata:
            options["column_labels"][name] = metadata[b"glfm.label"].decode()
        elif name != field.name:
            options["column_labels"][name] = field.name[: _LABEL[layout]]
        lettered = set() if kept.get("type") == "string" else {*_letters(labels, kept)}
        if layout == "sav" and kept.get("moments"):  # of which SPSS has no letters
            values = [None if isinstance(v, str) else v for v in values]
            labels, lettered = {}, set()
        elif layout == "sav" and lettered:
            values, labels, ranges[name] = _without_letters(values, labels)
        frame[name] = pandas.Series(values, dtype=_dtype(values, kept.get("type")))
        if labels:
            options["variable_value_labels"][name] = labels
        how = kept.get("format") or "A"
        if how.startswith("%") == (layout == "dta") and not how.startswith(("A", "%s", "str")):
            options["variable_format"][name] = how  # which the other program would not know
        if kept.get("ranges"):
            ranges[name] = kept["ranges"]
        measures[name] = kept.get("measure", "unknown")
        if lettered:  # with labels, also where all such cells were completed
            letters[name] = sorted(lettered)
    options["file_label"] = about.get("file_label", "")
    if layout == "sav":
        options |= {"missing_ranges": ranges, "variable_measure": measures}
    else:
        options |= {"missing_user_values": letters}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table{_SUFFIX[layout]}")
        writer = pyreadstat.write_sav if layout == "sav" else pyreadstat.write_dta
        if layout == "sav" and shown.lower().endswith(".zsav"):
            options["compress"] = True
        try:
            writer(pandas.DataFrame(frame), str(path), **options)
        except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, ValueError) as error:
            raise OutputError(
                f"cannot be written ({' '.join(str(error).split())[:120]})",
                file=shown,
                hint="Write to a .csv or .parquet file instead.",
            ) from None
        file.write(path.read_bytes())


def _without_letters(
    values: Sequence[Any], labels: Mapping[Any, str]
) -> tuple[list[Any], dict[Any, str], list[dict[str, float]]]:
    """Return values and labels with numbers below all others for letters, which SPSS calls missing.

    .a becomes -1, .b -2 and so on where no value is below 0.
    """
    numbers = [v for v in values if isinstance(v, int | float)]
    base = float(min(0, math.floor(min(numbers, default=0))))
    code = {letter: base - n for n, letter in enumerate(ascii_lowercase, 1)}
    shown = {code.get(one, one): text for one, text in labels.items()}
    return [code.get(v, v) for v in values], shown, [{"lo": base - 26, "hi": base - 1}]


def _letters(labels: Mapping[Any, str], kept: Mapping[str, Any]) -> list[str]:
    codes = (*labels, *(code for _, code in kept.get("codes", ())))
    return [code for code in codes if isinstance(code, str)]


def _values(
    column: pa.Array, field: pa.Field, kept: Mapping[str, Any]
) -> tuple[list[Any], dict[Any, str]]:
    """Return the values of a column as its file has them, and their labels."""
    labels = dict(kept.get("labels", ()))
    if pa.types.is_dictionary(field.type):
        column = column.dictionary_decode()
    codes = dict(kept.get("codes", ()))
    values = cells_of(column, field)
    if pa.types.is_dictionary(field.type) and codes:
        free = 1 + max((int(c) for c in codes.values() if not isinstance(c, str)), default=0)
        for text in dict.fromkeys(v for v in values if v is not None and v not in codes):
            codes[text], labels[free] = free, text  # a level that the file did not have
            free += 1
        return [None if v is None else codes[v] for v in values], labels
    if any(isinstance(v, int) and abs(v) >= MOST_EXACT for v in values):
        return [None if v is None else str(v) for v in values], labels  # long ids
    if (kind := kept.get("moments")) is not None:  # and letters of missing values among them
        read = next(one.fromisoformat for one in _MOMENTS if one.__name__ == kind)
        return [v and (codes.get(v) or read(v)) for v in values], labels
    # The writer takes a column of texts, whole and other numbers for one of texts.
    mixed = {type(v) for v in values} >= {str, int}
    return [
        codes.get(v, v) if isinstance(v, str) else float(v) if mixed and v is not None else v
        for v in values
    ], labels


def _dtype(values: Sequence[Any], kind: str | None) -> str:
    """Return the dtype that the writer turns into the type a column had."""
    present = [value for value in values if value is not None]
    if any(not isinstance(value, int | float) or isinstance(value, bool) for value in present):
        return "object"
    whole = all(float(value).is_integer() for value in present)
    if kind in ("int8", "int16", "int32") and whole and len(present) == len(values):
        return kind
    return "float32" if kind == "float" else "float64"
