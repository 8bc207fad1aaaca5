"""The files that an exploration becomes: checked before the work, written after it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeAlias

from glfm_cli.completion import Session, check_traces, run_record, save_record, write_traces
from glfm_cli.errors import OutputError, UsageError
from glfm_cli.exploration.component_result import ComponentExploration
from glfm_cli.exploration.factors import FactorExploration
from glfm_cli.exploration.map_result import MapExploration
from glfm_cli.exploration.request import Request
from glfm_cli.exploration.result import Exploration
from glfm_cli.inference.sampling import Run
from glfm_cli.io import atomic_write, whole_folder, write_table
from glfm_cli.io.files import check_writable

AnyExploration: TypeAlias = Exploration | ComponentExploration | MapExploration | FactorExploration
FORMATS = ("csv", "parquet")
INDEX = "exploration.json"
_OWN = re.compile(r"\w[\w.-]*\.(csv|parquet|png|html)")  # names that an exploration gives


@dataclass(frozen=True)
class ExplorationFiles:
    """Where the parts of an exploration go; None for those that nobody asked for.

    folder : gets every table in `format`, and `exploration.json`, which names the other files
    traces : those of the chains, as NetCDF;  record : what makes the run again
    others : what else is written, by option; the record hashes them
    draw : draws more files, some of them into the folder that it is told, if any
    """

    folder: Path | None = None
    format: str = "csv"
    traces: Path | None = None
    record: Path | None = None
    others: Mapping[str, Path] = field(default_factory=dict)
    draw: Callable[[AnyExploration, Path | None], None] | None = None

    def __post_init__(self) -> None:
        for name in ("folder", "traces", "record"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))

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
        """Write and draw everything but the record."""
        if self.folder is not None:
            _write_folder(found, self)
        elif self.draw is not None:
            self.draw(found, None)
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
        check_writable(path / INDEX)
        return
    if path.exists():
        raise OutputError("is a file", file=str(path), expected="a folder, or a free name")
    check_writable(path)


def _write_folder(found: AnyExploration, files: ExplorationFiles) -> None:
    """Write every table, what is drawn, and the index that names these files.

    What the index of an earlier exploration names is replaced or removed: nothing there is of two.
    """
    assert files.folder is not None
    with whole_folder(files.folder, INDEX, _listed(files.folder / INDEX)) as folder:
        for name, table in found.tables().items():
            write_table(table, folder / f"{name}.{files.format}")
        if files.draw is not None:
            files.draw(found, folder)
        written = sorted(path.name for path in folder.iterdir())
        with atomic_write(folder / INDEX, "w") as file:
            content = {**found.to_dict(), "files": written}
            file.write(json.dumps(content, allow_nan=False, indent=1) + "\n")


def _listed(index: Path) -> list[str]:
    """Return the files that an index says its exploration has written; none where it says none."""
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["files"]
        return [name for name in names if _OWN.fullmatch(name)]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []
