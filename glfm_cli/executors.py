"""Who runs the chains: the caller's thread, or a pool of threads with BLAS held to one each.

An executor runs jobs and returns their results in order. Results never depend on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from threadpoolctl import threadpool_limits

Result = TypeVar("Result")

_POLL_SECONDS = 0.2  # how soon the waiting thread notices Ctrl-C


def available_threads() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_jobs(
    jobs: Sequence[Callable[[], Result]], *, threads: int, on_interrupt: Callable[[], None]
) -> list[Result]:
    """Run the jobs, at most `threads` at a time, and return their results in order.

    Parameters
    ----------
    jobs : sequence of callables
        Independent of one another.
    threads : int
        Workers, >= 1. Kernels release the GIL, so chains run side by side.
    on_interrupt : callable
        Called at Ctrl-C; it asks the jobs to end soon, and their results are still returned. A
        second Ctrl-C raises KeyboardInterrupt.
    """
    with threadpool_limits(limits=1, user_api="blas"):
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
