"""What `--dry-run` says: what a command would do, and about how long it would take."""

from __future__ import annotations

from typing import Any

from glfm_cli.cli.console import Console
from glfm_cli.errors import counted

MOST_COLUMNS = 100  # that are listed


def show_plan(console: Console, planned: Any, as_json: bool) -> None:
    """Say what a planned task would do; a table's run with the time and the memory it needs.

    planned : anything with `to_dict` and `notes`
    """
    costs = planned.to_dict()
    if as_json:
        console.result_as_json(costs)
        return
    for line in plan_lines(costs):
        console.result(line + "\n")
    for text in planned.notes:
        console.warn(text)


def plan_lines(costs: dict[str, Any]) -> list[str]:
    """Return what would be done, a line for each thing that is known."""
    names = {
        "rows": "row",
        "learnt_rows": "learnt row",
        "modelled_columns": "modelled column",
        "latent_columns": "latent column",
    }
    names |= {"columns": "column", "observed": "observed cell"}
    sizes = [counted(costs[key], name) for key, name in names.items() if key in costs]
    lines = [", ".join(sizes)] if sizes else []
    for key, what in (("cells_to_complete", "to complete"), ("cells_missing", "missing")):
        if key in costs:
            lines.append(f"{counted(costs[key], 'cell')} {what}")
    gaps = [f"  {name}: {count}" for name, count in costs.get("gaps", {}).items() if count]
    lines += gaps[:MOST_COLUMNS]
    if len(gaps) > MOST_COLUMNS:
        lines.append(f"  {counted(len(gaps) - MOST_COLUMNS, 'more column')} (--json has all)")
    if "sweeps" in costs:
        kept = costs["draws"] // costs["chains"]
        line = f"{counted(costs['chains'], 'chain')} of {counted(costs['sweeps'], 'sweep')}, "
        line += f"{counted(kept, 'draw')} kept from each"
        line += f", {costs['threads']} at a time" if "threads" in costs else ""
        more = "; up to {most_chains} chains while estimates are too imprecise"
        lines.append(line + (more.format(**costs) if "most_chains" in costs else ""))
    elif "draws" in costs:
        lines.append(f"with the {counted(costs['draws'], 'draw')} of the fit")
    if "rows_in_a_batch" in costs:
        lines.append(f"completed in batches of {counted(costs['rows_in_a_batch'], 'row')}")
    if "seconds" in costs:
        found = [costs[name] for name in ("seconds", "most_seconds") if name in costs]
        seconds = dict.fromkeys(str(max(1, round(one))) for one in found)
        lines.append(f"about {' to '.join(seconds)} s and {max(1, round(costs['megabytes']))} MB")
    for name, one in costs.get("efforts", {}).items():
        length = f"{counted(one['chains'], 'chain')} of {counted(one['sweeps'], 'sweep')}"
        lines.append(f"  --effort {name}: {length}, {one['seconds']:.1f} s")
    return lines
