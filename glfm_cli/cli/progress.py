"""Progress on stderr: of sampling, share done and time remaining; of other fits, where they are."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from glfm_cli.cli.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from glfm_cli.inference.sampling import Plan


class Shown:
    """A context manager that shows a bar while it lasts."""

    _bar: RichProgress

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._bar.stop()


class Progress(Shown):
    """An observer of a run that draws one line a run while stderr is a terminal.

    Used as a context manager; outside a terminal, or when quiet, it shows nothing. `done` sweeps
    were made before.
    """

    def __init__(self, console: Console, plan: Plan, done: int = 0) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._lock = threading.Lock()
        self._done = done
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("left, {task.fields[size]}"),
            console=RichConsole(file=console.stderr),
            transient=True,
            disable=not console.shows_progress,
        )
        self._task = self._bar.add_task(
            f"{plan.chains} chains",
            total=plan.chains * plan.sweeps,
            completed=done,
            rate="",
            size="warming up",
        )

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """Count one sweep; called from the chains' threads."""
        with self._lock:
            self._done += 1
            changes: dict[str, str] = {}
            for name in ("features", "rank"):
                if trace is not None and name in trace:
                    changes["size"] = f"{name} {trace[name]:.0f}"
            speed = self._bar.tasks[0].speed
            if speed:
                changes["rate"] = f"{speed:.0f} sweeps/s"
            self._bar.update(self._task, completed=self._done, **changes)  # type: ignore[arg-type]


class FitProgress(Shown):
    """Shows where a fit is whose end nobody knows, on one line while stderr is a terminal.

    Used as a context manager, and told of every iteration; outside a terminal, or when quiet, it
    shows nothing. `starts` of every fit, of `folds` fits one after another where there are any.
    """

    def __init__(self, console: Console, starts: int, folds: int | None = None) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import Progress as RichProgress
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        self._starts, self._folds, self._fold = starts, folds, 0
        self._bar = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=RichConsole(file=console.stderr),
            transient=True,
            disable=not console.shows_progress,
        )
        self._task = self._bar.add_task("beginning", total=None)

    def __call__(self, start: int, iteration: int, bound: float) -> None:
        """Show where the fit is: the bound, or what else it reports, after an iteration."""
        if (start, iteration) == (0, 1):
            self._fold += 1
        fold = "" if self._folds is None else f"fold {self._fold} of {self._folds}, "
        said = f"{fold}start {start + 1} of {self._starts}, iteration {iteration}, {bound:.6g}"
        self._bar.update(self._task, description=said)
