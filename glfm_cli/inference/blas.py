"""BLAS held to one thread: its sums then have one order, whatever the machine and its load."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController


class _Hold:
    """A limit of the whole process, set by its first user and lifted by its last.

    Users overlap, in threads of their own: one that leaves must not free what another needs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: list[tuple[ThreadpoolController, int]] = []

    def take(self) -> None:
        importlib.import_module("scipy.linalg")  # a library loaded later would escape the limit
        with self._lock:
            self._users += 1
            if self._users == 1:
                found = ThreadpoolController().select(user_api="blas").lib_controllers
                self._before = [(library, library.num_threads) for library in found]
                for library, _ in self._before:
                    _set(library, 1)

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for library, before in self._before:
                    _set(library, before)


def _set(library: ThreadpoolController, threads: int) -> None:
    # Since threadpoolctl 3.8 one thread at a time may set OpenBLAS's number, and the calls of
    # others do nothing, silently.
    free = getattr(library, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)
    library.set_num_threads(threads)
    if free is not None:
        free(force=True)


_HOLD = _Hold()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread until every such context of this process has ended."""
    _HOLD.take()
    try:
        yield
    finally:
        _HOLD.leave()
