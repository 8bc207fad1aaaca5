"""A folder of files as other programs write them: each is read, completed and written back.

    python benchmarks/files.py FOLDER

Writes one table of a survey (id, height, weight, mood, town, day, a code; a tenth of the cells
missing) by pandas, polars, pyarrow, DuckDB, SQLite, pyreadstat, openpyxl and Python's csv module,
and by LibreOffice and R (with haven and foreign) where these are installed, in the dialects,
encodings, locales and types that each has. Then guesses the types of each file,
completes it with them, writes it back in its own format (of those that are only read, in another),
and checks that every cell that was there is as it was: of text the same characters, else the same
value and type. Prints a row a kind of file, and what went wrong.
"""

from __future__ import annotations

import csv
import gzip
import shutil
import sqlite3
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat

from glfm_cli import guess_schema, impute, read_table, write_table

ROWS = 60
SHORT = {"chains": 1, "warmup": 10, "draws": 10, "seed": 1}


class Made(NamedTuple):
    """A file: what wrote it, what kind it is, how to read it, and where it is written back."""

    program: str
    kind: str
    source: str
    back: str


def survey(seed: int = 1) -> pd.DataFrame:
    """Return the table, missing cells None."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=ROWS)
    frame = pd.DataFrame(
        {
            "id": np.arange(1, ROWS + 1),
            "height": np.round(172 + 8 * z + rng.normal(size=ROWS), 1),
            "weight": np.round(70 + 9 * z + 3 * rng.normal(size=ROWS), 2),
            "visits": rng.poisson(2.0 + (z > 0)),
            "mood": np.array(["low", "mid", "high"])[np.clip(np.round(1 + z), 0, 2).astype(int)],
            "town": np.array(["Oslo", "Köln", "São Paulo"])[rng.integers(0, 3, ROWS)],
            "day": [date(2024, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 300, ROWS)],
        }
    ).astype(object)
    for name in frame.columns[1:]:
        frame.loc[rng.random(ROWS) < 0.1, name] = None
    return frame


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return it with the types that pandas gives its columns."""
    return frame.infer_objects().assign(day=pd.to_datetime(frame["day"]))


# Text ------------------------------------------------------------------------------------------


def number(value: Any, decimal: str, group: str) -> str:
    """Return a number as a locale writes it."""
    text = f"{value:,.2f}" if isinstance(value, float) else str(value)
    return text.replace(",", "\0").replace(".", decimal).replace("\0", group)


def texts(frame: pd.DataFrame, decimal: str, group: str, day: str, gap: str) -> list[list[str]]:
    """Return the cells as a locale writes them; weights in grams, so that there are thousands."""
    rows = []
    for row in frame.assign(weight=frame["weight"].map(lambda w: w and w * 1000)).itertuples():
        cells = []
        for value in row[1:]:
            if value is None:
                cells.append(gap)
            elif isinstance(value, date):
                cells.append(value.strftime(day))
            elif isinstance(value, str):
                cells.append(value)
            else:
                cells.append(number(value, decimal, group if isinstance(value, float) else ""))
        rows.append(cells)
    return rows


LOCALES = {
    "en_US": (",", ".", ",", "%m/%d/%Y"),
    "de_DE": (";", ",", ".", "%d.%m.%Y"),
    "fr_FR": (";", ",", "\u202f", "%d/%m/%Y"),
    "de_CH": (";", ".", "’", "%d.%m.%Y"),
}
ENCODINGS = {"utf-8": "utf-8", "utf-8 with a mark": "utf-8-sig", "UTF-16": "utf-16"}


def of_text(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield files of text by the csv module: four locales in three encodings, and dialects."""
    for locale, (delimiter, decimal, group, day) in LOCALES.items():
        for shown, encoding in ENCODINGS.items():
            name = f"{locale}-{encoding}.csv"
            with (folder / name).open("w", encoding=encoding, newline="") as file:
                writer = csv.writer(file, delimiter=delimiter)
                writer.writerow(frame.columns)
                writer.writerows(texts(frame, decimal, group, day, ""))
            yield Made("csv", f"{locale}, {shown}", name, f"back-{name}")
    plain = [list(frame.columns), *texts(frame, ".", "", "%Y-%m-%d", "NA")]
    for name, kind, options, encoding, above in (
        ("quoted.csv", "all quoted", {"quoting": csv.QUOTE_ALL}, "utf-8", ""),
        ("tabs.tsv", "tabs", {"dialect": "excel-tab"}, "utf-8", ""),
        ("bars.txt", "bars", {"delimiter": "|"}, "utf-8", ""),
        ("unix.csv", "LF", {"lineterminator": "\n"}, "utf-8", ""),
        ("windows.csv", "Windows-1252", {}, "cp1252", ""),
        ("latin.csv", "Latin-1", {"delimiter": ";"}, "latin-1", ""),
        ("sep.csv", "a line sep=;", {"delimiter": ";"}, "utf-8", "sep=;\r\n"),
        ("title.csv", "a title above", {}, "utf-8", "Survey of 2024\r\n\r\n"),
    ):
        with (folder / name).open("w", encoding=encoding, newline="") as file:
            file.write(above)
            csv.writer(file, **options).writerows(plain)  # type: ignore[arg-type]
        yield Made("csv", kind, name, f"back-{name}")
    body = (folder / "unix.csv").read_bytes()
    (folder / "packed.csv.gz").write_bytes(gzip.compress(body))
    with zipfile.ZipFile(folder / "packed.zip", "w") as archive:
        archive.writestr("unix.csv", body)
    for name in ("packed.csv.gz", "packed.zip"):
        yield Made("csv", Path(name).suffix, name, f"back-{name}")


def of_pandas(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what pandas writes."""
    data = typed(frame)
    written: dict[str, tuple[str, Callable[[Path], object]]] = {
        "index.csv": ("CSV with its index", lambda p: data.to_csv(p)),
        "pd.csv": ("CSV, missing as NA", lambda p: data.to_csv(p, index=False, na_rep="NA")),
        "decimal.csv": ("CSV, decimal=','", lambda p: data.to_csv(p, sep=";", decimal=",")),
        "pd.csv.gz": ("CSV, gzip", lambda p: data.to_csv(p, index=False)),
        "pd.xlsx": ("Excel", lambda p: data.to_excel(p, index=False)),
        "pd.parquet": ("Parquet", lambda p: data.to_parquet(p)),
        "snappy.parquet": ("Parquet with its index", lambda p: data.set_index("id").to_parquet(p)),
        "zstd.parquet": ("Parquet, zstd", lambda p: data.to_parquet(p, compression="zstd")),
        "pd.feather": ("Feather", lambda p: data.to_feather(p)),
        "pd.dta": ("Stata 118", lambda p: stata(data).to_stata(p, version=118)),
        "old.dta": ("Stata 114", lambda p: stata(data, ascii=True).to_stata(p, version=114)),
        "pd.jsonl": ("JSON lines", lambda p: json_lines(data, p)),
    }
    for name, (kind, write) in written.items():
        write(folder / name)
        yield Made("pandas", kind, name, f"back-{name}")
    with sqlite3.connect(folder / "pd.sqlite") as base:
        data.to_sql("survey", base, index=False)
    yield Made("pandas", "SQLite", "pd.sqlite", "back-pd.sqlite?table=survey")


def json_lines(data: pd.DataFrame, path: Path) -> None:
    """Write JSON lines with dates as texts."""
    days = data["day"].dt.strftime("%Y-%m-%d")
    data.assign(day=days).to_json(path, orient="records", lines=True)


def stata(data: pd.DataFrame, *, ascii: bool = False) -> pd.DataFrame:
    """Return texts without nulls, which Stata has not."""
    towns = data["town"].fillna("")
    if ascii:
        towns = towns.str.normalize("NFKD").str.encode("ascii", "ignore").str.decode("ascii")
    return data.assign(mood=data["mood"].fillna("").astype(str), town=towns.astype(str))


def of_polars(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what polars writes."""
    data = pl.from_pandas(typed(frame)).with_columns(pl.col("day").cast(pl.Date))
    levels = data.with_columns(pl.col("mood").cast(pl.Categorical))
    written: dict[str, tuple[str, Callable[[Path], object]]] = {
        "pl.csv": ("CSV", data.write_csv),
        "pl-null.csv": ("CSV, null_value", lambda p: data.write_csv(p, null_value="null")),
        "pl.tsv": ("tabs", lambda p: data.write_csv(p, separator="\t")),
        "pl.parquet": ("Parquet", data.write_parquet),
        "pl-levels.parquet": ("Parquet, categorical", levels.write_parquet),
        "pl-lz4.parquet": ("Parquet, lz4", lambda p: data.write_parquet(p, compression="lz4")),
        "pl.arrow": ("Arrow IPC", data.write_ipc),
        "pl-stream.arrow": ("Arrow stream", data.write_ipc_stream),
        "pl.ndjson": ("JSON lines", data.write_ndjson),
    }
    for name, (kind, write) in written.items():
        write(folder / name)
        yield Made("polars", kind, name, f"back-{name}")


def of_arrow(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what pyarrow writes: its types."""
    table = pa.Table.from_pandas(typed(frame), preserve_index=False)
    table = table.set_column(6, "day", table["day"].cast(pa.date32()))
    narrow = table.set_column(1, "height", table["height"].cast(pa.float32()))
    levels = table.set_column(4, "mood", table["mood"].combine_chunks().dictionary_encode())
    decimals = table.set_column(2, "weight", table["weight"].cast(pa.decimal128(9, 2)))
    for name, kind, content in (
        ("float32.parquet", "Parquet, 32 bits", narrow),
        ("dictionary.parquet", "Parquet, dictionaries", levels),
        ("decimal.parquet", "Parquet, decimals", decimals),
    ):
        pq.write_table(content, folder / name)
        yield Made("pyarrow", kind, name, f"back-{name}")
    feather.write_feather(table, folder / "pa.feather", compression="zstd")
    yield Made("pyarrow", "Feather, zstd", "pa.feather", "back-pa.feather")
    (folder / "parts.parquet").mkdir(exist_ok=True)
    for number in range(3):
        pq.write_table(table.slice(20 * number, 20), folder / f"parts.parquet/{number}.parquet")
    yield Made("pyarrow", "Parquet, a folder", "parts.parquet", "back-parts.parquet")


def of_databases(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what DuckDB writes, its own files and others', and SQLite's."""
    with duckdb.connect(str(folder / "base.duckdb")) as base:
        base.register("given", pl.from_pandas(typed(frame)).to_arrow())
        base.execute("create table survey as select * replace (day::date as day) from given")
        for name, kind, how in (
            ("dd.csv", "CSV", "format csv, header"),
            ("dd-bar.csv", "CSV, bars", "format csv, header, delimiter '|', force_quote *"),
            ("dd.parquet", "Parquet", "format parquet"),
            ("dd.jsonl", "JSON lines", "format json"),
        ):
            base.execute(f"copy survey to '{folder / name}' ({how})")
            yield Made("DuckDB", kind, name, f"back-{name}")
    yield Made("DuckDB", "its database", "base.duckdb", "back-base.duckdb?table=survey")
    query = "base.duckdb?query=select * from survey where id > 5"
    yield Made("DuckDB", "a query", query, "back-query.parquet")
    with sqlite3.connect(folder / "base.db") as lite:
        lite.execute(
            "create table survey(id integer, height real, weight real, visits integer, "
            "mood text, town text, day text)"
        )
        cells = frame.assign(day=frame["day"].map(lambda d: d and str(d))).to_numpy().tolist()
        lite.executemany("insert into survey values (?, ?, ?, ?, ?, ?, ?)", cells)
        lite.execute("create table other(x)")
    yield Made("SQLite", "one table of two", "base.db?table=survey", "back-base.db?table=survey")
    query = "base.db?query=select id, height, mood from survey"
    yield Made("SQLite", "a query", query, "back-q.parquet")


def of_statistics(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what pyreadstat writes: SPSS, Stata and SAS, with labels and missing values."""
    data = stata(typed(frame)).assign(day=frame["day"])
    data["visits"] = data["visits"].astype(float)
    codes = data.assign(mood=frame["mood"].map({"low": 1.0, "mid": 2.0, "high": 3.0}).astype(float))
    labels = {"mood": {1.0: "low", 2.0: "mid", 3.0: "high"}}
    names = {"height": "Height in cm", "mood": "How are you?"}
    refused = codes.assign(visits=codes["visits"].mask(codes.index % 11 == 3, 99.0))
    written: dict[str, tuple[str, Callable[[Path], object]]] = {
        "plain.sav": ("SPSS", lambda p: pyreadstat.write_sav(data, p)),
        "packed.zsav": ("SPSS, packed", lambda p: pyreadstat.write_sav(data, p, compress=True)),
        "labels.sav": (
            "SPSS, value labels",
            lambda p: pyreadstat.write_sav(
                codes, p, variable_value_labels=labels, column_labels=names,
                variable_measure={"mood": "ordinal"},
            ),
        ),
        "missing.sav": (
            "SPSS, user-missing values",
            lambda p: pyreadstat.write_sav(refused, p, missing_ranges={"visits": [99]}),
        ),
        "plain.dta": ("Stata 118", lambda p: pyreadstat.write_dta(data, p)),
        "labels.dta": (
            "Stata, value labels",
            lambda p: pyreadstat.write_dta(
                codes, p, variable_value_labels=labels, column_labels=names
            ),
        ),
        "v13.dta": ("Stata 13", lambda p: pyreadstat.write_dta(data, p, version=13)),
        "plain.xpt": ("SAS transport", lambda p: pyreadstat.write_xport(data, p)),
        "v5.xpt": (
            "SAS transport 5",
            lambda p: pyreadstat.write_xport(data, p, file_format_version=5),
        ),
    }  # fmt: skip
    for name, (kind, write) in written.items():
        write(folder / name)
        back = f"back-{name}".replace(".xpt", ".sav")
        yield Made("pyreadstat", kind, name, back)


def of_workbooks(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what openpyxl writes: a title, a second sheet, units, dates with a time."""
    rows = [list(frame.columns), *frame.to_numpy().tolist()]
    for name, kind, above, sheet, behind in (
        ("plain.xlsx", "Excel", [], "Sheet", ""),
        ("title.xlsx", "Excel, a title above", [["Survey of 2024"], []], "Sheet", ""),
        ("second.xlsx", "Excel, the second sheet", [], "Data", "?sheet=Data"),
        ("header.xlsx", "Excel, header in row 4", [["a"], ["b", "c"], []], "Sheet", "?header=4"),
    ):
        book = openpyxl.Workbook()
        page = book.active if sheet == "Sheet" else book.create_sheet(sheet)
        for row in [*above, *rows]:
            page.append(row)
        book.save(folder / name)
        yield Made("openpyxl", kind, name + behind, f"back-{name}")


def of_libreoffice(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what LibreOffice makes of a workbook with formatted cells, as in four locales."""
    program = shutil.which("soffice")
    if program is None:
        return
    book = openpyxl.Workbook()
    page = book.active
    for row in [list(frame.columns), *frame.to_numpy().tolist()]:
        page.append(row)
    for column, style in {"B": "0.0", "C": "#,##0.00", "G": "mm-dd-yy"}.items():
        for cell in page[column][1:]:
            cell.number_format = style  # the last one is the short date of whoever looks at it
            if column == "C" and cell.value is not None:
                cell.value *= 1000
    book.save(folder / "office.xlsx")
    for locale, (delimiter, *_) in LOCALES.items():
        profile = folder / f"profile-{locale}" / "user"
        profile.mkdir(parents=True, exist_ok=True)
        (profile / "registrymodifications.xcu").write_text(PROFILE.format(locale.replace("_", "-")))
        text = f"csv:Text - txt - csv (StarCalc):{ord(delimiter)},34,76,1,,0,false,true"
        for kind, how in (("csv", text), ("ods", "ods"), ("xlsx", "xlsx")):
            if kind != "csv" and locale not in ("en_US", "de_DE"):
                continue
            out = folder / f"office-{locale}"
            command = [program, "--headless", f"-env:UserInstallation=file://{profile.parent}"]
            command += ["--convert-to", how, "--outdir", str(out), str(folder / "office.xlsx")]
            subprocess.run(command, check=True, capture_output=True)
            name = f"office-{locale}/office.{kind}"
            back = f"back-office-{locale}.{kind}"
            yield Made("LibreOffice", f"{kind}, {locale}", name, back)


PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse">
<value>{}</value></prop></item></oor:items>"""


def of_r(frame: pd.DataFrame, folder: Path) -> Iterator[Made]:
    """Yield what R writes: text in its dialects, factors as levels, by haven and foreign."""
    program = shutil.which("Rscript")
    if program is None:
        return
    typed(frame).to_csv(folder / "for-r.csv", index=False)
    for name, kind, code in (
        ("r.csv", "write.csv", "write.csv(d, f)"),
        ("r-names.csv", "write.csv, no row names", "write.csv(d, f, row.names=FALSE)"),
        ("r2.csv", "write.csv2", "write.csv2(d, f, row.names=FALSE)"),
        ("r.tsv", "write.table, tabs", "write.table(d, f, sep='\\t', quote=FALSE)"),
        ("r.txt", "write.table", "write.table(d, f)"),
        ("r-haven.sav", "haven, SPSS", "haven::write_sav(d, f)"),
        ("r-haven.dta", "haven, Stata", "haven::write_dta(d, f)"),
        ("r-haven.xpt", "haven, SAS transport", "d$mood <- m; haven::write_xpt(d, f, name='D')"),
        ("r-foreign.dta", "foreign, Stata 7", "foreign::write.dta(d, f)"),
    ):
        script = (
            f"f <- '{folder / name}'; i <- '{folder / 'for-r.csv'}';"
            "d <- read.csv(i, encoding='UTF-8', na.strings='');"
            "m <- d$mood; d$day <- as.Date(d$day); d$town <- factor(d$town);"
            "d$mood <- factor(d$mood, c('low', 'mid', 'high'), ordered=TRUE);" + code
        )
        subprocess.run([program, "-e", script], check=True, capture_output=True)
        yield Made("R", kind, name, f"back-{name}".replace(".xpt", ".sav"))


# Judging ---------------------------------------------------------------------------------------


def judge(made: Made, folder: Path) -> tuple[int, int]:
    """Complete a file, write it back, and return the cells completed and those left empty.

    Raises AssertionError where a cell that was there is another.
    """
    source, back = f"{folder}/{made.source}", f"{folder}/{made.back}"
    table = read_table(source)
    schema = guess_schema(table).schema
    done = impute(table, schema, **SHORT)
    write_table(done.table, back)
    again = read_table(back)
    assert again.column_names == table.column_names, "other columns"
    assert again.num_rows == table.num_rows, "other rows"
    same_kind = Path(made.source.split("?")[0]).suffix == Path(made.back.split("?")[0]).suffix
    empty = {None, "", "NA", "null"}
    completed = left = 0
    for name in table.column_names:
        old, new = table[name].to_pylist(), again[name].to_pylist()
        gone = [v in empty or v != v or v in codes_of(schema, name) for v in old]
        pairs = [(o, n) for o, n, g in zip(old, new, gone, strict=True) if not g]
        assert all(o == n for o, n in pairs), f"{name}: {next(p for p in pairs if p[0] != p[1])}"
        if same_kind and "sqlite" not in made.back and ".db" not in made.back:
            assert table[name].type == again[name].type, f"{name}: {again[name].type}"
        filled = [n not in empty and n == n for n, g in zip(new, gone, strict=True) if g]
        completed, left = completed + sum(filled), left + len(filled) - sum(filled)
    return completed, left


def codes_of(schema: Any, name: str) -> set[object]:
    """Return what stands for a missing cell of a column, as text and number."""
    column = next(c for c in schema.columns if c.name == name)
    texts = {code.text for code in column.missing}
    return texts | {float(text) for text in texts if text.replace(".", "").isdigit()}


def main() -> None:
    """Print a line a file."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    frame = survey()
    makers = (of_text, of_pandas, of_polars, of_arrow, of_databases, of_statistics, of_workbooks)
    makers += (of_libreoffice, of_r)
    files = good = 0
    for maker in makers:
        for made in maker(frame, folder):
            files += 1
            try:
                completed, left = judge(made, folder)
                said, good = f"{completed} completed, {left} left", good + 1
            except Exception as error:
                said = f"FAILED: {type(error).__name__} {error}"[:150]
            print(f"{made.program:12}{made.kind:28}{made.source[:40]:41}{said}", flush=True)
    print(f"{good} of {files} files")


if __name__ == "__main__":
    main()
