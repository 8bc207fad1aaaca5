"""An exploration as files in a folder: tables, and the object of `--json`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from glfm_cli.errors import OutputError, UsageError
from glfm_cli.exploration.matrix_result import MatrixExploration
from glfm_cli.exploration.result import Exploration
from glfm_cli.io import atomic_write, write_table
from glfm_cli.io.files import check_writable

FORMATS = ("csv", "parquet")


def check_format(format: str) -> str:
    """Return the format of tables, or raise UsageError."""
    if format not in FORMATS:
        raise UsageError("--format", value=format, expected=" or ".join(FORMATS))
    return format


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Raise OutputError, before long work, when the folder cannot be written to or made."""
    path = Path(folder)
    if path.is_dir():
        check_writable(path / "exploration.json")
        return
    if path.exists():
        raise OutputError("is a file", file=str(path), expected="a folder, or a free name")
    check_writable(path)


def write_files(
    found: Exploration | MatrixExploration, folder: str | os.PathLike[str], format: str = "csv"
) -> list[Path]:
    """Write every table and `exploration.json` into a folder, which is made when missing.

    Returns
    -------
    list of Path
        What was written.
    """
    path = Path(folder)
    check_format(format)
    path.mkdir(exist_ok=True)
    written = []
    for name, table in found.tables().items():
        target = path / f"{name}.{format}"
        write_table(table, target)
        written.append(target)
    target = path / "exploration.json"
    with atomic_write(target, "w") as file:
        file.write(json.dumps(found.to_dict(), allow_nan=False, indent=1) + "\n")
    return [*written, target]
