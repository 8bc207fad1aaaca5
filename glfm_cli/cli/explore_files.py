"""The files that `glfm explore` writes: checked before the work, written after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glfm_cli.completion import Session
    from glfm_cli.exploration import Exploration
    from glfm_cli.inference.sampling import Run

_LONGEST = 60  # letters of a column's name in the name of a file


@dataclass(frozen=True)
class Outputs:
    """Where the parts of an exploration go; None for those that nobody asked for.

    folder : gets every table in `file_format`, every figure, the page and `exploration.json`
    """

    folder: Path | None
    file_format: str
    html: Path | None
    plot: Path | None
    record: Path | None
    traces: Path | None

    def by_option(self) -> dict[str, Path | None]:
        """Return every output by the option that names it."""
        return {
            "--output": self.folder,
            "--html": self.html,
            "--plot": self.plot,
            "--record": self.record,
            "--traces-to": self.traces,
        }

    def check(self, data: str, types: Path | None) -> None:
        """Raise now what writing would raise after the work.

        Raises
        ------
        UsageError
            A name does not tell a format, or an output is an input or another output.
        OutputError
            A folder is missing or not writable.
        """
        from glfm_cli.cli.outputs import check_outputs
        from glfm_cli.errors import UsageError
        from glfm_cli.exploration import check_folder, check_format
        from glfm_cli.io import check_writable

        for name, path in self.by_option().items():
            if str(path) == "-":
                raise UsageError(f"{name} needs a name, not standard output")
        check_outputs({"the table itself": data, "the types file": types}, self.by_option())
        check_format(self.file_format)
        if self.folder is not None:
            check_folder(self.folder)
        for path in (self.html, self.record):
            if path is not None:
                check_writable(path)
        if self.plot is not None:
            from glfm_cli.plots import check_figure

            check_figure(self.plot)
        if self.traces is not None:
            from glfm_cli.completion import check_traces

            check_traces(self.traces)

    def partial(self, save: Path | None, resume: Path | None) -> Path | None:
        """Return the output beside which partial work is kept, None when there is no such place."""
        from glfm_cli.cli.outputs import partial_of

        files = (self.folder, self.html, self.plot)
        first = next((path for path in files if path is not None), None)
        return partial_of(first, save, resume)

    def write(self, found: Exploration) -> None:
        """Write every part but the record."""
        source = found.options["source"]
        name = source if source == "standard input" else Path(source).name
        drawn: dict[str, Path] = {}
        if self.folder is not None:
            from glfm_cli.exploration import write_files

            write_files(found, self.folder, self.file_format)
            drawn = _draw_all(found, self.folder)
        page = None if self.folder is None else self.folder / "report.html"
        pages = [path for path in (page, self.html) if path is not None]
        if pages:
            from glfm_cli.report import write_exploration

            write_exploration(found, *pages, name=name, drawn=drawn)
        if self.plot is not None:
            from glfm_cli.plots import plot_exploration

            plot_exploration(found, self.plot)
        if self.traces is not None:
            from glfm_cli.completion import write_traces

            posterior, seed = found.posterior, found.options["seed"]
            traces, model = posterior.traces(), posterior.model.name
            write_traces(self.traces, traces, found.data, model=model, seed=seed)

    def write_record(
        self, session: Session, run: Run, found: Exploration, time_limit: float | None
    ) -> None:
        """Write what makes the run again, with hashes of the files written; a folder has none."""
        from glfm_cli.completion import run_record, write_record

        assert self.record is not None
        kept = ("sample", "top", "columns", "surprising", "similar", "dependence")
        request = {name: found.options[name] for name in kept} | {"time_limit": time_limit}
        written = {
            name: path for name, path in self.by_option().items() if path and path != self.record
        }
        said = run_record(session, run, found.diagnostics, found.warnings, request, written)
        write_record(said, self.record)


def _draw_all(found: Exploration, folder: Path) -> dict[str, Path]:
    """Draw every figure that the exploration has content for, as PNG files; return them by name."""
    from glfm_cli import plots

    draw: dict[str, Callable[[Path], object]] = {
        "overview": partial(plots.plot_exploration, found),
        "traces": partial(plots.plot_traces, found),
        "fit": partial(plots.plot_fit, found),
    }
    for number, names in enumerate(plots.pages_of_columns(found), start=1):
        name = "columns" if number == 1 else f"columns_{number}"
        draw[name] = partial(plots.plot_columns, found, columns=names)
    if found.dependence is not None and len(found.scales) > 1:
        draw["dependence"] = partial(plots.plot_dependence, found)
    drawn = {name: folder / f"{name}.png" for name in draw}
    for scale in found.columns:
        if len(scale.encoded.levels) > 1 and scale.encoded.observed.any():
            key, name = f"shares {scale.d + 1}", re.sub(r"[^\w.-]+", "_", scale.name)[:_LONGEST]
            draw[key] = partial(plots.plot_shares, found, scale.name)
            drawn[key] = folder / f"shares_{scale.d + 1}_{name}.png"
    for key, path in drawn.items():
        draw[key](path)
    return drawn
