"""A run and the folder it is kept in: sampled with progress, and what is said of it at the end."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from glfm_cli.cli.console import Console
from glfm_cli.completion import Session
from glfm_cli.inference.sampling import Run


class Kept:
    """A context around sampling and writing the result, in which the run's folder is open.

    The folder is made, or opened again, when sampling begins. At the end partial work is removed
    when the result is complete; work that was cut short, by Ctrl-C, a time limit or an error,
    stays, and a warning says where.
    """

    def __init__(self, console: Console, session: Session) -> None:
        self._console, self._session = console, session
        self._stopped: str | None = None

    def sample(
        self, workers: int, time_limit: float | None, *, task: str, forecasts: bool = True
    ) -> Run:
        """Run the chains, showing their progress.

        task : what is done next, even after Ctrl-C;  forecasts : as for `Session.sample`
        """
        from glfm_cli.cli.progress import Progress

        console = self._console
        session = self._session = self._session.begun()
        for text in session.notes:
            console.warn(text)
        with Progress(console, session.plan, session.done) as progress:
            run = session.sample(
                threads=workers, time_limit=time_limit, observer=progress, forecasts=forecasts
            )
        self._stopped = run.stopped
        if run.stopped == "interrupted":
            console.note(f"Interrupted; {task} the draws so far.")
        return run

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        store = self._session.store
        if store is None:
            folder = self._session.folder
            if kind is KeyboardInterrupt and folder is not None and folder.exists():
                self._say_kept(folder)  # Ctrl-C came in the moment between making and opening it
            return
        if kind is not None or self._stopped is not None:
            store.close()
            self._say_kept(store.folder)
        elif self._session.partial:
            store.remove()
        else:
            self._console.note(f"The fit is kept in {store.folder}.")

    def _say_kept(self, folder: Path) -> None:
        self._console.warn(f"the work so far is kept in {folder}; go on with --resume {folder}")
