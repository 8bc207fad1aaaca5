"""The files that an exploration becomes: checked before the work, written after it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from glfm_cli.completion import Session, check_traces, run_record, save_record, write_traces
from glfm_cli.errors import OutputError, UsageError
from glfm_cli.exploration.component_result import ComponentExploration
from glfm_cli.exploration.factors import FactorExploration
from glfm_cli.exploration.map_result import MapExploration
from glfm_cli.exploration.request import Request
from glfm_cli.exploration.result import Exploration
from glfm_cli.inference.sampling import Run
from glfm_cli.io import atomic_write, write_table
from glfm_cli.io.files import check_writable

AnyExploration = Exploration | ComponentExploration | MapExploration | FactorExploration
FORMATS = ("csv", "parquet")


@dataclass(frozen=True)
class ExplorationFiles:
    """Where the parts of an exploration go; None for those that nobody asked for.

    folder : gets every table in `format`, and `exploration.json`
    traces : those of the chains, as NetCDF;  record : what makes the run again
    others : what `finish` of `explore` writes, by option; the record hashes them
    """

    folder: Path | None = None
    format: str = "csv"
    traces: Path | None = None
    record: Path | None = None
    others: Mapping[str, Path] = field(default_factory=dict)

    def check(self) -> None:
        """Raise now what writing would raise after the work.

        Raises UsageError, OutputError: a format is not known, or a folder is missing or not
            writable.
        """
        check_format(self.format)
        if self.folder is not None:
            check_folder(self.folder)
        if self.record is not None:
            check_writable(self.record)
        if self.traces is not None:
            check_traces(self.traces)

    def write(self, found: AnyExploration) -> None:
        """Write every table, and the traces."""
        if self.folder is not None:
            write_files(found, self.folder, self.format)
        if self.traces is not None:
            posterior, seed = found.posterior, found.options["seed"]
            traces, model = posterior.traces(), posterior.model.name
            write_traces(self.traces, traces, found.data, model=model, seed=seed)

    def write_record(self, session: Session, run: Run, found: AnyExploration) -> None:
        """Write what makes the run again, with hashes of the files written; a folder has none."""
        assert self.record is not None
        names = [field.name for field in fields(Request)]
        request = {name: found.options[name] for name in names if name in found.options}
        request |= {"time_limit": session.sampling.time_limit}
        written = {"--output": self.folder, "--traces": self.traces, **self.others}
        outputs = {name: path for name, path in written.items() if path is not None}
        judged = {"diagnostics": found.diagnostics.to_dict()}
        record = run_record(session, run, judged, found.warnings, request, outputs)
        save_record(record, self.record)


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
    found: AnyExploration, folder: str | os.PathLike[str], format: str = "csv"
) -> list[Path]:
    """Write every table and `exploration.json` into a folder, which is made when missing.

    Returns: what was written.
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
