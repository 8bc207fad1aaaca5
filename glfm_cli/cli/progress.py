"""Progress on stderr: of sampling, share done and time remaining; of other fits, where they are."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Self

from glfm_cli.cli.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from glfm_cli.completion import Session
    from glfm_cli.inference.sampling import Run


class Shown:
    """A context manager that shows a bar while it lasts."""

    _bar: RichProgress

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self._bar)


def bar_of(console: Console, *columns: Any) -> RichProgress:
    """Return a bar on stderr that leaves nothing behind, and shows nothing where none is asked."""
    from rich.console import Console as RichConsole
    from rich.progress import Progress

    return Progress(
        *columns,
        console=RichConsole(file=console.stderr),
        transient=True,
        disable=not console.shows_progress,
    )


def _stop(bar: RichProgress) -> None:
    if not bar.disable:  # rich before 14.3 would end a line that was never begun
        bar.stop()


class ProgressLine(Shown):
    """Watches a run: draws one line while stderr is a terminal, and says where work is kept.

    Used as a context manager; outside a terminal, or when quiet, there is no line. `task` is what
    is done with the draws after Ctrl-C.
    """

    def __init__(self, console: Console, task: str) -> None:
        self._console, self._what, self._lock, self._done = console, task, threading.Lock(), 0
        self._left: tuple[Path, bool] | None = None

    def __enter__(self) -> Self:
        return self  # the line is shown from the first sweep on

    def __exit__(self, *_: object) -> None:
        self._console.clear()
        if hasattr(self, "_bar"):
            _stop(self._bar)
        if self._left is None:
            return
        folder, complete = self._left
        if complete:
            self._console.note(f"The fit is saved in {folder}.")
        else:
            again = f"--resume {quote(str(folder))}"
            self._console.warn(f"the work so far is saved in {folder}; continue with {again}")

    def begun(self, session: Session) -> None:
        """Say what the user should know, and show the line."""
        from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
        from rich.text import Text

        watch = self

        class _Rate(ProgressColumn):
            """Sweeps a second; worked out when the line is drawn, not at every sweep."""

            def render(self, task: Task) -> Text:
                shown = task.speed and task.id == watch._task
                return Text(f"{task.speed:.0f} sweeps/s" if shown else "")

        self._console.clear()
        for text in session.notes:
            self._console.warn(text)
        plan, self._done = session.plan, session.done
        self._chains, self._sweeps = plan.chains, plan.sweeps
        self._bar = bar_of(
            self._console,
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            _Rate(),
            TimeRemainingColumn(),
            TextColumn("left{task.fields[size]}"),
        )
        self._size = getattr(session.problem.model, "size", "")
        self._task = self._bar.add_task(
            f"{plan.chains} chains",
            total=plan.chains * plan.sweeps,
            completed=session.done,
            size=", warming up",
        )
        self._forecasts = self._bar.add_task("checking on observed cells", visible=False, size="")
        self._bar.start()

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """Count one sweep; called from the chains' threads."""
        with self._lock:
            self._done += 1
            changes: dict[str, Any] = {}
            if chain >= self._chains:  # --precision has added chains
                self._chains = chain + 1
                changes["description"] = f"{self._chains} chains"
                changes["total"] = self._chains * self._sweeps
            if trace is not None:
                size = trace.get(self._size)
                changes["size"] = "" if size is None else f", {self._size} {size:.0f}"
            self._bar.update(self._task, completed=self._done, **changes)

    def forecast(self, sets: int, of: int) -> None:
        """Show how many sets of observed cells are forecast, by which forecasts are corrected."""
        # Drawn at once: of few cells it is over before the next time that the line would be.
        now = sets == 0
        self._bar.update(self._forecasts, completed=sets, total=of, visible=sets < of, refresh=now)

    def sampled(self, run: Run) -> None:
        """Take the line away, and say what comes after Ctrl-C."""
        _stop(self._bar)
        if run.stopped == "interrupted":
            self._console.note(f"Interrupted; {self._what} the draws so far.")
        self._console.wait(f"{self._what} the draws")

    def completed(self, rows: int, of: int | None) -> None:
        """Show how many rows of a file are completed."""
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

        if not hasattr(self, "_rows"):
            self._console.clear()
            shown = TextColumn("{task.completed:,.0f} rows completed")
            self._bar = bar_of(self._console, shown, BarColumn(), TimeRemainingColumn())
            self._rows = self._bar.add_task("", total=of)
            self._bar.start()
        self._bar.update(self._rows, completed=rows)

    def left(self, folder: Path, complete: bool) -> None:
        """Take note of where the run is kept, which is said last."""
        self._left = folder, complete


STEPS = 40  # of each start of a fit that ends by itself, more or less


class FitProgress(Shown):
    """Shows where a fit is whose end nobody knows, on one line while stderr is a terminal.

    How long is left is by the steps that earlier folds made, or that fits usually make.

    Used as a context manager, and told of every iteration; outside a terminal, or when quiet, it
    shows nothing. `starts` of every fit, of `folds` fits one after another where there are any.
    """

    def __init__(self, console: Console, starts: int, folds: int | None = None) -> None:
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        self._starts, self._folds, self._fold = starts, folds, 0
        self._began, self._steps, self._ended, self._lock = time.monotonic(), 0, 0, threading.Lock()
        description = TextColumn("{task.description}")
        self._bar = bar_of(console, SpinnerColumn(), description, TimeElapsedColumn())
        self._task = self._bar.add_task("beginning", total=None)

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """Show where the fit is after an iteration: its bound, or its log likelihood."""
        with self._lock:
            if (chain, sweep) == (0, 1):
                self._fold, self._ended = self._fold + 1, self._steps
            self._steps += 1
        if trace is None:
            return
        reached = trace.get("bound", trace.get("log_likelihood", float("nan")))
        fold = "" if self._folds is None else f"fold {self._fold} of {self._folds}, "
        status = f"{fold}start {chain + 1} of {self._starts}, iteration {sweep}, {reached:.6g}"
        left = self.seconds_left(time.monotonic() - self._began)
        if "bound" in trace and left is not None:
            status += f", about {left:.0f} s left"
        self._bar.update(self._task, description=status)

    def seconds_left(self, elapsed: float) -> float | None:
        """Return about how long is left after so many seconds; None while that is not known."""
        behind, here = max(self._fold - 1, 0), self._steps - self._ended
        each = self._ended / behind if behind else STEPS * self._starts
        if not (behind or here > self._starts):
            return None
        left = max(each - here, 0.1 * here) + each * max((self._folds or 1) - behind - 1, 0)
        return elapsed * left / self._steps
