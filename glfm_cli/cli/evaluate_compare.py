"""`glfm evaluate --compare`: scores of tables that were completed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from glfm_cli.errors import UsageError

if TYPE_CHECKING:
    from glfm_cli.evaluation import Evaluation


def check_compare(data: list[str], compare: bool, truth: Path | None, masked: Path | None) -> None:
    """Raise UsageError when the arguments of the two ways to evaluate are mixed."""
    if compare and truth is None:
        raise UsageError("--compare needs --truth, the table with the true values")
    if not compare:
        for option, value in (("--truth", truth), ("--masked", masked)):
            if value is not None:
                raise UsageError(f"{option} is for --compare", hint="Add --compare.")
        if len(data) > 1:
            raise UsageError(
                "more than one table",
                value=f"'{data[1]}'",
                expected="one",
                hint="To score completed tables, add --compare and --truth.",
            )


def compared(
    data: list[str],
    truth: Path | None,
    types: Path,
    masked: Path | None,
    reference: str | None,
    output: Path | None,
) -> Evaluation:
    """Score completed tables, and write the scores."""
    from glfm_cli.evaluation import compare_tables
    from glfm_cli.io import check_target, write_table

    assert truth is not None
    tables = dict(zip(names_of(data), data, strict=True))
    evaluation = compare_tables(tables, truth, types, masked=masked, reference=reference)
    if output is not None and str(output) != "-":
        check_target(output, evaluation.to_table())
        write_table(evaluation.to_table(), output)
    return evaluation


def names_of(data: list[str]) -> list[str]:
    """Return what tables are called: file names without suffix, or paths where two are alike."""
    if len(set(data)) < len(data):
        raise UsageError("--compare", value="the same table twice", expected="different tables")
    stems = [Path(name).name.partition(".")[0] or name for name in data]
    return stems if len(set(stems)) == len(stems) else list(data)
