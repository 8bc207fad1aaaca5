"""A run and the folder it is kept in, open from the first sweep to the last file written."""

from __future__ import annotations

from glfm_cli.completion.session import Session
from glfm_cli.errors import GlfmError
from glfm_cli.inference.run import Observer, Run, tell


class Kept:
    """A context around sampling and writing the result, in which the run's folder is open.

    The folder is made, or opened again, when sampling begins. At the end partial work is removed
    when the result is complete; work that was cut short, by Ctrl-C, a time limit or an error,
    stays, and the observer is told where; an error before any chain has begun leaves nothing.
    """

    def __init__(self, session: Session, observer: Observer | None) -> None:
        self._session, self._observer = session, observer
        self._stopped: str | None = None

    def sample(self, *, forecasts: bool = True) -> Run:
        """Run the chains; `forecasts` as for `Session.sample`."""
        session = self._session = self._session.begun()
        tell(self._observer, "begun", session)
        run = session.sample(observer=self._observer, forecasts=forecasts)
        self._stopped = run.stopped
        tell(self._observer, "sampled", run)
        return run

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        store = self._session.store
        if store is None:
            folder = self._session.folder
            if kind is KeyboardInterrupt and folder is not None and folder.exists():
                # Ctrl-C came between making and opening it.
                tell(self._observer, "left", folder, False)
        elif kind is not None and issubclass(kind, GlfmError) and not store.begun:
            store.remove()  # a cluster that does not answer, for example: there is no work
        elif kind is not None or self._stopped is not None:
            store.close()
            tell(self._observer, "left", store.folder, False)
        elif self._session.partial:
            store.remove()
        else:
            store.close()
            tell(self._observer, "left", store.folder, True)
