"""Two hundred kinds of bad input, in rejected.yaml: a clear line, status 2, no file touched."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

TABLE = "a,b\n1,x\n,y\n3,\n2,x\n"
TYPES = "columns: {{a: {}, b: categorical}}\n"
CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("rejected.yaml").read_text(encoding="utf-8")
)


def zipped(*names: str) -> bytes:
    """Return an archive of the table under some names."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in names:
            archive.writestr(name, TABLE)
    return held.getvalue()


def workbook(path: Path) -> None:
    """Write a workbook with the table in its only sheet."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, "x"], [2, "y"], [None, "x"]):
        book.active.append(row)
    book.save(path)


def database(path: Path) -> None:
    """Write a database of two tables."""
    base = sqlite3.connect(path)
    for name in "tu":
        base.execute(f"create table {name}(a, b)")
    base.execute("insert into t values (1, 'x')")
    base.commit()
    base.close()


MADE = {
    "zip named xlsx": zipped("t.csv"),
    "zip of two": zipped("t.csv", "u.csv"),
    "zip of none": zipped(),
    "zip cut": zipped("t.csv")[:40],
    "gzip named csv": gzip.compress(TABLE.encode()),
    "gz cut": gzip.compress(TABLE.encode() * 500)[:60],
    "bzip named csv": bz2.compress(TABLE.encode()),
    "xz named csv": lzma.compress(TABLE.encode()),
    "parquet magic named csv": b"PAR1" + bytes(20) + b"PAR1",
    "pdf named csv": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
}
MAKERS = {"xlsx": workbook, "sqlite": database, "folder": Path.mkdir, "nothing": lambda path: None}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_clear_line(desk: Any, name: str) -> None:
    case = CASES[name]
    given = case.get("file", "t.csv")
    path = desk.folder / given.split("?")[0]
    if (made := case.get("made")) in MAKERS:
        MAKERS[made](path)
    else:
        desk.put(path.name, MADE[made] if made else case.get("table", TABLE))
    types = case.get("types", TYPES.format(case.get("a", "real")))
    desk.put("types.yaml", b"columns: {a: real, b: caf\xe9}\n" if types == "latin" else types)
    said = desk.check_rejected(case["error"], desk.impute, *case.get("options", ()), table=given)
    assert case.get("hint", "") in said.stderr
