"""`glfm types`: guess a types file from a table."""

from __future__ import annotations

import typer

from glfm_cli.cli.console import Console
from glfm_cli.cli.options import Data, Output, Quiet

EXAMPLE = "glfm types sample_data/pbc.csv"


def run(ctx: typer.Context, data: Data, output: Output = None, quiet: Quiet = False) -> None:
    """Guess a types file from a table.

    A types file says what each column means. Each guess has its reason beside it: check and
    correct the file, then pass it to `glfm impute --types`.
    """
    from glfm_cli.errors import OutputError
    from glfm_cli.guess import guess_schema
    from glfm_cli.io import atomic_write, naming_sheets, notes_of, read_table, same_file

    console: Console = ctx.obj
    console.quiet = quiet
    if output is not None and same_file(output, data):
        raise OutputError(
            "the output is the table itself",
            file=str(output),
            hint="Choose another name, for example `-o types.yaml`.",
        )
    table = read_table(data)
    for note in notes_of(table):
        console.warn(note)
    with naming_sheets(data):
        guess = guess_schema(table)
    text = guess.to_yaml("standard input" if data == "-" else data)
    if output is None or str(output) == "-":
        console.file(text)
        return
    with atomic_write(output, "w") as file:
        file.write(text)
    modelled = sum(column.modelled for column in guess.schema.columns)
    console.note(f"{output}: {modelled} of {len(guess.schema.columns)} columns will be modelled.")
