"""`glfm impute --fit`: complete a table with a fit that was made before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.report import counted, report

if TYPE_CHECKING:
    from glfm_cli.completion import Files, Fitted


@dataclass(frozen=True)
class Asked:
    """The options of the command that have their place beside a fit."""

    estimate: Any
    interval: float
    files: Files
    plot: Path | None
    unseen: Any
    seed: int | None
    strict: bool
    as_json: bool
    dry_run: bool


def complete_with_fit(
    console: Console, source: str, folder: Path, asked: Asked, workers: int
) -> int:
    """Complete the table in a file and return the exit status."""
    from glfm_cli.completion import Fitted, check_multiple, complete
    from glfm_cli.io import read_table
    from glfm_cli.store import load_fit

    fitted = Fitted.of_fit(load_fit(folder))
    table = read_table(source)
    file = "standard input" if source == "-" else source
    data = fitted.encode(table, unseen=asked.unseen, file=file)
    n_draws = fitted.posterior.n_draws if fitted.posterior.weights is None else None
    check_multiple(asked.files.multiple, asked.estimate, n_draws)
    asked.files.check(table, data)
    if asked.plot is not None:
        from glfm_cli.plots import check_figure

        check_figure(asked.plot)
    if asked.dry_run:
        _show(console, fitted, data, asked.as_json)
        return ExitStatus.OK
    seed = fitted.seed if asked.seed is None else asked.seed
    completion = complete(
        fitted.run(data, seed=seed, threads=workers),
        data,
        table,
        seed=seed,
        estimate=asked.estimate,
        interval=asked.interval,
        intervals=asked.files.cells is not None,
        threads=workers,
    )
    versions = asked.files.write(completion, table)
    if asked.plot is not None:
        from glfm_cli.plots import plot_completion

        plot_completion(completion, asked.plot)
    return report(console, completion, versions, asked.strict, asked.as_json)


def _show(console: Console, fitted: Fitted, data: Any, as_json: bool) -> None:
    """Say what would be done."""
    missing = {encoded.column.name: int(encoded.requested.sum()) for encoded in data.columns}
    draws = fitted.posterior.n_draws
    if as_json:
        said = {"rows": data.n_rows, "modelled_columns": len(missing)}
        said |= {"cells_to_complete": sum(missing.values()), "draws": draws}
        console.result(json.dumps(said | {"gaps": missing}) + "\n")
        return
    lines = [
        f"{counted(data.n_rows, 'row')}, {counted(len(missing), 'modelled column')}",
        f"{counted(sum(missing.values()), 'cell')} to complete",
        *(f"  {name}: {count}" for name, count in missing.items() if count),
        f"with the {counted(draws, 'draw')} of the fit",
    ]
    for line in lines:
        console.result(line + "\n")
    for text in (*fitted.notes, *data.notes):
        console.warn(text)
