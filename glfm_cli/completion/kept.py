"""A run and the folder it is kept in, open from the first sweep to the last file written."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from glfm_cli.completion.session import Session
from glfm_cli.errors import GlfmError
from glfm_cli.inference.sampling import Observer, Run


@runtime_checkable
class Watch(Protocol):
    """An observer that is also told of all that comes before, between and after the sweeps."""

    def begun(self, session: Session) -> None:
        """Sampling begins."""

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """One sweep is done, as an `Observer` is told."""

    def sampled(self, run: Run) -> None:
        """Sampling has ended, and its answer is to be written."""

    def completed(self, rows: int, of: int | None) -> None:
        """So many rows of a file are completed, of as many as there are where that is known."""

    def left(self, folder: Path, complete: bool) -> None:
        """The run stays in a folder: `complete`, or the work of one that was cut short."""


class Kept:
    """A context around sampling and writing the result, in which the run's folder is open.

    The folder is made, or opened again, when sampling begins. At the end partial work is removed
    when the result is complete; work that was cut short, by Ctrl-C, a time limit or an error,
    stays, and a `Watch` is told where; an error before any chain has begun leaves nothing.
    """

    def __init__(self, session: Session, observer: Observer | None) -> None:
        self._session, self._observer = session, observer
        self._watch = observer if isinstance(observer, Watch) else None
        self._stopped: str | None = None

    def sample(self, *, forecasts: bool = True) -> Run:
        """Run the chains; `forecasts` as for `Session.sample`."""
        session = self._session = self._session.begun()
        if self._watch is not None:
            self._watch.begun(session)
        run = session.sample(observer=self._observer, forecasts=forecasts)
        self._stopped = run.stopped
        if self._watch is not None:
            self._watch.sampled(run)
        return run

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        store = self._session.store
        if store is None:
            folder = self._session.folder
            if kind is KeyboardInterrupt and folder is not None and folder.exists():
                self._left(folder, False)  # Ctrl-C came between making and opening it
        elif kind is not None and issubclass(kind, GlfmError) and not store.begun:
            store.remove()  # a cluster that does not answer, for example: there is no work
        elif kind is not None or self._stopped is not None:
            store.close()
            self._left(store.folder, False)
        elif self._session.partial:
            store.remove()
        else:
            store.close()
            self._left(store.folder, True)

    def _left(self, folder: Path, complete: bool) -> None:
        if self._watch is not None:
            self._watch.left(folder, complete)
