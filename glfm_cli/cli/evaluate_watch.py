"""Progress of an evaluation on stderr: the forecast before it starts, then fits done."""

from __future__ import annotations

from typing import Self

from glfm_cli.cli.console import Console
from glfm_cli.cli.progress import Shown, bar_of
from glfm_cli.evaluation import Forecast, Outcome


class EvaluationWatch(Shown):
    """An observer of an evaluation: says how long it may take, and draws a bar on a terminal."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        self._console = console
        self._bar = bar_of(
            console,
            TextColumn("fits"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("left, {task.fields[last]}"),
        )
        self._task = self._bar.add_task("fits", total=None, last="")

    def __enter__(self) -> Self:
        return self  # the bar is shown from the forecast on

    def planned(self, forecast: Forecast) -> None:
        """Say what is to be done and how long it may take."""
        self._console.note(forecast_text(forecast))
        self._bar.start()
        self._bar.update(self._task, total=forecast.fits)

    def fitted(self, fit: Outcome) -> None:
        """Count a fit."""
        self._bar.update(self._task, advance=1, last=f"last {fit.id.method}")


def forecast_text(forecast: Forecast) -> str:
    """Return the forecast in a line."""
    if not forecast.fits:
        return f"All {forecast.done} fits are there already."
    text = f"{forecast.fits} fits, {forecast.workers} at a time"
    if forecast.done:
        text += f" ({forecast.done} are there already)"
    if forecast.per_fit:
        each = ", ".join(f"{name} {duration(s)}" for name, s in forecast.per_fit.items())
        text += f": about {duration(forecast.seconds)} (a fit of {each})"
    if forecast.unknown:
        names = ", ".join(forecast.unknown)
        text += f"{'; besides ' if forecast.per_fit else ': '}{names}, whose time is not known"
    elif not forecast.per_fit:
        text += ": a moment"
    return text + "."


def duration(seconds: float) -> str:
    """Return a rough time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 9.5 else f"{max(seconds, 0.1):.1f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
