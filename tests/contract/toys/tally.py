"""A toy command, `glfm tally`: how many cells of each column are empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import typer

from glfm_cli.cli.options import Data, Output, Quiet

EXAMPLE = "glfm tally sample_data/airquality.csv"


@dataclass(frozen=True)
class Tally:
    """Empty cells of each column, by its name."""

    empty: dict[str, int]

    def to_table(self) -> pa.Table:
        return pa.table({"column": list(self.empty), "empty": list(self.empty.values())})


def tally(table: str | Path) -> Tally:
    """Return how many cells of each column of a table are empty, null or the text NA."""
    from glfm_cli.io import read_table

    read = read_table(table)
    gone = (None, "", "NA")
    columns = zip(read.column_names, read.columns, strict=True)
    return Tally({name: sum(cell in gone for cell in cells.to_pylist()) for name, cells in columns})


def run(ctx: typer.Context, data: Data, output: Output = None, quiet: Quiet = False) -> None:
    """Count the empty cells of each column."""
    from glfm_cli.io import write_table

    ctx.obj.quiet = quiet
    write_table(tally(data).to_table(), output or "-")
