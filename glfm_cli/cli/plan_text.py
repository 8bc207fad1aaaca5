"""What `--dry-run` says: what a command would do, and about how long it would take."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from glfm_cli.cli.console import Console
from glfm_cli.cli.report import counted

if TYPE_CHECKING:
    from glfm_cli.completion import Session
    from glfm_cli.encoding import Data


def show_plan(
    console: Console,
    session: Session,
    workers: int,
    as_json: bool,
    *,
    explored: Data | None = None,
) -> None:
    """Say what would be done, with the time measured on a few sweeps and the memory needed.

    explored : the table, where it is to be explored and not to be completed
    """
    from glfm_cli.completion import estimate_cost

    plan = session.plan
    forecast = estimate_cost(session.problem, session.data, plan, workers)
    describe_missing_cells, n_missing_cells = "to complete", forecast["cells_to_complete"]
    if explored is not None:
        del forecast["cells_to_complete"]
        forecast["gaps"] = {e.column.name: int((~e.observed).sum()) for e in explored.columns}
        describe_missing_cells, n_missing_cells = "missing", sum(forecast["gaps"].values())
        forecast["cells_missing"] = n_missing_cells
    if as_json:
        console.result(json.dumps(forecast) + os.linesep)
        return
    lines = [
        f"{counted(forecast['rows'], 'row')}, "
        f"{counted(forecast['modelled_columns'], 'modelled column')}, "
        f"{counted(forecast['latent_columns'], 'latent column')}",
        f"{counted(n_missing_cells, 'cell')} {describe_missing_cells}",
        *(f"  {name}: {count}" for name, count in forecast["gaps"].items() if count),
        f"{counted(plan.chains, 'chain')} of {counted(plan.sweeps, 'sweep')}, "
        f"{counted(plan.draws, 'draw')} kept from each, "
        f"{workers} at a time",
        f"about {forecast['seconds']:.0f} s and {forecast['megabytes']:.0f} MB",
    ]
    for line in lines:
        console.result(line + "\n")
    for text in (*session.data.notes, *session.notes):
        console.warn(text)
