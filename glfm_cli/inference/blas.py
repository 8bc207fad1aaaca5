"""BLAS held to one thread: its sums then have one order, whatever the machine and its load."""

from __future__ import annotations

import contextlib
import functools
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
        self._users: set[object] = set()
        self._before: list[tuple[ThreadpoolController, int]] = []  # while it is held

    def take(self, user: object) -> None:
        importlib.import_module("scipy.linalg")  # a library loaded later would escape the limit
        with self._lock:
            self._users.add(user)
            if not self._before:
                before = [(library, library.num_threads) for library in _libraries()]
                for library, _ in before:
                    _set(library, 1)
                self._before = before  # last: Ctrl-C may come at any point

    def leave(self, user: object) -> None:
        with self._lock:
            self._users.discard(user)
            if not self._users:
                for library, before in self._before:
                    _set(library, before)
                self._before = []


@functools.cache  # to look for them takes milliseconds
def _libraries() -> list[ThreadpoolController]:
    """Return the libraries of BLAS that this process has loaded."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


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
    user = object()
    try:
        _HOLD.take(user)
        yield
    finally:
        _HOLD.leave(user)
