"""Who does the work: a pool of threads, or of processes, with BLAS held to one thread each.

Chains run in threads (`run_jobs`), whole fits in processes (`run_in_processes`). Results never
depend on who makes them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from glfm_cli.inference.blas import one_blas_thread

Result = TypeVar("Result")
Context = TypeVar("Context")
Item = TypeVar("Item")

_POLL_SECONDS = 0.2  # how soon the waiting thread notices Ctrl-C
_GRACE_SECONDS = 5.0  # that a worker has to end by itself
_WATCH_SECONDS = 1.0  # how soon a worker notices that its caller is gone


def available_threads() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_jobs(
    jobs: Sequence[Callable[[], Result]], *, threads: int, on_interrupt: Callable[[], None]
) -> list[Result]:
    """Run the jobs, at most `threads` at a time, and return their results in order.

    jobs : independent of one another
    threads : workers, >= 1. Kernels release the GIL, so chains run side by side.
    on_interrupt : called at Ctrl-C; it asks the jobs to end soon, and their results are still
        returned. A second Ctrl-C raises KeyboardInterrupt.
    """
    with one_blas_thread():
        pool = ThreadPoolExecutor(max_workers=max(1, min(threads, len(jobs))))
        asked = False
        try:
            futures = [pool.submit(job) for job in jobs]
            pending = set(futures)
            while pending:
                try:
                    done, pending = wait(pending, _POLL_SECONDS, FIRST_EXCEPTION)
                    for future in done:
                        future.result()
                except KeyboardInterrupt:
                    if asked:
                        raise
                    asked = True
                    on_interrupt()
            return [future.result() for future in futures]
        except BaseException:
            on_interrupt()  # one job failed: the others need not finish
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def thread_pool(threads: int) -> Iterator[ThreadPoolExecutor | None]:
    """Lend a pool of threads for small jobs, None for one thread; BLAS is held to one thread.

    An exception, Ctrl-C for one, leaves the jobs undone that have not begun.
    """
    with one_blas_thread():
        if threads == 1:
            yield None
            return
        pool = ThreadPoolExecutor(max_workers=threads)
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


# ------------------------------------------------------------------------------ processes


def run_in_processes(
    function: Callable[[Context, Item], Result],
    context: Context,
    items: Sequence[Item],
    *,
    workers: int,
    on_result: Callable[[int, Result], None],
) -> None:
    """Call `function(context, item)` for every item, in worker processes or here.

    function : at the top level of a module, so that a worker can find it
    context : sent to every worker once; it and the items can be pickled
    items : what the calls differ in. Results must not depend on who makes them.
    workers : processes, >= 1; with 1 the calls are made in this one
    on_result : told the position of an item and its result as they come; called in this thread, one
        at a time. An exception of it, and Ctrl-C, end all workers.

    Raises WorkerError: a worker ended in the middle of a call, killed for want of memory for
        example; Exception: what a call raised.
    """
    if workers <= 1 or len(items) <= 1:
        with one_blas_thread():
            for i, item in enumerate(items):
                on_result(i, function(context, item))
        return
    crew = [Worker(function, context) for _ in range(min(workers, len(items)))]
    waiting = list(enumerate(items))[::-1]
    answers: queue.SimpleQueue[tuple[int, Result | BaseException]] = queue.SimpleQueue()

    def keep_busy(worker: Worker) -> None:
        while True:
            try:
                i, item = waiting.pop()  # from the first on; atomic
            except IndexError:
                return
            try:
                answers.put((i, worker.call(item)))
            except BaseException as error:
                answers.put((i, error))
                return

    threads = [threading.Thread(target=keep_busy, args=(worker,), daemon=True) for worker in crew]
    try:
        for thread in threads:
            thread.start()
        for _ in items:
            i, answer = answers.get()
            if isinstance(answer, BaseException):
                raise answer
            on_result(i, answer)
    finally:
        waiting.clear()
        for worker in crew:
            worker.end()
        for thread in threads:
            thread.join()


class WorkerError(RuntimeError):
    """A worker process ended in the middle of a call."""


class Worker:
    """A process of its own that makes calls, one at a time, over a pair of pipes.

    It runs this interpreter anew rather than a fork, which threads would not survive, and needs
    nothing of the caller's main module.
    """

    def __init__(self, function: Callable[..., Any], context: Any) -> None:
        start = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **one},
        )
        self._first: tuple[Any, Any] | None = (function, context)

    def call(self, item: Any) -> Any:
        """Return the result for an item, or raise what the call raised."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        try:
            if self._first is not None:
                pickle.dump(self._first, to)
                self._first = None
            pickle.dump(item, to)
            to.flush()
            good, answer = pickle.load(back)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            status = self._process.wait()
            how = f"signal {-status}" if status < 0 else f"status {status}"
            raise WorkerError(
                f"a worker process ended early ({how}); it may have run out of memory"
            ) from None
        if good:
            return answer
        raise answer

    def end(self) -> None:
        """End the process, in the middle of a call if need be."""
        self._process.terminate()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not sent any more
                    pipe.close()


def serve() -> None:
    """Answer the calls that come over standard input, until it ends: the life of a `Worker`.

    When the process that started this one is gone, a call under way is given up.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the caller, who ends us
    ended = threading.Event()

    def end(*_: Any) -> None:
        ended.set()  # compiled code may swallow the exception
        sys.exit(1)  # by way of every `finally`: a program that runs for us is ended too

    signal.signal(signal.SIGTERM, end)
    # A launcher may stand between the caller and this process: who calls is not asked.
    threading.Thread(target=_end_without, args=(os.getppid(),), daemon=True).start()
    calls = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What a library prints or reads must not meet the calls.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with one_blas_thread():
        try:
            function, context = pickle.load(calls)
            while not ended.is_set():
                item = pickle.load(calls)
                try:
                    answer = (True, function(context, item))
                except Exception as error:
                    answer = (False, error)
                pickle.dump(answer, answers)
                answers.flush()
        except (EOFError, BrokenPipeError):
            return


def _end_without(parent: int) -> None:
    """End this process once the one that started it is gone, killed before it could end us."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)
