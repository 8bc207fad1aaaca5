"""Where a command's results go, checked before the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from glfm_cli.errors import UsageError


def check_outputs(
    inputs: Mapping[str, str | Path | None],
    outputs: Mapping[str, Path | None],
    on_stdout: Sequence[str] = (),
) -> None:
    """Raise UsageError when two outputs are one file or stream, or an output is an input.

    inputs : None is an input that was not given
    outputs : None is an output that was not asked for; "-" is standard output
    on_stdout : what goes to standard output besides
    """
    from glfm_cli.io import same_file

    streams = [*on_stdout, *(name for name, path in outputs.items() if str(path) == "-")]
    if len(streams) > 1:
        raise UsageError(
            f"{streams[0]} and {streams[1]} both go to standard output",
            hint="Add -o FILE." if "the table" in streams else "Give all but one a file.",
        )
    seen: list[tuple[str, Path]] = []
    for name, path in outputs.items():
        if path is None or str(path) == "-":
            continue
        for what, other in inputs.items():
            if other is not None and same_file(path, other):
                raise UsageError(
                    f"{name} is {what}", file=str(path), hint="Choose another name for the output."
                )
        for other_name, other_path in seen:
            if same_file(path, other_path):
                raise UsageError(f"{name} and {other_name} name the same file", file=str(path))
        seen.append((name, path))


def check_drawn(path: Path | None) -> None:
    """Raise, before the work, what drawing a figure to a file would raise after it."""
    if path is not None:
        from glfm_cli.plots import check_figure

        check_figure(path)


def partial_of(output: Path | None, save: Path | None, resume: Path | None) -> Path | None:
    """Return the output beside which partial work is kept, None when there is no such place."""
    from glfm_cli.io import is_device

    kept = save is not None or resume is not None
    return None if kept or output is None or str(output) == "-" or is_device(output) else output
